//! Reads a piece of a stack in one go.
//!
//! # Role
//! A walk reads a few words of each frame, in ascending order: one system call
//! brings many frames.

use crate::memory::ReadableMemory;

/// Holds ten ordinary frames, and is quick to copy.
const SIZE: usize = 4096;

/// The piece that was read last.
#[derive(Default)]
pub(super) struct ReadWindow {
    start: u64,
    filled: usize,
    bytes: Vec<u8>,
}

impl ReadWindow {
    /// Forgets what was read: another thread, or the same later.
    pub(super) fn forget(&mut self) {
        self.filled = 0;
    }

    /// Returns the word at `address`; the address itself where there is none.
    pub(super) fn read(&mut self, memory: &dyn ReadableMemory, address: u64) -> Result<u64, u64> {
        if let Some(word) = self.held(address) {
            return Ok(word);
        }
        // From a multiple of the cache line on, for the words in front of a
        // frame's first are read soon as well.
        self.start = address & !63;
        self.bytes.resize(SIZE, 0);
        self.filled = memory.read(self.start, &mut self.bytes).unwrap_or(0);
        // In case the line straddles the start of what may be read.
        self.held(address).or_else(|| memory.read_u64(address)).ok_or(address)
    }

    fn held(&self, address: u64) -> Option<u64> {
        let from = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let word = self.bytes[..self.filled].get(from..from.checked_add(8)?)?;
        word.try_into().ok().map(u64::from_ne_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SavedMemory;
    use std::cell::Cell;

    struct Counted(SavedMemory, Cell<u32>);

    impl ReadableMemory for Counted {
        fn read(&self, address: u64, into: &mut [u8]) -> std::io::Result<usize> {
            self.1.set(self.1.get() + 1);
            self.0.read(address, into)
        }
    }

    #[test]
    fn neighbours_come_in_one_read() {
        let bytes = (0..1024_u64).flat_map(u64::to_ne_bytes).collect();
        let memory = Counted(SavedMemory::new(0x10_0000, bytes), Cell::new(0));
        let mut window = ReadWindow::default();
        for word in 8..256 {
            assert_eq!(window.read(&memory, 0x10_0000 + 8 * word), Ok(word));
        }
        assert_eq!(memory.1.get(), 1);
        assert_eq!(window.read(&memory, 0x10_0000 + 8 * 1000), Ok(1000));
        assert_eq!(window.read(&memory, 0x10_0000), Ok(0), "backwards as well");
        assert_eq!(window.read(&memory, 0x10_2000), Err(0x10_2000));
        assert_eq!(window.read(&memory, 0x10_1ff8), Ok(1023), "the last word");
        assert_eq!(window.read(&memory, u64::MAX), Err(u64::MAX));
    }

    #[test]
    fn a_start_within_a_line_is_read() {
        let memory = SavedMemory::new(0x10_0020, vec![1; 8]);
        let mut window = ReadWindow::default();
        assert_eq!(window.read(&memory, 0x10_0020), Ok(0x0101_0101_0101_0101));
    }

    #[test]
    fn what_was_forgotten_is_read_again() {
        let mut window = ReadWindow::default();
        let before = SavedMemory::new(0x1000, vec![1; 64]);
        let after = SavedMemory::new(0x1000, vec![2; 64]);
        assert_eq!(window.read(&before, 0x1000), Ok(0x0101_0101_0101_0101));
        window.forget();
        assert_eq!(window.read(&after, 0x1000), Ok(0x0202_0202_0202_0202));
    }
}

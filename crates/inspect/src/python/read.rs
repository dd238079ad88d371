//! Reading the memory of an interpreter, a page at a time.
//!
//! # Role
//! Objects lie close together, and each is read in many small pieces: a page is read once and
//! kept until [`PageReader::forget`], which whoever wants to see a later moment calls. What
//! is read is never more than a number here: readers check what they make of it.

use crate::memory::ReadableMemory;
use std::cell::RefCell;
use std::collections::HashMap;

const PAGE: u64 = 4096;
/// The most pages that are kept, 64 MiB of them.
const MOST: usize = 16 * 1024;

/// Memory that is read by pages.
pub(super) struct PageReader<'a> {
    memory: &'a dyn ReadableMemory,
    pages: RefCell<HashMap<u64, Vec<u8>>>,
}

impl<'a> PageReader<'a> {
    pub(super) fn new(memory: &'a dyn ReadableMemory) -> Self {
        PageReader { memory, pages: RefCell::default() }
    }

    /// Drops what was read: the next reading shows a later moment.
    pub(super) fn forget(&self) {
        self.pages.borrow_mut().clear();
    }

    /// Returns the 8 bytes at an address as they are now.
    pub(super) fn now(&self, address: u64) -> Option<u64> {
        self.memory.read_u64(address)
    }

    /// Fills `into` from `address` on; `None` unless all of it is there.
    pub(super) fn bytes(&self, address: u64, into: &mut [u8]) -> Option<()> {
        let mut pages = self.pages.borrow_mut();
        let mut done = 0;
        while done < into.len() {
            let at = address.checked_add(done as u64)?;
            let (page, offset) = (at / PAGE * PAGE, (at % PAGE) as usize);
            if !pages.contains_key(&page) {
                if pages.len() >= MOST {
                    pages.clear();
                }
                let mut bytes = vec![0; PAGE as usize];
                let length = self.memory.read(page, &mut bytes).unwrap_or(0);
                bytes.truncate(length);
                pages.insert(page, bytes);
            }
            let rest = pages.get(&page)?.get(offset..).filter(|rest| !rest.is_empty())?;
            let n = rest.len().min(into.len() - done);
            into[done..done + n].copy_from_slice(&rest[..n]);
            done += n;
        }
        Some(())
    }

    /// Returns `length` bytes; `None` if there are fewer, or if that is more than `most`.
    pub(super) fn block(&self, address: u64, length: u64, most: usize) -> Option<Vec<u8>> {
        let length = usize::try_from(length).ok().filter(|&length| length <= most)?;
        let mut bytes = vec![0; length];
        self.bytes(address, &mut bytes)?;
        Some(bytes)
    }

    pub(super) fn u64(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.bytes(address, &mut bytes)?;
        Some(u64::from_ne_bytes(bytes))
    }

    pub(super) fn u32(&self, address: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.bytes(address, &mut bytes)?;
        Some(u32::from_ne_bytes(bytes))
    }

    pub(super) fn u8(&self, address: u64) -> Option<u8> {
        let mut bytes = [0; 1];
        self.bytes(address, &mut bytes)?;
        Some(bytes[0])
    }

    /// Returns the pointer at `address + offset`; `None` if it is null.
    pub(super) fn pointer(&self, address: u64, offset: u64) -> Option<u64> {
        self.u64(address.checked_add(offset)?).filter(|&pointer| pointer != 0)
    }

    /// Returns a string of C of at most `most` bytes, as far as it is text.
    pub(super) fn c_string(&self, address: u64, most: usize) -> Option<String> {
        let mut text = Vec::new();
        for at in 0..most as u64 {
            match self.u8(address.checked_add(at)?)? {
                0 => return String::from_utf8(text).ok(),
                byte => text.push(byte),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SavedMemory;

    #[test]
    fn pieces_are_read_across_pages_and_never_past_the_end() {
        let bytes: Vec<u8> = (0..PAGE as usize + 8).map(|at| at as u8).collect();
        let memory = SavedMemory::new(0x10000, bytes);
        let reader = PageReader::new(&memory);
        let mut four = [0; 4];
        assert_eq!(reader.bytes(0x10000 + PAGE - 2, &mut four), Some(()));
        assert_eq!(four, [254, 255, 0, 1]);
        assert_eq!(reader.bytes(0x10000 + PAGE + 6, &mut four), None, "two bytes short");
        assert_eq!(reader.u64(u64::MAX - 3), None);
        assert_eq!(reader.pointer(u64::MAX, 8), None);
        assert_eq!(reader.block(0x10000, u64::MAX, 16), None);
        assert_eq!(reader.c_string(0x10001, 16), None, "no end within 16 bytes");
    }
}

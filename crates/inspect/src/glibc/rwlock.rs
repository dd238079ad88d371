//! `pthread_rwlock_t`.
//!
//! # Layout
//! | offset | field | meaning |
//! |---|---|---|
//! | 0 | readers | bit 0: a write phase; bit 1: a writer has it or is next; bit 2: readers sleep here; above: how many readers |
//! | 4 | writers | waiting writers |
//! | 8 | phase | readers sleep here for the end of the write phase, the next writer for its start |
//! | 12 | turn | writers sleep here for another writer |
//! | 24 | writer | number of the thread that holds it alone, or 0 |
//! | 28 | shared | 1: also for other processes |
//! | 16, 40 | spare | 0, or a mark of the library that checks |
//! | 48 | flags | who is preferred: 0, 1 or 2 |

use super::{GlibcFields, MOST_THREADS, READERS_SHIFT, WRITE_PHASE, is_thread};
use crate::memory::ReadableMemory;
use crate::proc::futex::{FutexWait, FutexWaitKind};

const WRITER_NEXT: u32 = 2;
const READERS_SLEEP: u32 = 4;
/// The value of the words slept on that says: somebody sleeps.
const USED: u32 = 2;

/// A reader-writer lock that somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlibcRwLock {
    /// The address of its first byte.
    pub address: u64,
    /// The thread that holds it alone, by the number that it has for itself.
    pub writer: Option<u32>,
    /// How many hold it together, if no writer has it.
    pub readers: u32,
    /// The waiting thread wants it alone.
    pub exclusive: bool,
    /// Threads of other processes may hold it.
    pub shared: bool,
}

impl GlibcRwLock {
    /// Returns the lock that a thread sleeps for.
    #[must_use]
    pub fn behind(wait: &FutexWait, memory: &dyn ReadableMemory) -> Option<GlibcRwLock> {
        if wait.operation != (FutexWaitKind::Wait { bits: !0 }) {
            return None;
        }
        [8, 12, 0].iter().find_map(|&offset| Self::at(wait, offset, memory))
    }

    fn at(wait: &FutexWait, offset: usize, memory: &dyn ReadableMemory) -> Option<GlibcRwLock> {
        let address = wait.address.checked_sub(offset as u64)?;
        if address == 0 || !address.is_multiple_of(8) {
            return None;
        }
        let fields = GlibcFields::<56>::read(memory, address)?;
        let (word, writers) = (fields.u32(0), fields.u32(4));
        let (phase, turn) = (fields.u32(8), fields.u32(12));
        let (writer, shared, flags) = (fields.u32(24), fields.u32(28), fields.u32(48));
        let held_alone = word & WRITE_PHASE != 0 && word & WRITER_NEXT != 0;
        let fits = fields.is_spare(40, 16)
            && shared <= 1
            && flags <= 2
            && phase <= 3
            && turn <= 3
            && writers & !(1 << 31) <= MOST_THREADS
            && word >> READERS_SHIFT <= MOST_THREADS
            && (writer == 0 || is_thread(writer) && held_alone)
            && fields.u32(offset) == wait.expected
            && wait.private == (shared == 0);
        let exclusive = match (offset, wait.expected) {
            (8, 3) => false,
            (8, USED) => true,
            (12, 3) => true,
            (0, _) if word & READERS_SLEEP != 0 && word >> READERS_SHIFT != 0 => false,
            _ => return None,
        };
        // Nobody sleeps for a lock that neither is held nor has a next writer.
        let busy = word & (WRITE_PHASE | WRITER_NEXT) != 0;
        let readers = if word & WRITE_PHASE == 0 { word >> READERS_SHIFT } else { 0 };
        (fits && busy).then_some(GlibcRwLock {
            address,
            writer: (writer != 0).then_some(writer),
            readers,
            exclusive,
            shared: shared != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SavedMemory;
    use crate::proc::futex::WaitLimit;

    const AT: u64 = 0x7000;

    fn look(words: [u32; 14], offset: u64, expected: u32, private: bool) -> Option<GlibcRwLock> {
        let bytes = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let operation = FutexWaitKind::Wait { bits: !0 };
        let address = AT + offset;
        let wait =
            FutexWait { address, expected, operation, private, limit: WaitLimit::None, other: 0 };
        GlibcRwLock::behind(&wait, &SavedMemory::new(AT, bytes))
    }

    /// Thread 77 writes; one reader waits.
    const WRITTEN: [u32; 14] = [3 | 1 << 3, 0, 3, 1, 0, 0, 77, 0, 0, 0, 0, 0, 0, 0];
    /// Two readers; a writer waits for them.
    const READ: [u32; 14] = [2 | 2 << 3, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn a_writer_is_named_and_readers_are_counted() {
        let found = look(WRITTEN, 8, 3, true).expect("a lock");
        assert_eq!((found.writer, found.exclusive, found.address), (Some(77), false, AT));
        let found = look(READ, 8, 2, true).expect("a lock");
        assert_eq!((found.writer, found.readers, found.exclusive), (None, 2, true));
        let mut second = WRITTEN;
        second[3] = 3;
        assert!(look(second, 12, 3, true).expect("a lock").exclusive);
    }

    #[test]
    fn one_field_that_does_not_fit_and_it_is_no_lock() {
        for (at, value) in [
            (0, 1 << 3), // no writer, nobody waits
            (2, 2),      // another value than was compared
            (3, 9),
            (4, 1),
            (6, 0x1234_5678),
            (7, 1), // shared, but the sleep was private
            (10, 1),
            (12, 3),
        ] {
            let mut words = WRITTEN;
            words[at] = value;
            assert_eq!(look(words, 8, 3, true), None, "word {at} = {value}");
        }
        assert_eq!(look(WRITTEN, 8, 3, false), None);
        assert_eq!(look([0; 14], 8, 0, true), None);
    }
}

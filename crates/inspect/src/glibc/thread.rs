//! The library's record of a thread, which a join sleeps on and the lock of a
//! stream points at.
//!
//! # Layout
//! How a record is known, and where in it the thread's number is, depends on the processor
//! ([`arch`]). The kernel erases the number at the thread's end, and wakes those that join. From
//! version 2.43 on they sleep on a word that the library keeps beside it.

use super::{GlibcFields, is_thread};
use crate::arch::{self, RECORD_ALIGNMENT, RECORD_NUMBER as NUMBER};
use crate::memory::ReadableMemory;
use crate::proc::futex::{FutexWait, FutexWaitKind};
use std::ops::Range;

/// No version has what a join sleeps on further in.
const FURTHEST: u64 = 0x800;
/// The states of a thread that runs and of one that is about to end: from version 2.43 on a join
/// sleeps on a word of its own, which holds one of them.
const STATES: std::ops::RangeInclusive<u32> = 1..=2;

/// Returns the thread that a join waits for, by the number that it has for itself.
#[must_use]
pub fn joined(wait: &FutexWait, memory: &dyn ReadableMemory) -> Option<u32> {
    let waits = wait.operation == FutexWaitKind::Wait { bits: !0 } && !wait.private;
    let by_number = is_thread(wait.expected) && wait.expected > *STATES.end();
    let by_state = STATES.contains(&wait.expected);
    if !waits || !(by_number || by_state) {
        return None;
    }
    if number_at(wait.address, memory)? != wait.expected {
        return None;
    }
    let lowest = wait.address.checked_sub(FURTHEST)?;
    let mut start = wait.address & !(RECORD_ALIGNMENT - 1);
    while start > lowest && !is_record(start, memory) {
        start = start.checked_sub(RECORD_ALIGNMENT)?;
    }
    if start <= lowest {
        return None;
    }
    let number = number_at(start.checked_add(NUMBER)?, memory)?;
    let slept_on_number = number == wait.expected;
    (is_thread(number) && (by_state || slept_on_number)).then_some(number)
}

/// The lock of a stream of `stdio`: a word, how often its owner took it, and the owner's record.
/// Version 2.36 counts the first time, 2.43 does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLock {
    /// The address of its first byte.
    pub address: u64,
    /// The holder, by the number that it has for itself.
    pub owner: u32,
}

impl StreamLock {
    /// Returns the lock that a thread sleeps for. `library`: the C library's own code sleeps there. A
    /// program's lock may look like one that was taken for the first time and is not counted.
    #[must_use]
    pub fn behind(
        wait: &FutexWait,
        library: bool,
        memory: &dyn ReadableMemory,
    ) -> Option<StreamLock> {
        let address = wait.address;
        let waits = wait.operation == FutexWaitKind::Wait { bits: !0 }
            && wait.private
            && wait.expected == 2
            && !wait.timed()
            && address.is_multiple_of(8);
        if !waits {
            return None;
        }
        let fields = GlibcFields::<16>::read(memory, address)?;
        let (word, depth, record) = (fields.u32(0), fields.u32(4), fields.u64(8));
        let counted = (u32::from(!library)..=1 << 20).contains(&depth);
        if word != 2 || !counted || !is_record(record, memory) {
            return None;
        }
        let owner = number_at(record.checked_add(NUMBER)?, memory)?;
        is_thread(owner).then_some(StreamLock { address, owner })
    }
}

/// Tells whether the thread sleeps for ever on a word in the C library's own part of its stack,
/// `frames`. The library puts it there when the kernel has refused it a priority-inheritance mutex,
/// because taking it would close a deadlock or its owner has ended. What a program has in its own
/// frames, a semaphore for instance, lies above.
#[must_use]
pub fn sleeps_for_ever(wait: &FutexWait, frames: &Range<u64>) -> bool {
    wait.operation == FutexWaitKind::Wait { bits: !0 }
        && !wait.timed()
        && wait.expected == 0
        && frames.contains(&wait.address)
}

fn is_record(address: u64, memory: &dyn ReadableMemory) -> bool {
    address != 0
        && address.is_multiple_of(RECORD_ALIGNMENT)
        && arch::is_record(address, |at| memory.read_u64(at))
}

fn number_at(address: u64, memory: &dyn ReadableMemory) -> Option<u32> {
    Some(GlibcFields::<4>::read(memory, address)?.u32(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SavedMemory;
    use crate::proc::futex::WaitLimit;

    const RECORD: u64 = 0x7f00_0000_1000;

    /// Returns the record of thread 77, and the lock of a stream behind it.
    fn memory() -> SavedMemory {
        memory_with(1)
    }

    /// Returns the same, with a lock that has counted so many times.
    fn memory_with(taken: u32) -> SavedMemory {
        let mut bytes = vec![0; 0x800];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        if cfg!(target_arch = "x86_64") {
            put(0, &RECORD.to_ne_bytes());
            put(16, &RECORD.to_ne_bytes());
        } else {
            // In a ring with the head of the list, behind it.
            let (links, head) = (RECORD + 0xc0, RECORD + 0x700);
            for (at, neighbour) in [(0xc0, head), (0xc8, head), (0x700, links), (0x708, links)] {
                put(at, &neighbour.to_ne_bytes());
            }
        }
        put(NUMBER as usize, &77_u32.to_ne_bytes());
        put(0x500, &2_u32.to_ne_bytes());
        put(0x504, &taken.to_ne_bytes());
        put(0x508, &RECORD.to_ne_bytes());
        SavedMemory::new(RECORD, bytes)
    }

    fn wait(offset: u64, expected: u32, private: bool) -> FutexWait {
        let operation = FutexWaitKind::Wait { bits: !0 };
        FutexWait {
            address: RECORD + offset,
            expected,
            operation,
            private,
            limit: WaitLimit::None,
            other: 0,
        }
    }

    #[test]
    fn a_join_names_the_thread() {
        assert_eq!(joined(&wait(NUMBER, 77, false), &memory()), Some(77));
        assert_eq!(joined(&wait(NUMBER, 78, false), &memory()), None, "another number");
        assert_eq!(joined(&wait(NUMBER, 77, true), &memory()), None, "the kernel wakes shared");
        assert_eq!(joined(&wait(NUMBER - 4, 0, false), &memory()), None, "no number");
    }

    #[test]
    fn a_join_may_sleep_on_a_state() {
        assert_eq!(joined(&wait(0x500, 2, false), &memory()), Some(77));
        assert_eq!(joined(&wait(0x504, 1, false), &memory()), Some(77));
        assert_eq!(joined(&wait(0x500, 1, false), &memory()), None, "another state by now");
        assert_eq!(joined(&wait(0x500, 2, true), &memory()), None);
        let stray = SavedMemory::new(RECORD, 2_u32.to_ne_bytes().repeat(0x200));
        assert_eq!(joined(&wait(0x628, 2, false), &stray), None, "in no record");
    }

    #[test]
    fn a_number_outside_a_record_is_no_join() {
        let stray = SavedMemory::new(RECORD, 77_u32.to_ne_bytes().repeat(0x200));
        assert_eq!(joined(&wait(NUMBER, 77, false), &stray), None);
    }

    #[test]
    fn a_word_of_the_librarys_frames_is_never_woken() {
        let sleep = wait(0x54, 0, true);
        assert!(sleeps_for_ever(&sleep, &(RECORD..RECORD + 0x58)));
        assert!(!sleeps_for_ever(&sleep, &(RECORD + 0x60..RECORD + 0x80)), "below the stack");
        assert!(!sleeps_for_ever(&sleep, &(RECORD..RECORD + 0x54)), "in the program's frame");
        assert!(!sleeps_for_ever(&wait(0x54, 1, true), &(RECORD..RECORD + 0x58)), "for a value");
    }

    #[test]
    fn the_lock_of_a_stream_names_its_owner() {
        let found = StreamLock::behind(&wait(0x500, 2, true), false, &memory());
        assert_eq!(found, Some(StreamLock { address: RECORD + 0x500, owner: 77 }));
        let first = |library| StreamLock::behind(&wait(0x500, 2, true), library, &memory_with(0));
        assert_eq!(first(true), found, "of glibc 2.43");
        assert_eq!(first(false), None, "whose it is cannot be told");
        assert_eq!(StreamLock::behind(&wait(0x508, 2, true), true, &memory()), None);
        assert_eq!(StreamLock::behind(&wait(0x500, 2, false), true, &memory()), None);
    }
}

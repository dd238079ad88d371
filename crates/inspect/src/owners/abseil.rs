//! Which Mutex of abseil a thread sleeps for.
//!
//! # Role
//! Such a thread sleeps on a word of its own record. The Mutex has a bit that says that threads
//! wait, and above its low bits the address of a record in the ring of their records. So the Mutex
//! is found by its address on the sleeper's stack, and proved: its ring has the sleeper's record.
//!
//! # Source
//! abseil's `thread_identity.h`: a record is aligned to 256 bytes and begins with the pointer to
//! the next one. The bits of a Mutex have been the same in all releases.
//!
//! # Progress
//! So many words of the stack are looked at, and so many records of a ring.

use crate::memory::ReadableMemory;
use std::collections::HashSet;

/// The bytes of stack, from the innermost frame on, in which functions of abseil have the address.
const STACK: usize = 4096;
/// The bits of a Mutex below the address of a record.
const LOW: u64 = 0xff;
/// The bit that says that threads wait.
const WAIT: u64 = 4;
/// The most records of one ring that are followed.
const MOST: usize = 4096;
/// The end of what a program may map.
const USER_END: u64 = 1 << lockstead_unwind::arch::ADDRESS_BITS;

/// Returns the Mutex for which a thread sleeps on `word`; `sp` is its stack pointer.
#[must_use]
pub fn awaited_mutex(word: u64, sp: u64, memory: &dyn ReadableMemory) -> Option<u64> {
    let mut bytes = [0; STACK];
    let length = memory.read(sp & !7, &mut bytes).ok()?;
    let (words, _) = bytes[..length].as_chunks::<8>();
    let mut seen = HashSet::new();
    let may_be = |&mutex: &u64| mutex % 8 == 0 && (4096..USER_END).contains(&mutex);
    let pointers = words.iter().map(|word| u64::from_ne_bytes(*word)).filter(may_be);
    pointers.filter(|&mutex| seen.insert(mutex)).find(|&mutex| has_waiter(mutex, word, memory))
}

/// Tells whether the record that the word lies in is in the ring of a Mutex.
fn has_waiter(mutex: u64, word: u64, memory: &dyn ReadableMemory) -> bool {
    let Some(value) = memory.read_u64(mutex).filter(|value| value & WAIT != 0) else {
        return false;
    };
    let last = value & !LOW;
    let mut record = last;
    for _ in 0..MOST {
        if record == 0 || record & LOW != 0 {
            return false;
        }
        if record == word & !LOW {
            return true;
        }
        match memory.read_u64(record) {
            Some(next) if next != last => record = next,
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SavedMemory;

    /// Returns memory with a stack at 0x1000, on which `found` lies, a Mutex at 0x2010 with this
    /// value, and records at 0x3000 and 0x3100 in a ring.
    fn memory(found: u64, value: u64) -> SavedMemory {
        let mut bytes = vec![0; 0x3000];
        let mut put = |at: usize, word: u64| {
            bytes[at - 0x1000..at - 0x1000 + 8].copy_from_slice(&word.to_ne_bytes());
        };
        put(0x1018, 0x1018);
        put(0x1020, found);
        put(0x2010, value);
        put(0x3000, 0x3100);
        put(0x3100, 0x3000);
        SavedMemory::new(0x1000, bytes)
    }

    #[test]
    fn the_mutex_is_the_one_whose_ring_has_the_sleeper() {
        let of = |found, value, word| awaited_mutex(word, 0x1000, &memory(found, value));
        assert_eq!(of(0x2010, 0x3000 | WAIT | 8, 0x3080), Some(0x2010));
        assert_eq!(of(0x2010, 0x3000 | WAIT | 8, 0x3180), Some(0x2010), "the next of the ring");
        assert_eq!(of(0x2010, 0x3000 | WAIT | 8, 0x3280), None, "another ring");
        assert_eq!(of(0x2010, 0x3000 | 8, 0x3080), None, "nobody waits");
        assert_eq!(of(0x2014, 0x3000 | WAIT, 0x3080), None, "no Mutex lies there");
        assert_eq!(of(0x2018, 0x3000 | WAIT, 0x3080), None, "not on the stack");
        assert_eq!(of(0x2010, WAIT, 0x80), None);
        assert_eq!(of(u64::MAX - 7, WAIT, 0x80), None);
    }

    #[test]
    fn a_ring_that_does_not_close_is_left() {
        let mut bytes = vec![0; 0x2000];
        bytes[0x20..0x28].copy_from_slice(&0x1100_u64.to_ne_bytes());
        bytes[0x100..0x108].copy_from_slice(&(0x1200 | WAIT).to_ne_bytes());
        bytes[0x200..0x208].copy_from_slice(&0x1300_u64.to_ne_bytes());
        bytes[0x300..0x308].copy_from_slice(&0x1300_u64.to_ne_bytes());
        assert_eq!(awaited_mutex(0x1480, 0x1000, &SavedMemory::new(0x1000, bytes)), None);
    }
}

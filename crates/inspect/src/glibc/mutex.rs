//! `pthread_mutex_t`.
//!
//! # Layout
//! | offset | field | while a thread sleeps for it |
//! |---|---|---|
//! | 0 | lock | 2; robust and priority inheritance: owner's number and the kernel's waiters bit; priority ceiling: the ceiling above a 2 |
//! | 4 | count | depth of a recursive one; at most 1 in one that is robust or has a protocol; else 0 |
//! | 8 | owner | the holder's thread number |
//! | 12 | users | 1 or more |
//! | 16 | kind | one of the valid ones |
//! | 24 | list | a robust one: its neighbours; else 0, or a mark of the library that checks |
//!
//! The owner is written by the thread that took the lock, after it has, and
//! erased before it gives it back: an owner that is read while that thread is
//! known to sleep is the holder.

use super::{GlibcFields, MOST_THREADS, is_thread};
use crate::memory::ReadableMemory;
use crate::proc::futex::{FutexWait, FutexWaitKind};

const ROBUST: u32 = 16;
const INHERIT: u32 = 32;
const PROTECT: u32 = 64;
const SHARED: u32 = 128;
const ELISION: u32 = 256 | 512;

/// Bits that the kernel keeps beside the owner's number in the lock word.
const WAITERS: u32 = 1 << 31;
const OWNER_DIED: u32 = 1 << 30;
/// What stands in the owner field between an owner's death and the repair.
const INCONSISTENT: u32 = 0x7fff_ffff;
/// The place where the ceiling starts in the lock word of a priority-ceiling mutex.
const CEILING: u32 = 19;

/// The kind word of a mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MutexKind(u32);

impl MutexKind {
    fn new(word: u32) -> Option<MutexKind> {
        let known = 3 | ROBUST | INHERIT | PROTECT | SHARED | ELISION;
        let protocols = word & (INHERIT | PROTECT);
        let valid = word & !known == 0
            && protocols != INHERIT | PROTECT
            && word & (ROBUST | PROTECT) != ROBUST | PROTECT
            && word & ELISION != ELISION;
        valid.then_some(MutexKind(word))
    }

    /// Returns the kind in words, as in `pthread_mutexattr_settype(3)`; nothing for a default one.
    #[must_use]
    pub fn words(self) -> Vec<&'static str> {
        let mut words = Vec::new();
        match self.0 & 3 {
            1 => words.push("recursive"),
            2 => words.push("error-checking"),
            3 => words.push("adaptive"),
            _ => {}
        }
        for (bit, word) in
            [(ROBUST, "robust"), (INHERIT, "priority-inheritance"), (PROTECT, "priority-ceiling")]
        {
            if self.has(bit) {
                words.push(word);
            }
        }
        // The library marks every robust one as shared.
        if self.has(SHARED) && !self.has(ROBUST) {
            words.push("process-shared");
        }
        words
    }

    /// Returns whether threads of other processes may hold it.
    #[must_use]
    pub fn is_shared(self) -> bool {
        self.0 & SHARED != 0
    }

    fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }

    fn recursive(self) -> bool {
        self.0 & 3 == 1
    }

    /// Returns whether the lock word names the owner.
    fn names_owner(self) -> bool {
        self.has(ROBUST | INHERIT)
    }
}

/// A mutex that somebody holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlibcMutex {
    /// The address of its first byte.
    pub address: u64,
    /// The kind of the mutex.
    pub kind: MutexKind,
    /// The holder, by the number that it has for itself.
    pub owner: u32,
    /// How often a recursive one is taken.
    pub depth: u32,
}

impl GlibcMutex {
    /// Returns the mutex that a thread sleeps for.
    #[must_use]
    pub fn behind(wait: &FutexWait, memory: &dyn ReadableMemory) -> Option<GlibcMutex> {
        let (mutex, word) = Self::read(wait.address, memory)?;
        let kind = mutex.kind;
        let waits_as_it_should = match wait.operation {
            FutexWaitKind::LockPi => kind.has(INHERIT) && word & WAITERS != 0,
            FutexWaitKind::Wait { bits: u32::MAX } if kind.has(INHERIT) => false,
            FutexWaitKind::Wait { bits: u32::MAX } => {
                wait.expected == word
                    && match kind {
                        _ if kind.has(ROBUST) => word & WAITERS != 0,
                        _ if kind.has(PROTECT) => word & ((1 << CEILING) - 1) == 2,
                        _ => word == 2,
                    }
            }
            _ => false,
        };
        // The kernel's list of robust locks makes their wake-ups shared ones.
        let private = !kind.is_shared() && (kind.has(INHERIT) || !kind.has(ROBUST));
        (waits_as_it_should && wait.private == private).then_some(mutex)
    }

    /// Returns what holds for every mutex that is held, whoever waits; and its word.
    fn read(address: u64, memory: &dyn ReadableMemory) -> Option<(GlibcMutex, u32)> {
        if address == 0 || !address.is_multiple_of(8) {
            return None;
        }
        let fields = GlibcFields::<40>::read(memory, address)?;
        let (word, count, users) = (fields.u32(0), fields.u32(4), fields.u32(12));
        let kind = MutexKind::new(fields.u32(16))?;
        let named = fields.u32(8);
        let owner = if kind.names_owner() { word & !(WAITERS | OWNER_DIED) } else { named };
        let depth = match kind {
            _ if kind.recursive() => count > 0,
            _ if kind.has(ROBUST | INHERIT | PROTECT) => count <= 1,
            _ => count == 0,
        };
        let holds = is_thread(owner)
            && (named == owner || kind.has(ROBUST) && named == INCONSISTENT)
            && (1..=MOST_THREADS).contains(&users)
            && depth
            && (kind.has(ROBUST) || fields.is_spare(24, 32))
            && word != 0;
        holds.then_some((GlibcMutex { address, kind, owner, depth: count }, word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SavedMemory;
    use crate::proc::futex::WaitLimit;

    const AT: u64 = 0x7000;

    fn memory(words: [u32; 10]) -> SavedMemory {
        SavedMemory::new(AT, words.iter().flat_map(|word| word.to_ne_bytes()).collect())
    }

    fn wait(expected: u32, private: bool) -> FutexWait {
        let operation = FutexWaitKind::Wait { bits: !0 };
        FutexWait { address: AT, expected, operation, private, limit: WaitLimit::None, other: 0 }
    }

    fn owner(words: [u32; 10], wait: &FutexWait) -> Option<u32> {
        GlibcMutex::behind(wait, &memory(words)).map(|mutex| mutex.owner)
    }

    /// A default mutex that thread 77 holds and others want.
    const PLAIN: [u32; 10] = [2, 0, 77, 1, 0, 0, 0, 0, 0, 0];

    #[test]
    fn each_kind_names_its_owner() {
        assert_eq!(owner(PLAIN, &wait(2, true)), Some(77));
        let held = 77 | WAITERS;
        let recursive = [2, 3, 77, 1, 1, 0, 0, 0, 0, 0];
        assert_eq!(owner(recursive, &wait(2, true)), Some(77));
        let robust = [held, 1, 77, 1, 16 | 128 | 512, 0, 1, 2, 3, 4];
        assert_eq!(owner(robust, &wait(held, false)), Some(77));
        let taken_over = [held, 1, INCONSISTENT, 1, 16, 0, 1, 2, 3, 4];
        assert_eq!(owner(taken_over, &wait(held, false)), Some(77));
        let inherit = [held, 1, 77, 1, 32 | 512, 0, 0, 0, 0, 0];
        let pi = FutexWait { operation: FutexWaitKind::LockPi, ..wait(0, true) };
        assert_eq!(owner(inherit, &pi), Some(77));
        let ceiling = (50 << CEILING) | 2;
        let protect = [ceiling, 1, 77, 1, 64, 0, 0, 0, 0, 0];
        assert_eq!(owner(protect, &wait(ceiling, true)), Some(77));
        let marked = [2, 0, 77, 1, 0, 0, 8, 1 << 31, 5, 5];
        assert_eq!(owner(marked, &wait(2, true)), Some(77));
        let shared = [2, 0, 77, 1, 128, 0, 0, 0, 0, 0];
        assert_eq!(owner(shared, &wait(2, false)), Some(77));
    }

    #[test]
    fn one_field_that_does_not_fit_and_it_is_no_mutex() {
        let with = |at: usize, value: u32| {
            let mut words = PLAIN;
            words[at] = value;
            owner(words, &wait(2, true))
        };
        for (at, value) in [
            (0, 1),           // nobody marked that they wait
            (0, 77),          // another word than the thread compared
            (1, 1),           // depth without being recursive
            (2, 0),           // no owner
            (2, 0x1234_5678), // no thread has that number
            (3, 0),           // held, but used by nobody
            (3, 0x5555_5555),
            (4, 4),   // no such kind
            (4, 96),  // two protocols
            (4, 1),   // recursive without depth
            (4, 32),  // sleeps otherwise
            (4, 128), // shared, but the sleep was private
            (6, 9),   // on a list without being robust
            (9, 1),
        ] {
            assert_eq!(with(at, value), None, "word {at} = {value}");
        }
        assert_eq!(owner(PLAIN, &wait(2, false)), None, "slept as for a shared one");
        assert_eq!(owner(PLAIN, &wait(1, true)), None, "compared with another value");
        let bits = FutexWait { operation: FutexWaitKind::Wait { bits: 1 }, ..wait(2, true) };
        assert_eq!(owner(PLAIN, &bits), None, "hears some wake-ups alone");
        let odd = FutexWait { address: AT + 4, ..wait(2, true) };
        assert_eq!(owner(PLAIN, &odd), None, "not aligned");
    }

    #[test]
    fn kinds_have_the_manuals_words() {
        assert_eq!(MutexKind::new(0).map(MutexKind::words), Some(vec![]));
        let words = vec!["recursive", "robust", "priority-inheritance"];
        assert_eq!(MutexKind::new(1 | 16 | 32 | 128).map(MutexKind::words), Some(words));
        assert_eq!(
            MutexKind::new(2 | 128).map(MutexKind::words),
            Some(vec!["error-checking", "process-shared"])
        );
        assert_eq!(MutexKind::new(1 << 20), None);
    }
}

//! Condition variables, semaphores, barriers and onces: objects without an owner.
//!
//! # Layout
//! A condition variable counts those that wait (offset 36, in newer libraries
//! 28, above three flags) and has two words to sleep on, one for each group of
//! waiters (offset 40, in newer ones 32). A semaphore is its value, on which
//! threads sleep, and the number of sleepers. Threads sleep on a barrier's
//! second word, the round; the first counts those that have come. A once is a word: a count of
//! forks above two bits, of which 1 says that the initialiser runs.

use super::{GlibcFields, MOST_THREADS};
use crate::memory::ReadableMemory;
use crate::proc::futex::{FutexWait, FutexWaitKind};

/// Tells whether the thread sleeps for a `pthread_once_t` whose initialiser runs.
#[must_use]
pub fn is_once(wait: &FutexWait, memory: &dyn ReadableMemory) -> bool {
    const STATE: u32 = 3;
    const IN_PROGRESS: u32 = 1;
    plain(wait).is_some()
        && wait.private
        && !wait.timed()
        && wait.expected & STATE == IN_PROGRESS
        && GlibcFields::<4>::read(memory, wait.address).is_some_and(|f| f.u32(0) == wait.expected)
}

/// An object that somebody waits for and that nobody holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownerless {
    /// A condition variable, `pthread_cond_t`.
    Condition {
        /// The address of its first byte.
        address: u64,
        /// Threads that wait for it.
        waiting: u32,
    },
    /// A semaphore of POSIX, `sem_t`.
    Semaphore {
        /// The address of its first byte.
        address: u64,
        /// Threads that wait for it.
        waiting: u32,
    },
    /// A barrier of POSIX, `pthread_barrier_t`.
    Barrier {
        /// The address of its first byte.
        address: u64,
        /// Threads that have come in this round.
        come: u32,
        /// Threads that make a round.
        of: u32,
    },
}

/// Returns the condition variable that a thread sleeps for, if a function for these made the call:
/// the relations among its fields alone are too few to tell it from other words.
#[must_use]
pub fn condition(wait: &FutexWait, memory: &dyn ReadableMemory) -> Option<Ownerless> {
    plain(wait)?;
    let candidate = |signals: u64, group: u64, with_references: bool| {
        let address = wait.address.checked_sub(signals + 4 * group)?;
        if address == 0 || !address.is_multiple_of(8) {
            return None;
        }
        let fields = GlibcFields::<48>::read(memory, address)?;
        let (sequence, start) = (fields.u64(0) >> 1, fields.u64(8) >> 1);
        let flags = fields.u32(if with_references { 36 } else { 28 });
        let waiting = flags >> 3;
        let references = fields.u32(16 + 4 * group as usize) >> 1;
        let fits = (1..=MOST_THREADS).contains(&waiting)
            && u64::from(waiting) <= sequence
            && start <= sequence
            && wait.private == (flags & 1 == 0)
            && (!with_references || (1..=waiting).contains(&references));
        fits.then_some(Ownerless::Condition { address, waiting })
    };
    // The older layout asks for more, so it is tried first.
    [(40, true), (32, false)]
        .iter()
        .flat_map(|&(signals, references)| [(signals, 0, references), (signals, 1, references)])
        .find_map(|(signals, group, references)| candidate(signals, group, references))
}

/// Returns the semaphore that a thread sleeps for.
#[must_use]
pub fn semaphore(wait: &FutexWait, memory: &dyn ReadableMemory) -> Option<Ownerless> {
    plain(wait)?;
    let address = wait.address;
    if !address.is_multiple_of(8) || wait.expected != 0 {
        return None;
    }
    let fields = GlibcFields::<12>::read(memory, address)?;
    let (value, waiting, scope) = (fields.u32(0), fields.u32(4), fields.u32(8));
    let fits = value == 0
        && (1..=MOST_THREADS).contains(&waiting)
        && scope == if wait.private { 0 } else { 128 };
    fits.then_some(Ownerless::Semaphore { address, waiting })
}

/// Returns the barrier that a thread sleeps for, if a function for these made the call.
#[must_use]
pub fn barrier(wait: &FutexWait, memory: &dyn ReadableMemory) -> Option<Ownerless> {
    plain(wait)?;
    let address = wait.address.checked_sub(4)?;
    if !address.is_multiple_of(4) || wait.timed() {
        return None;
    }
    let fields = GlibcFields::<20>::read(memory, address)?;
    let (all, round, of, scope) = (fields.u32(0), fields.u32(4), fields.u32(8), fields.u32(12));
    let come = all.wrapping_sub(round);
    let fits = round == wait.expected
        && (2..=MOST_THREADS).contains(&of)
        && (1..of).contains(&come)
        && scope == if wait.private { 0 } else { 128 };
    fits.then_some(Ownerless::Barrier { address, come, of })
}

fn plain(wait: &FutexWait) -> Option<()> {
    (wait.operation == FutexWaitKind::Wait { bits: !0 }).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SavedMemory;
    use crate::proc::futex::WaitLimit;

    const AT: u64 = 0x7000;

    type Look = fn(&FutexWait, &dyn ReadableMemory) -> Option<Ownerless>;

    fn look(of: Look, words: &[u32], offset: u64, expected: u32) -> Option<Ownerless> {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.resize(64, 0);
        let operation = FutexWaitKind::Wait { bits: !0 };
        let address = AT + offset;
        let wait = FutexWait {
            address,
            expected,
            operation,
            private: true,
            limit: WaitLimit::None,
            other: 0,
        };
        of(&wait, &SavedMemory::new(AT, bytes))
    }

    #[test]
    fn conditions_of_both_layouts() {
        let older = [4, 0, 0, 0, 4, 0, 0, 0, 0, 2 << 3, 0, 0];
        let two = Some(Ownerless::Condition { address: AT, waiting: 2 });
        assert_eq!(look(condition, &older, 40, 0), two);
        let newer = [4, 0, 0, 0, 0, 0, 0, 2 << 3, 0, 0, 0, 0];
        assert_eq!(look(condition, &newer, 32, 0), two);
        let nobody = [4, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(look(condition, &nobody, 40, 0), None);
    }

    #[test]
    fn semaphores_and_barriers() {
        let three = Some(Ownerless::Semaphore { address: AT, waiting: 3 });
        assert_eq!(look(semaphore, &[0, 3, 0], 0, 0), three);
        assert_eq!(look(semaphore, &[1, 3, 0], 0, 0), None, "there is a permit");
        assert_eq!(look(semaphore, &[0, 3, 128], 0, 0), None, "shared, but the sleep was private");
        let two_of_five = Some(Ownerless::Barrier { address: AT, come: 2, of: 5 });
        assert_eq!(look(barrier, &[12, 10, 5, 0, 0], 4, 10), two_of_five);
        assert_eq!(look(barrier, &[15, 10, 5, 0, 0], 4, 10), None, "all have come");
    }

    #[test]
    fn a_once_is_a_word_whose_initialiser_runs() {
        let is = |word: u32, expected| {
            let operation = FutexWaitKind::Wait { bits: !0 };
            let wait = FutexWait {
                address: AT,
                expected,
                operation,
                private: true,
                limit: WaitLimit::None,
                other: 0,
            };
            is_once(&wait, &SavedMemory::new(AT, word.to_ne_bytes().to_vec()))
        };
        assert!(is(1, 1) && is(9, 9), "before and after forks");
        assert!(!is(2, 1), "it has run meanwhile");
        assert!(!is(0, 0) && !is(2, 2) && !is(3, 3));
    }
}

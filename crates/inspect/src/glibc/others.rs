//! Condition variables, semaphores and barriers: objects without an owner.
//!
//! # Layout
//! A condition variable counts those that wait (offset 36, in newer libraries
//! 28, above three flags) and has two words to sleep on, one for each group of
//! waiters (offset 40, in newer ones 32). A semaphore is its value, on which
//! threads sleep, and the number of sleepers. Threads sleep on a barrier's
//! second word, the round; the first counts those that have come.

use super::{Fields, MOST_THREADS};
use crate::memory::Memory;
use crate::proc::futex::{FutexWait, Operation};

/// An object that somebody waits for and that nobody holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownerless {
    /// `pthread_cond_t`.
    Condition {
        /// Its first byte.
        address: u64,
        /// Threads that wait for it.
        waiting: u32,
    },
    /// `sem_t`.
    Semaphore {
        /// Its first byte.
        address: u64,
        /// Threads that wait for it.
        waiting: u32,
    },
    /// `pthread_barrier_t`.
    Barrier {
        /// Its first byte.
        address: u64,
        /// Threads that have come in this round.
        come: u32,
        /// Threads that make a round.
        of: u32,
    },
}

impl Ownerless {
    /// The object that a thread sleeps for.
    #[must_use]
    pub fn behind(wait: &FutexWait, memory: &dyn Memory) -> Option<Ownerless> {
        if wait.operation != (Operation::Wait { bits: !0 }) {
            return None;
        }
        condition(wait, memory)
            .or_else(|| semaphore(wait, memory))
            .or_else(|| barrier(wait, memory))
    }
}

fn condition(wait: &FutexWait, memory: &dyn Memory) -> Option<Ownerless> {
    let candidate = |signals: u64, group: u64, with_references: bool| {
        let address = wait.address.checked_sub(signals + 4 * group)?;
        if address == 0 || !address.is_multiple_of(8) {
            return None;
        }
        let fields = Fields::<48>::read(memory, address)?;
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

fn semaphore(wait: &FutexWait, memory: &dyn Memory) -> Option<Ownerless> {
    let address = wait.address;
    if !address.is_multiple_of(8) || wait.expected != 0 {
        return None;
    }
    let fields = Fields::<12>::read(memory, address)?;
    let (value, waiting, scope) = (fields.u32(0), fields.u32(4), fields.u32(8));
    let fits = value == 0
        && (1..=MOST_THREADS).contains(&waiting)
        && scope == if wait.private { 0 } else { 128 };
    fits.then_some(Ownerless::Semaphore { address, waiting })
}

fn barrier(wait: &FutexWait, memory: &dyn Memory) -> Option<Ownerless> {
    let address = wait.address.checked_sub(4)?;
    if !address.is_multiple_of(4) || wait.timed() {
        return None;
    }
    let fields = Fields::<20>::read(memory, address)?;
    let (all, round, of, scope) = (fields.u32(0), fields.u32(4), fields.u32(8), fields.u32(12));
    let come = all.wrapping_sub(round);
    let fits = round == wait.expected
        && (2..=MOST_THREADS).contains(&of)
        && (1..of).contains(&come)
        && scope == if wait.private { 0 } else { 128 };
    fits.then_some(Ownerless::Barrier { address, come, of })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SavedMemory;
    use crate::proc::futex::Limit;

    const AT: u64 = 0x7000;

    fn look(words: &[u32], offset: u64, expected: u32) -> Option<Ownerless> {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.resize(64, 0);
        let operation = Operation::Wait { bits: !0 };
        let address = AT + offset;
        let wait = FutexWait { address, expected, operation, private: true, limit: Limit::None };
        Ownerless::behind(&wait, &SavedMemory::new(AT, bytes))
    }

    #[test]
    fn conditions_of_both_layouts() {
        let older = [4, 0, 0, 0, 4, 0, 0, 0, 0, 2 << 3, 0, 0];
        let two = Some(Ownerless::Condition { address: AT, waiting: 2 });
        assert_eq!(look(&older, 40, 0), two);
        let newer = [4, 0, 0, 0, 0, 0, 0, 2 << 3, 0, 0, 0, 0];
        assert_eq!(look(&newer, 32, 0), two);
        let nobody = [4, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(look(&nobody, 40, 0), None);
    }

    #[test]
    fn semaphores_and_barriers() {
        let semaphore = Some(Ownerless::Semaphore { address: AT, waiting: 3 });
        assert_eq!(look(&[0, 3, 0], 0, 0), semaphore);
        assert_eq!(look(&[1, 3, 0], 0, 0), None, "there is a permit");
        assert_eq!(look(&[0, 3, 128], 0, 0), None, "shared, but the sleep was private");
        let barrier = Some(Ownerless::Barrier { address: AT, come: 2, of: 5 });
        assert_eq!(look(&[12, 10, 5, 0, 0], 4, 10), barrier);
        assert_eq!(look(&[15, 10, 5, 0, 0], 4, 10), None, "all have come");
    }
}

//! How a violation is noted: once for each rule, call stack and origin of the lock,
//! with a count of the repetitions.

use crate::me::Me;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use lockstead_ledger::violation::{Rule, SeenViolation};

/// What is noted of a violation beyond who broke the rule: see [`SeenViolation`].
#[derive(Clone, Copy, Debug)]
pub struct Note {
    /// The rule that was broken.
    pub rule: Rule,
    /// The address of the lock.
    pub address: u64,
    /// The stack of the call; 0 if there was none.
    pub stack: u32,
    /// The number of the thread that did what the violation collides with; 0: there is none.
    pub other_tid: u32,
    /// The stack of what that thread, or the same thread, did earlier.
    pub other_stack: u32,
    /// The index of the other lock that has a part in it; 0: there is none.
    pub other_lock: u32,
    /// The number of a signal, an address or an error, as the rule has it.
    pub number: u64,
    /// It breaks the rule only if what was seen before comes again, of which nothing tells whether
    /// it does.
    pub weak: bool,
    /// The thread that broke the rule, by serial and number, if it was not the calling one.
    pub by: Option<(u32, u32)>,
}

impl Note {
    /// Makes the note of a violation without any other part in it.
    #[must_use]
    pub const fn new(rule: Rule, address: u64, stack: u32) -> Note {
        Note {
            rule,
            address,
            stack,
            other_tid: 0,
            other_stack: 0,
            other_lock: 0,
            number: 0,
            weak: false,
            by: None,
        }
    }

    /// Adds what the thread `tid`, this one or another, did earlier at this stack.
    #[must_use]
    pub const fn after(mut self, tid: u32, stack: u32) -> Note {
        (self.other_tid, self.other_stack) = (tid, stack);
        self
    }

    /// Adds this other lock, by index.
    #[must_use]
    pub const fn with(mut self, lock: u32) -> Note {
        self.other_lock = lock;
        self
    }

    /// Adds this number, whose meaning the rule says.
    #[must_use]
    pub const fn number(mut self, number: u64) -> Note {
        self.number = number;
        self
    }

    /// Says that another thread broke the rule.
    #[must_use]
    pub const fn by(mut self, serial: u32, tid: u32) -> Note {
        self.by = Some((serial, tid));
        self
    }

    /// Says whether the violation is a weak one.
    #[must_use]
    pub const fn weak(mut self, weak: bool) -> Note {
        self.weak = weak;
        self
    }
}

/// The number of causes that are told apart. What comes when all places are taken is lost, and
/// counted so.
const CAUSES: usize = 4096;
/// The number of places that are looked at for one cause.
const TRIES: usize = 64;

struct Cause {
    /// The hash of rule, stack and origin of the lock; 0: not in use.
    key: AtomicU64,
    /// The number of the violation in the ledger plus one; 0 while it is being written.
    violation: AtomicU32,
}

static CAUSE: [Cause; CAUSES] =
    [const { Cause { key: AtomicU64::new(0), violation: AtomicU32::new(0) } }; CAUSES];

/// The word that is not zero if any of them is in use.
static ANY: AtomicU32 = AtomicU32::new(0);

/// Forgets all causes, because a forked child begins its own ledger.
pub fn forget() {
    if ANY.swap(0, Relaxed) == 0 {
        return;
    }
    for cause in CAUSE.iter().filter(|cause| cause.key.load(Relaxed) != 0) {
        cause.key.store(0, Relaxed);
        cause.violation.store(0, Relaxed);
    }
}

impl Me {
    /// Counts something that a rule would have been judged by, and that found no room.
    #[cold]
    pub fn lose_fact(&self) {
        self.ledger.header().losses.facts.fetch_add(1, Relaxed);
    }

    /// Notes a violation by the calling thread.
    #[cold]
    #[inline(never)]
    pub fn note(&self, note: &Note) {
        let lock = self.ledger.find_lock(note.address).unwrap_or(0);
        let key = key(note, self.origin(lock, note.address));
        let first = key as usize % CAUSES;
        for cause in (0..TRIES).map(|i| &CAUSE[(first + i) % CAUSES]) {
            match cause.key.compare_exchange(0, key, Relaxed, Relaxed) {
                Ok(_) => {
                    ANY.store(1, Relaxed);
                    let number = self.ledger.add_violation(&self.violation(note, lock));
                    cause.violation.store(number.map_or(0, |number| number as u32 + 1), Relaxed);
                    return;
                }
                Err(found) if found == key => {
                    let number = cause.violation.load(Relaxed) as usize;
                    if let Some(there) = self.ledger.violation(number.wrapping_sub(1)) {
                        there.repeated.fetch_add(1, Relaxed);
                    }
                    return;
                }
                Err(_) => {}
            }
        }
        self.ledger.header().losses.violations.fetch_add(1, Relaxed);
    }

    fn violation(&self, note: &Note, lock: u32) -> SeenViolation {
        let record = self.record();
        let own = (record.serial.load(Relaxed), record.tid.load(Relaxed));
        let (thread, tid) = note.by.unwrap_or(own);
        SeenViolation {
            rule: note.rule,
            lock,
            generation: self.ledger.lock(lock).map_or(0, |lock| lock.generation.load(Relaxed)),
            address: note.address,
            stack: note.stack,
            thread,
            tid,
            other_tid: note.other_tid,
            other_stack: note.other_stack,
            other_lock: note.other_lock,
            number: note.number,
            weak: note.weak,
        }
    }

    /// Returns what locks of one class have in common: where they were initialised; a static one is
    /// a class of its own; else where they were first used.
    fn origin(&self, lock: u32, address: u64) -> u64 {
        let Some(record) = self.ledger.lock(lock) else { return address };
        match (record.init_stack.load(Relaxed), record.module.load(Relaxed)) {
            (0, 0) => u64::from(record.first_stack.load(Relaxed)),
            (0, _) => address,
            (init, _) => u64::from(init),
        }
    }
}

/// Returns the key of a cause, which is never 0.
fn key(note: &Note, origin: u64) -> u64 {
    // A multiplication carries upwards only, a rotation brings it down again.
    let mix =
        |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let stacks =
        u64::from(note.stack) << 32 | u64::from(note.weak) << 31 | u64::from(note.rule as u32);
    // Without a call of the violation the earlier one tells causes apart.
    let earlier = if note.stack == 0 { u64::from(note.other_stack) } else { 0 };
    mix(mix(mix(1, stacks), origin), earlier) | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_apart() {
        let note = Note::new(Rule::Recursion, 0x1000, 7);
        assert_eq!(key(&note, 3), key(&note.after(5, 9), 3));
        assert_ne!(key(&note, 3), key(&note, 4));
        assert_ne!(key(&note, 3), key(&Note { stack: 8, ..note }, 3));
        assert_ne!(key(&note, 3), key(&note.weak(true), 3));
        assert_ne!(key(&note, 3), key(&Note { rule: Rule::Copied, ..note }, 3));
        let without = Note { stack: 0, ..note };
        assert_ne!(key(&without.after(5, 9), 3), key(&without.after(5, 8), 3));
    }
}

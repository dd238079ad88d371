//! What was found of the holders of locks that do not name them, and what contradicts itself in it.

use super::model::HolderEvidence;
use super::recognise::KnownWait;
use crate::owners::moment::ThreadMoment;
use crate::owners::search::{FoundHold, Onwards, OwnerSearch};
use crate::owners::shape::{AwaitedLock, LockShape};
use crate::stack::CodeAddress;
use crate::unwind::Registers;
use crate::waits::modes::HoldMode;
use std::collections::{BTreeMap, BTreeSet};

/// What was found of the holders of locks that do not name them, by the locks' addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OwnersFound {
    /// The holders of each lock.
    pub(super) holders: BTreeMap<u64, Vec<FoundHolder>>,
    /// The threads that may hold it.
    pub(super) may_hold: BTreeMap<u64, BTreeSet<u32>>,
    /// Semaphores that several threads would release.
    several: BTreeSet<u64>,
    /// The threads that might release a lock of somebody else, if their registers were known.
    pub(super) unasked: BTreeSet<u32>,
}

/// A thread that holds a lock which does not name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundHolder {
    /// The thread, and the frame that would release the lock.
    pub(super) thread: u32,
    /// The lock, and what shows it.
    pub(super) hold: FoundHold,
    /// The place of that frame, its registers, and the stack pointer of its caller.
    pub(super) at: CodeAddress,
    pub(super) registers: Option<Registers>,
    pub(super) caller: Option<u64>,
    /// Whether no frame up to it was looked for on the stack.
    pub(super) is_sure: bool,
    /// Whether a ledger saw it acquire the lock.
    pub(super) is_seen: bool,
    /// The variable of that frame that is its guard, where debug information tells.
    pub(super) variable: Option<String>,
}

impl FoundHolder {
    /// Returns a thread of whose frame no more is known than its place.
    pub(super) fn new(thread: u32, hold: FoundHold, at: CodeAddress) -> FoundHolder {
        let (registers, caller, variable) = (None, None, None);
        let (is_sure, is_seen) = (false, false);
        FoundHolder { thread, hold, at, registers, caller, is_sure, is_seen, variable }
    }

    /// Tells whether it would put a unit into a semaphore, as others may.
    pub(super) fn is_giver(&self) -> bool {
        self.hold.lock.shape == LockShape::Semaphore
    }
}

/// Adds that a thread was seen to acquire a lock; `by_name`: by functions of the lock's own. Alone it
/// makes a holder only likely: the guard may be lost, and the memory another lock's by now.
pub(super) fn enter_seen(
    found: &mut OwnersFound,
    lock: AwaitedLock,
    (thread, at): (u32, CodeAddress),
    by_name: bool,
) {
    match found.holders.get_mut(&lock.address) {
        Some(holders) if holders.iter().all(|holder| holder.thread == thread) => {
            let is_likely = |holder: &&mut FoundHolder| {
                holder.hold.evidence == HolderEvidence::Likely && holder.hold.lock == lock
            };
            let likely = holders.iter_mut().filter(is_likely);
            likely.for_each(|holder| {
                holder.hold.evidence = HolderEvidence::Seen;
                holder.is_seen = true;
            });
        }
        Some(_) => {
            let holders = found.holders.remove(&lock.address).unwrap_or_default();
            let threads = holders.iter().map(|holder| holder.thread).chain([thread]);
            found.may_hold.entry(lock.address).or_default().extend(threads);
        }
        None if by_name => {
            let evidence = HolderEvidence::Likely;
            let hold = FoundHold { lock, mode: HoldMode::Alone, evidence, frame: 0, at_pad: false };
            let holder = FoundHolder { is_seen: true, ..FoundHolder::new(thread, hold, at) };
            found.holders.insert(lock.address, vec![holder]);
            found.may_hold.remove(&lock.address);
        }
        None => {}
    }
}

impl OwnersFound {
    /// Adds what was found of one thread.
    pub(super) fn enter(
        &mut self,
        thread: &ThreadMoment,
        holds: Vec<FoundHold>,
        may_hold: Vec<AwaitedLock>,
        used: impl Fn(&AwaitedLock) -> bool,
    ) {
        for hold in holds.into_iter().filter(|hold| used(&hold.lock)) {
            let Some(frame) = thread.frames.get(hold.frame) else { continue };
            let holders = self.holders.entry(hold.lock.address).or_default();
            if holders.iter().any(|found| found.thread == thread.tid && found.is_giver()) {
                continue;
            }
            let caller = thread.frames.get(hold.frame + 1);
            holders.push(FoundHolder {
                registers: Some(frame.registers),
                caller: caller.and_then(|caller| caller.registers.stack_pointer()),
                is_sure: !frame.guessed,
                ..FoundHolder::new(thread.tid, hold, frame.at)
            });
        }
        for lock in may_hold {
            self.may_hold.entry(lock.address).or_default().insert(thread.tid);
        }
    }

    /// Takes those for no holders who contradict each other: of several, all must share the lock, one
    /// at most with the right to become the writer, or have units of a semaphore; and all must have
    /// used it as the same kind.
    pub(super) fn sift(&mut self) {
        let may_hold = &mut self.may_hold;
        let agree = |one: &FoundHolder, other: &FoundHolder| {
            let together = one.is_giver() || one.hold.mode.agrees(other.hold.mode);
            one.hold.lock == other.hold.lock && (together || one.thread == other.thread)
        };
        self.holders.retain(|address, holders| {
            let all = holders.clone();
            holders.retain(|one| all.iter().all(|other| agree(one, other)));
            let stays = |found: &FoundHolder| holders.iter().any(|one| one.thread == found.thread);
            let gone: BTreeSet<u32> =
                all.iter().filter(|found| !stays(found)).map(|found| found.thread).collect();
            if !gone.is_empty() {
                may_hold.entry(*address).or_default().extend(gone);
            }
            !holders.is_empty()
        });
        may_hold.retain(|address, _| !self.holders.contains_key(address));
    }

    /// Holds against the holders what the other threads would do next. Semaphores into which several
    /// threads would put a unit are noted: who waits for one waits for no single thread. Another
    /// lock that another thread would release first, which could not hold it beside the one that was
    /// found, has no known holder: one put its guard where the other one finds it. What could not be
    /// asked makes no holder more than likely.
    pub(super) fn ask_others(
        &mut self,
        threads: &[(&ThreadMoment, Onwards<'_>)],
        search: &OwnerSearch<'_>,
    ) {
        let alone = |found: &&FoundHolder| found.is_giver() || found.hold.mode != HoldMode::Shared;
        let alone = self.holders.values().flatten().filter(alone);
        let locks: BTreeSet<AwaitedLock> = alone.map(|found| found.hold.lock).collect();
        // A guard of Rust's std stays with its thread.
        let locks = locks.into_iter().filter(|lock| !search.kept.contains(&lock.address));
        let locks: Vec<AwaitedLock> = locks.collect();
        if locks.is_empty() {
            return;
        }
        let mut others: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
        for (thread, onwards) in threads {
            let (gives, wants_registers) = search.gives_next(onwards, &locks);
            if wants_registers && thread.thread_pointer.is_none() {
                self.unasked.insert(thread.tid);
            }
            for (lock, mode) in gives {
                let holders = self.holders.get(&lock.address).map_or(&[][..], Vec::as_slice);
                let is_it = |found: &FoundHolder| found.thread == thread.tid;
                let is_other = match lock.shape {
                    LockShape::Semaphore => !holders.iter().all(is_it),
                    _ if holders.iter().any(is_it) => false,
                    _ => holders.iter().any(|found| !found.hold.mode.agrees(mode)),
                };
                if is_other {
                    others.entry(lock.address).or_default().insert(thread.tid);
                }
            }
        }
        for lock in locks {
            let Some(holders) = self.holders.get_mut(&lock.address) else { continue };
            let is_semaphore = lock.shape == LockShape::Semaphore;
            match others.remove(&lock.address) {
                Some(_) if is_semaphore => drop(self.several.insert(lock.address)),
                Some(others) => {
                    let threads = holders.iter().map(|found| found.thread).chain(others).collect();
                    self.holders.remove(&lock.address);
                    self.may_hold.insert(lock.address, threads);
                }
                None if search.decoded.is_exhausted() && is_semaphore => {
                    self.several.insert(lock.address);
                }
                None if search.decoded.is_exhausted() => {
                    holders.iter_mut().for_each(|f| f.hold.evidence = HolderEvidence::Likely);
                }
                None => {}
            }
        }
    }

    /// Returns the holders of a lock without which nobody can have it.
    pub(super) fn needed(&self, lock: u64) -> &[FoundHolder] {
        match self.holders.get(&lock) {
            Some(holders) if !self.several.contains(&lock) => holders,
            _ => &[],
        }
    }

    /// Tells whether all locks that are waited for have holders that are more than likely, or of whom
    /// registers would tell no more, and against whom no other thread may still speak.
    pub(super) fn are_sure(&self, waits: &BTreeMap<u32, KnownWait>) -> bool {
        let sure = |lock: &AwaitedLock| {
            let holders = self.holders.get(&lock.address);
            holders.is_some_and(|holders| {
                let is_likely = |found: &FoundHolder| {
                    found.hold.evidence == HolderEvidence::Likely && !found.is_seen
                };
                !holders.iter().any(is_likely)
            })
        };
        let mut waits = waits.values().filter(|known| !known.awaited.is_empty());
        self.unasked.is_empty() && waits.all(|known| known.awaited.iter().any(sure))
    }

    /// Tells whether a thread was seen to acquire a lock that it has: that counts for as long as the
    /// thread does not run.
    pub(super) fn has_seen(&self, thread: u32) -> bool {
        self.holders.values().flatten().any(|found| found.is_seen && found.thread == thread)
    }

    /// Tells whether a holder of some lock is known.
    pub(super) fn has_any(&self) -> bool {
        !self.holders.is_empty()
    }

    /// Tells whether a holder is known, or several who contradict each other.
    pub(super) fn is_known(&self, address: u64) -> bool {
        self.holders.contains_key(&address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: AwaitedLock = AwaitedLock { address: 64, shape: LockShape::RustMutex };
    const AT: CodeAddress = CodeAddress { address: 1, returns: true, found: false };

    /// Returns who holds the lock, and on which evidence, and who may, when the thread 1 was seen
    /// to acquire it and another search found `before`.
    fn holders(
        before: Option<(u32, HolderEvidence)>,
        by_name: bool,
    ) -> (Vec<(u32, HolderEvidence)>, Vec<u32>) {
        let mut found = OwnersFound::default();
        if let Some((thread, evidence)) = before {
            let hold =
                FoundHold { lock: LOCK, mode: HoldMode::Alone, evidence, frame: 0, at_pad: false };
            found.holders.insert(LOCK.address, vec![FoundHolder::new(thread, hold, AT)]);
        }
        enter_seen(&mut found, LOCK, (1, AT), by_name);
        let holders = found.holders.into_values().flatten();
        let may_hold = found.may_hold.into_values().flatten();
        let holders = holders.map(|holder| (holder.thread, holder.hold.evidence));
        (holders.collect(), may_hold.collect())
    }

    #[test]
    fn what_was_seen_is_believed_by_name_or_with_other_evidence_and_never_against_it() {
        use HolderEvidence::{Likely, Pad, Seen};
        assert_eq!(holders(None, true), (vec![(1, Likely)], vec![]));
        assert_eq!(holders(None, false), (vec![], vec![]), "it may be a word of another kind");
        assert_eq!(holders(Some((1, Likely)), false), (vec![(1, Seen)], vec![]));
        assert_eq!(holders(Some((1, Pad)), false), (vec![(1, Pad)], vec![]));
        for evidence in [Pad, Likely] {
            assert_eq!(holders(Some((2, evidence)), true), (vec![], vec![1, 2]), "one is wrong");
        }
    }
}

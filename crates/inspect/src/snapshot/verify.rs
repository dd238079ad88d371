//! When a cycle is a deadlock.
//!
//! # The proof
//! Threads and locks are read one after the other, so a cycle among them may
//! never have been there at one moment. It has been if all its threads slept
//! while all its locks were read: only the owner of a lock writes or erases its
//! name in it. A thread slept from one moment to another if it is found in the
//! same call at both and its count of switches did not change in between: to
//! run and sleep again, it would have been switched away. So each round reads
//! calls, locks and counts of all members twice; a round in which nothing
//! differs is the proof.
//!
//! Signal handlers may wake threads that then sleep again in the same call.
//! After a few rounds of that, the cycle is reported as one that could not
//! be confirmed; a cycle that is no longer there is not reported.

use super::model::{CycleVerdict, JudgedCycle};
use super::recognise::{FoundWait, KnownWait};
use crate::slots::WordOwner;
use crate::waits::graph::{self, Cycle, GraphHold, Wants};
use crate::waits::modes::HoldMode;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Attempts at a proof.
const ROUNDS: u32 = 5;
/// The time between the two readings of a round.
const PAUSE: Duration = Duration::from_millis(10);

/// What one waiting thread is known to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The wait, where its object is known.
    pub wants: Option<Wants>,
    /// Whether the wait ends by itself.
    pub timed: bool,
    /// The threads that hold the object, as far as they are known.
    pub holders: Vec<FactHolder>,
    /// How often the thread was switched away, if that was read.
    pub switches: Option<(u64, u64)>,
}

/// A thread that holds what another waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FactHolder {
    /// The id of the thread.
    pub thread: u32,
    /// How it holds the object.
    pub mode: HoldMode,
    /// Whether it is only likely to hold it.
    pub likely: bool,
}

impl FactHolder {
    /// Returns a thread that holds an object alone.
    #[must_use]
    pub fn alone(thread: u32) -> FactHolder {
        FactHolder { thread, mode: HoldMode::Alone, likely: false }
    }
}

/// What is known of each thread, by its id.
pub type WaitFacts = BTreeMap<u32, Fact>;

impl Fact {
    /// Makes a fact of a wait; `here` translates the owner of the lock at an address to its id here, with
    /// whether processes share the lock.
    pub(super) fn new(known: &KnownWait, here: &dyn Fn(u64, u32, bool) -> Option<u32>) -> Fact {
        let (wants, holder) = match &known.found {
            FoundWait::Mutex(mutex) => {
                let holder = here(mutex.address, mutex.owner, mutex.kind.is_shared());
                (Some(Wants::Exclusive(mutex.address)), holder)
            }
            FoundWait::Stream(lock) => {
                (Some(Wants::Exclusive(lock.address)), here(lock.address, lock.owner, false))
            }
            FoundWait::RwLock(lock) => {
                let wants = if lock.exclusive { Wants::Exclusive } else { Wants::Shared };
                let holder = lock.writer.and_then(|own| here(lock.address, own, lock.shared));
                (Some(wants(lock.address)), holder)
            }
            FoundWait::Own(lock) => {
                let wants = if lock.shared { Wants::Shared } else { Wants::Exclusive };
                let holder = match lock.owner {
                    WordOwner::Thread(own) => here(lock.address, own, false),
                    WordOwner::None | WordOwner::Ended | WordOwner::Lost => None,
                };
                (Some(wants(lock.address)), holder)
            }
            FoundWait::Join(own) => (here(0, *own, false).map(Wants::Join), None),
            FoundWait::Ownerless(_) | FoundWait::Refused | FoundWait::Unknown { .. } => {
                (None, None)
            }
        };
        let timed = match &known.found {
            FoundWait::Own(lock) => lock.timed,
            _ => known.wait.timed(),
        };
        let holders = holder.map(FactHolder::alone).into_iter().collect();
        Fact { wants, timed, holders, switches: None }
    }
}

fn cycles(facts: &WaitFacts) -> Vec<Cycle> {
    let waits: Vec<_> = facts
        .iter()
        .filter_map(|(&thread, fact)| {
            Some(graph::GraphWait { thread, wants: fact.wants?, timed: fact.timed })
        })
        .collect();
    let mut holds: Vec<_> = facts
        .values()
        .flat_map(|fact| {
            let lock = fact.wants.and_then(Wants::lock);
            let holders = fact.holders.iter();
            holders.filter_map(move |holder| {
                let FactHolder { thread, mode, .. } = *holder;
                Some(GraphHold { thread, lock: lock?, mode })
            })
        })
        .collect();
    holds.sort_unstable_by_key(|hold| (hold.lock, hold.thread));
    holds.dedup();
    graph::cycles(&waits, &holds)
}

/// Returns the cycles among `facts`, with what they are. `again` reads the facts of some threads
/// anew, with their counts of switches.
pub fn judged_cycles(
    facts: &WaitFacts,
    again: &mut dyn FnMut(&[u32]) -> WaitFacts,
) -> Vec<JudgedCycle> {
    let mut open = cycles(facts);
    let mut judged = Vec::new();
    for round in 1..=ROUNDS {
        if open.is_empty() {
            break;
        }
        let members: BTreeSet<u32> = open.iter().flat_map(threads).collect();
        let members: Vec<u32> = members.into_iter().collect();
        let before = again(&members);
        std::thread::sleep(PAUSE);
        let after = again(&members);
        let (there, still) = (cycles(&before), cycles(&after));
        open.retain(|cycle| {
            if !there.contains(cycle) || !still.contains(cycle) {
                return false;
            }
            let slept = |tid| {
                let fact = before.get(&tid);
                fact == after.get(&tid) && fact.is_some_and(|fact| fact.switches.is_some())
            };
            let verdict = match () {
                () if cycle.timed() => CycleVerdict::Timed,
                // A look at fewer threads rests on less: it shows no more than the first.
                () if threads(cycle).all(slept)
                    && (has_likely(cycle, facts) || has_likely(cycle, &before)) =>
                {
                    CycleVerdict::Probable
                }
                () if threads(cycle).all(slept) => CycleVerdict::Deadlock,
                () if round == ROUNDS => CycleVerdict::Unconfirmed,
                () => return true,
            };
            judged.push(JudgedCycle { verdict, threads: threads(cycle).collect() });
            false
        });
    }
    judged.sort_by(|a, b| a.threads.cmp(&b.threads));
    judged
}

/// Tells whether one of the cycle's threads waits for what the next one is only likely to hold.
fn has_likely(cycle: &Cycle, facts: &WaitFacts) -> bool {
    let next = threads(cycle).skip(1).chain(threads(cycle).take(1));
    threads(cycle).zip(next).any(|(waits, holds)| {
        let holders = facts.get(&waits).map_or(&[][..], |fact| &fact.holders);
        holders.iter().any(|holder| holder.thread == holds && holder.likely)
    })
}

fn threads(cycle: &Cycle) -> impl Iterator<Item = u32> {
    cycle.members.iter().map(|wait| wait.thread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn fact(lock: u64, holder: u32, switches: u64) -> Fact {
        Fact {
            wants: Some(Wants::Exclusive(lock)),
            timed: false,
            holders: vec![FactHolder::alone(holder)],
            switches: Some((switches, 0)),
        }
    }

    /// Returns the facts of threads 1 and 2, which wait for each other, and 3, which waits for one
    /// of them.
    fn facts(switches: u64) -> WaitFacts {
        [(1, fact(10, 2, switches)), (2, fact(20, 1, 7)), (3, fact(10, 2, 7))].into()
    }

    fn of(all: &WaitFacts, tids: &[u32]) -> WaitFacts {
        all.iter().filter(|(tid, _)| tids.contains(tid)).map(|(&t, f)| (t, f.clone())).collect()
    }

    #[test]
    fn a_cycle_that_holds_still_is_a_deadlock() {
        let found = judged_cycles(&facts(5), &mut |tids| of(&facts(5), tids));
        assert_eq!(found, [JudgedCycle { verdict: CycleVerdict::Deadlock, threads: vec![1, 2] }]);
    }

    #[test]
    fn a_cycle_whose_threads_run_is_not_confirmed() {
        let reads = Cell::new(0);
        let found = judged_cycles(&facts(0), &mut |tids| {
            reads.set(reads.get() + 1);
            of(&facts(reads.get()), tids)
        });
        assert_eq!(
            found,
            [JudgedCycle { verdict: CycleVerdict::Unconfirmed, threads: vec![1, 2] }]
        );
        let uncounted = Fact { switches: None, ..fact(10, 2, 0) };
        let found = judged_cycles(&facts(0), &mut |tids| {
            let mut all = facts(0);
            all.insert(1, uncounted.clone());
            of(&all, tids)
        });
        assert_eq!(found[0].verdict, CycleVerdict::Unconfirmed);
    }

    #[test]
    fn a_cycle_that_has_gone_is_not_reported() {
        assert_eq!(judged_cycles(&facts(5), &mut |_| WaitFacts::new()), []);
        let mut other = |tids: &[u32]| {
            let mut all = facts(5);
            all.insert(2, fact(20, 9, 7));
            of(&all, tids)
        };
        assert_eq!(judged_cycles(&facts(5), &mut other), []);
    }

    #[test]
    fn a_cycle_over_a_likely_holder_is_probably_one() {
        let mut all = facts(5);
        let likely = FactHolder { likely: true, ..FactHolder::alone(1) };
        all.insert(2, Fact { holders: vec![likely], ..fact(20, 1, 7) });
        let found = judged_cycles(&all, &mut |tids| of(&all, tids));
        assert_eq!(found, [JudgedCycle { verdict: CycleVerdict::Probable, threads: vec![1, 2] }]);
    }

    #[test]
    fn a_look_at_fewer_threads_makes_no_likely_holder_certain() {
        let mut first = facts(5);
        let likely = FactHolder { likely: true, ..FactHolder::alone(1) };
        first.insert(2, Fact { holders: vec![likely], ..fact(20, 1, 7) });
        let found = judged_cycles(&first, &mut |tids| of(&facts(5), tids));
        assert_eq!(found, [JudgedCycle { verdict: CycleVerdict::Probable, threads: vec![1, 2] }]);
    }

    #[test]
    fn a_wait_with_an_end_is_told() {
        let mut all = facts(5);
        all.insert(2, Fact { timed: true, ..fact(20, 1, 7) });
        let found = judged_cycles(&all, &mut |tids| of(&all, tids));
        assert_eq!(found, [JudgedCycle { verdict: CycleVerdict::Timed, threads: vec![1, 2] }]);
    }
}

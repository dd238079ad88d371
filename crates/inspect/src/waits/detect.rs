//! From threads that wait to cycles that are news.
//!
//! # Role
//! Pure data: what the waiting threads published, and what was reported before.
//! Whether a cycle is also true outside the ledger is for
//! [`verify`](super::verify) to say, before it is reported.
//!
//! # What counts
//! Mutexes, reader-writer locks, spin locks and joins. A wait on a condition
//! variable counts only while its thread is known to be getting the mutex back.
//! Semaphores, barriers and conditions have no owner who could be waited for; but of
//! a semaphore that serves as a mutex the ledger has who has taken it, and so it
//! counts.
//!
//! # Once
//! A thread is in one wait at a time, and each wait has a number. A cycle is
//! news if one of its waits has been in no reported cycle: a new cycle always
//! has a new wait that closed it, and a thread that queues up behind a deadlock
//! is in no cycle. A cycle that its time-outs open and the same threads close
//! again is counted, not reported again.

use super::graph::{self, GraphHold, GraphWait, Wants};
use super::modes::HoldMode;
use super::observe::LastingWaiter;
use lockstead_ledger::publish::{Episode, Flags, Holding, WaitKind};
use std::collections::{HashMap, HashSet};

/// What the detection has to know of the rest of the ledger.
pub trait DetectionContext {
    /// Returns the thread that this one joins, by the index of its record.
    fn joined(&self, waiter: &LastingWaiter) -> Option<u32>;

    /// Tells whether new readers of the reader-writer lock wait for waiting writers.
    fn writers_first(&self, lock: u64) -> bool;

    /// Returns the reader-writer lock that who holds this reads upgradably, if it is that right.
    fn right_of(&self, held: u64) -> Option<u64>;

    /// Tells whether a thread, be it one that runs, reads upgradably under this lock.
    fn is_read_upgradably(&self, lock: u64) -> bool;

    /// Tells whether this thread, whose wait on a condition variable is over, is
    /// getting its mutex back.
    fn is_taking_back(&self, waiter: &LastingWaiter) -> bool;
}

/// A member of a cycle. It waits for the next member, the last for the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CycleMember {
    /// The thread and its wait.
    pub waiter: LastingWaiter,
    /// The address of the lock it waits for; `None` if it joins a thread.
    pub lock: Option<u64>,
    /// Its holding of the lock that the member before it waits for. `None` if
    /// that one joins it, or is a reader that waits behind it in the queue.
    pub holding: Option<Holding>,
}

/// A cycle that has not been reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundCycle {
    /// The threads, each waiting for the next.
    pub members: Vec<CycleMember>,
    /// A wait of it ends by time-out, so the cycle opens by itself.
    pub timed: bool,
    /// Whether not all of its locks name an owner: then it rests on the ledger and the kernel.
    pub unnamed: bool,
}

/// What tells one wait from all others of a process.
type LockPlace = (u32, Episode);

/// Finds the cycles of one process.
#[derive(Debug, Default)]
pub struct Detector {
    dead: HashSet<LockPlace>,
    timed: HashSet<LockPlace>,
    recurring: HashMap<Vec<(u32, u64, u32)>, u64>,
}

impl Detector {
    /// Returns the cycles among these threads that have not been reported.
    pub fn find<'w>(
        &self,
        waiters: impl Iterator<Item = &'w LastingWaiter>,
        context: &dyn DetectionContext,
    ) -> Vec<FoundCycle> {
        let waiters: HashMap<u32, &LastingWaiter> = waiters.map(|w| (w.thread, w)).collect();
        let (waits, holds) = edges(&waiters, context);
        if waits.is_empty() {
            return Vec::new();
        }
        let describe = |cycle: &graph::Cycle| {
            let before = cycle.members.iter().cycle().skip(cycle.members.len() - 1);
            let members = cycle.members.iter().zip(before);
            let members = members.filter_map(|(member, before)| {
                let waiter = *waiters.get(&member.thread)?;
                let holding = before.wants.lock().and_then(|lock| held(waiter, lock, context));
                let (waiter, lock) = (waiter.clone(), member.wants.lock());
                Some(CycleMember { waiter, lock, holding: holding.copied() })
            });
            FoundCycle { members: members.collect(), timed: cycle.timed(), unnamed: false }
        };
        // Separately, for a timed wait may lie on the shortest way through a
        // thread that is on an untimed one as well.
        let untimed: Vec<GraphWait> = waits.iter().filter(|wait| !wait.timed).copied().collect();
        let mut found: Vec<FoundCycle> =
            graph::cycles(&untimed, &holds).iter().map(describe).collect();
        found.retain(|cycle| !cycle.places().all(|place| self.dead.contains(&place)));
        if untimed.len() < waits.len() {
            let all = graph::cycles(&waits, &holds);
            let timed = all.iter().filter(|cycle| cycle.timed()).map(describe);
            found.extend(timed.filter(|cycle| {
                let known = |place| self.dead.contains(&place) || self.timed.contains(&place);
                !cycle.places().all(known)
            }));
        }
        found
    }

    /// Takes note that a cycle has been found true. Says whether to report it.
    pub fn note(&mut self, found: &FoundCycle) -> bool {
        if !found.timed {
            self.dead.extend(found.places());
            return true;
        }
        self.timed.extend(found.places());
        let members = found.members.iter().map(|member| &member.waiter);
        let mut key: Vec<_> = members.map(|w| (w.tid, w.waiting.target, w.waiting.stack)).collect();
        key.sort_unstable();
        let times = self.recurring.entry(key).or_default();
        *times += 1;
        *times == 1
    }

    /// Returns how often cycles with time-outs closed again after they were reported.
    #[must_use]
    pub fn recurrences(&self) -> u64 {
        self.recurring.values().map(|times| times - 1).sum()
    }

    /// Tells whether a deadlock was reported.
    #[must_use]
    pub fn has_dead(&self) -> bool {
        !self.dead.is_empty()
    }

    /// Tells whether this thread's wait is part of a reported deadlock.
    #[must_use]
    pub fn is_dead(&self, waiter: &LastingWaiter) -> bool {
        self.dead.contains(&(waiter.thread, waiter.episode))
    }
}

/// How long the threads of a cycle have waited when a mutex without a name is no accident, in
/// nanoseconds.
const OLD: u64 = 1_000_000_000;

impl FoundCycle {
    /// Tells whether all its threads have waited so long at `now` that those who take a mutex have
    /// long written their names.
    #[must_use]
    pub fn is_old(&self, now: u64) -> bool {
        let mut waits = self.members.iter().map(|member| member.waiter.waiting.since);
        waits.all(|since| now.saturating_sub(since) >= OLD)
    }

    /// Tells whether a thread of it waits for a semaphore, which names nobody.
    #[must_use]
    pub fn has_semaphore(&self) -> bool {
        self.members.iter().any(|member| is_for_semaphore(&member.waiter))
    }

    fn places(&self) -> impl Iterator<Item = LockPlace> + '_ {
        self.members.iter().map(|member| (member.waiter.thread, member.waiter.episode))
    }
}

fn is_for_semaphore(waiter: &LastingWaiter) -> bool {
    waiter.waiting.how.kind() == WaitKind::SEMAPHORE
}

/// Returns the holding of a lock, if the thread really has it: not while it is lent out for a wait
/// on a condition variable.
fn held<'w>(
    waiter: &'w LastingWaiter,
    lock: u64,
    context: &dyn DetectionContext,
) -> Option<&'w Holding> {
    let of_lock = |held: u64| held == lock || held > lock && context.right_of(held) == Some(lock);
    let mut holdings = waiter.held.iter().rev();
    holdings.find(|holding| of_lock(holding.address) && !holding.flags.has(Flags::LENT))
}

fn edges(
    waiters: &HashMap<u32, &LastingWaiter>,
    context: &dyn DetectionContext,
) -> (Vec<GraphWait>, Vec<GraphHold>) {
    let mut holds = Vec::new();
    let mut exclusive = HashSet::new();
    for waiter in waiters.values() {
        for holding in waiter.held.iter().filter(|holding| !holding.flags.has(Flags::LENT)) {
            let right = context.right_of(holding.address);
            let mode = match right {
                Some(_) => HoldMode::Upgradable,
                None if holding.flags.has(Flags::READ) => HoldMode::Shared,
                None => HoldMode::Alone,
            };
            let lock = right.unwrap_or(holding.address);
            if mode == HoldMode::Alone {
                exclusive.insert(lock);
            }
            holds.push(GraphHold { thread: waiter.thread, lock, mode });
        }
    }
    let held: HashSet<u64> = holds.iter().map(|hold| hold.lock).collect();
    let holders: HashSet<u32> = holds.iter().map(|hold| hold.thread).collect();
    let mut waits = Vec::new();
    for waiter in waiters.values() {
        let target = waiter.waiting.target;
        let how = waiter.waiting.how;
        let upgrades =
            GraphHold { thread: waiter.thread, lock: target, mode: HoldMode::Upgradable };
        let wants = match how.kind() {
            WaitKind::WRITE if holds.contains(&upgrades) => Wants::Closing(target),
            WaitKind::MUTEX | WaitKind::WRITE | WaitKind::SPIN => Wants::Exclusive(target),
            // Else it is a writer in front that keeps it out.
            WaitKind::READ if how.is_upgradable() && context.is_read_upgradably(target) => {
                Wants::Upgradable(target)
            }
            // With nobody writing, only a queue keeps a reader out.
            WaitKind::READ if exclusive.contains(&target) || context.writers_first(target) => {
                Wants::Shared(target)
            }
            WaitKind::JOIN => match context.joined(waiter) {
                Some(thread) if waiters.contains_key(&thread) => Wants::Join(thread),
                _ => continue,
            },
            WaitKind::CONDITION => {
                let mutex = waiter.waiting.companion;
                // Asking the kernel is dear, so only where it matters.
                if !held.contains(&mutex) || !context.is_taking_back(waiter) {
                    continue;
                }
                Wants::Exclusive(mutex)
            }
            WaitKind::SEMAPHORE if held.contains(&target) => Wants::Exclusive(target),
            _ => continue,
        };
        // Getting the mutex back has no deadline of its own.
        let taking_back = waiter.waiting.how.kind() == WaitKind::CONDITION;
        let timed = waiter.waiting.how.is_timed() && !taking_back;
        waits.push(GraphWait { thread: waiter.thread, wants, timed });
    }
    // A thread that holds nothing and is not joined is on no cycle, unless it
    // is a writer that readers queue behind.
    let joined: HashSet<u32> = waits
        .iter()
        .filter_map(|wait| match wait.wants {
            Wants::Join(thread) => Some(thread),
            _ => None,
        })
        .collect();
    let queued: HashSet<u64> = waits
        .iter()
        .filter_map(|wait| match wait.wants {
            Wants::Shared(lock) | Wants::Upgradable(lock) => Some(lock),
            _ => None,
        })
        .collect();
    waits.retain(|wait| {
        holders.contains(&wait.thread)
            || joined.contains(&wait.thread)
            || matches!(
                wait.wants, Wants::Exclusive(lock) | Wants::Closing(lock) if queued.contains(&lock)
            )
    });
    (waits, holds)
}

#[cfg(test)]
#[path = "detect_tests.rs"]
pub(super) mod tests;

//! The live view of a ledger: what happened between two moments, who waits and
//! who holds now.
//!
//! # Cost
//! A sample reads the threads' records and caches and the locks that were ever
//! waited for, or are in a cache; not the millions that nobody touches. It
//! names nothing: what is shown is named by whoever shows it.

use super::account::{began, canonical, is_running};
use super::futexes;
use super::names::thread_name;
use super::threads::{acquisitions, is_for_lock};
use lockstead_ledger::lock::{ObjectKind, RecordLife};
use lockstead_ledger::publish::{Flags, WaitKind};
use lockstead_ledger::{Ledger, LedgerPart};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

/// Sums of one lock up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    /// The number of this life among those of the address.
    generation: u32,
    acquisitions: u64,
    contended: u64,
    /// How long the waits took that have ended, and those that last have taken up to now.
    waited_ns: u64,
    /// The acquisitions of a condition that serves as a lock.
    as_lock: Option<u64>,
}

/// A thread that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveWaiter {
    /// The kernel's id, in the process's namespace.
    pub tid: u32,
    /// The name that it has.
    pub name: Option<String>,
    /// The kind of the wait.
    pub how: WaitKind,
    /// The index of the lock's record, if it has one.
    pub lock: Option<u32>,
    /// The address of the lock, or `pthread_t` of the joined thread.
    pub target: u64,
    /// The length of the wait so far, in nanoseconds.
    pub for_ns: u64,
    /// Id of the stack that leads there.
    pub stack: u32,
}

/// How long something has lasted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lasting {
    /// How long it was, at most.
    pub ns: u64,
    /// Whether it is not less either; otherwise the beginning is known to the coarse clock.
    pub exact: bool,
}

/// A lock that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveHolder {
    /// The kernel's id of the thread that holds it.
    pub tid: u32,
    /// The name of the thread.
    pub name: Option<String>,
    /// The index of the lock's record.
    pub lock: u32,
    /// Held for reading, beside others perhaps.
    pub shared: bool,
    /// The length of the hold so far.
    pub time: Lasting,
    /// Id of the stack of the acquisition.
    pub stack: u32,
}

/// One moment of a ledger.
#[derive(Clone, Debug, Default)]
pub struct LiveSample {
    at_ns: u64,
    locks: HashMap<u32, Sums>,
    acquisitions: u64,
    threads: u64,
    waiters: Vec<LiveWaiter>,
    holders: Vec<LiveHolder>,
}

/// One lock between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockRate {
    /// The index of its record.
    pub lock: u32,
    /// The number of this life among those of its address.
    pub generation: u32,
    /// The time that threads waited for it in between.
    pub waited_ns: u64,
    /// How often it was acquired in between.
    pub acquisitions: u64,
    /// The number of those that found it taken.
    pub contended: u64,
    /// Threads that wait for it at the end.
    pub waiting: u32,
    /// How long the one that has held it longest at the end has held it.
    pub held: Option<Lasting>,
}

/// What happened between two moments.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// The time between the two looks.
    pub interval_ns: u64,
    /// Threads at the end.
    pub threads: u64,
    /// Acquisitions of all locks in between.
    pub acquisitions: u64,
    /// The time that threads waited for locks in between.
    pub waited_ns: u64,
    /// Locks that were acquired, waited for or held, in no particular order.
    pub locks: Vec<LockRate>,
    /// Threads that wait for a lock at the end, the longest first.
    pub waiters: Vec<LiveWaiter>,
    /// Threads that wait for something else, the longest first.
    pub idle: Vec<LiveWaiter>,
    /// Locks held at the end, the longest first.
    pub holders: Vec<LiveHolder>,
}

impl LiveSample {
    /// Reads a ledger; `now` is the time of `CLOCK_MONOTONIC`.
    #[must_use]
    pub fn take(ledger: &Ledger<'_>, now: u64) -> LiveSample {
        let mut sample = LiveSample { at_ns: now, ..LiveSample::default() };
        for index in 1..ledger.used(LedgerPart::Extensions) {
            let extension = &ledger.extensions()[index];
            let owner = extension.lock.load(Relaxed) as u32;
            // One that is not its owner's lost a race and is empty.
            let Some(lock) =
                ledger.lock(owner).filter(|l| l.extension.load(Relaxed) == index as u32)
            else {
                continue;
            };
            if matches!(lock.shape().1, RecordLife::Live | RecordLife::Destroyed) {
                let sums = sample.sums(ledger, owner);
                sums.contended = sums.contended.saturating_add(extension.contended.load(Relaxed));
                if let Some((acquisitions, contended)) = extension.as_lock() {
                    (sums.as_lock, sums.contended) = (Some(acquisitions), contended);
                }
                sums.waited_ns = sums.waited_ns.saturating_add(extension.wait.total());
            }
        }
        for thread in ledger.threads() {
            sample.acquisitions = sample.acquisitions.saturating_add(acquisitions(&thread));
            for known in thread.known() {
                let lock = known.lock.load(Relaxed);
                let count = u64::from(known.count.load(Relaxed));
                let current = ledger.lock(lock).map(|lock| lock.generation.load(Relaxed));
                if count != 0 && current == Some(known.generation.load(Relaxed)) {
                    let sums = sample.sums(ledger, lock);
                    sums.acquisitions = sums.acquisitions.saturating_add(count);
                }
            }
            if is_running(&thread) {
                sample.threads += 1;
                sample.add_wait(ledger, &thread);
                sample.add_holds(ledger, &thread);
            }
        }
        sample
    }

    /// Returns the sums of a lock; what its record has itself is in them from the start.
    fn sums(&mut self, ledger: &Ledger<'_>, index: u32) -> &mut Sums {
        let index = canonical(ledger, index);
        self.locks.entry(index).or_insert_with(|| {
            ledger.lock(index).map_or(Sums::default(), |lock| Sums {
                generation: lock.generation.load(Relaxed),
                acquisitions: lock.acquisitions.load(Relaxed),
                ..Sums::default()
            })
        })
    }

    fn add_wait(&mut self, ledger: &Ledger<'_>, thread: &lockstead_ledger::thread::ThreadPart<'_>) {
        let Some((_, wait)) = thread.record.wait.read() else { return };
        let for_ns = self.at_ns.saturating_sub(wait.since);
        let joins = wait.how.kind() == WaitKind::JOIN;
        let lock = if joins { None } else { ledger.lock_of(&wait) };
        let lock = lock.map(|index| canonical(ledger, index));
        if let Some(index) = lock {
            let sums = self.sums(ledger, index);
            sums.waited_ns = sums.waited_ns.saturating_add(for_ns);
        }
        self.waiters.push(LiveWaiter {
            tid: thread.record.tid.load(Relaxed),
            name: thread_name(thread.record),
            how: wait.how,
            lock,
            target: wait.target,
            for_ns,
            stack: wait.stack,
        });
    }

    fn add_holds(
        &mut self,
        ledger: &Ledger<'_>,
        thread: &lockstead_ledger::thread::ThreadPart<'_>,
    ) {
        let stack = thread.stack();
        for depth in 0..stack.depth() {
            let Some(held) = stack.entry(depth).read() else { continue };
            let Some(lock) = ledger.find_lock(held.address) else { continue };
            if held.flags.has(Flags::LENT) {
                continue;
            }
            self.sums(ledger, lock);
            self.holders.push(LiveHolder {
                tid: thread.record.tid.load(Relaxed),
                name: thread_name(thread.record),
                lock,
                shared: held.flags.has(Flags::READ),
                time: Lasting {
                    ns: self.at_ns.saturating_sub(began(ledger.header(), &held)),
                    exact: held.started != 0,
                },
                stack: held.stack,
            });
        }
    }

    /// Returns how often a lock was acquired up to this moment, and how often of that it was found
    /// taken; `None` of a lock of which the sample has nothing.
    #[must_use]
    pub fn acquisitions(&self, lock: u32) -> Option<(u64, u64)> {
        let sums = self.locks.get(&lock)?;
        Some((sums.as_lock.unwrap_or(sums.acquisitions), sums.contended))
    }

    /// Returns what happened since `before`.
    #[must_use]
    pub fn since(&self, before: &LiveSample, ledger: &Ledger<'_>) -> Live {
        let mut live = Live {
            interval_ns: self.at_ns.saturating_sub(before.at_ns),
            threads: self.threads,
            acquisitions: self.acquisitions.saturating_sub(before.acquisitions),
            ..Live::default()
        };
        let (mut waiting, mut held) = (HashMap::new(), HashMap::new());
        for lock in self.waiters.iter().filter_map(|waiter| waiter.lock) {
            *waiting.entry(lock).or_insert(0) += 1;
        }
        for holder in &self.holders {
            let longest: &mut Lasting = held.entry(holder.lock).or_default();
            *longest = (*longest).max(holder.time);
        }
        for (&lock, sums) in &self.locks {
            let kind = ledger.lock(lock).map_or(ObjectKind::Unknown, |lock| lock.shape().0);
            let is_event = match kind.plain() {
                ObjectKind::Condition | ObjectKind::Barrier | ObjectKind::Semaphore => {
                    as_lock(ledger, lock).is_none()
                }
                ObjectKind::Futex => !is_futex_lock(ledger, lock),
                _ => false,
            };
            if is_event {
                continue;
            }
            // Of another life of the address nothing can be taken away. A lock
            // that was in no cache before may have a record all the same: what
            // it had is not known, and is not called new.
            let old = match before.locks.get(&lock) {
                Some(old) if old.generation == sums.generation => *old,
                Some(_) => Sums::default(),
                None => Sums { acquisitions: recorded(ledger, lock), ..Sums::default() },
            };
            let rate = LockRate {
                lock,
                generation: sums.generation,
                waited_ns: sums.waited_ns.saturating_sub(old.waited_ns),
                acquisitions: match sums.as_lock {
                    Some(now) => now.saturating_sub(old.as_lock.unwrap_or(now)),
                    None => sums.acquisitions.saturating_sub(old.acquisitions),
                },
                contended: sums.contended.saturating_sub(old.contended),
                waiting: waiting.get(&lock).copied().unwrap_or(0),
                held: held.get(&lock).copied(),
            };
            live.waited_ns = live.waited_ns.saturating_add(rate.waited_ns);
            let is_used = rate.waited_ns != 0 || rate.acquisitions != 0 || rate.waiting != 0;
            if is_used || rate.held.is_some() {
                live.locks.push(rate);
            }
        }
        (live.waiters, live.idle) = self.waiters.iter().cloned().partition(|waiter| {
            let serves = |lock| as_lock(ledger, lock).is_some() || is_futex_lock(ledger, lock);
            is_for_lock(waiter.how) || waiter.lock.is_some_and(serves)
        });
        live.holders.clone_from(&self.holders);
        live.waiters.sort_by_key(|waiter| (Reverse(waiter.for_ns), waiter.tid));
        live.idle.sort_by_key(|waiter| (Reverse(waiter.for_ns), waiter.tid));
        live.holders.sort_by_key(|holder| (Reverse(holder.time), holder.tid, holder.lock));
        live
    }
}

/// Returns how often a condition that serves as a lock was acquired, and how often after waiting.
fn as_lock(ledger: &Ledger<'_>, lock: u32) -> Option<(u64, u64)> {
    ledger.existing_extension(ledger.lock(lock)?)?.as_lock()
}

fn is_futex_lock(ledger: &Ledger<'_>, lock: u32) -> bool {
    ledger.lock(lock).is_some_and(|lock| futexes::seems_a_lock(ledger, lock))
}

fn recorded(ledger: &Ledger<'_>, lock: u32) -> u64 {
    ledger.lock(lock).map_or(0, |lock| lock.acquisitions.load(Relaxed))
}

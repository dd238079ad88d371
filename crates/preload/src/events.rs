//! Leaves events for the command, in a run that is recorded.
//!
//! # Role
//! The slow paths come here where a wait begins and ends, where a lock is given back, where a call
//! wakes others, and where a thread ends. They have the times anyway. Of a run that is not recorded
//! each of them loads one word that nobody writes, and goes on. The fast paths do not come here.
//!
//! # Which holds leave an event
//! That of a thread that had waited for the lock, and that of a lock for which others wait when it
//! is given back, if the release takes the slow path. Whether others wait says a number beside the
//! lock's statistics, which waiters raise and lower. A thread that begins to wait moves the coarse
//! clock on, so that the holder of the moment takes the slow path when it gives the lock back. Then
//! that thread times its holds at that place, as long as it can pay for it
//! ([`timing`](crate::timing)), and what it times takes the slow path too. So what is left out are
//! holds that begin and end within one step of the coarse clock, one after the other, faster than
//! they can be timed.
//!
//! # Protocol
//! That of [`lockstead_ledger::ring`]. All events are left by a thread that is marked busy
//! ([`Me`]), so that a handler that interrupts leaves none. An event of a hold is left when the lock
//! has been given back: before that, others would wait for it.

use crate::call::CallOutcome;
use crate::me::{Me, enter};
use crate::site::CallSite;
use crate::state;
use crate::sys;
use crate::timing::Measured;
use crate::waiters::{is_recorded, one_waiter_less};
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::cells::Native;
use lockstead_ledger::events::{Event, EventKind, FOR_LOCK, ending, hold};
use lockstead_ledger::ledger::LedgerPart;
use lockstead_ledger::lock::{Extension, attribute};
use lockstead_ledger::publish::{Flags, Holding, WaitKind, Waiting};
use lockstead_ledger::ring::EventRing;

/// A wait that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedWait {
    /// What it was for.
    pub(crate) how: WaitKind,
    /// A wait on a futex word counts as one for a lock.
    pub(crate) is_for_lock: bool,
    /// How it ended ([`ending`]).
    pub(crate) ending: u8,
    /// The index of the lock's record, or the serial number of the thread that was joined.
    pub(crate) lock: u32,
    /// The stack of its call.
    pub(crate) stack: u32,
    /// The time at which it began.
    pub(crate) since: u64,
    /// The time at which it ended.
    pub(crate) now: u64,
}

/// Returns the number of how a wait has ended.
pub(crate) fn ending_of(outcome: CallOutcome) -> u8 {
    match outcome {
        CallOutcome::Acquired => ending::GRANTED,
        CallOutcome::TimedOut => ending::TIMED_OUT,
        CallOutcome::Interrupted => ending::INTERRUPTED,
        CallOutcome::Refused | CallOutcome::Ruined | CallOutcome::Failed => ending::REFUSED,
    }
}

/// Notes a call that wakes those that wait for what lies at `address`, before it is made.
#[inline]
pub(crate) fn wakes(address: u64, site: &CallSite) {
    if is_recorded()
        && let Some(me) = enter()
        && let Some(lock) = me.ledger.find_lock(address)
        && me.is_waited_for(lock)
    {
        me.leave_wake(lock, me.stack(site), sys::now());
    }
}

impl Me {
    /// Counts the thread among those that wait for the lock with this index.
    #[inline]
    pub(crate) fn will_wait(&self, lock: u32) {
        if is_recorded()
            && let Some(statistics) = self.ledger.extension(lock)
        {
            statistics.waiters.fetch_add(1, Relaxed);
        }
    }

    /// Counts it no more, of a wait that was none.
    #[inline]
    pub(crate) fn waits_no_more(&self, lock: u32) {
        if is_recorded()
            && let Some(statistics) = self.statistics_of_lock(lock)
        {
            one_waiter_less(statistics);
        }
    }

    /// Leaves the event of a wait, after which the thread counts no more as one that waits.
    #[inline]
    pub(crate) fn has_waited(&self, wait: &EndedWait) {
        if is_recorded() {
            self.leave_wait(wait);
        }
    }

    /// Leaves the event of a wait for the end of the thread that has this handle.
    #[inline]
    pub(crate) fn has_joined(&self, handle: u64, site: &CallSite, wait: EndedWait) {
        if is_recorded() {
            let (lock, stack) = (self.ledger.thread_of(handle), self.stack(site));
            self.leave_wait(&EndedWait { lock, stack, ..wait });
        }
    }

    /// Notes that the call at `site` was to wait from `since` on and did not. Who comes last to a
    /// barrier wakes the others.
    #[inline]
    pub(crate) fn has_not_waited(&self, target: u64, how: WaitKind, site: &CallSite, since: u64) {
        if is_recorded()
            && how.kind() != WaitKind::JOIN
            && let Some(lock) = self.ledger.find_lock(target)
        {
            self.waits_no_more(lock);
            if how.kind() == WaitKind::BARRIER {
                self.leave_wake(lock, self.stack(site), since);
            }
        }
    }

    #[inline(never)]
    fn leave_wait(&self, wait: &EndedWait) {
        let is_join = wait.how.kind() == WaitKind::JOIN;
        if !is_join {
            self.waits_no_more(wait.lock);
        }
        self.leave(&Event {
            kind: EventKind::Wait,
            began: wait.since,
            lasted: wait.now.saturating_sub(wait.since),
            how: wait.how.kind().0 as u8 | if wait.is_for_lock { FOR_LOCK } else { 0 },
            ending: wait.ending,
            lock: wait.lock,
            generation: if is_join { 0 } else { self.life(wait.lock) },
            stack: wait.stack,
            thread: 0,
            tid: 0,
        });
    }

    /// Leaves the event of a wait that the thread does not come back to: it is thrown out of it, has
    /// left it by `longjmp`, or ends in it.
    pub(crate) fn has_abandoned(&self, waiting: &Waiting) {
        if is_recorded() {
            let lock = match waiting.how.kind() {
                WaitKind::JOIN => self.ledger.thread_of(waiting.target),
                _ => self.ledger.lock_of(waiting).unwrap_or(0),
            };
            self.leave_wait(&EndedWait {
                how: waiting.how,
                is_for_lock: self.ledger.sleeps_for_lock(waiting, lock),
                ending: ending::ABANDONED,
                lock,
                stack: waiting.stack,
                since: waiting.since,
                now: sys::now(),
            });
        }
    }

    /// Tells whether threads wait for the lock, in a run that is recorded.
    #[inline]
    pub(crate) fn is_waited_for(&self, lock: u32) -> bool {
        is_recorded()
            && self
                .statistics_of_lock(lock)
                .is_some_and(|statistics| statistics.waiters.load(Relaxed) != 0)
    }

    /// Returns the event of a hold that ends now, if it is one that leaves an event; `facts` are
    /// those of [`hold`] beside the usual ones.
    #[inline]
    pub(crate) fn ended_hold(
        &self,
        holding: &Holding,
        measured: Option<&Measured>,
        facts: u8,
    ) -> Option<Event> {
        if is_recorded() { self.recorded_hold(holding, measured, facts) } else { None }
    }

    #[inline(never)]
    fn recorded_hold(
        &self,
        holding: &Holding,
        measured: Option<&Measured>,
        facts: u8,
    ) -> Option<Event> {
        let waited_for = self.is_waited_for(holding.lock);
        let after_wait = holding.flags.has(Flags::CONTENDED);
        if !waited_for && !after_wait {
            return None;
        }
        if waited_for && !holding.flags.has(Flags::TIMED) {
            self.is_worth_timing(holding);
        }
        let is_coarse = holding.started == 0;
        let (began, ended) = match measured {
            Some(measured) => measured.span(),
            None if is_coarse => (self.estimate(holding.tick), sys::now()),
            None => (holding.started, sys::now()),
        };
        let fact = |is: bool, bit: u8| if is { bit } else { 0 };
        Some(Event {
            kind: EventKind::Hold,
            began: began.min(ended),
            lasted: ended.saturating_sub(began),
            how: facts
                | fact(holding.flags.has(Flags::READ), hold::READ)
                | fact(is_coarse, hold::COARSE)
                | fact(after_wait, hold::AFTER_WAIT)
                | fact(waited_for, hold::WAITED_FOR),
            ending: 0,
            lock: holding.lock,
            generation: self.life(holding.lock),
            stack: holding.stack,
            thread: 0,
            tid: 0,
        })
    }

    /// Ends the holds of robust mutexes of a thread that ends: the kernel gives them to whoever asks
    /// next. The held stack goes on to tell who had them.
    pub(crate) fn gives_up_robust(&self) {
        let stack = self.thread.stack();
        for holding in (0..stack.depth()).filter_map(|index| stack.entry(index).read()) {
            let lock = self.ledger.lock(holding.lock);
            let is_robust = lock.is_some_and(|lock| lock.shape().2 & attribute::ROBUST != 0);
            if !is_robust || holding.flags.has(Flags::LENT) {
                continue;
            }
            let measured = self.measured(&holding);
            if let Some(event) = self.ended_hold(&holding, measured.as_ref(), 0) {
                self.leave(&event);
            }
            if let Some(measured) = &measured {
                self.add_hold(measured, None);
            }
        }
    }

    /// Leaves that the thread wakes those that wait for the lock.
    #[inline(never)]
    pub(crate) fn leave_wake(&self, lock: u32, stack: u32, now: u64) {
        self.leave(&Event {
            kind: EventKind::Wake,
            began: now,
            lasted: 0,
            how: 0,
            ending: 0,
            lock,
            generation: self.life(lock),
            stack,
            thread: 0,
            tid: 0,
        });
    }

    /// Leaves the event of the thread's life, which ends at `now`.
    pub(crate) fn leave_life(&self, now: u64) {
        if !is_recorded() {
            return;
        }
        let record = self.record();
        let began = record.began.load(Relaxed);
        let creator = record.creator.load(Relaxed) as usize;
        let creator = creator.checked_sub(1).and_then(|index| self.ledger.thread(index));
        // Another thread may have the creator's record by now.
        let creator = creator.map(|creator| creator.record);
        let creator = creator.filter(|creator| creator.began.load(Relaxed) <= began);
        self.leave(&Event {
            kind: EventKind::Thread,
            began,
            lasted: now.saturating_sub(began),
            how: 0,
            ending: 0,
            lock: creator.map_or(0, |creator| creator.serial.load(Relaxed)),
            generation: 0,
            stack: record.creation_stack.load(Relaxed),
            thread: 0,
            tid: record.tid.load(Relaxed),
        });
    }

    /// Leaves an event of this thread.
    pub(crate) fn leave(&self, event: &Event) {
        let record = self.record();
        let ring = match record.ring.load(Relaxed) {
            0 => self.new_ring(),
            number => self.ledger.ring(number as usize - 1),
        };
        let event = Event { thread: record.serial.load(Relaxed), ..*event };
        match ring {
            Some(ring) => ring.leave(event.to_words()),
            None => {
                self.ledger.header().losses.events.fetch_add(1, Relaxed);
            }
        }
    }

    /// Gets the ring of a thread that has ended, or one that was never used.
    #[cold]
    fn new_ring(&self) -> Option<EventRing<'static, Native>> {
        let fresh = || self.ledger.claim(LedgerPart::Rings, 1);
        let index = state::take_spare_ring().or_else(fresh)?;
        let ring = self.ledger.ring(index)?;
        self.record().ring.store(index as u32 + 1, Relaxed);
        Some(ring)
    }

    /// Leaves the thread's ring, in which it leaves no more events, to the next one.
    pub(crate) fn gives_ring_back(&self) {
        if let Some(index) = self.record().ring.swap(0, Relaxed).checked_sub(1) {
            state::spare_ring(index as usize);
        }
    }

    fn statistics_of_lock(&self, lock: u32) -> Option<&'static Extension> {
        self.ledger.existing_extension(self.ledger.lock(lock)?)
    }

    fn life(&self, lock: u32) -> u8 {
        Event::life(self.generation(lock))
    }
}

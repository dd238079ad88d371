//! Leaves in the ledger what a lock call did.
//!
//! # Role
//! The interposed functions call these around the real ones: [`acquisition_begins`] for
//! whatever a thread then holds, [`release`] before it gives it back,
//! [`wait_begins`] and [`wait_ends`] for waits that end in holding nothing.
//! [`timing`](crate::timing) says which times of holding are measured.

use crate::call::{CallOutcome, CallPlace, LockCall, Nature};
use crate::events::{self, EndedWait};
use crate::late;
use crate::me::{Me, enter, resume};
use crate::rules;
use crate::site::CallSite;
use crate::sys;
use crate::thunk::Passage;
use crate::timing::Measured;
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::events::{Event, hold};
use lockstead_ledger::header::tick_of;
use lockstead_ledger::publish::{Flags, Holding, WaitKind, Waiting};
use lockstead_ledger::thread::ThreadPart;

/// What stands in a passage in the place of a way of waiting.
const UNRECORDED: usize = 0;

/// The bit beside a way of waiting that says that the attempt found the lock ruined.
const WAS_RUINED: usize = 1 << 32;

/// Acquires in a way that may block, in a [frame](crate::waiting_frame): the attempt has come to
/// `answer`, which is the program's if the lock was to be had at once. If not, publishes the wait,
/// and returns `block`, the address of the real function that waits; [`acquisition_ends`] comes
/// after that.
pub fn acquisition_begins<N: Nature + Copy>(
    passage: &mut Passage,
    call: &LockCall<'_, N>,
    (answer, outcome): (c_int, CallOutcome),
    block: usize,
) -> usize {
    if outcome == CallOutcome::Acquired {
        acquired(call, Flags::NONE);
        passage.result = answer as isize;
        return 0;
    }
    // Whatever the attempt did not like, the blocking call says in its own way.
    wait_begins(call);
    let was_ruined = if outcome == CallOutcome::Ruined { WAS_RUINED } else { 0 };
    passage.notes[0] = call.how.0 as usize | was_ruined;
    block
}

/// Returns `block`, the address of a real function that refuses what it is given: nothing is
/// recorded of the call.
pub fn unrecorded(passage: &mut Passage, block: usize) -> usize {
    passage.notes[0] = UNRECORDED;
    block
}

/// Ends what [`acquisition_begins`] began, when the real function has come back. Of `call` the way
/// of waiting is not looked at: the passage has it.
pub fn acquisition_ends<N: Nature + Copy>(
    passage: &Passage,
    call: LockCall<'_, N>,
    outcome: CallOutcome,
) {
    let [how, ..] = passage.notes;
    if how != UNRECORDED {
        // What was ruined before is refused at once.
        let is_wait = outcome != CallOutcome::Ruined || how & WAS_RUINED == 0;
        let outcome = if is_wait { outcome } else { CallOutcome::Failed };
        wait_ends(&LockCall { how: WaitKind(how as u32), ..call }, outcome);
    }
}

/// Records that an acquisition that never blocks has come to `outcome`.
pub fn tried<N: Nature + Copy>(call: &LockCall<'_, N>, outcome: CallOutcome) {
    match outcome {
        CallOutcome::Acquired => acquired(call, Flags::TRIED),
        CallOutcome::Refused => {
            let Some(me) = enter() else { return };
            let place = me.place(call.target, call.site, call.nature);
            if let Some(statistics) = me.ledger.extension(place.lock) {
                statistics.refused.fetch_add(1, Relaxed);
            }
        }
        CallOutcome::Ruined | CallOutcome::Failed => rules::fails(call),
        CallOutcome::TimedOut | CallOutcome::Interrupted => {}
    }
}

/// Records that the caller holds the lock, without having waited.
pub fn acquired<N: Nature + Copy>(call: &LockCall<'_, N>, how: Flags) {
    match enter() {
        Some(me) => me.acquired(call, how),
        None => rules::passes(call, how),
    }
}

/// Counts a use: the caller got what it asked for without waiting, and holds nothing.
pub fn used<N: Nature + Copy>(call: &LockCall<'_, N>) {
    if let Some(me) = enter() {
        let known = me.still_known(call.target, call.site);
        let known = known.unwrap_or_else(|| me.known_lock(call.target, call.site, call.nature));
        me.counts(known);
    }
}

/// Publishes that the caller is about to wait. Returns whether it did.
pub fn wait_begins<N: Nature + Copy>(call: &LockCall<'_, N>) -> bool {
    let Some(me) = enter() else {
        rules::passes(call, Flags::NONE);
        return false;
    };
    let stack = if is_join(call.how) {
        me.stack(call.site)
    } else {
        let place = me.place(call.target, call.site, call.nature);
        // For the holder too: its release comes before this wait ends.
        let statistics = me.ledger.extension(place.lock);
        if let Some(statistics) = statistics.filter(|_| is_condition(call.how)) {
            me.waits_on(call.target, call.companion, statistics);
        }
        me.will_wait(place.lock);
        rules::waits(&me, call, place);
        #[cfg(feature = "check")]
        if leads_to_holding(call.how) {
            me.asks(call.target, place, call.mode, call.how.is_timed());
        }
        place.stack
    };
    if call.companion != 0 {
        me.lend(call.companion, call.site);
        #[cfg(feature = "check")]
        me.asks_back(call.companion, stack);
    }
    let waiting = Waiting {
        how: call.how,
        stack,
        target: call.target,
        since: sys::now(),
        deadline: call.deadline,
        companion: call.companion,
    };
    me.publish(&waiting, call.site);
    true
}

/// Ends the wait that [`wait_begins`] published. A lock that was acquired is held
/// from then on, if waiting for it means to hold it.
pub fn wait_ends<N: Nature + Copy>(call: &LockCall<'_, N>, outcome: CallOutcome) {
    let Some(me) = resume(Some(call.site)) else {
        // The call began unrecorded, in a signal handler say; the lock is held
        // all the same.
        if outcome == CallOutcome::Acquired && leads_to_holding(call.how) {
            acquired(call, Flags::CONTENDED);
        }
        return;
    };
    if let Some(me) = waited(me, call, outcome) {
        me.acquired(call, Flags::CONTENDED);
    }
}

/// Withdraws the wait of the calling thread, which is back from the call that blocked, and adds it
/// to its lock's statistics. Returns the thread if it holds the lock from now on.
pub fn waited<N: Nature + Copy>(
    me: Me,
    call: &LockCall<'_, N>,
    outcome: CallOutcome,
) -> Option<Me> {
    let now = me.clock();
    let record = me.record();
    let since = record.wait.read().map_or(now, |(_, waiting)| waiting.since);
    record.wait.end();
    let waited = now.saturating_sub(since);
    let holds = leads_to_holding(call.how);
    if call.companion != 0 {
        me.take_back(call.companion, now);
    }
    // What was not to be had by waiting has not been waited for.
    if outcome == CallOutcome::Failed {
        me.has_not_waited(call.target, call.how, call.site, since);
        return None;
    }
    let total = if holds { &record.waited } else { &record.idled };
    total.store(total.load(Relaxed) + waited, Relaxed);
    let ended = EndedWait {
        how: call.how,
        is_for_lock: false,
        ending: events::ending_of(outcome),
        lock: 0,
        stack: 0,
        since,
        now,
    };
    if is_join(call.how) {
        me.has_joined(call.target, call.site, ended);
        return None;
    }
    // What is not held may have been destroyed by whoever has ended the wait: it is not
    // looked for anew.
    let known = if holds { None } else { me.still_known(call.target, call.site) };
    let known = known.unwrap_or_else(|| me.known_lock(call.target, call.site, call.nature));
    let place = CallPlace { lock: known.lock.load(Relaxed), stack: known.stack.load(Relaxed) };
    me.has_waited(&EndedWait { lock: place.lock, stack: place.stack, ..ended });
    let acquired = outcome == CallOutcome::Acquired;
    if holds && acquired {
        record.contended.store(record.contended.load(Relaxed) + 1, Relaxed);
    }
    if let Some(statistics) = me.ledger.extension(place.lock) {
        match outcome {
            CallOutcome::Acquired => statistics.contended.fetch_add(1, Relaxed),
            CallOutcome::TimedOut => statistics.timed_out.fetch_add(1, Relaxed),
            CallOutcome::Refused
            | CallOutcome::Interrupted
            | CallOutcome::Ruined
            | CallOutcome::Failed => 0,
        };
        statistics.wait.add(waited, 1, place.stack);
        me.role(statistics).waited(waited);
        if is_condition(call.how) {
            me.has_waited_on(call.target, now, place.stack, statistics);
            if statistics.handing.is_lock() {
                // It was a wait for a lock.
                record.idled.store(record.idled.load(Relaxed) - waited, Relaxed);
                record.waited.store(record.waited.load(Relaxed) + waited, Relaxed);
                statistics.handing.counted.fetch_add(waited, Relaxed);
            }
        }
        me.ledger.add_share(&statistics.waited_at, place.stack, 1, waited);
    }
    if holds && acquired {
        return Some(me);
    }
    if acquired {
        me.counts(known);
    }
    None
}

/// Tells whether waiting this way ends in holding a lock.
fn leads_to_holding(how: WaitKind) -> bool {
    matches!(how.kind(), WaitKind::MUTEX | WaitKind::WRITE | WaitKind::READ | WaitKind::SPIN)
}

fn is_condition(how: WaitKind) -> bool {
    how.kind() == WaitKind::CONDITION
}

fn is_join(how: WaitKind) -> bool {
    how.kind() == WaitKind::JOIN
}

/// Ends the wait of the calling thread because the thread is being cancelled,
/// or left by an exception: what [`wait_ends`] would have done, as far as it
/// must.
pub fn wait_abandoned() {
    let Some(me) = resume(None) else { return };
    let record = me.record();
    let waiting = record.wait.read().map(|(_, waiting)| waiting);
    record.wait.end();
    let Some(waiting) = waiting else { return };
    me.has_abandoned(&waiting);
    if waiting.companion != 0 {
        me.take_back(waiting.companion, sys::now());
    }
}

/// A lock that is being given back: [`Release::done`] comes after the real call.
#[must_use]
#[derive(Debug)]
pub struct Release {
    /// Whether the caller held it, as far as is known; [`release_of_others`] is for
    /// locks that it did not.
    pub was_held: bool,
    hold: Option<Measured>,
    event: Option<Event>,
}

impl Release {
    /// Records the hold, after the call at `site` has given the lock back: before that, others
    /// would wait for the lock meanwhile.
    pub fn done(self, site: &CallSite) {
        if self.hold.is_none() && self.event.is_none() {
            return;
        }
        let Some(me) = enter() else { return };
        if let Some(event) = &self.event {
            me.leave(event);
        }
        if let Some(hold) = &self.hold {
            me.add_hold(hold, Some(site));
        }
    }
}

/// Takes the lock off the held stack, before the caller gives it back.
pub fn release<N: Nature>(address: u64, nature: &N, site: &CallSite) -> Release {
    let Some(me) = enter() else { return Release { was_held: true, hold: None, event: None } };
    rules::releases(&me, address, nature, site);
    let popped = me.pop(address);
    let hold = popped.as_ref().and_then(|holding| me.measured(holding));
    let event = popped.as_ref().and_then(|holding| me.ended_hold(holding, hold.as_ref(), 0));
    Release { was_held: popped.is_some(), hold, event }
}

/// Takes a lock off the held stack that the caller turns out not to hold any more.
pub fn lost(address: u64) {
    if let Some(me) = enter()
        && let Some(holding) = me.pop(address)
    {
        me.held_until_now(&holding, None);
    }
}

/// Tells whether the caller gives back an acquisition for reading from before the library was there. It is not
/// recorded to have the lock, which `readers` threads read by its own word. That is taken to be so where
/// fewer are recorded, and the caller was not created under the library.
#[cold]
pub fn is_from_before(address: u64, readers: u32) -> bool {
    if !late::is_late() {
        return false;
    }
    let Some(me) = enter() else { return false };
    let entries = |thread: ThreadPart<'_>| {
        let stack = thread.stack();
        (0..stack.depth()).filter(|&index| stack.entry(index).address() == address).count()
    };
    me.record().creator.load(Relaxed) == 0
        && me.ledger.threads().map(entries).sum::<usize>() < readers as usize
}

/// Takes a lock off another thread's held stack, before the caller gives it back; it may also
/// have been acquired before the library was there.
#[cold]
pub fn release_of_others(address: u64, site: &CallSite) {
    events::wakes(address, site);
    let Some(me) = enter() else { return };
    let Some(lock) = me.ledger.find_lock(address) else { return };
    let taken = me.ledger.threads().find_map(|thread| thread.stack().revoke(address));
    if let Some(holding) = taken {
        if let Some(lock) = me.ledger.lock(lock) {
            lock.handed_on.fetch_add(1, Relaxed);
        }
        me.held_until_now(&holding, None);
    }
}

impl Me {
    /// Publishes a wait, for which the thread is about to block in the call at `site`.
    pub fn publish(self, waiting: &Waiting, site: &CallSite) {
        // Whoever holds what is waited for now is told by that how long this lasted.
        self.ledger.header().push_clock(waiting.since);
        self.tidy();
        self.record().wait.begin(waiting);
        self.block(site);
    }

    /// Puts a lock on the thread's held stack.
    pub fn acquired<N: Nature + Copy>(&self, call: &LockCall<'_, N>, how: Flags) {
        let known = self.known_lock(call.target, call.site, call.nature);
        let place = CallPlace { lock: known.lock.load(Relaxed), stack: known.stack.load(Relaxed) };
        rules::acquired(self, call, place, how);
        #[cfg(feature = "check")]
        if !how.has(Flags::TRIED) && !how.has(Flags::CONTENDED) {
            self.asks(call.target, place, call.mode, call.how.is_timed());
        }
        let (timed, started) = if how.has(Flags::CONTENDED) {
            self.times_waited(known)
        } else {
            self.times(known).unwrap_or((Flags::NONE, 0))
        };
        let holding = Holding {
            address: call.target,
            lock: place.lock,
            stack: place.stack,
            tick: self.tick(),
            flags: call.mode.and(how).and(timed),
            started,
        };
        self.push(&holding);
    }

    /// Puts an entry on the held stack, or counts that there is no room.
    pub fn push(&self, holding: &Holding) {
        self.tidy();
        let pushed = self.thread.stack().push(holding);
        #[cfg(feature = "check")]
        if let Ok(index) = pushed {
            self.pushed(index);
        }
        if pushed.is_err() {
            let dropped = &self.record().held_dropped;
            dropped.store(dropped.load(Relaxed) + 1, Relaxed);
        }
    }

    /// Drops what others have emptied on the held stack.
    fn tidy(&self) {
        let _moved = self.thread.stack().tidy();
        #[cfg(feature = "check")]
        if _moved {
            self.compute_keys();
        }
    }

    /// Takes the newest entry of `address` from the held stack.
    pub fn pop(&self, address: u64) -> Option<Holding> {
        let stack = self.thread.stack();
        #[cfg(feature = "check")]
        let newest = stack.depth().checked_sub(1).map(|index| stack.entry(index).address());
        let holding = stack.pop(address)?;
        #[cfg(feature = "check")]
        if newest != Some(address) {
            // Others have moved down.
            self.compute_keys();
        }
        Some(holding)
    }

    /// Takes the newest entry of `address` from the held stack, for a call that signal handlers may make:
    /// one may have interrupted a push or a pop.
    pub fn takes_off(&self, address: u64) -> Option<Holding> {
        let holding = self.thread.stack().revoke(address)?;
        // A handler may have interrupted a push that has stored its key and not its entry: the keys say
        // more than is held until they are computed next, as where another thread releases.
        #[cfg(feature = "check")]
        if self.record().context.load(Relaxed) == 0 {
            self.compute_keys();
        }
        Some(holding)
    }

    /// Marks the mutex as given back, until a wait on a condition variable ends.
    fn lend(&self, mutex: u64, site: &CallSite) {
        let stack = self.thread.stack();
        if let Some((index, holding)) = stack.find(mutex) {
            let measured = self.measured(&holding);
            if let Some(event) = self.ended_hold(&holding, measured.as_ref(), hold::LENT) {
                self.leave(&event);
            }
            if let Some(measured) = &measured {
                self.add_hold(measured, Some(site));
            }
            stack.entry(index).set_flags(holding.flags.and(Flags::LENT));
        }
    }

    /// Marks the mutex as held again, after the wait.
    fn take_back(&self, mutex: u64, now: u64) {
        let stack = self.thread.stack();
        if let Some((index, holding)) = stack.find(mutex)
            && holding.flags.has(Flags::LENT)
        {
            let flags = holding.flags.without(Flags::LENT).untimed().and(Flags::timed(0));
            stack.entry(index).restart(tick_of(now), flags, now);
        }
    }
}

//! The slow path of the wait/wound mutex: a context stands in line, judges the holder, and
//! settles in once it has acquired.

use super::context::{self, Context};
use super::ticket::Ticket;
use super::{ContextPatience, RawWwMutex, Scheme, WwError};
use crate::atomic::{Atomic64, Ordering};
use crate::awaited::{telling, telling_outcome};
use crate::give_up::Reasons;
use crate::hooks::Site;
use crate::platform::{Awaited, AwaitedUse, LockError, Nanos, Platform, WaitBounds, WaitOutcome};
use crate::policy::Policy;

/// The number of looks at a holder that has not said who it is, before the context goes to
/// sleep. The holder says so within a few instructions, unless it was preempted.
const LOOKS: u32 = 64;

/// The shortest and the longest time, in nanoseconds, until the context looks again at a holder
/// that has not said who it is.
const ASK: (u64, u64) = (20_000, 1_000_000);

/// The time, in nanoseconds, after which one that waits without a context looks whether the thread of
/// the holder still is: nobody can tell it.
const LOOK: u64 = 1_000_000_000;

/// What a context must do about the holder that it waits for.
enum HolderVerdict {
    /// Wait, which is safe until the context is told otherwise.
    Wait,
    /// Look again: the holder may be older, or younger and not wounded.
    Unknown,
    /// Back off, as wait-die demands.
    Die,
}

/// The place of a context among those that wait.
enum QueuePlace {
    /// The context is the oldest that waits.
    First,
    /// The context is behind this older one.
    Behind(Ticket),
    /// Another context of the same thread is first: this one is in a signal handler.
    Mine,
}

impl<P: Platform, Y: Policy> RawWwMutex<P, Y> {
    /// Waits for `base`. The caller then settles in, or steps down.
    pub(super) fn wait(
        &self,
        context: &Context<P>,
        patience: &ContextPatience,
        site: Site,
    ) -> Result<(), WwError> {
        if !context.mortal() {
            context.heal();
        }
        let alarm = context.alarm();
        let how = WaitBounds {
            deadline: patience.deadline,
            cancel: Some(alarm),
            interruptible: patience.interruptible,
        };
        let mut ask = ASK.0;
        // Set by a wake-up that was meant for one of those behind the first: the others go on
        // sleeping until one is first with *followed* again (WW-BEHIND).
        let mut must_pass_on = false;
        let result = loop {
            context.hear();
            let must_die = context.mortal() && context.wounded();
            if must_die {
                break Err(WwError::Deadlock);
            }
            let ended = match self.stand_in_line(context, &mut must_pass_on) {
                QueuePlace::Mine => break Err(WwError::Lock(LockError::Recursive)),
                // With nothing held it may sleep there, whoever acquires meanwhile (WW-BEHIND).
                QueuePlace::Behind(_)
                    if context.mortal() && !fault!(ww_younger_waits_behind_an_older) =>
                {
                    break Err(WwError::Deadlock);
                }
                QueuePlace::Behind(older) => self.sleep_behind(older, &how, &mut must_pass_on),
                QueuePlace::First => {
                    let mut until = how.deadline;
                    match self.judge(context) {
                        HolderVerdict::Die => break Err(WwError::Deadlock),
                        HolderVerdict::Wait => {}
                        HolderVerdict::Unknown => {
                            let soon = P::now().after(ask);
                            ask = ASK.1.min(2 * ask);
                            until = Some(until.map_or(soon, |until| until.min(soon)));
                        }
                    }
                    self.base.lock_how(&WaitBounds { deadline: until, ..how }, 0, site)
                }
            };
            match ended {
                Ok(()) => return Ok(()),
                Err(LockError::Cancelled) => {}
                Err(LockError::TimedOut) if !past::<P>(how.deadline) => {}
                Err(error) => break Err(WwError::Lock(error)),
            }
        };
        if must_pass_on && !fault!(ww_woken_one_gives_up_silently) {
            self.pass_on();
        }
        result
    }

    /// Waits for `base` without a context. To observers it is one wait, however often it looks.
    pub(super) fn wait_alone(&self, how: &WaitBounds<'_, P>, site: Site) -> Result<(), LockError> {
        if self.base.try_lock(site) {
            return Ok(());
        }
        let awaited = self.base.awaited(how);
        let shown = awaited.shown(how);
        telling::<P, _>(&awaited, || {
            loop {
                let look = P::now().after(LOOK);
                let until = how.deadline.map_or(look, |deadline| deadline.min(look));
                let until =
                    if fault!(ww_one_alone_never_looks) { how.deadline } else { Some(until) };
                let bounded = WaitBounds { deadline: until, ..*how };
                match self.base.lock_within(&bounded, &shown) {
                    Err(LockError::TimedOut) if !past::<P>(how.deadline) => {}
                    ended => return ended,
                }
            }
        })
    }

    /// Becomes the first, unless an older context is. A context that is first
    /// already has set *contexts* before, and need not set it again (WW-JUDGED).
    fn stand_in_line(&self, context: &Context<P>, must_pass_on: &mut bool) -> QueuePlace {
        let mine = context.ticket().with_mortal(context.mortal());
        let mut seen = self.first();
        loop {
            // No wake-up is to be passed on then: it is consumed behind another first, and nobody
            // puts a ticket back that was deposed.
            if seen.is(mine) {
                return QueuePlace::First;
            }
            if let Some(slot) = seen.slot() {
                if Some(slot) == context.slot() {
                    return QueuePlace::Mine;
                }
                if !mine.older_than(seen) && !abandoned::<P>(seen) {
                    let beside = fault!(ww_younger_stands_beside_an_older);
                    return if beside { QueuePlace::First } else { QueuePlace::Behind(seen) };
                }
            }
            let inherits = seen.followed() && !fault!(ww_deposer_forgets_who_follows);
            let followed = inherits || *must_pass_on;
            let after = if followed { mine.with_followers() } else { mine };
            match self.exchange_first(seen, after) {
                Ok(()) => {
                    *must_pass_on = false;
                    break;
                }
                Err(found) => seen = found,
            }
        }
        if !fault!(ww_deposed_is_not_told) {
            context::tell::<P>(seen);
        }
        if !fault!(ww_first_leaves_the_fast_path_open) {
            self.base.admit_contexts();
        }
        QueuePlace::First
    }

    fn judge(&self, context: &Context<P>) -> HolderVerdict {
        for _ in 0..LOOKS {
            let Some(holder) = self.seen_holder() else { return HolderVerdict::Wait };
            if fault!(ww_silence_is_taken_for_consent) && holder == Ticket::NONE {
                return HolderVerdict::Wait;
            }
            if holder != Ticket::NONE {
                match context.scheme() {
                    Scheme::WaitDie if context.mortal() && holder.older_than(context.ticket()) => {
                        // To wait for one that has ended is an error, which the wait itself finds.
                        let is_lost = abandoned::<P>(holder);
                        return if is_lost { HolderVerdict::Wait } else { HolderVerdict::Die };
                    }
                    Scheme::WoundWait if context.ticket().older_than(holder) => {
                        if context::wound::<P>(holder) {
                            return HolderVerdict::Wait;
                        }
                        // It has gone. A holder that has come since judges itself.
                    }
                    Scheme::WaitDie | Scheme::WoundWait => return HolderVerdict::Wait,
                }
            }
            P::relax();
        }
        HolderVerdict::Unknown
    }

    /// Returns the holder's ticket; `None` if there is no holder, or it has no context.
    fn seen_holder(&self) -> Option<Ticket> {
        self.base.owner()?;
        // The ticket is that of the holder that there was when *contexts* was set, or of a later
        // one (WW-HOLDER): that exchange has acquired what the holder before left. A later one
        // has judged itself, and whatever is decided here is decided twice.
        // ord: WW-1 acquire, pairs with the store in `held_by`.
        let holder = self.holder(Ordering::Acquire);
        (holder != Ticket::ALONE).then_some(holder)
    }

    /// Sleeps until the first is another one, or the context is told to look again.
    fn sleep_behind(
        &self,
        first: Ticket,
        how: &WaitBounds<'_, P>,
        must_pass_on: &mut bool,
    ) -> Result<(), LockError> {
        let asleep = first.with_followers();
        // A context that must pass a wake-up on makes an exchange even where *followed* is seen:
        // the look may be older than the wake-up.
        if (asleep != first || *must_pass_on) && self.exchange_first(first, asleep).is_err() {
            return Err(LockError::Cancelled);
        }
        let mut reasons = Reasons::new(how);
        P::begin_sleep();
        let awaited = Awaited {
            address: core::ptr::from_ref(&self.base).addr(),
            wants: AwaitedUse::Mutex,
            name: None,
            deadline: how.deadline,
        };
        let outcome =
            telling_outcome::<P>(&awaited, || P::wait_low(&self.first, asleep.low(), how));
        P::end_sleep();
        if !fault!(ww_woken_one_forgets_the_others) {
            *must_pass_on = outcome == WaitOutcome::Woken;
        }
        reasons.heard(outcome);
        Err(reasons.given_up().unwrap_or(LockError::Cancelled))
    }

    /// Settles in after an acquisition past the fast path: says who holds the lock, and looks at
    /// the first.
    pub(super) fn settle(&self, context: Option<&Context<P>>) {
        let mine = context.map_or(Ticket::ALONE, Context::ticket);
        self.held_by(mine);
        let mut first = self.first();
        loop {
            if first == Ticket::NONE {
                if !self.base.dismiss_contexts() || fault!(ww_holder_dismisses_unseen) {
                    return;
                }
                first = self.first();
                if first == Ticket::NONE {
                    return;
                }
                self.base.admit_contexts();
            } else if first.is(mine) || abandoned::<P>(first) {
                first = match self.exchange_first(first, Ticket::NONE) {
                    Ok(()) => {
                        self.wake_behind(first);
                        self.first()
                    }
                    Err(found) => found,
                };
            } else {
                if let Some(context) = context
                    && !fault!(ww_holder_overlooks_the_first)
                {
                    yield_to::<P>(context, first);
                }
                return;
            }
        }
    }

    /// Leaves the place of the first, if the context has it, after a wait that ended without
    /// the lock.
    pub(super) fn step_down(&self, context: &Context<P>) {
        let mut seen = self.first();
        while seen.is(context.ticket()) {
            match self.exchange_first(seen, Ticket::NONE) {
                Ok(()) => {
                    self.wake_behind(seen);
                    return;
                }
                Err(found) => seen = found,
            }
        }
    }

    /// Wakes one of the contexts behind a first that has left. They hold nothing, so that whichever
    /// of them comes next makes no cycle with one that sleeps on.
    fn wake_behind(&self, first: Ticket) {
        if first.followed() && !fault!(ww_first_leaves_sleepers_behind) {
            P::wake(P::address_low(&self.first), 1);
        }
    }

    /// Passes on a wake-up that was meant for those behind the first, because the context gives
    /// up: the present first will wake the next one, or if there is none, the caller does.
    fn pass_on(&self) {
        let mut seen = self.first();
        while seen != Ticket::NONE {
            match self.exchange_first(seen, seen.with_followers()) {
                Ok(()) => return,
                Err(found) => seen = found,
            }
        }
        P::wake(P::address_low(&self.first), 1);
    }

    pub(super) fn first(&self) -> Ticket {
        // ord: WW-2 acquire, pairs with the exchange below: the first's record is
        // there before its ticket is seen.
        Ticket(self.first.load(Ordering::Acquire))
    }

    fn exchange_first(&self, from: Ticket, to: Ticket) -> Result<(), Ticket> {
        // ord: WW-2 acq_rel, pairs with itself and the load above.
        match self.first.compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(()),
            Err(found) => Err(Ticket(found)),
        }
    }
}

/// Judges a context that has acquired while another is first: it wounds itself, or tells the
/// first.
fn yield_to<P: Platform>(context: &Context<P>, first: Ticket) {
    match context.scheme() {
        Scheme::WoundWait if first.older_than(context.ticket()) => context.wound_self(),
        Scheme::WaitDie if first.mortal() && context.ticket().older_than(first) => {
            context::tell::<P>(first);
        }
        Scheme::WoundWait | Scheme::WaitDie => {}
    }
}

/// Tells whether the thread of this context was left behind by `fork` or has ended, so that the
/// context never ends.
fn abandoned<P: Platform>(context: Ticket) -> bool {
    context.slot().is_some_and(|slot| P::participant(slot).lost())
}

fn past<P: Platform>(deadline: Option<Nanos>) -> bool {
    deadline.is_some_and(|deadline| P::now() >= deadline)
}

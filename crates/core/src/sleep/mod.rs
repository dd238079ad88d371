//! Sleeping, giving up and the hand-off: the slow path that mutex and semaphore share.
//!
//! # Role
//! [`acquire`] is called when the fast path has failed: it spins, then sleeps. [`released`] is
//! called when a release found more than a subject in the low half of the word.
//!
//! # Protocol
//! ```text
//!   spin ──▶ look ──┬─ free ─────────────▶ take
//!             ▲     ├─ given up ─────────▶ pass the wake-up on, leave
//!             │     ├─ past the bound ───▶ register for a hand-off (`handoff.rs`)
//!             ├─────┼─ the policy's say ─▶ give the processor up, so many times (`batch.rs`)
//!             │     ├─ passed, refused ──▶ back off by a timer ─────┐
//!             │     └─ else: announce a sleeper, sleep ─────────────┤
//!             └────────────────── woken, or time to look ───────────┘
//! ```
//! Waiter:
//! 1. The lock is free: it takes it. A waiter that consumed a wake-up announces sleepers with
//!    the same exchange, because the release that woke it erased *waiters* and others may sleep.
//! 2. It gives up (time, signal, cancellation): if it consumed a wake-up it first passes that
//!    on (`pass_on.rs`).
//! 3. It has waited longer than the bound: it registers for a hand-off; or, if the lock is free
//!    and reserved for a hand-off waiter that has not come, takes it.
//! 4. It lets others have its processor, as often as the policy says, without announcing anything:
//!    to the lock it is a thread that was preempted.
//! 5. It was barged past too often, or its sleep was refused: it passes on the wake-up that it may
//!    have consumed and backs off, without asking for another one (`spin/barging.rs`).
//! 6. Otherwise it announces a sleeper, sees to it that the announcement stands if that is
//!    *waiters*, and sleeps until it is woken or past the bound.
//!
//! Releaser: erases the low half (a semaphore: counts up), then acts on what was in it, by
//! address alone (PLATFORM-ADDRESS): *hand-off asleep* wakes the hand-off waiter, *waiters*
//! wakes one sleeper. With neither, another thread answers for the sleepers (WORD-SLEEPERS).
//! The release of a mutex may erase a flag that it has not seen ("The release that loses news"
//! in `word.rs`). The thread that sets *waiters*, *hand-off asleep* or *reserved* therefore makes
//! it stand; a waiter that finds that its *waiters* did not stand must announce sleepers, like
//! one that consumed a wake-up.
//!
//! # Invariants
//! - WORD-IDLE to WORD-RESERVED of `word.rs`, BARGING-NO-DUTY of `spin/barging.rs`.
//! - **SLEEP-PREPARING** preparing ⇒ covered. A sleeper that relies on *covered* expects
//!   *preparing* in the low half, so that it cannot fall asleep on a word that was released
//!   since, whatever the age of its view.
//! - **SLEEP-HANDOFF** A hand-off waiter sleeps ⇒ *hand-off asleep*, which stands or whose setter
//!   has not looked since; or the release that erased it, or that setter, is about to wake all.
//! - **SLEEP-LAST-TOUCH** After the atomic that releases, nothing here touches the lock.
//!
//! # Progress
//! The bound on waiting grows with the number of sleeping threads ([`Policy::SHARE`]). A waiter
//! past it registers for a hand-off and has the lock at the next release. Waiters past it
//! register one at a time: the release of each wakes the next. Should that wake-up reach a
//! younger waiter, the others look again after 1, 2, 4 … times the bound, at most [`PATIENCE`]
//! times: by a timer, because a lock held for long must not be polled by all its waiters.
//!
//! # Source
//! A futex word with a waiters bit after Drepper, "Futexes are tricky"; the hand-off is the
//! kernel mutex's (2016) without its wait list.

mod backoff;
mod batch;
mod handoff;
mod pass_on;
mod waiter;

use crate::atomic::{Atomic64, Ordering};
use crate::exchange::exchange;
use crate::give_up::Reasons;
use crate::platform::{Address, LockError, Platform, ShownSleep, WaitBounds, WaitOutcome};
use crate::policy::Policy;
use crate::slot::Slot;
use crate::spin::{self, Barging, Spun};
use crate::word::{Subject, Word};
use backoff::back_off;
use batch::Yields;
pub(crate) use batch::released as batch_over;
use handoff::wait_for_handoff;
use pass_on::pass_on;
use waiter::SleepWaiter;

/// Spins, then sleeps, until the lock is acquired. Returns the word as the acquisition left it.
/// `me`, the caller, does not hold the lock. `shown`: what an observer outside may be shown of the
/// sleeps.
///
/// # Errors
/// The reasons in `how`; [`LockError::OwnerLost`] if the owner was left behind by `fork`.
pub(crate) fn acquire<P: Platform, K: Subject, Y: Policy>(
    word: &P::U64,
    me: Slot,
    how: &WaitBounds<'_, P>,
    shown: Option<&ShownSleep>,
) -> Result<Word, LockError> {
    let mut barging = Barging::new();
    batch::end_if_long::<P, Y>(|| me);
    let taken = match spin::spin::<P, K, Y>(word, me, how, &mut barging) {
        Spun::Took(taken) => taken,
        Spun::Left => sleep::<P, K, Y>(word, me, how, shown, false, barging)?,
        Spun::LeftLoose => {
            let loose = !fault!(last_spinner_leaves_waiters_loose);
            sleep::<P, K, Y>(word, me, how, shown, loose, barging)?
        }
    };
    // Permits are left and a thread may sleep: the release that woke us could
    // wake only one. This never happens to a mutex, where the branch folds away.
    if K::free(taken) && taken.waiters() && !fault!(tuned_taker_wakes_nobody) {
        P::wake(P::address_low(word), 1);
    }
    Ok(taken)
}

/// Wakes the threads that a release must wake that found `erased` in the low half of the word at
/// `at`.
#[inline]
pub(crate) fn released<P: Platform>(erased: Word, at: Address) {
    if erased.handoff_asleep() && !fault!(release_wakes_no_handoff_waiter) {
        P::wake_handoff(at);
    }
    if erased.waiters() && !fault!(release_wakes_nobody) {
        P::wake(at, 1);
    }
}

/// The longest time between two attempts of a waiter past the bound to register for a
/// hand-off, in bounds.
const PATIENCE: u64 = 64;

fn sleep<P: Platform, K: Subject, Y: Policy>(
    word: &P::U64,
    me: Slot,
    how: &WaitBounds<'_, P>,
    shown: Option<&ShownSleep>,
    loose: bool,
    mut barging: Barging<P, K, Y>,
) -> Result<Word, LockError> {
    let mut waiter = SleepWaiter { reasons: Reasons::new(how), must_pass_on: loose, loose };
    let began = P::now();
    let mut now = began;
    let mut patience = 1;
    let mut crowd = 1;
    let mut woken = false;
    let mut yields = Yields::<P, K, Y>::new();
    loop {
        let seen = Word(word.load(Ordering::Relaxed));
        if K::free(seen) {
            let taken = K::take(seen, me);
            let silent = fault!(waiter_takes_without_passing_on);
            let taken = if silent { taken } else { waiter.passing_on::<Y>(taken) };
            match exchange::<P, K>(word, seen, taken) {
                Ok(taken) => return Ok(taken),
                Err(_) => continue,
            }
        }
        if core::mem::take(&mut woken) {
            barging.barged_past();
        }
        if let Some(error) = waiter.reasons.given_up().or_else(|| orphaned::<P, K>(seen)) {
            if waiter.must_pass_on && !fault!(waiter_gives_up_without_passing_on) {
                let loose = waiter.loose && !fault!(leaver_trusts_its_own_slow_unlocks);
                return pass_on::<P, K, Y>(word, me, error, loose);
            }
            return Err(error);
        }
        let bound = Y::BOUND + u64::from(crowd) * Y::SHARE;
        let due = began.after(bound);
        let mut insist = due;
        if now >= insist {
            if K::available(seen) {
                // Reserved for a hand-off waiter that is slow, or was left behind by `fork`.
                let taken = waiter.passing_on::<Y>(K::take(seen.handoff_taken(), me));
                match exchange::<P, K>(word, seen, taken) {
                    Ok(taken) => return Ok(taken),
                    Err(_) => continue,
                }
            }
            if !seen.handoff() {
                let silent = fault!(handoff_waiter_registers_without_passing_on);
                let settled = if silent { seen } else { waiter.passing_on::<Y>(seen) };
                if exchange::<P, K>(word, seen, settled.with_handoff()).is_err() {
                    continue;
                }
                waiter.must_pass_on = false;
                return wait_for_handoff::<P, K, Y>(word, me, how, shown, waiter);
            }
            insist = now.after(patience * bound);
            patience = PATIENCE.min(2 * patience);
        }
        if now < due && yields.left() && !K::available(seen) {
            yields.give_way(word, me, seen, now);
            waiter.must_pass_on &= !fault!(who_gives_way_forgets_its_wake_up);
            now = P::now();
            continue;
        }
        // Not past the bound, where the release of each hand-off waiter wakes the next.
        let backs_off = now < due && barging.is_enough() && !K::available(seen);
        let asleep = if backs_off {
            let silent = fault!(back_off_forgets_to_pass_on);
            if silent { seen } else { waiter.passing_on::<Y>(seen) }.with_unreleased()
        } else if fault!(waiter_sleeps_unannounced) {
            seen
        } else {
            seen.announced(spin::alive::<P, Y>(seen))
        };
        let asleep = K::written(asleep, P::slow_unlocks());
        // Before a back-off sleep even where nothing changes: the look may be older than the
        // wake-up that has to be passed on.
        if backs_off || asleep != seen {
            if exchange::<P, K>(word, seen, asleep).is_err() {
                continue;
            }
            // Keep `loose` set even for a back-off sleep: a later waiter may have skipped its
            // restart because of the slow unlocks that we set.
            waiter.loose &= !fault!(back_off_forgets_that_it_is_loose);
            waiter.loose |= K::RELEASE_LOSES
                && asleep.waiters()
                && !seen.unlocks_slowly()
                && (waiter.must_pass_on || !backs_off);
            waiter.must_pass_on = false;
        }
        if fault!(waiter_believes_an_old_word) {
            waiter.must_pass_on = false;
        }
        if waiter.loose && !fault!(announcement_is_left_loose) {
            P::restart_releases();
            waiter.loose = false;
            let found = Word(word.load(Ordering::Relaxed));
            // Others may sleep already because they saw the *waiters* that is gone.
            waiter.must_pass_on =
                !found.waiters() && !found.covered() && !fault!(fallen_announcement_is_forgotten);
            if found.low() != asleep.low() {
                continue;
            }
        }
        if backs_off {
            crowd = P::begin_sleep();
            let count = barging.count();
            waiter.heard(back_off::<P, Y>(count, me, how, insist, crowd, shown));
            P::end_sleep();
            barging.slept(asleep, Word(word.load(Ordering::Relaxed)));
            now = P::now();
            continue;
        }
        let until = how.deadline.map_or(insist, |deadline| deadline.min(insist));
        let until = WaitBounds { deadline: Some(until), ..*how };
        crowd = P::begin_sleep();
        let outcome = match shown {
            Some(shown) => P::wait_low_shown(word, asleep.low(), &until, shown),
            None => P::wait_low(word, asleep.low(), &until),
        };
        P::end_sleep();
        waiter.heard(outcome);
        woken = outcome == WaitOutcome::Woken;
        barging.asked(outcome == WaitOutcome::Changed);
        now = P::now();
        yields = Yields::after_sleep(me, now);
    }
}

/// Returns the reason to give up if the owner was left behind by `fork`: waiting would never
/// end.
fn orphaned<P: Platform, K: Subject>(seen: Word) -> Option<LockError> {
    let owner = K::holder(seen)?;
    P::participant(owner).lost().then_some(LockError::OwnerLost)
}

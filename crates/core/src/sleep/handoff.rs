//! The hand-off: a waiter past the bound, for which the lock is reserved.
//!
//! # Protocol
//! ```text
//!   register (hand-off, reserved) ──▶ spin a little ──▶ set hand-off asleep ──▶ sleep
//!          ▲                              │ available         │                   │ woken
//!          └── another took it ───────────┼───────────────────┴───────────────────┘
//!                                         ▼
//!                         take, and clear hand-off and reserved
//! ```
//! While it is registered nobody else takes the lock when it comes free. It covers the sleepers,
//! and sleeps on a channel of its own until a release that finds *hand-off asleep*.
//!
//! # Two of them
//! A waiter past the bound may take a reserved lock in the place of a hand-off waiter that has not
//! come yet, and then a third thread may register. Both sleep on the one channel, and because of
//! one *hand-off asleep*. A release that finds that wakes all. If a release erases it unseen, the
//! thread that set it wakes all, as soon as it sees that it is gone.

use super::pass_on::pass_on;
use super::waiter::SleepWaiter;
use crate::atomic::{Atomic64, Ordering};
use crate::exchange::exchange;
use crate::platform::{LockError, Nanos, Platform, ShownSleep, WaitBounds};
use crate::policy::Policy;
use crate::slot::Slot;
use crate::word::{Subject, Word};

/// Waits as the hand-off waiter, which the caller has just become. Returns the word as the
/// acquisition left it.
pub(super) fn wait_for_handoff<P: Platform, K: Subject, Y: Policy>(
    word: &P::U64,
    me: Slot,
    how: &WaitBounds<'_, P>,
    shown: Option<&ShownSleep>,
    mut waiter: SleepWaiter<'_, P>,
) -> Result<Word, LockError> {
    let mut spin = HandoffSpin::<P, Y>::start();
    // Whether *reserved* and *hand-off asleep*, if set, stand.
    let mut stands = !K::RELEASE_LOSES;
    // Whether this thread has set *hand-off asleep* and not looked since whether it stands. Another
    // hand-off waiter (below) may sleep because of it.
    let mut answers = false;
    loop {
        let seen = Word(word.load(Ordering::Relaxed));
        if answers && !seen.handoff_asleep() && !fault!(handoff_waiter_answers_for_itself_alone) {
            // A release has erased it, unseen perhaps.
            P::wake_handoff(P::address_low(word));
            answers = false;
        }
        if K::available(seen) {
            let taken = waiter.passing_on::<Y>(K::take(seen.handoff_taken(), me));
            match exchange::<P, K>(word, seen, taken) {
                Ok(taken) => return Ok(taken),
                Err(_) => continue,
            }
        }
        if let Some(error) = waiter.reasons.given_up() {
            let stays = fault!(handoff_waiter_leaves_without_withdrawing);
            let left = waiter.passing_on::<Y>(if stays { seen } else { seen.handoff_withdrawn() });
            if exchange::<P, K>(word, seen, left).is_err() {
                continue;
            }
            // Another thread may take itself for the hand-off waiter, and sleep (below).
            if seen.handoff_asleep() && !fault!(handoff_waiter_withdraws_silently) {
                P::wake_handoff(P::address_low(word));
            }
            // Slow unlocks that do not stand are this thread's own, or those of a thread that
            // relies on it.
            let kept = (stands || fault!(handoff_waiter_trusts_its_own_slow_unlocks))
                && seen.unlocks_slowly();
            if K::RELEASE_LOSES
                && left.waiters()
                && !kept
                && !fault!(handoff_waiter_withdraws_loosely)
            {
                return pass_on::<P, K, Y>(word, me, error, true);
            }
            return Err(error);
        }
        // Another waiter past the bound took the reserved lock, and *hand-off* with it. If a
        // third thread has registered since we cannot know: then there are two hand-off waiters,
        // the one that comes first takes, and the other is back here.
        // Or a release has erased *reserved* unseen, and a newcomer took the lock. (No
        // *waiters* went with it: as long as there is a hand-off waiter, sleepers are covered.)
        if !seen.handoff() || !seen.reserved() {
            let _ = exchange::<P, K>(word, seen, seen.with_handoff());
            stands = !K::RELEASE_LOSES;
            continue;
        }
        if spin.turn() {
            continue;
        }
        if !seen.handoff_asleep() {
            let set = exchange::<P, K>(word, seen, seen.with_handoff_asleep());
            stands = !K::RELEASE_LOSES;
            answers = set.is_ok() && K::RELEASE_LOSES;
            continue;
        }
        if !stands && !fault!(handoff_waiter_sleeps_on_a_loose_flag) {
            P::restart_releases();
            stands = true;
            continue;
        }
        // It stands; or it is another one's by now, which answers for all that sleep.
        answers = false;
        let asleep = seen.low();
        waiter.heard(match shown {
            Some(shown) => P::wait_handoff_shown(word, asleep, how, shown),
            None => P::wait_handoff(word, asleep, how),
        });
    }
}

/// The short spin of a hand-off waiter, of which the word says nothing.
struct HandoffSpin<P: Platform, Y: Policy> {
    until: Option<Nanos>,
    turns: u32,
    policy: core::marker::PhantomData<fn() -> (P, Y)>,
}

impl<P: Platform, Y: Policy> HandoffSpin<P, Y> {
    /// Starts with [`Policy::HANDOFF_SPIN`] to go.
    fn start() -> Self {
        HandoffSpin {
            until: Some(P::now().after(Y::HANDOFF_SPIN)),
            turns: 0,
            policy: core::marker::PhantomData,
        }
    }

    /// Pauses once. Returns false when it is time to sleep.
    fn turn(&mut self) -> bool {
        let Some(until) = self.until else { return false };
        self.turns += 1;
        if self.turns.is_multiple_of(Y::TURNS) && P::now() >= until {
            self.until = None;
            return false;
        }
        P::relax();
        true
    }
}

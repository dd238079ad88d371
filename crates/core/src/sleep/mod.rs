//! Sleeping, giving up and inheriting: the slow path that mutex and semaphore
//! share.
//!
//! # Role
//! [`acquire`] is called when the fast path failed: it spins, then sleeps.
//! [`released`] is called when a release found more than a subject in the low
//! half of the word.
//!
//! # Protocol
//! Waiter:
//! 1. Free? Take it. A waiter that consumed a wake-up announces sleepers with
//!    the same exchange: the release that woke it erased W and others may sleep.
//! 2. Given up (time, signal, cancellation)? If it consumed a wake-up it first
//!    announces sleepers, so that another is woken in its place; and stays until the
//!    announcement stands.
//! 3. Waited longer than the bound? Become the heir; or, if the lock is free
//!    and kept for an heir that has not come, take it.
//! 4. Passed by too often, and owes nothing? Nap, without asking for a wake-up
//!    (`spin/barging.rs`).
//! 5. Announce a sleeper; see to it that the announcement stands, if it is W; then
//!    sleep until woken or past the bound.
//!
//! Heir: from now on nobody else takes the lock when it comes free. Spins a
//! little, then sleeps on a channel of its own until the release that rings.
//!
//! Releaser: erases the low half (a semaphore: counts up), then acts on what
//! stood in it, by address alone (P5): R wakes the heir, W wakes one sleeper.
//! With neither, sleepers are somebody else's business (W4). The release of a mutex
//! may erase a flag that it has not seen ("The release that loses news" in `word.rs`):
//! so W, R and K are made to stand by those who set them, and whoever finds that W
//! did not stand owes an announcement, like one that consumed a wake-up.
//!
//! # Invariants
//! - W1 to W5 of `word.rs`.
//! - **S1** Z ⇒ V. A sleeper that relies on V expects Z in the low half, so it
//!   cannot fall asleep on a word that was released since, whatever the age of
//!   its view.
//! - **S2** the heir sleeps ⇒ R, which stands, or a release that erased R is about to
//!   wake it.
//! - After the atomic that releases, nothing here touches the lock.
//!
//! # Progress
//! Bounded waiting: the bound grows with the number of sleeping threads
//! ([`Policy::SHARE`]). A waiter past it registers as the heir and has the lock
//! at the next release. Waiters past it register one at a time: the release of
//! each heir wakes the next, and should that wake-up reach a younger waiter, the
//! others look again after 1, 2, 4 … times the bound, at most [`PATIENCE`]
//! times. (A timer, since a lock held for long must not be polled by all its
//! waiters.)
//!
//! # Source
//! A futex word with a waiters bit after Drepper, "Futexes are tricky"; the
//! heir is the kernel mutex's handoff (2016) without its wait list.

mod backoff;
mod handoff;
mod pass_on;
mod waiter;

use crate::atomic::{Atomic64, Ordering};
use crate::exchange::exchange;
use crate::give_up::Reasons;
use crate::platform::{Address, LockError, Outcome, Platform, Wait};
use crate::policy::Policy;
use crate::slot::Slot;
use crate::spin::{self, Barging, Spun};
use crate::word::{Subject, Word};
use backoff::back_off;
use handoff::wait_for_handoff;
use pass_on::pass_on;
use waiter::Waiter;

/// Spins, then sleeps, until acquired or given up; the word as the acquisition left it.
/// `me` does not hold it.
pub(crate) fn acquire<P: Platform, K: Subject, Y: Policy>(
    word: &P::U64,
    me: Slot,
    how: &Wait<'_, P>,
) -> Result<Word, LockError> {
    let mut barging = Barging::new();
    let taken = match spin::spin::<P, K, Y>(word, me, how, &mut barging) {
        Spun::Took(taken) => taken,
        Spun::Left => sleep::<P, K, Y>(word, me, how, false, barging)?,
        Spun::LeftLoose => sleep::<P, K, Y>(word, me, how, true, barging)?,
    };
    // Permits are left and somebody may sleep: the release that woke us could
    // wake only one. Never happens to a mutex, where the branch folds away.
    if K::free(taken) && taken.waiters() {
        P::wake(P::address_low(word), 1);
    }
    Ok(taken)
}

/// After a release that found `erased` in the low half of the word at `at`.
#[inline]
pub(crate) fn released<P: Platform>(erased: Word, at: Address) {
    if erased.handoff_asleep() {
        P::wake_handoff(at);
    }
    if erased.waiters() {
        P::wake(at, 1);
    }
}

/// The longest time between two attempts of a waiter past the bound to become
/// the heir, in bounds.
const PATIENCE: u64 = 64;

fn sleep<P: Platform, K: Subject, Y: Policy>(
    word: &P::U64,
    me: Slot,
    how: &Wait<'_, P>,
    loose: bool,
    mut barging: Barging<P, K, Y>,
) -> Result<Word, LockError> {
    let mut waiter = Waiter { reasons: Reasons::new(how), must_pass_on: loose, loose };
    let began = P::now();
    let mut now = began;
    let mut patience = 1;
    let mut crowd = 1;
    let mut woken = false;
    loop {
        let seen = Word(word.load(Ordering::Relaxed));
        if K::free(seen) {
            match exchange::<P, K>(word, seen, waiter.passing_on::<Y>(K::take(seen, me))) {
                Ok(taken) => return Ok(taken),
                Err(_) => continue,
            }
        }
        if core::mem::take(&mut woken) {
            barging.barged_past();
        }
        if let Some(error) = waiter.reasons.given_up().or_else(|| orphaned::<P, K>(seen)) {
            if waiter.must_pass_on {
                return pass_on::<P, K, Y>(word, me, error, waiter.loose);
            }
            return Err(error);
        }
        let bound = Y::BOUND + u64::from(crowd) * Y::SHARE;
        let due = began.after(bound);
        let mut insist = due;
        if now >= insist {
            if K::available(seen) {
                // Kept for an heir that is slow, or was left behind by `fork`.
                let taken = waiter.passing_on::<Y>(K::take(seen.handoff_taken(), me));
                match exchange::<P, K>(word, seen, taken) {
                    Ok(taken) => return Ok(taken),
                    Err(_) => continue,
                }
            }
            if !seen.handoff() {
                if exchange::<P, K>(word, seen, waiter.passing_on::<Y>(seen).with_handoff())
                    .is_err()
                {
                    continue;
                }
                waiter.must_pass_on = false;
                return wait_for_handoff::<P, K, Y>(word, me, how, waiter);
            }
            insist = now.after(patience * bound);
            patience = PATIENCE.min(2 * patience);
        }
        // Not past the bound, where the releases of heirs wake the next.
        let backs_off = now < due && barging.is_enough() && !K::available(seen);
        let asleep = if backs_off {
            waiter.passing_on::<Y>(seen).with_unreleased()
        } else {
            seen.announced(spin::alive::<P, Y>(seen))
        };
        let asleep = K::written(asleep, P::slow_unlocks());
        // For a nap even where nothing changes: the look may be older than the wake-up
        // that it owes for.
        if backs_off || asleep != seen {
            if exchange::<P, K>(word, seen, asleep).is_err() {
                continue;
            }
            // What is loose stays loose: others may trust in its heat.
            waiter.loose |= K::RELEASE_LOSES
                && asleep.waiters()
                && !seen.unlocks_slowly()
                && (waiter.must_pass_on || !backs_off);
            waiter.must_pass_on = false;
        }
        if waiter.loose {
            P::restart_releases();
            waiter.loose = false;
            let now = Word(word.load(Ordering::Relaxed));
            // Others may sleep already because they saw the W that is gone.
            waiter.must_pass_on = !now.waiters() && !now.covered();
            if now.low() != asleep.low() {
                continue;
            }
        }
        if backs_off {
            crowd = P::begin_sleep();
            waiter.heard(back_off::<P, Y>(barging.count(), me, how, insist, crowd));
            P::end_sleep();
            barging.slept(asleep, Word(word.load(Ordering::Relaxed)));
            now = P::now();
            continue;
        }
        let until = how.deadline.map_or(insist, |deadline| deadline.min(insist));
        let until = Wait { deadline: Some(until), ..*how };
        crowd = P::begin_sleep();
        let outcome = if K::OWNED {
            P::wait_low_owned(word, asleep.low(), &until)
        } else {
            P::wait_low(word, asleep.low(), &until)
        };
        P::end_sleep();
        waiter.heard(outcome);
        woken = outcome == Outcome::Woken;
        now = P::now();
    }
}

/// The owner was left behind by `fork`: waiting would never end.
fn orphaned<P: Platform, K: Subject>(seen: Word) -> Option<LockError> {
    let owner = K::holder(seen)?;
    P::participant(owner).lost().then_some(LockError::OwnerLost)
}

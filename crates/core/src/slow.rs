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
//!    (`passed.rs`).
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

use crate::giveup::Reasons;
use crate::osq::{self, Spun, exchange};
use crate::participant::Slot;
use crate::passed::Passed;
use crate::platform::{Address, Atomic64, LockError, Nanos, Ordering, Outcome, Platform, Wait};
use crate::policy::Policy;
use crate::word::{Kind, Word};

/// Spins, then sleeps, until acquired or given up; the word as the acquisition left it.
/// `me` does not hold it.
pub(crate) fn acquire<P: Platform, K: Kind, Y: Policy>(
    word: &P::U64,
    me: Slot,
    how: &Wait<'_, P>,
) -> Result<Word, LockError> {
    let mut passed = Passed::new();
    let taken = match osq::spin::<P, K, Y>(word, me, how, &mut passed) {
        Spun::Took(taken) => taken,
        Spun::Left => sleep::<P, K, Y>(word, me, how, false, passed)?,
        Spun::LeftLoose => sleep::<P, K, Y>(word, me, how, true, passed)?,
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
    if erased.ring() {
        P::wake_heir(at);
    }
    if erased.waiters() {
        P::wake(at, 1);
    }
}

/// The longest time between two attempts of a waiter past the bound to become
/// the heir, in bounds.
const PATIENCE: u64 = 64;

/// What a waiter knows about itself between two sleeps.
struct Waiter<'a, P: Platform> {
    reasons: Reasons<'a, P>,
    /// A wake-up was consumed, or W did not stand, and sleepers were not announced
    /// since.
    owes: bool,
    /// W was set, and may not stand. Such a waiter owes, unless it sees to that.
    loose: bool,
}

impl<P: Platform> Waiter<'_, P> {
    fn heard(&mut self, outcome: Outcome) {
        self.owes |= outcome == Outcome::Woken;
        self.reasons.heard(outcome);
    }

    /// `word` with what the waiter owes.
    fn settle<Y: Policy>(&self, word: Word) -> Word {
        if self.owes { word.announced(osq::alive::<P, Y>(word)) } else { word }
    }
}

fn sleep<P: Platform, K: Kind, Y: Policy>(
    word: &P::U64,
    me: Slot,
    how: &Wait<'_, P>,
    loose: bool,
    mut passed: Passed<P, K, Y>,
) -> Result<Word, LockError> {
    let mut waiter = Waiter { reasons: Reasons::new(how), owes: loose, loose };
    let began = P::now();
    let mut now = began;
    let mut patience = 1;
    let mut crowd = 1;
    let mut woken = false;
    loop {
        let seen = Word(word.load(Ordering::Relaxed));
        if K::free(seen) {
            match exchange::<P, K>(word, seen, waiter.settle::<Y>(K::take(seen, me))) {
                Ok(taken) => return Ok(taken),
                Err(_) => continue,
            }
        }
        if core::mem::take(&mut woken) {
            passed.missed();
        }
        if let Some(error) = waiter.reasons.given_up().or_else(|| orphaned::<P, K>(seen)) {
            if waiter.owes {
                return pay::<P, K, Y>(word, me, error, waiter.loose);
            }
            return Err(error);
        }
        let bound = Y::BOUND + u64::from(crowd) * Y::SHARE;
        let due = began.after(bound);
        let mut insist = due;
        if now >= insist {
            if K::available(seen) {
                // Kept for an heir that is slow, or was left behind by `fork`.
                let taken = waiter.settle::<Y>(K::take(seen.claimed(), me));
                match exchange::<P, K>(word, seen, taken) {
                    Ok(taken) => return Ok(taken),
                    Err(_) => continue,
                }
            }
            if !seen.heir() {
                if exchange::<P, K>(word, seen, waiter.settle::<Y>(seen).inherited()).is_err() {
                    continue;
                }
                waiter.owes = false;
                return inherit::<P, K, Y>(word, me, how, waiter);
            }
            insist = now.after(patience * bound);
            patience = PATIENCE.min(2 * patience);
        }
        // Not past the bound, where the releases of heirs wake the next.
        let naps = now < due && passed.is_common() && !K::available(seen);
        let asleep = if naps {
            waiter.settle::<Y>(seen).with_mark()
        } else {
            seen.announced(osq::alive::<P, Y>(seen))
        };
        let asleep = K::written(asleep, P::heat());
        // For a nap even where nothing changes: the look may be older than the wake-up
        // that it owes for.
        if naps || asleep != seen {
            if exchange::<P, K>(word, seen, asleep).is_err() {
                continue;
            }
            // What is loose stays loose: others may trust in its heat.
            waiter.loose |= K::BLIND && asleep.waiters() && !seen.hot() && (waiter.owes || !naps);
            waiter.owes = false;
        }
        if waiter.loose {
            P::restart_releases();
            waiter.loose = false;
            let now = Word(word.load(Ordering::Relaxed));
            // Others may sleep already because they saw the W that is gone.
            waiter.owes = !now.waiters() && !now.vouched();
            if now.low() != asleep.low() {
                continue;
            }
        }
        if naps {
            crowd = P::dozing();
            waiter.heard(passed.nap(me, how, insist, crowd));
            P::awake();
            passed.napped(asleep, Word(word.load(Ordering::Relaxed)));
            now = P::now();
            continue;
        }
        let until = how.deadline.map_or(insist, |deadline| deadline.min(insist));
        let nap = Wait { deadline: Some(until), ..*how };
        crowd = P::dozing();
        let outcome = if K::OWNED {
            P::wait_low_owned(word, asleep.low(), &nap)
        } else {
            P::wait_low(word, asleep.low(), &nap)
        };
        P::awake();
        waiter.heard(outcome);
        woken = outcome == Outcome::Woken;
        now = P::now();
    }
}

/// A waiter that owes gives up: it stays until sleepers are announced and that
/// stands, or it has the lock after all, which somebody has released meanwhile.
/// `loose`: the heat may be its own, and not stand.
fn pay<P: Platform, K: Kind, Y: Policy>(
    word: &P::U64,
    me: Slot,
    error: LockError,
    mut loose: bool,
) -> Result<Word, LockError> {
    loop {
        let seen = Word(word.load(Ordering::Relaxed));
        let (free, paid) = (K::free(seen), seen.announced(osq::alive::<P, Y>(seen)));
        // An exchange even where sleepers are seen to be announced: the look at the
        // word may be older than the wake-up.
        let Ok(paid) = exchange::<P, K>(word, seen, if free { K::take(paid, me) } else { paid })
        else {
            continue;
        };
        if free {
            return Ok(paid);
        }
        loose |= paid.waiters() && !seen.hot();
        if !K::BLIND || !loose {
            return Err(error);
        }
        P::restart_releases();
        loose = false;
        let now = Word(word.load(Ordering::Relaxed));
        if now.waiters() || now.vouched() {
            return Err(error);
        }
    }
}

/// The owner was left behind by `fork`: waiting would never end.
fn orphaned<P: Platform, K: Kind>(seen: Word) -> Option<LockError> {
    let owner = K::holder(seen)?;
    P::participant(owner).lost().then_some(LockError::OwnerLost)
}

/// The heir's wait.
fn inherit<P: Platform, K: Kind, Y: Policy>(
    word: &P::U64,
    me: Slot,
    how: &Wait<'_, P>,
    mut waiter: Waiter<'_, P>,
) -> Result<Word, LockError> {
    let mut spin = Spin::<P, Y>::start();
    // K and R, if set, stand.
    let mut firm = !K::BLIND;
    loop {
        let seen = Word(word.load(Ordering::Relaxed));
        if K::available(seen) {
            let taken = waiter.settle::<Y>(K::take(seen.claimed(), me));
            match exchange::<P, K>(word, seen, taken) {
                Ok(taken) => return Ok(taken),
                Err(_) => continue,
            }
        }
        if let Some(error) = waiter.reasons.given_up() {
            let left = waiter.settle::<Y>(seen.withdrawn());
            if exchange::<P, K>(word, seen, left).is_err() {
                continue;
            }
            // Another thread may believe to be the heir, and sleep (below).
            if seen.ring() {
                P::wake_heir(P::address_low(word));
            }
            // Heat that does not stand is the heir's own, or somebody else's who trusts
            // in the heir.
            if K::BLIND && left.waiters() && !(firm && seen.hot()) {
                return pay::<P, K, Y>(word, me, error, true);
            }
            return Err(error);
        }
        // Someone took the lock that was kept for us, and E with it. If a third
        // thread has registered since we cannot know: then there are two heirs,
        // whoever comes first takes, and the other is back here.
        // Or a release has erased K unseen, and newcomers took what is kept. (No W went
        // with it: as long as there is an heir, sleepers are vouched for.)
        if !seen.heir() || !seen.kept() {
            let _ = exchange::<P, K>(word, seen, seen.inherited());
            firm = !K::BLIND;
            continue;
        }
        if spin.turn() {
            continue;
        }
        if !seen.ring() {
            let _ = exchange::<P, K>(word, seen, seen.with_ring());
            firm = !K::BLIND;
            continue;
        }
        if !firm {
            P::restart_releases();
            firm = true;
            continue;
        }
        let asleep = seen.low();
        waiter.heard(if K::OWNED {
            P::wait_heir_owned(word, asleep, how)
        } else {
            P::wait_heir(word, asleep, how)
        });
    }
}

/// The spinning of an heir: short, and nobody else's business.
struct Spin<P: Platform, Y: Policy> {
    until: Option<Nanos>,
    turns: u32,
    policy: core::marker::PhantomData<fn() -> (P, Y)>,
}

impl<P: Platform, Y: Policy> Spin<P, Y> {
    fn start() -> Self {
        Spin {
            until: Some(P::now().after(Y::HEIR_SPIN)),
            turns: 0,
            policy: core::marker::PhantomData,
        }
    }

    /// Pauses once; false when it is time to sleep.
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

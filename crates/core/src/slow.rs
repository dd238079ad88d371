//! Sleeping, giving up and being handed the lock: the slow path that mutex and
//! semaphore share.
//!
//! # Role
//! Called when the fast path and the spinners failed. [`sleep`] acquires or
//! gives up; [`release`] is the release that found more than an owner in the
//! word.
//!
//! # Protocol
//! Waiter:
//! 1. Free? Take it. A waiter that consumed a wake-up takes it with W set,
//!    since the release that woke it cleared W and others may still sleep.
//! 2. Given up (time, signal, cancellation)? If it consumed a wake-up it first
//!    puts W back, so that the next release wakes another in its place.
//! 3. Waited longer than the bound, and nobody is heir? Become the heir.
//! 4. Set W and sleep until woken or past the bound.
//!
//! Heir: spins a little, then sleeps on its own bell until the word names it
//! as owner, or withdraws.
//!
//! Releaser: looks at the word *before* the releasing atomic and decides:
//! - an heir: make it the owner, then ring its bell (in the table, P2);
//! - sleepers, and a live spinner: just release, the spinner answers for them
//!   (unless the releaser was an heir itself: then waiters past the bound may
//!   be asleep, and one is woken to become the next heir);
//! - sleepers: clear W, then wake one by address (P5);
//! - none: just release.
//!
//! # Invariants
//! W1 to W4 of `word.rs`. After the compare-exchange that releases, nothing
//! here touches the lock.
//!
//! # Progress
//! Bounded waiting: a waiter past the bound is handed the lock at the first
//! release after it registered. Waiters past the bound register one at a time:
//! the release of each heir wakes the next, and should that wake-up reach a
//! younger waiter, the others look again after 1, 2, 4 … times the bound, at
//! most [`PATIENCE`] times. (A timer, since a lock held for long must not be
//! polled by all its waiters.)
//!
//! # Source
//! A futex word with a waiters bit after Drepper, "Futexes are tricky"; the
//! heir is the kernel mutex's handoff (2016) without its wait list: the heir
//! names itself in the word.

use crate::osq::{self, exchange};
use crate::participant::Slot;
use crate::platform::{
    Address, Atomic32, Atomic64, LockError, Nanos, Ordering, Outcome, Platform, Wait,
};
use crate::policy::Policy;
use crate::word::{Kind, Word};

/// Spins, then sleeps, until acquired or given up. `me` does not hold it.
pub(crate) fn acquire<P: Platform, K: Kind, Y: Policy>(
    word: &P::U64,
    me: Slot,
    how: &Wait<'_, P>,
) -> Result<(), LockError> {
    let taken = match osq::spin::<P, K, Y>(word, me, how) {
        Some(taken) => taken,
        None => sleep::<P, K, Y>(word, me, how)?,
    };
    // Permits are left and somebody may sleep: the release that woke us could
    // wake only one. Never happens to a mutex, where the branch folds away.
    if K::free(taken) && taken.waiters() {
        P::wake(P::address_low(word), 1);
    }
    Ok(())
}

/// The longest time between two attempts of a waiter past the bound to become
/// the heir, in bounds.
const PATIENCE: u64 = 64;

/// What a waiter found out about itself between two sleeps.
struct Waiter<'a, P: Platform> {
    how: &'a Wait<'a, P>,
    /// A wake-up was consumed and W not put back since.
    owes: bool,
    /// Why to give up, if so.
    verdict: Option<LockError>,
}

impl<P: Platform> Waiter<'_, P> {
    fn heard(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Woken => self.owes = true,
            Outcome::Interrupted if self.how.interruptible => {
                self.verdict = Some(LockError::Interrupted);
            }
            Outcome::Cancelled => self.verdict = Some(LockError::Cancelled),
            Outcome::Changed | Outcome::TimedOut | Outcome::Interrupted => {}
        }
    }

    fn given_up(&self, now: Nanos) -> Option<LockError> {
        self.verdict.or_else(|| {
            if self.how.cancelled() {
                Some(LockError::Cancelled)
            } else if self.how.deadline.is_some_and(|deadline| now >= deadline) {
                Some(LockError::TimedOut)
            } else {
                None
            }
        })
    }
}

fn sleep<P: Platform, K: Kind, Y: Policy>(
    word: &P::U64,
    me: Slot,
    how: &Wait<'_, P>,
) -> Result<Word, LockError> {
    let mut waiter = Waiter { how, owes: false, verdict: None };
    let mut now = P::now();
    let began = now;
    let mut patience = 1;
    let mut crowd = 1;
    loop {
        let seen = Word(word.load(Ordering::Relaxed));
        let settled = if waiter.owes { seen.with_waiters() } else { seen };
        if K::free(seen) {
            match exchange::<P>(word, seen, K::take(settled, me)) {
                Ok(taken) => return Ok(taken),
                Err(_) => continue,
            }
        }
        if let Some(error) = waiter.given_up(now).or_else(|| hopeless::<P, K>(seen, me)) {
            if settled == seen || exchange::<P>(word, seen, settled).is_ok() {
                return Err(error);
            }
            continue;
        }
        let bound = Y::BOUND + u64::from(crowd) * Y::SHARE;
        let mut insist = began.after(bound);
        if now >= insist {
            if heir::<P>(seen).is_none() {
                match exchange::<P>(word, seen, settled.with_heir(me)) {
                    Ok(_) => {
                        waiter.owes = false;
                        return inherit::<P, K, Y>(word, me, waiter);
                    }
                    Err(_) => continue,
                }
            }
            insist = now.after(patience * bound);
            patience = PATIENCE.min(2 * patience);
        }
        let asleep = seen.with_waiters();
        if asleep != seen && exchange::<P>(word, seen, asleep).is_err() {
            continue;
        }
        waiter.owes = false;
        let until = how.deadline.map_or(insist, |deadline| deadline.min(insist));
        let nap = Wait { deadline: Some(until), ..*how };
        crowd = P::dozing();
        let outcome = P::wait_low(word, asleep.low(), &nap);
        P::awake();
        waiter.heard(outcome);
        now = P::now();
    }
}

/// Why waiting would never end: the owner does not exist in this process, or it
/// is the thread that this signal handler interrupted, which was the heir.
fn hopeless<P: Platform, K: Kind>(seen: Word, me: Slot) -> Option<LockError> {
    let owner = K::holder(seen)?;
    if owner == me {
        Some(LockError::Recursive)
    } else if P::participant(owner).lost() {
        Some(LockError::OwnerLost)
    } else {
        None
    }
}

/// The heir, unless it was left behind by `fork`.
fn heir<P: Platform>(word: Word) -> Option<Slot> {
    word.heir().filter(|&heir| !P::participant(heir).lost())
}

/// The heir's wait.
fn inherit<P: Platform, K: Kind, Y: Policy>(
    word: &P::U64,
    me: Slot,
    mut waiter: Waiter<'_, P>,
) -> Result<Word, LockError> {
    let bell = &P::participant(me).bell;
    let mut now = P::now();
    let spin_until = now.after(Y::HEIR_SPIN);
    let mut turns = 0u32;
    loop {
        // ord: BELL-2 acquire, pairs with BELL-1. Read before the word: a
        // hand-over after our look at the word changes the number we expect.
        let rung = bell.load(Ordering::Acquire);
        // ord: WORD-3 acquire, pairs with WORD-2: the critical section of
        // whoever handed over comes before ours.
        let seen = Word(word.load(Ordering::Acquire));
        if K::granted(seen, me) {
            return Ok(seen);
        }
        if let Some(error) = waiter.given_up(now) {
            if exchange::<P>(word, seen, seen.without_heir()).is_ok() {
                return Err(error);
            }
            continue;
        }
        if now < spin_until {
            turns += 1;
            if turns.is_multiple_of(Y::TURNS) {
                now = P::now();
            }
            P::relax();
            continue;
        }
        waiter.heard(P::wait32(bell, rung, waiter.how));
        now = P::now();
    }
}

/// A release of a semaphore that cannot count one more permit.
#[derive(Debug)]
pub(crate) struct Full;

/// The release that found the word more than simply held. A mutex is never
/// full.
pub(crate) fn release<P: Platform, K: Kind, Y: Policy>(word: &P::U64) -> Result<(), Full> {
    let mut seen = Word(word.load(Ordering::Relaxed));
    loop {
        if K::full(seen) {
            return Err(Full);
        }
        let (after, then) = plan::<P, K, Y>(word, seen);
        // ord: WORD-2 release (success), pairs with WORD-1 and WORD-3.
        match word.compare_exchange(seen.0, after.0, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => {
                then.perform::<P>();
                return Ok(());
            }
            Err(found) => seen = Word(found),
        }
    }
}

/// What to do after the releasing atomic; holds nothing that lives in the lock.
enum Then {
    Nothing,
    Ring(Slot),
    Wake(Address),
}

impl Then {
    fn perform<P: Platform>(self) {
        match self {
            Then::Nothing => {}
            Then::Ring(heir) => P::participant(heir).ring(),
            Then::Wake(address) => {
                P::wake(address, 1);
            }
        }
    }
}

fn plan<P: Platform, K: Kind, Y: Policy>(word: &P::U64, seen: Word) -> (Word, Then) {
    if let Some(heir) = heir::<P>(seen) {
        return (K::hand_over(seen, heir).with_handed(), Then::Ring(heir));
    }
    let after = K::release(seen).without_heir().without_handed();
    if !seen.waiters() {
        return (after, Then::Nothing);
    }
    if !seen.handed() && seen.tail().is_some_and(osq::alive::<P, Y>) {
        return (after, Then::Nothing);
    }
    (after.without_waiters(), Then::Wake(P::address_low(word)))
}

//! The counting semaphore between processes, which survives its holders.
//!
//! # State
//! ```text
//!   the semaphore                                   claims of the holders
//!   mutex        guards all of it                   ┌──────────────────┐
//!   total        units that there are               │ lock, units held │ × holders
//!   free         units that nobody holds ◀── total less those of the living
//!   lost         units of dead holders that nobody was told of
//!   asleep       0; 1: somebody sleeps; 2: somebody sleeps for several units
//!   on_their_way sleepers that were woken and have not looked yet
//!   channel      where sleepers sleep
//! ```
//! The claims are the truth. The number of free units is what they leave: kept up to date, and
//! computed anew whenever somebody may have died.
//!
//! # Protocol
//! A participant that finds too few free units counts anew, marks that somebody sleeps, and
//! sleeps on the channel, the doorbell, and the life words of the holders.
//!
//! A participant that gives units back wakes the sleepers *before* it changes anything. So does
//! one that has taken units while others sleep, because those have to watch its life. Should it
//! end in between, those that it woke find the mutex with a dead owner, and count.
//!
//! Where nobody sleeps, nobody is on its way and nobody died, there is nobody to wake: a participant
//! takes the mutex, changes units and claim, and releases it, and names nothing. Should it end in
//! between, the next one finds the mutex with a dead owner, and counts.
//!
//! A sleeper that was woken names the doorbell until it has its units or sleeps again, as in
//! `wait`. Units are kept for nobody: a newcomer may have them first, as often as it is faster.

mod sleep;

pub use sleep::{GLANCE, WATCHED};

use super::awaited::{RobustUse, RobustWait};
use super::machine::{RobustMachine, name_again};
use super::mutex::RawSharedMutex;
use super::outcome::{Got, RobustError};
use super::party::Party;
use super::slot::{AWAITED, Claim};
use super::wait::Goal;
use crate::atomic::{Atomic32, Ordering};
use crate::platform::WaitBounds;
use sleep::Slept;

/// A semaphore in memory that processes share.
#[repr(C, align(8))]
pub struct RawSharedSemaphore<P: RobustMachine> {
    mutex: RawSharedMutex<P>,
    total: P::U32,
    free: P::U32,
    lost: P::U32,
    asleep: P::U32,
    on_their_way: P::U32,
    channel: P::U32,
}

/// What an acquisition of units tells the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Units {
    /// The number of units that dead participants had and nobody was told of; they are free
    /// again.
    pub lost: u32,
}

impl<P: RobustMachine> RawSharedSemaphore<P> {
    /// Builds a semaphore without units, which is all zeroes.
    #[must_use]
    pub const fn new() -> Self {
        RawSharedSemaphore {
            mutex: RawSharedMutex::new(),
            total: P::U32::ZERO,
            free: P::U32::ZERO,
            lost: P::U32::ZERO,
            asleep: P::U32::ZERO,
            on_their_way: P::U32::ZERO,
            channel: P::U32::ZERO,
        }
    }

    /// Builds a semaphore with so many units, all free.
    #[must_use]
    pub fn with_units(units: u32) -> Self {
        let this = Self::new();
        this.total.store(units, Ordering::Relaxed);
        this.free.store(units, Ordering::Relaxed);
        this
    }

    /// Takes `units`, by the caller's claim of this number: the one on this semaphore, or one
    /// that is not in use. Waits while there are fewer.
    ///
    /// # Errors
    /// As `how` allows.
    pub fn acquire(
        &self,
        party: &Party<'_, P>,
        claim: usize,
        units: u32,
        how: &WaitBounds<'_, P>,
    ) -> Result<Units, RobustError> {
        let (claim, what) = party.claim(claim, &self.mutex)?;
        if self.undisturbed(party, |this| {
            let enough = get(&this.free) >= units;
            if enough {
                this.hand_over(claim, what, units);
            }
            enough
        }) {
            return Ok(Units { lost: 0 });
        }
        let named = party.domain.name_doorbell();
        let wait = RobustWait::new(&self.mutex, RobustUse::Units, how);
        let mut is_told = false;
        // At the first sleep, when the caller no longer has the mutex.
        let mut tell = || is_told = is_told || P::shared_wait_begins(&wait);
        let outcome = self.acquire_named(party, (claim, what), units, (how, &mut tell));
        name_again::<P, _>(named, &outcome);
        if is_told {
            P::shared_wait_ends(&wait, outcome.as_ref().err().copied());
        }
        outcome
    }

    fn acquire_named(
        &self,
        party: &Party<'_, P>,
        (claim, what): (&Claim<P>, u32),
        units: u32,
        (how, tell): (&WaitBounds<'_, P>, &mut dyn FnMut()),
    ) -> Result<Units, RobustError> {
        let here = P::here();
        let mut slept = Slept::Fresh;
        loop {
            P::turn(here, slept.kept());
            if matches!(slept, Slept::Over(RobustError::Copied)) {
                return Err(RobustError::Copied);
            }
            if let Err(error) = self.enter(party, what, &at_least_briefly(how)) {
                let silent = fault!(shared_cancelled_at_the_mutex_wakes_nobody)
                    && error == RobustError::Cancelled;
                if error != RobustError::Copied && !silent {
                    // What it was woken for is due to another sleeper; to which one it cannot
                    // tell without the mutex.
                    P::wake_shared(&raw const self.channel, u32::MAX);
                }
                return Err(error);
            }
            match slept {
                Slept::Woken => take(&self.on_their_way, 1),
                // Whoever was on its way may have died.
                Slept::ByDeath => self.on_their_way.store(0, Ordering::Relaxed),
                Slept::Unsure if get(&self.free) >= units => P::missed(),
                Slept::Fresh | Slept::Not | Slept::Unsure | Slept::Over(_) => {}
            }
            if get(&self.free) < units {
                self.count(party, what);
            }
            if get(&self.free) >= units {
                let lost = get(&self.lost);
                // Those that sleep have not seen this holder.
                if get(&self.asleep) != 0
                    && get(&self.on_their_way) == 0
                    && !fault!(shared_taker_is_watched_by_nobody)
                {
                    self.wake(1);
                }
                self.hand_over(claim, what, units);
                self.lost.store(0, Ordering::Relaxed);
                self.mutex.unlock(party);
                return Ok(Units { lost });
            }
            let late = || how.deadline.is_some_and(|deadline| P::now() >= deadline);
            let over = match slept {
                Slept::Over(error) => Some(error),
                _ if how.cancelled() => Some(RobustError::Cancelled),
                _ => late().then_some(RobustError::TimedOut),
            };
            if let Some(error) = over {
                // It may have been the only one that watched, or the one that was woken.
                if !matches!(slept, Slept::Fresh) && get(&self.asleep) != 0 {
                    self.wake(self.how_many(1));
                }
                self.mutex.unlock(party);
                if error == RobustError::TimedOut && self.suspects(party, what) {
                    slept = Slept::Not;
                    continue;
                }
                return Err(error);
            }
            self.asleep.store(get(&self.asleep).max(units.clamp(1, 2)), Ordering::Relaxed);
            // A sleeper that was woken and could not enter in time has passed its wake-up on,
            // and is still counted if nobody slept. Rather one wake-up too many than too few.
            self.on_their_way.store(0, Ordering::Relaxed);
            slept = self.sleep(party, (what, units), (how, tell));
        }
    }

    /// Takes `units` if that needs no wait.
    ///
    /// # Errors
    /// [`RobustError::TimedOut`] if it needs one.
    pub fn try_acquire(
        &self,
        party: &Party<'_, P>,
        claim: usize,
        units: u32,
    ) -> Result<Units, RobustError> {
        let at_once =
            WaitBounds { deadline: Some(crate::platform::Nanos(0)), ..WaitBounds::FOREVER };
        self.acquire(party, claim, units, &at_once)
    }

    /// Gives back `units` that the caller has by this claim. Returns false if it has fewer.
    ///
    /// # Errors
    /// [`RobustError::NotRecoverable`], where a peer has spoiled it.
    pub fn release(
        &self,
        party: &Party<'_, P>,
        claim: usize,
        units: u32,
    ) -> Result<bool, RobustError> {
        self.change(party, claim, units, |this| put(&this.free, units))
    }

    /// Uses up `units` that the caller has by this claim: nobody gets them again. Returns false if
    /// it has fewer.
    ///
    /// # Errors
    /// [`RobustError::NotRecoverable`], where a peer has spoiled it.
    pub fn consume(
        &self,
        party: &Party<'_, P>,
        claim: usize,
        units: u32,
    ) -> Result<bool, RobustError> {
        self.change(party, claim, units, |this| take(&this.total, units))
    }

    /// Takes `units` and uses them up at once, without a claim, if they are free and nobody has to be
    /// woken or told anything. Returns whether it did; else [`acquire`](Self::acquire) and
    /// [`consume`](Self::consume) do.
    #[must_use]
    pub fn try_use_up(&self, party: &Party<'_, P>, units: u32) -> bool {
        self.undisturbed(party, |this| {
            let enough = get(&this.free) >= units;
            if enough {
                // Should the caller end between the two, the next one counts, and nothing was taken.
                take(&this.free, units);
                take(&this.total, units);
            }
            enough
        })
    }

    fn change(
        &self,
        party: &Party<'_, P>,
        claim: usize,
        units: u32,
        then: impl Fn(&Self),
    ) -> Result<bool, RobustError> {
        let (claim, what) = party.claim(claim, &self.mutex)?;
        let has = |_: &Self| get(&claim.what) & !AWAITED == what && get(&claim.units) >= units;
        let hand_in = |this: &Self| {
            Self::hand_in(claim, units);
            then(this);
        };
        self.wake_and(party, (what, units), has, hand_in)
    }

    /// Adds `units` that nobody had. Returns false, and does nothing, if there would be more than
    /// `u32::MAX`.
    ///
    /// # Errors
    /// [`RobustError::NotRecoverable`], where a peer has spoiled it.
    pub fn add(&self, party: &Party<'_, P>, units: u32) -> Result<bool, RobustError> {
        let Some(what) = party.domain.offset(core::ptr::from_ref(&self.mutex).addr()) else {
            return Err(RobustError::Foreign);
        };
        let fits = |this: &Self| get(&this.total).checked_add(units).is_some();
        let add = |this: &Self| {
            // Should the caller end between the two, the next one counts, and nothing
            // was added. The other way round the units would look like a dead holder's.
            put(&this.free, units);
            put(&this.total, units);
        };
        self.wake_and(party, (what, units), fits, add)
    }

    /// Reads how many units there are, and how many of them are free, for reports.
    #[must_use]
    pub fn peek(&self) -> (u32, u32) {
        (get(&self.total), get(&self.free))
    }

    /// Makes a `step` under the mutex, if that is free, and nobody sleeps or is to be told of a death.
    /// Returns whether it did, and the step was made.
    #[inline]
    fn undisturbed(&self, party: &Party<'_, P>, step: impl FnOnce(&Self) -> bool) -> bool {
        if !self.mutex.take(party.me) {
            return false;
        }
        let quiet = get(&self.asleep) | get(&self.on_their_way) | get(&self.lost) == 0;
        let done = quiet && step(self);
        self.mutex.unlock(party);
        done
    }

    /// Moves free units to the caller's claim. The caller has the mutex.
    fn hand_over(&self, claim: &Claim<P>, what: u32, units: u32) {
        claim.units.store(get(&claim.units).saturating_add(units), Ordering::Relaxed);
        // ord: SHR-7 (release): the units before the claim.
        claim.what.store(what, Ordering::Release);
        take(&self.free, units);
    }

    /// Takes units off the caller's claim, which had so many when the caller looked: a hostile peer may
    /// have written since. The caller has the mutex.
    fn hand_in(claim: &Claim<P>, units: u32) {
        take(&claim.units, units);
        if get(&claim.units) == 0 {
            claim.what.store(0, Ordering::Relaxed);
        }
    }

    /// Makes a `step` under the mutex by which `units` come, if it `may` be made, after having woken who
    /// sleeps for them. Returns whether it was made.
    fn wake_and(
        &self,
        party: &Party<'_, P>,
        (what, units): (u32, u32),
        may: impl Fn(&Self) -> bool,
        step: impl Fn(&Self),
    ) -> Result<bool, RobustError> {
        if self.undisturbed(party, |this| {
            let may = may(this);
            if may {
                step(this);
            }
            may
        }) {
            return Ok(true);
        }
        let named = party.domain.name_doorbell();
        let entered = self.enter(party, what, &WaitBounds::FOREVER);
        let mut made = false;
        if entered.is_ok() {
            made = may(self);
            if made {
                if get(&self.asleep) != 0 {
                    self.wake(self.how_many(units));
                }
                step(self);
            }
            self.mutex.unlock(party);
        }
        name_again::<P, _>(named, &entered);
        entered.map(|()| made)
    }

    /// Takes the mutex; counts if its owner died.
    fn enter(
        &self,
        party: &Party<'_, P>,
        what: u32,
        how: &WaitBounds<'_, P>,
    ) -> Result<(), RobustError> {
        let here = P::here();
        if self.mutex.take(party.me) {
            return Ok(());
        }
        let got = self.mutex.seek(party, how, here).until(Goal::Own(0))?;
        P::turn(here, got as u64);
        if got == Got::OwnerDied {
            self.count(party, what);
            self.mutex.mark_consistent(party);
        }
        P::turn(here, 2);
        Ok(())
    }

    /// Counts the free units: those that no living participant has.
    fn count(&self, party: &Party<'_, P>, what: u32) {
        let held = party.domain.all_living().flat_map(|(_, _, _, claims)| claims);
        // ord: SHR-7 (acquire): its units were written before the claim.
        let held = held.filter(|claim| claim.what.load(Ordering::Acquire) & !AWAITED == what);
        let held = held.fold(0u32, |sum, claim| sum.saturating_add(get(&claim.units)));
        let free = get(&self.total).saturating_sub(held);
        put(&self.lost, free.saturating_sub(get(&self.free)));
        self.free.store(free, Ordering::Relaxed);
    }

    /// Tells whether one of the holders has died unnoticed. Asks now and then only.
    fn suspects(&self, party: &Party<'_, P>, what: u32) -> bool {
        let names = |claim: &Claim<P>| get(&claim.what) & !AWAITED == what;
        let holders = party.domain.all_living().filter(|(_, _, _, all)| all.iter().any(names));
        let mut holders = holders.peekable();
        // It looks at no claims where there is nothing to ask.
        P::trust().is_some()
            && holders.peek().is_some_and(|&(slot, ..)| party.asks_about(slot))
            && holders.filter(|&(slot, _, life, _)| party.suspect(slot, life)).count() != 0
    }

    /// Returns how many sleepers to wake for so many units. All, if one of them wants several:
    /// it may want more than there are, and sleep on, while another one would have enough.
    fn how_many(&self, units: u32) -> u32 {
        let several = get(&self.asleep) > 1 && !fault!(shared_units_wake_one_for_each);
        if several { u32::MAX } else { units }
    }

    /// Wakes up to `count` sleepers. The caller has the mutex.
    fn wake(&self, count: u32) {
        // A participant that is about to sleep does not, then.
        self.channel.fetch_add(1, Ordering::Relaxed);
        let woken = P::wake_shared(&raw const self.channel, count);
        if woken < count {
            self.asleep.store(0, Ordering::Relaxed);
        }
        put(&self.on_their_way, woken);
    }
}

impl<P: RobustMachine> Default for RawSharedSemaphore<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// How long a caller that only tries waits for the mutex, in nanoseconds; a running thread does
/// not hold it for long.
const BRIEFLY: u64 = 10_000_000;

/// Returns how a caller waits for the mutex itself: [`BRIEFLY`] at least.
fn at_least_briefly<'h, P: RobustMachine>(how: &WaitBounds<'h, P>) -> WaitBounds<'h, P> {
    let deadline = how.deadline.map(|deadline| deadline.max(P::now().after(BRIEFLY)));
    WaitBounds { deadline, ..*how }
}

/// Reads a number that the mutex guards.
fn get<A: Atomic32>(word: &A) -> u32 {
    word.load(Ordering::Relaxed)
}

/// Adds units to a number that the mutex guards.
fn put<A: Atomic32>(word: &A, units: u32) {
    word.store(get(word).saturating_add(units), Ordering::Relaxed);
}

/// Takes units from a number that the mutex guards.
fn take<A: Atomic32>(word: &A, units: u32) {
    word.store(get(word).saturating_sub(units), Ordering::Relaxed);
}

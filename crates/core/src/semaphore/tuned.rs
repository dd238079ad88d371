//! The semaphore with all that the mutex has: eight bytes, inline fast
//! paths, one spinner at a time on the word, the hand-off past the bound.
//!
//! # Role
//! Counts up to [`MAX_SLOTS`] permits. The spin queue, the sleep and the
//! hand-off are the mutex's own code (`sleep/`), with
//! [`Counting`] rules for the subject of the word.
//!
//! # State
//! One [`Word`] whose subject is the number of free permits.
//!
//! # Invariants
//! WORD-IDLE to WORD-SLEEPERS of [`word`](crate::word). WORD-HELD is a mutex's; here instead:
//! - **PERMIT-NEWS** A thread sleeps and permits are free ⇒ a thread that was woken, a
//!   spinner, or the hand-off waiter has yet to look at the word. An `up` that finds *waiters*
//!   erased, because the thread that an earlier one woke is still on its way, wakes
//!   nobody; that thread announces the sleepers again as it takes and, if
//!   permits are left, wakes the next. So do the last spinner and the hand-off waiter
//!   for the sleepers that they covered. A thread that takes on the fast path leaves all that
//!   as it was: a thread that then finds no permit sets *waiters* before it sleeps.
//! - **PERMIT-RESERVED** While a hand-off waiter is registered all free permits are reserved for
//!   it, not only one. It takes one as soon as it comes, and the rest are free.
//!
//! # Ordering
//! The labels `WORD-*` of the mutex.
//!
//! # Progress
//! The next permits are reserved for a waiter past the bound, as in the mutex.
//!
//! # Lifetime
//! `up` touches the semaphore for the last time with the atomic that adds the
//! permit.

use super::PermitOverflow;
use crate::atomic::{Atomic64, Ordering};
use crate::awaited::telling;
use crate::exchange::exchange;
use crate::hooks::{Access, Hooks, LockId, Off, Path, Site};
use crate::platform::{Awaited, AwaitedUse, LockError, Platform, WaitBounds};
use crate::policy::{Policy, Standard};
use crate::sleep;
use crate::slot::MAX_SLOTS;
use crate::word::{Counting, Subject, Word};
use core::marker::PhantomData;

/// A counting semaphore. See the module documentation.
#[repr(C)]
pub struct TunedSemaphore<P: Platform, H: Hooks = Off, Y: Policy = Standard> {
    word: P::U64,
    state: H::State,
    policy: PhantomData<fn() -> Y>,
}

impl<P: Platform, H: Hooks, Y: Policy> TunedSemaphore<P, H, Y> {
    /// The most permits that can be free: 1,048,575.
    pub const MAX_PERMITS: u32 = MAX_SLOTS;

    /// Returns the word of a semaphore with this many free permits, for [`Self::from_word`];
    /// `None` for more than [`Self::MAX_PERMITS`].
    #[must_use]
    pub const fn initial_word(permits: u32) -> Option<u64> {
        if permits > Self::MAX_PERMITS { None } else { Some(permits as u64) }
    }

    /// Makes a semaphore from an atomic that holds [`Self::initial_word`]: usable in
    /// constants where the platform's atomics are.
    #[must_use]
    pub const fn from_word(word: P::U64) -> Self {
        Self::with_state(word, H::NEW)
    }

    /// Makes a semaphore like [`Self::from_word`], watched with this initial state.
    #[must_use]
    pub const fn with_state(word: P::U64, state: H::State) -> Self {
        Self { word, state, policy: PhantomData }
    }

    /// Makes a semaphore with this many free permits; `None` for more than
    /// [`Self::MAX_PERMITS`].
    #[must_use]
    pub fn new(permits: u32) -> Option<Self> {
        let word = P::U64::ZERO;
        word.store(Self::initial_word(permits)?, Ordering::Relaxed);
        Some(Self::from_word(word))
    }

    /// Returns what the hooks keep in this semaphore.
    pub const fn state(&self) -> &H::State {
        &self.state
    }

    /// Returns the identity of this semaphore in reports.
    pub fn id(&self) -> LockId {
        LockId(core::ptr::from_ref(self).addr())
    }

    /// Takes a permit, waiting as long as it takes.
    #[inline]
    pub fn down(&self, site: Site) {
        let granted = self.down_how(&WaitBounds::FOREVER, site);
        debug_assert_eq!(granted, Ok(()), "a wait for ever ends with a permit");
    }

    /// Takes a permit unless `how` ends the wait first.
    ///
    /// # Errors
    /// The reasons in `how`.
    #[inline]
    pub fn down_how(&self, how: &WaitBounds<'_, P>, site: Site) -> Result<(), LockError> {
        self.down_lazily(|| *how, site)
    }

    /// Takes a permit like [`Self::down_how`], but asks for `how` only when there is no free
    /// permit: an uncontended timed `down` does not read the clock.
    ///
    /// # Errors
    /// The reasons in `how`.
    #[inline]
    pub fn down_lazily<'a>(
        &self,
        how: impl FnOnce() -> WaitBounds<'a, P>,
        site: Site,
    ) -> Result<(), LockError> {
        H::will_acquire(&self.state, self.id(), Access::Unit, 0, site);
        if self.down_fast() {
            H::acquired(&self.state, self.id(), Access::Unit, Path::Fast, site);
            return Ok(());
        }
        self.down_slow(&how(), site)
    }

    /// Takes a permit if that needs no waiting.
    #[inline]
    pub fn try_down(&self, site: Site) -> bool {
        let taken = self.down_fast() || self.try_down_slow();
        if taken {
            H::acquired(&self.state, self.id(), Access::Unit, Path::Fast, site);
        }
        taken
    }

    /// Gives a permit back, or adds one.
    ///
    /// # Errors
    /// [`PermitOverflow`] if [`Self::MAX_PERMITS`] are free; the semaphore is
    /// unchanged.
    #[inline]
    pub fn up(&self) -> Result<(), PermitOverflow> {
        H::releasing(&self.state, self.id());
        // A guess: the semaphore is used as a mutex, and its permit is taken. A load just after
        // the locked instruction of the `down` costs as much as the exchange itself, and a wrong
        // guess returns what a load would.
        // ord: WORD-2 release, pairs with WORD-1 of the thread that takes the permit.
        let Err(seen) = self.word.compare_exchange(0, 1, Ordering::Release, Ordering::Relaxed)
        else {
            return Ok(());
        };
        // There is nothing but permits in the word, and room for one more.
        // ord: WORD-2 release, pairs with WORD-1 of the thread that takes the permit.
        if seen < u64::from(Self::MAX_PERMITS)
            && self
                .word
                .compare_exchange(seen, seen + 1, Ordering::Release, Ordering::Relaxed)
                .is_ok()
        {
            return Ok(());
        }
        self.up_slow()
    }

    /// Returns the free permits at some moment during the call.
    #[must_use]
    pub fn permits(&self) -> u32 {
        self.peek().subject()
    }

    /// Returns the state word at some moment during the call, for reports and tests.
    #[must_use]
    pub fn peek(&self) -> Word {
        Word(self.word.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn down_fast(&self) -> bool {
        // ord: WORD-1 acquire, pairs with WORD-2 of the `up` that gave the
        // permit. That may be an earlier one than the last change of the word:
        // everything that changes it is a read-modify-write, so the release
        // holds on. The guess: see `up`.
        let Err(seen) = self.word.compare_exchange(1, 0, Ordering::Acquire, Ordering::Relaxed)
        else {
            return true;
        };
        // ord: WORD-1 acquire, as the guess.
        Counting::free(Word(seen))
            && self
                .word
                .compare_exchange(seen, seen - 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    #[cold]
    #[inline(never)]
    fn down_slow(&self, how: &WaitBounds<'_, P>, site: Site) -> Result<(), LockError> {
        let awaited = Awaited {
            address: self.id().0,
            wants: AwaitedUse::Unit,
            name: H::name(&self.state),
            deadline: how.deadline,
        };
        let result = telling::<P, _>(&awaited, || {
            sleep::acquire::<P, Counting, Y>(&self.word, P::me(), how, None)
        });
        match result {
            Ok(_) => H::acquired(&self.state, self.id(), Access::Unit, Path::Slow, site),
            Err(_) => H::abandoned(&self.state, self.id(), site),
        }
        result.map(|_| ())
    }

    /// Takes a free permit where the guess and the attempt after it have failed.
    #[cold]
    #[inline(never)]
    fn try_down_slow(&self) -> bool {
        let mut seen = self.peek();
        while Counting::free(seen) {
            match exchange::<P, Counting>(&self.word, seen, Word(seen.0 - 1)) {
                Ok(_) => return true,
                Err(found) => seen = found,
            }
        }
        false
    }

    #[cold]
    #[inline(never)]
    fn up_slow(&self) -> Result<(), PermitOverflow> {
        let at = P::address_low(&self.word);
        let mut seen = self.peek();
        loop {
            if Counting::full(seen) {
                return Err(PermitOverflow);
            }
            // ord: WORD-2 release, pairs with WORD-1 of the thread that takes the permit.
            match self.word.compare_exchange(
                seen.0,
                seen.counted().0,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(found) => seen = Word(found),
            }
        }
        if fault!(tuned_up_looks_again) {
            let _ = self.peek();
        }
        sleep::released::<P>(seen, at);
        Ok(())
    }
}

impl<P: Platform, H: Hooks, Y: Policy> core::fmt::Debug for TunedSemaphore<P, H, Y> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "TunedSemaphore{:?}", self.peek())
    }
}

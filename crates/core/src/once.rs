//! Doing something once: four bytes, one load when it is done.
//!
//! # Role
//! The first thread to come runs an initialiser, the others wait for it.
//!
//! # State
//! ```text
//!  31        23       22       21      20 19                0
//! ┌────────────┬────────┬────────┬───────┬───────────────────┐
//! │     0      │poisoned│complete│waiters│      runner       │
//! └────────────┴────────┴────────┴───────┴───────────────────┘
//! ```
//! | word | meaning |
//! |---|---|
//! | 0 | nobody has begun |
//! | *runner*, perhaps *waiters* | that participant runs the initialiser; with *waiters*, threads may sleep for its end |
//! | *complete* | done, for ever |
//! | *poisoned* | the last initialiser did not end well |
//!
//! # Protocol
//! ```text
//!          the thread that will run            the runner, which wakes all if waiters
//!   0 ─────────────────────────────▶ runner ─────────────────────────────────────────▶ complete
//!   poisoned ──────────────────────▶   │ ▲ ────────────────────────────────────────────▶ poisoned
//!                                      └─┘ waiters: a thread about to sleep
//! ```
//! A sleep is over when the run is. So a waiter that gives up has no wake-up to pass on.
//!
//! # Ordering
//! Labels `ONCE-*` in `docs/memory-ordering.md`.
//!
//! # Progress
//! A waiter sleeps without spinning: initialisers are long. It waits until the run ends, and
//! should that fail, until the next one ends.
//!
//! # Lifetime
//! The runner touches the word for the last time when it sets *complete* or *poisoned*.

use crate::atomic::{Atomic32, Ordering};
use crate::awaited::telling_outcome;
use crate::give_up::Reasons;
use crate::platform::{Awaited, AwaitedUse, LockError, Platform, WaitBounds};
use crate::slot::{SLOT_BITS, Slot};
use core::marker::PhantomData;

const INCOMPLETE: u32 = 0;
const RUNNER: u32 = (1 << SLOT_BITS) - 1;
const WAITERS: u32 = 1 << 20;
const COMPLETE: u32 = 1 << 21;
const POISONED: u32 = 1 << 22;

/// The state of a [`RawOnce`], which says how far it has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnceState {
    /// No initialiser has begun.
    Incomplete,
    /// The participant runs the initialiser.
    Running(Slot),
    /// An initialiser has ended well, for ever.
    Complete,
    /// The last initialiser panicked.
    Poisoned,
}

/// The reason why nothing was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnceError {
    /// An initialiser panicked, and the caller did not ask to run another.
    Poisoned,
    /// The wait for another thread's initialiser ended early, or would never
    /// end: [`LockError::Recursive`] when the caller runs it itself,
    /// [`LockError::OwnerLost`] when its thread was left behind by `fork`.
    NotAwaited(LockError),
}

/// A thing to be done once. See the module documentation.
#[repr(transparent)]
pub struct RawOnce<P: Platform> {
    word: P::U32,
}

impl<P: Platform> RawOnce<P> {
    /// Makes one of which nothing is done yet: all zeros.
    #[must_use]
    pub const fn new() -> Self {
        Self { word: P::U32::ZERO }
    }

    /// Tells whether it is done. If so, the caller can read what the initialiser wrote.
    #[inline]
    #[must_use]
    pub fn is_completed(&self) -> bool {
        // ord: ONCE-1 acquire, pairs with ONCE-2.
        self.word.load(Ordering::Acquire) == COMPLETE
    }

    /// Returns how far it had come at some moment during the call.
    #[must_use]
    pub fn state(&self) -> OnceState {
        // ord: ONCE-1 acquire, pairs with ONCE-2.
        match self.word.load(Ordering::Acquire) {
            INCOMPLETE => OnceState::Incomplete,
            COMPLETE => OnceState::Complete,
            POISONED => OnceState::Poisoned,
            running => match runner(running) {
                Some(slot) => OnceState::Running(slot),
                None => unreachable!("ONCE: running without a runner"),
            },
        }
    }

    /// Runs `f` unless that has been done, or waits for the thread that runs it now.
    ///
    /// # Errors
    /// [`OnceError::Poisoned`] if an initialiser panicked, and those of
    /// [`OnceError::NotAwaited`]. Then `f` was not called.
    #[inline]
    pub fn call_once(&self, how: &WaitBounds<'_, P>, f: impl FnOnce()) -> Result<(), OnceError> {
        if self.is_completed() {
            return Ok(());
        }
        self.run(false, how, |_| f())
    }

    /// Runs `f` like [`RawOnce::call_once`], but also when an initialiser
    /// panicked, and tells `f` so.
    ///
    /// # Errors
    /// The reasons of [`OnceError::NotAwaited`].
    #[inline]
    pub fn call_once_force(
        &self,
        how: &WaitBounds<'_, P>,
        f: impl FnOnce(bool),
    ) -> Result<(), OnceError> {
        if self.is_completed() {
            return Ok(());
        }
        self.run(true, how, f)
    }

    #[cold]
    fn run(
        &self,
        force: bool,
        how: &WaitBounds<'_, P>,
        f: impl FnOnce(bool),
    ) -> Result<(), OnceError> {
        if let Some(turn) = self.begin(force, how)? {
            f(turn.after_poisoning());
            turn.complete();
        }
        Ok(())
    }

    /// Asks to run the initialiser. Returns `None` if that has been done, otherwise the
    /// caller's turn to do it. With `force` also when an initialiser panicked.
    ///
    /// # Errors
    /// As [`RawOnce::call_once`].
    #[cold]
    pub fn begin(
        &self,
        force: bool,
        how: &WaitBounds<'_, P>,
    ) -> Result<Option<OnceTurn<'_, P>>, OnceError> {
        let me = P::me();
        let mut reasons = Reasons::new(how);
        loop {
            // ord: ONCE-1 acquire, pairs with ONCE-2.
            let seen = self.word.load(Ordering::Acquire);
            match seen {
                COMPLETE => return Ok(None),
                POISONED if !force => return Err(OnceError::Poisoned),
                INCOMPLETE | POISONED => {
                    if self.exchange(seen, me.get()) {
                        let after_poisoning = seen == POISONED;
                        return Ok(Some(OnceTurn {
                            once: self,
                            after_poisoning,
                            thread: PhantomData,
                        }));
                    }
                    continue;
                }
                _ => {}
            }
            let stuck = if runner(seen) == Some(me) {
                Some(LockError::Recursive)
            } else if runner(seen).is_some_and(|slot| P::participant(slot).lost()) {
                Some(LockError::OwnerLost)
            } else {
                reasons.given_up()
            };
            if let Some(error) = stuck {
                return Err(OnceError::NotAwaited(error));
            }
            let asleep = seen | WAITERS;
            if asleep == seen || self.exchange(seen, asleep) {
                let awaited = Awaited {
                    address: core::ptr::from_ref(self).addr(),
                    wants: AwaitedUse::Turn,
                    name: None,
                    deadline: how.deadline,
                };
                // What ends the wait is asked in the next round.
                let shown = awaited.shown(how);
                let outcome = telling_outcome::<P>(&awaited, || {
                    P::wait32_shown(&self.word, asleep, how, &shown)
                });
                reasons.heard(outcome);
            }
        }
    }

    /// Returns the turn that [`RawOnce::begin`] gave and the caller has forgotten: for
    /// callers that can keep no Rust value between the two.
    ///
    /// # Safety
    /// The calling thread was given the turn and has not ended it.
    pub unsafe fn turn(&self) -> OnceTurn<'_, P> {
        OnceTurn { once: self, after_poisoning: false, thread: PhantomData }
    }

    fn exchange(&self, from: u32, to: u32) -> bool {
        // ord: ONCE-3 acquire, pairs with ONCE-2: a runner after a poisoning
        // sees what the one before it left behind.
        self.word.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn finish(&self, result: u32) {
        let address = P::address32(&self.word);
        let early = fault!(once_ends_in_two_steps).then(|| self.word.load(Ordering::Relaxed));
        // ord: ONCE-2 release, pairs with ONCE-1 and ONCE-3: the initialiser's
        // writes.
        let before = self.word.swap(result, Ordering::Release);
        if early.unwrap_or(before) & WAITERS != 0 {
            if fault!(once_runner_looks_again) {
                self.word.load(Ordering::Relaxed);
            }
            P::wake(address, if fault!(once_wakes_one) { 1 } else { u32::MAX });
        }
    }
}

fn runner(word: u32) -> Option<Slot> {
    Slot::new(word & RUNNER)
}

impl<P: Platform> Default for RawOnce<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> core::fmt::Debug for RawOnce<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "RawOnce{{{:?}}}", self.state())
    }
}

/// The right, and the duty, to run the initialiser. Dropping it without
/// [`OnceTurn::complete`], as a panic does, poisons.
#[must_use = "dropping it poisons"]
pub struct OnceTurn<'a, P: Platform> {
    once: &'a RawOnce<P>,
    after_poisoning: bool,
    /// The word names this thread as the runner: not `Send`.
    thread: PhantomData<*const ()>,
}

impl<P: Platform> OnceTurn<'_, P> {
    /// Tells whether the initialiser before this one panicked.
    #[must_use]
    pub fn after_poisoning(&self) -> bool {
        self.after_poisoning
    }

    /// Says that the initialiser has ended well, and wakes the threads that wait for it.
    pub fn complete(self) {
        self.once.finish(COMPLETE);
        core::mem::forget(self);
    }
}

impl<P: Platform> Drop for OnceTurn<'_, P> {
    fn drop(&mut self) {
        self.once.finish(POISONED);
    }
}

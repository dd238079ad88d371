//! The mutex: eight bytes, an inline fast path, and the slow path of `spin` and `sleep`.
//!
//! # Role
//! Mutual exclusion for the threads of one process. One owner, released by the
//! owner, not recursive.
//!
//! # State
//! One [`Word`] with [`Exclusive`] rules, and whatever the hooks keep (nothing
//! by default).
//!
//! # Example
//! ```
//! use lockstead_core::RawMutex;
//! use lockstead_linux::Linux;
//! use std::panic::Location;
//!
//! static LOCK: RawMutex<Linux> = RawMutex::new();
//!
//! LOCK.lock(Location::caller()).expect("this thread does not hold it yet");
//! assert!(LOCK.is_mine());
//! // SAFETY: this thread has locked it above, and releases it once.
//! unsafe { LOCK.unlock() };
//! assert!(!LOCK.is_locked());
//! ```
//!
//! # Lifetime
//! The release touches the lock for the last time with the atomic that
//! releases it. A thread that takes the lock next may free its memory at once:
//! the reference-count pattern is safe.

use crate::atomic::{Atomic64, Halves, Ordering};
use crate::awaited::telling;
use crate::exchange::exchange;
use crate::hooks::{Access, Hooks, LockId, Off, Path, Site};
use crate::platform::{Awaited, AwaitedUse, LockError, Platform, ShownSleep, WaitBounds};
use crate::policy::{Policy, Standard};
use crate::sleep;
use crate::slot::{MAX_SLOTS, Slot};
use crate::word::{Exclusive, Subject, Word};
use core::marker::PhantomData;

/// A mutex without data. See the module documentation.
#[repr(C)]
pub struct RawMutex<P: Platform, H: Hooks = Off, Y: Policy = Standard> {
    word: P::U64,
    state: H::State,
    policy: PhantomData<fn() -> Y>,
}

impl<P: Platform, H: Hooks, Y: Policy> RawMutex<P, H, Y> {
    /// Makes a free mutex.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_state(H::NEW)
    }

    /// Makes a free mutex watched with this initial state.
    #[must_use]
    pub const fn with_state(state: H::State) -> Self {
        Self { word: P::U64::ZERO, state, policy: PhantomData }
    }

    /// Returns what the hooks keep in this lock.
    pub const fn state(&self) -> &H::State {
        &self.state
    }

    /// Returns the identity of this lock in reports.
    pub fn id(&self) -> LockId {
        LockId(core::ptr::from_ref(self).addr())
    }

    /// Returns the same mutex, whose calls wait by another policy. Calls by different policies may
    /// use one mutex at the same time: the word says nothing of a policy, and what a thread leaves in
    /// it is acted on by each of them alike. The waits of each call are bounded by its own policy,
    /// and a batch ends where the release's policy has one.
    ///
    /// ```
    /// use lockstead_core::policy::Fair;
    /// use lockstead_core::{Off, RawMutex};
    /// use lockstead_linux::Linux;
    /// use std::panic::Location;
    ///
    /// let mutex: RawMutex<Linux> = RawMutex::new();
    /// let fair: &RawMutex<Linux, Off, Fair> = mutex.by_policy();
    /// fair.lock(Location::caller()).expect("this thread does not hold it yet");
    /// assert!(mutex.is_mine());
    /// // SAFETY: this thread has locked it above, and releases it once.
    /// unsafe { mutex.unlock() };
    /// ```
    #[inline(always)]
    #[must_use]
    pub const fn by_policy<Z: Policy>(&self) -> &RawMutex<P, H, Z> {
        // SAFETY: both types are `repr(C)` with the same fields in the same order, but for the policy's
        // marker, which takes no room and has no value. The reference lives as long as that of `self`.
        unsafe { &*core::ptr::from_ref(self).cast() }
    }

    /// Acquires, waiting as long as it takes.
    ///
    /// # Errors
    /// [`LockError::Recursive`] if the caller holds it already,
    /// [`LockError::OwnerLost`] if the owner was left behind by `fork`; in both
    /// cases waiting would never end.
    #[inline(always)]
    pub fn lock(&self, site: Site) -> Result<(), LockError> {
        self.lock_how(&WaitBounds::FOREVER, 0, site)
    }

    /// Acquires unless `how` ends the wait first.
    ///
    /// # Errors
    /// As [`RawMutex::lock`], and the reasons in `how`.
    #[inline(always)]
    pub fn lock_how(
        &self,
        how: &WaitBounds<'_, P>,
        subclass: u32,
        site: Site,
    ) -> Result<(), LockError> {
        H::will_acquire(&self.state, self.id(), Access::Alone, subclass, site);
        if self.lock_fast() {
            H::acquired(&self.state, self.id(), Access::Alone, Path::Fast, site);
            return Ok(());
        }
        self.lock_slow(how, site)
    }

    /// Acquires like [`RawMutex::lock_how`], but asks for `how` only when the fast path
    /// has failed: an uncontended timed acquisition does not read the clock.
    ///
    /// # Errors
    /// As [`RawMutex::lock_how`].
    #[inline]
    pub fn lock_lazily<'a>(
        &self,
        how: impl FnOnce() -> WaitBounds<'a, P>,
        subclass: u32,
        site: Site,
    ) -> Result<(), LockError> {
        H::will_acquire(&self.state, self.id(), Access::Alone, subclass, site);
        if self.lock_fast() {
            H::acquired(&self.state, self.id(), Access::Alone, Path::Fast, site);
            return Ok(());
        }
        self.lock_slow(&how(), site)
    }

    /// Acquires if that needs no waiting.
    #[inline]
    pub fn try_lock(&self, site: Site) -> bool {
        if self.lock_fast() || self.try_lock_slow() {
            H::acquired(&self.state, self.id(), Access::Alone, Path::Fast, site);
            return true;
        }
        false
    }

    /// Releases the mutex, which the caller holds.
    ///
    /// # Safety
    /// The calling thread holds the mutex.
    #[inline(always)]
    pub unsafe fn unlock(&self) {
        H::releasing(&self.state, self.id());
        // ord: WORD-2 release, pairs with WORD-1 of the next acquisition. Nothing of
        // the lock is touched after it.
        if !self.word.erase_low(MAX_SLOTS, Ordering::Release) {
            // SAFETY: the caller promises that this thread holds the mutex, and `erase_low`, which
            // returned false, has not released it.
            unsafe { self.unlock_slow() };
        }
    }

    /// Does the rest of [`RawMutex::unlock`], also for a fast path in another language
    /// that has not released because there was more in the low half than the owner.
    ///
    /// # Safety
    /// As [`RawMutex::unlock`].
    #[cold]
    #[inline(never)]
    pub unsafe fn unlock_slow(&self) {
        let at = P::address_low(&self.word);
        let left = match Word::LEFT_BY_RELEASE {
            left if fault!(release_leaves_unreleased) => left | Word::IDLE.with_unreleased().low(),
            _ if fault!(ww_release_lets_newcomers_in) => 0,
            left => left,
        };
        // ord: WORD-2 release, pairs with WORD-1 of the next acquisition.
        let erased = self.word.fetch_and_low(left, Ordering::Release);
        // Nothing of the lock is touched from here on. `lets_go` comes before the wake-up, which is
        // a system call: a kernel that let the thread keep its processor takes it back at any
        // call but the one that gives it back.
        let gave_way = P::lets_go(at);
        sleep::released::<P>(Word(erased.into()), at);
        sleep::batch_over::<P, Y>(Word(erased.into()), gave_way);
        if fault!(mutex_looks_after_its_release) {
            let _ = self.peek();
        }
    }

    /// Tells whether anybody holds it, at some moment during the call.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.owner().is_some()
    }

    /// Tells whether the calling thread holds it.
    #[must_use]
    pub fn is_mine(&self) -> bool {
        let me = P::me_or_zero();
        me != 0 && self.peek().subject() == me
    }

    /// Returns the owner at some moment during the call.
    #[must_use]
    pub fn owner(&self) -> Option<Slot> {
        self.peek().owner()
    }

    /// Returns the state word at some moment during the call, for reports and tests.
    #[must_use]
    pub fn peek(&self) -> Word {
        Word(self.word.load(Ordering::Relaxed))
    }

    /// Sets *contexts*: contexts wait, and from now on nobody acquires by the fast path. Makes
    /// an exchange even where it is set, which orders what the caller did before and every later
    /// acquisition, and shows it every earlier one. Returns when *reserved* stands, or *contexts*
    /// is gone again because a holder has looked.
    pub(crate) fn admit_contexts(&self) {
        let mut seen = self.peek();
        loop {
            match exchange::<P, Exclusive>(&self.word, seen, seen.with_contexts()) {
                Ok(_) => {
                    P::restart_releases();
                    seen = self.peek();
                    let stands = seen.reserved() || fault!(ww_contexts_are_admitted_loosely);
                    if stands || !seen.contexts() {
                        return;
                    }
                    // The release that erased *reserved* may have erased a *waiters* that relied
                    // on the slow unlocks.
                    P::wake(P::address_low(&self.word), 1);
                }
                Err(found) => seen = found,
            }
        }
    }

    /// Clears *contexts*. The holder calls it. Returns false if it was clear. The holder then sees
    /// what was done before it was set.
    pub(crate) fn dismiss_contexts(&self) -> bool {
        let mut seen = self.peek();
        while seen.contexts() {
            match exchange::<P, Exclusive>(&self.word, seen, seen.without_contexts()) {
                Ok(_) => return true,
                Err(found) => seen = found,
            }
        }
        false
    }

    #[inline(always)]
    pub(crate) fn lock_fast(&self) -> bool {
        let me = P::me_or_zero();
        // ord: WORD-1 acquire, pairs with WORD-2.
        me != 0 && self.word.compare_exchange_low(0, me, Ordering::Acquire)
    }

    /// Takes the lock if it is free and no context waits, also off the fast path.
    #[cold]
    #[inline(never)]
    pub(crate) fn lock_warm(&self) -> bool {
        let me = P::me();
        let mut seen = self.peek();
        while Exclusive::free(seen) && !seen.contexts() {
            match exchange::<P, Exclusive>(&self.word, seen, Exclusive::take(seen, me)) {
                Ok(_) => return true,
                Err(found) => seen = found,
            }
        }
        false
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self, how: &WaitBounds<'_, P>, site: Site) -> Result<(), LockError> {
        H::will_wait(&self.state, self.id(), how.is_endless());
        let awaited = self.awaited(how);
        let shown = awaited.shown(how);
        let result = self.contend(how, &shown, |wait| telling::<P, _>(&awaited, wait));
        match result {
            Ok(()) => H::acquired(&self.state, self.id(), Access::Alone, Path::Slow, site),
            Err(_) => H::abandoned(&self.state, self.id(), site),
        }
        result
    }

    /// Acquires after the fast path has failed, and waits by `waiting`, which calls what it is
    /// given, if the lock is not to be had at once.
    #[inline]
    fn contend(
        &self,
        how: &WaitBounds<'_, P>,
        shown: &ShownSleep,
        waiting: impl FnOnce(&dyn Fn() -> Result<Word, LockError>) -> Result<Word, LockError>,
    ) -> Result<(), LockError> {
        let me = P::me();
        let seen = self.peek();
        // The lock is free, with another thread near it: the usual case for a thread that keeps
        // taking the lock while another one spins.
        let result = if Exclusive::free(seen)
            && let Ok(taken) = exchange::<P, Exclusive>(&self.word, seen, Exclusive::take(seen, me))
        {
            Ok(taken)
        } else if seen.owner() == Some(me) {
            Err(LockError::Recursive)
        } else {
            waiting(&|| sleep::acquire::<P, Exclusive, Y>(&self.word, me, how, Some(shown)))
        };
        // Only if the release will come by `unlock_slow`, which calls `lets_go`.
        if result.is_ok_and(Word::unlocks_slowly) {
            P::holds(P::address_low(&self.word));
        }
        result.map(|_| ())
    }

    /// Acquires like [`RawMutex::lock_how`], as a part of waiting for another lock, which `shown`
    /// tells of: no hook and no observer hears of the mutex.
    ///
    /// # Errors
    /// As [`RawMutex::lock_how`].
    pub(crate) fn lock_within(
        &self,
        how: &WaitBounds<'_, P>,
        shown: &ShownSleep,
    ) -> Result<(), LockError> {
        if self.lock_fast() { Ok(()) } else { self.contend(how, shown, |wait| wait()) }
    }

    /// Describes the wait of a thread that is about to wait for the mutex.
    pub(crate) fn awaited(&self, how: &WaitBounds<'_, P>) -> Awaited {
        Awaited {
            address: self.id().0,
            wants: AwaitedUse::Mutex,
            name: H::name(&self.state),
            deadline: how.deadline,
        }
    }

    /// Takes a free lock that has waiters, or takes it for a thread that has not joined.
    #[cold]
    #[inline(never)]
    fn try_lock_slow(&self) -> bool {
        let me = P::me();
        let mut seen = self.peek();
        while Exclusive::free(seen) {
            match exchange::<P, Exclusive>(&self.word, seen, Exclusive::take(seen, me)) {
                Ok(_) => return true,
                Err(found) => seen = found,
            }
        }
        false
    }
}

impl<P: Platform, H: Hooks, Y: Policy> Default for RawMutex<P, H, Y> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform, H: Hooks, Y: Policy> core::fmt::Debug for RawMutex<P, H, Y> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "RawMutex{:?}", self.peek())
    }
}

//! The biased mutex, which belongs to one thread until another one comes.
//!
//! # Role
//! It is for locks that one thread takes all but always. The first thread to take the lock is its
//! owner: from then on that thread takes and releases it by loads and plain stores, with
//! no atomic read-modify-write and no fence. Another thread that comes pays for both: it takes
//! the bias away, for good, and the lock is an ordinary mutex from then on.
//!
//! # State
//! | word | value | meaning | written by |
//! |---|---|---|---|
//! | own | 0 | nobody's yet, or no longer its owner's | the owner |
//! | | slot and `FREE` | belongs to that thread, which does not hold it | the owner |
//! | | slot | that thread holds it, or is about to look whether it may | the owner; the thread that becomes the owner |
//! | revoked | 0 | it is biased, or nobody's yet | |
//! | | `ASKED` | a thread waits, or has waited, for the owner to leave | a holder of the inner mutex |
//! | | `PLAIN` | the inner mutex is the lock, for ever | a holder of the inner mutex |
//! | inner | | a mutex: see `word.rs` | |
//!
//! # Protocol
//! ```text
//!            the first to come            another thread comes, under the inner mutex
//!  nobody's ───────────────────▶ biased ─────────────────────▶ asked ──────────────▶ plain
//!                                 │ ▲                           the owner has left   for ever
//!                                 └─┘ the owner locks and unlocks by plain stores
//! ```
//! The owner acquires in three steps: (1) it sees in *own* that the lock is its, and free; (2) it
//! writes its slot there; (3) it looks at *revoked*. If that is zero it has the lock. Otherwise it
//! erases *own* and takes the inner mutex like all others. It releases by one store to *own*.
//!
//! Another thread takes the inner mutex. If the lock is nobody's yet, it makes itself the owner
//! and releases the inner mutex. Otherwise it (1) writes ASKED; (2) has a fence executed by
//! all other threads ([`Fences::fence_others`]); (3) waits until the owner does not hold
//! the lock; (4) writes PLAIN, and has the lock.
//!
//! Between the owner's steps 2 and 3 there is nothing that keeps the processor from
//! looking before the store is seen. The fence of the other side is enough: if it came
//! after step 3, step 2 was before it, and the thread that asked sees that the lock is held; if
//! it came before step 3, the owner finds ASKED.
//!
//! # Invariants
//! - **BIASED-OWNER-LEAVES** Once the owner has read *revoked* as not zero it never passes step 3
//!   again, since *revoked* never returns to 0 (but by [`RawBiased::rebias`], alone).
//! - **BIASED-ONE-OWNER** *own* names one thread from its first value on, but for 0: a thread that
//!   gets the same slot later takes its place in all things (SLOT-REUSE).
//! - **BIASED-UNDER-INNER** ASKED, PLAIN and the first value of *own* are written under the inner
//!   mutex.
//! - **BIASED-JOINED** *own* is never `FREE` alone: a thread that has not joined is not taken for
//!   the owner.
//! - **BIASED-LAST-TOUCH** The store that releases is the last access to the lock: the next holder
//!   may free it.
//!
//! # Progress
//! The release wakes nobody: to find out whom to wake it would have to look after the store, where
//! the lock may be gone, or use a locked instruction. So the thread that takes the bias away
//! spins for a moment, then looks again after 50 µs, 100 µs … 1 ms, until the owner has
//! left its section. That happens once in the life of a lock. All others sleep for the
//! inner mutex, whose bound on waiting is theirs. An owner that finds ASKED stands in line
//! with them.
//!
//! # There is no way back
//! To give the lock a new owner while others use it takes a second fence, because the old owner
//! may stand between its steps 1 and 2 and write its slot over the new one's. A lock that
//! two threads take in turn would pay for two fences each turn, which is the cost of ten
//! thousand pairs. A caller that knows that a lock has moved to another thread says so by
//! [`RawBiased::rebias`], when nobody else can reach the lock.
//!
//! # Limits
//! - A signal handler that takes the lock while its thread is about to take it is told of
//!   recursion if the thread has written its slot already, or holds the inner mutex.
//! - If the process forbids itself the fence when a lock is biased already, the bias ends
//!   when its owner next uses the lock, or ends. Until then others wait.
//!
//! # Source
//! Reserving a lock for a thread: Kawachiya, Koseki, Onodera, "Lock reservation" (2002);
//! without atomics for the owner: Dice, Moir, Scherer, "Quickly reacquirable locks" (2003)
//! and Dice, Huang, Yang, "Asymmetric Dekker synchronization" (2001), which had signals
//! or page protection where Linux has `membarrier`.

use crate::atomic::{Atomic32, Ordering};
use crate::awaited::telling;
use crate::give_up::Reasons;
use crate::hooks::{Access, Hooks, LockId, Off, Path, Site};
use crate::mutex::RawMutex;
use crate::platform::{Awaited, AwaitedUse, LockError, Nanos, Platform, WaitBounds};
use crate::policy::{Policy, Standard};
use crate::slot::Slot;
use core::sync::atomic::compiler_fence;

/// The bit of *own* that says that the owner does not hold the lock.
const FREE: u32 = 1 << 31;
/// The value of *revoked* that asks the owner to leave.
const ASKED: u32 = 1;
/// The value of *revoked* that says that the inner mutex is the lock.
const PLAIN: u32 = 2;

/// Nanoseconds between two looks of a thread that waits for the owner to leave. They double
/// each time.
const FIRST_PAUSE: u64 = 50_000;
/// The most nanoseconds between two looks.
const LONGEST_PAUSE: u64 = 1_000_000;

/// A platform on which one thread can have fences executed by all others.
pub trait Fences: Platform {
    /// Tells whether [`Fences::fence_others`] will have the fence executed, for all that is known.
    /// If not, no lock becomes biased.
    fn can_fence() -> bool;

    /// Has all other threads execute a fence. Returns true if each other thread of the process
    /// has executed a full fence between the beginning of the call and its end, and so has the
    /// caller; only what `owner` did needs to be ordered so. Returns false if that is impossible.
    fn fence_others(owner: Slot) -> bool;
}

/// The way in which a holder has the lock, which [`RawBiased::unlock`] must be told: the owner's
/// slot, or 0 if the holder has the inner mutex.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "the lock is released by it"]
pub struct BiasedHold(u32);

impl BiasedHold {
    const PLAIN: BiasedHold = BiasedHold(0);
}

/// A biased mutex without data. See the module documentation.
#[repr(C)]
pub struct RawBiased<P: Fences, H: Hooks = Off, Y: Policy = Standard> {
    own: P::U32,
    revoked: P::U32,
    inner: RawMutex<P, Off, Y>,
    state: H::State,
}

impl<P: Fences, H: Hooks, Y: Policy> RawBiased<P, H, Y> {
    /// Makes a free mutex, which is nobody's yet.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_state(H::NEW)
    }

    /// Makes a free mutex watched with this initial state.
    #[must_use]
    pub const fn with_state(state: H::State) -> Self {
        Self { own: P::U32::ZERO, revoked: P::U32::ZERO, inner: RawMutex::new(), state }
    }

    /// Returns what the hooks keep in this lock.
    pub const fn state(&self) -> &H::State {
        &self.state
    }

    /// Returns the identity of this lock in reports.
    pub fn id(&self) -> LockId {
        LockId(core::ptr::from_ref(self).addr())
    }

    /// Acquires, waiting as long as it takes.
    ///
    /// # Errors
    /// As [`RawMutex::lock`].
    #[inline(always)]
    pub fn lock(&self, site: Site) -> Result<BiasedHold, LockError> {
        self.lock_lazily(|| WaitBounds::FOREVER, 0, site)
    }

    /// Acquires unless what `how` returns ends the wait first; asks for it only when the
    /// fast path has failed.
    ///
    /// # Errors
    /// As [`RawMutex::lock`], and the reasons in `how`.
    #[inline(always)]
    pub fn lock_lazily<'a>(
        &self,
        how: impl FnOnce() -> WaitBounds<'a, P>,
        subclass: u32,
        site: Site,
    ) -> Result<BiasedHold, LockError> {
        H::will_acquire(&self.state, self.id(), Access::Alone, subclass, site);
        if let Some(hold) = self.lock_own() {
            H::acquired(&self.state, self.id(), Access::Alone, Path::Fast, site);
            return Ok(hold);
        }
        if self.lock_plain() {
            H::acquired(&self.state, self.id(), Access::Alone, Path::Fast, site);
            return Ok(BiasedHold::PLAIN);
        }
        self.lock_slow(&how(), site)
    }

    /// Acquires if that needs no waiting for another holder. Takes the bias away from
    /// another thread, which costs a fence, unless that one is seen to hold the lock.
    #[inline]
    pub fn try_lock(&self, site: Site) -> Option<BiasedHold> {
        let hold = self.lock_own().or_else(|| self.try_lock_slow())?;
        H::acquired(&self.state, self.id(), Access::Alone, Path::Fast, site);
        Some(hold)
    }

    /// Releases the lock, which the caller holds.
    ///
    /// # Safety
    /// The calling thread holds the lock, and acquired it with `hold`.
    #[inline(always)]
    pub unsafe fn unlock(&self, hold: BiasedHold) {
        H::releasing(&self.state, self.id());
        if hold == BiasedHold::PLAIN {
            // SAFETY: `hold` says that this thread acquired the inner mutex, and the caller
            // promises that it holds the lock by that.
            unsafe { self.unlock_plain() };
        } else {
            // ord: BIAS-2 release, pairs with BIAS-3. The last access to the lock.
            self.own.store(hold.0 | FREE, Ordering::Release);
            if fault!(biased_release_looks_again) {
                let _ = self.belongs_to();
            }
        }
    }

    /// Makes a lock that nobody holds nobody's again: the next thread to take it becomes its
    /// owner. Does nothing to a lock that is held, whose guard was forgotten.
    pub fn rebias(&mut self) {
        if !self.is_locked() {
            self.own.store(0, Ordering::Relaxed);
            self.revoked.store(0, Ordering::Relaxed);
        }
    }

    /// Returns the thread that it belongs to, at some moment during the call; `None` if it is
    /// nobody's yet, or an ordinary mutex by now.
    #[must_use]
    pub fn belongs_to(&self) -> Option<Slot> {
        if self.revoked.load(Ordering::Relaxed) != 0 {
            return None;
        }
        Slot::new(self.own.load(Ordering::Relaxed) & !FREE)
    }

    /// Tells whether anybody holds it, at some moment during the call.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.holder().is_some()
    }

    /// Returns the thread that holds it, at some moment during the call.
    #[must_use]
    pub fn holder(&self) -> Option<Slot> {
        if self.revoked.load(Ordering::Relaxed) == PLAIN {
            return self.inner.owner();
        }
        // With FREE the value is larger than any slot.
        Slot::new(self.own.load(Ordering::Relaxed))
    }

    /// Acquires by the owner's three steps.
    #[inline(always)]
    fn lock_own(&self) -> Option<BiasedHold> {
        let me = P::me_or_zero();
        // ord: BIAS-1 acquire, pairs with BIAS-2, of a thread that had the slot before.
        let own = self.own.load(Ordering::Acquire);
        if own != me | FREE && !(fault!(biased_owner_takes_it_twice) && own == me) {
            return None;
        }
        if fault!(biased_owner_looks_before_it_says_so) && self.revoked.load(Ordering::Relaxed) == 0
        {
            self.own.store(me, Ordering::Relaxed);
            return Some(BiasedHold(me));
        }
        self.own.store(me, Ordering::Relaxed);
        // ord: BIAS-5 for the compiler: the look comes after the store.
        compiler_fence(Ordering::SeqCst);
        let alone = fault!(biased_owner_looks_no_second_time);
        if alone || self.revoked.load(Ordering::Relaxed) == 0 {
            // SAFETY: BIASED-JOINED: *own* was `me` with FREE, and never is FREE alone. Every
            // store to *own* keeps that.
            unsafe { core::hint::assert_unchecked(me != 0) };
            return Some(BiasedHold(me));
        }
        self.back_out();
        None
    }

    /// Gives the lock up as its owner, which was asked to leave.
    #[cold]
    #[inline(never)]
    fn back_out(&self) {
        if fault!(biased_owner_that_backs_out_stays_in) {
            return;
        }
        // ord: BIAS-4 release, pairs with BIAS-3: the sections before this attempt.
        self.own.store(0, Ordering::Release);
    }

    /// Acquires as all threads do once the bias is gone.
    #[inline(never)]
    fn lock_plain(&self) -> bool {
        self.revoked.load(Ordering::Relaxed) == PLAIN && self.inner.lock_fast()
    }

    /// Releases the inner mutex.
    ///
    /// # Safety
    /// The calling thread holds the inner mutex.
    #[inline(never)]
    unsafe fn unlock_plain(&self) {
        // SAFETY: the caller promises that this thread holds the inner mutex.
        unsafe { self.inner.unlock() };
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self, how: &WaitBounds<'_, P>, site: Site) -> Result<BiasedHold, LockError> {
        H::will_wait(&self.state, self.id(), how.is_endless());
        let me = P::me();
        let result = if self.own.load(Ordering::Relaxed) == me.get() {
            Err(LockError::Recursive)
        } else if fault!(biased_owner_is_made_beside_the_inner_mutex)
            && self.own.load(Ordering::Relaxed) == 0
            && self.revoked.load(Ordering::Relaxed) == 0
        {
            self.own.store(me.get(), Ordering::Relaxed);
            Ok(BiasedHold(me.get()))
        } else {
            self.inner.lock_how(how, 0, site).and_then(|()| self.settle(me, how, true))
        };
        match result {
            Ok(_) => H::acquired(&self.state, self.id(), Access::Alone, Path::Slow, site),
            Err(_) => H::abandoned(&self.state, self.id(), site),
        }
        result
    }

    #[cold]
    #[inline(never)]
    fn try_lock_slow(&self) -> Option<BiasedHold> {
        const AT_ONCE: Nanos = Nanos(0);
        let me = P::me();
        let biased = self.revoked.load(Ordering::Relaxed) != PLAIN;
        if biased && Slot::new(self.own.load(Ordering::Relaxed)).is_some() {
            return None;
        }
        if !self.inner.try_lock(core::panic::Location::caller()) {
            return None;
        }
        self.settle(me, &WaitBounds { deadline: Some(AT_ONCE), ..WaitBounds::FOREVER }, false).ok()
    }

    /// Makes the inner mutex, which the caller holds, the lock, or makes the caller its owner. `waits`:
    /// that may take a while, of which an observer is told.
    fn settle(
        &self,
        me: Slot,
        how: &WaitBounds<'_, P>,
        waits: bool,
    ) -> Result<BiasedHold, LockError> {
        let revoked = self.revoked.load(Ordering::Relaxed);
        if revoked == PLAIN {
            return Ok(BiasedHold::PLAIN);
        }
        // ord: BIAS-3 acquire, pairs with BIAS-4: the bias may have ended without the caller.
        let owner = Slot::new(self.own.load(Ordering::Acquire) & !FREE);
        let result = match owner {
            None if revoked == 0 && P::can_fence() => {
                self.own.store(me.get(), Ordering::Relaxed);
                Ok(BiasedHold(me.get()))
            }
            // The owner has found that it was asked to leave, or no lock can be biased.
            None => Ok(BiasedHold::PLAIN),
            Some(owner) => {
                let awaited = Awaited {
                    address: core::ptr::from_ref(&self.own).addr(),
                    wants: AwaitedUse::BiasedMutex,
                    name: H::name(&self.state),
                    deadline: how.deadline,
                };
                let revoke = || self.revoke(owner, how);
                let revoked = if waits { telling::<P, _>(&awaited, revoke) } else { revoke() };
                revoked.map(|()| BiasedHold::PLAIN)
            }
        };
        if result == Ok(BiasedHold::PLAIN) {
            self.revoked.store(PLAIN, Ordering::Relaxed);
        } else if result.is_ok() || !fault!(biased_one_that_gives_up_keeps_the_inner_mutex) {
            // SAFETY: this thread holds the inner mutex, which both callers have locked.
            unsafe { self.inner.unlock() };
        }
        result
    }

    /// Asks the owner to leave, and waits until it has.
    fn revoke(&self, owner: Slot, how: &WaitBounds<'_, P>) -> Result<(), LockError> {
        let early = fault!(biased_lock_is_plain_before_the_owner_has_left);
        self.revoked.store(if early { PLAIN } else { ASKED }, Ordering::Relaxed);
        let mut reasons = Reasons::new(how);
        let began = P::now();
        let (mut spinning, mut turns, mut pause) = (P::processors() > 1, 0_u32, FIRST_PAUSE);
        let mut fenced = false;
        loop {
            // ord: BIAS-3 acquire, pairs with BIAS-2 and BIAS-4: the owner's sections.
            let look = || self.own.load(Ordering::Acquire);
            let early = fault!(biased_revoker_looks_before_the_fence).then(look);
            fenced = fenced || fault!(biased_revokes_without_a_fence) || P::fence_others(owner);
            let own = early.unwrap_or_else(look);
            let free = own & FREE != 0;
            // 0: the owner itself has found that it is asked to leave.
            let left = free || fault!(biased_revoker_waits_for_nobody);
            let sure = fenced || fault!(biased_revoker_believes_without_a_fence);
            if own == 0 || left && sure {
                return Ok(());
            }
            if P::participant(owner).lost() {
                return if free { Ok(()) } else { Err(LockError::OwnerLost) };
            }
            if let Some(error) = reasons.given_up() {
                return Err(error);
            }
            turns += 1;
            if spinning && fenced {
                spinning =
                    !turns.is_multiple_of(Y::TURNS) || P::now().since(began) < Y::HANDOFF_SPIN;
                P::relax();
                continue;
            }
            let once = fault!(biased_revoker_looks_no_second_time);
            let soon = if once { Nanos(u64::MAX) } else { P::now().after(pause) };
            pause = LONGEST_PAUSE.min(2 * pause);
            let until = how.deadline.map_or(soon, |deadline| deadline.min(soon));
            reasons.heard(P::wait32(&self.own, own, &WaitBounds { deadline: Some(until), ..*how }));
        }
    }
}

impl<P: Fences, H: Hooks, Y: Policy> Default for RawBiased<P, H, Y> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Fences, H: Hooks, Y: Policy> core::fmt::Debug for RawBiased<P, H, Y> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (own, revoked) =
            (self.own.load(Ordering::Relaxed), self.revoked.load(Ordering::Relaxed));
        write!(f, "RawBiased {{ own: {own:#x}, revoked: {revoked}, inner: {:?} }}", self.inner)
    }
}

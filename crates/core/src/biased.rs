//! A mutex that belongs to one thread until somebody else comes.
//!
//! # Role
//! For locks that one thread takes all but always. The first thread to take it is its
//! owner: from then on that thread takes and releases it by loads and plain stores, with
//! no atomic read-modify-write and no fence. Whoever else comes pays for both: it takes
//! the bias away, for good, and the lock is an ordinary mutex from then on.
//!
//! # State
//! | word | value | meaning | written by |
//! |---|---|---|---|
//! | own | 0 | nobody's yet, or no longer its owner's | the owner |
//! | | slot and `FREE` | belongs to that thread, which does not hold it | the owner |
//! | | slot | that thread holds it, or is about to look whether it may | the owner; who makes itself the owner |
//! | revoked | 0 | it is biased, or nobody's yet | |
//! | | `ASKED` | somebody waits, or has waited, for the owner to leave | a holder of the inner mutex |
//! | | `PLAIN` | the inner mutex is the lock, for ever | a holder of the inner mutex |
//! | inner | | a mutex: see `word.rs` | |
//!
//! # Protocol
//! Owner, acquiring: (1) *own* says that the lock is its, and free; (2) writes its slot
//! there; (3) looks at *revoked*. Zero: it has the lock. Else it erases *own* and goes the
//! way of all others. Releasing is one store to *own*.
//!
//! All others take the inner mutex. Then: nobody's yet: the holder makes itself the owner,
//! and releases the inner mutex. Somebody's: (1) writes ASKED; (2) has a fence executed by
//! all other threads ([`Fences::fence_others`]); (3) waits until the owner does not hold
//! the lock; (4) writes PLAIN, and has the lock.
//!
//! Between the owner's steps 2 and 3 there is nothing that keeps the processor from
//! looking before the store is seen. The fence of the other side is enough: if it came
//! after step 3, step 2 was before it, and whoever asked sees that the lock is held; if it
//! came before step 3, the owner finds ASKED.
//!
//! # Invariants
//! - **BIASED-OWNER-LEAVES** Once the owner has read *revoked* as not zero it never passes step 3 again,
//!   since *revoked* never returns to 0 (but by [`RawBiased::rebias`], alone).
//! - **BIASED-ONE-OWNER** *own* names one thread from its first value on, but for 0: who comes later
//!   with the same slot takes its place in all things (SLOT-REUSE).
//! - **BIASED-UNDER-INNER** ASKED, PLAIN and the first value of *own* are written under the inner mutex.
//! - **BIASED-JOINED** *own* is never `FREE` alone: who has not joined is not taken for the owner.
//! - The store that releases is the last access to the lock: the next holder may free it.
//!
//! # Progress
//! The release tells nobody: what would tell must be looked for after the store, where the
//! lock may be gone, or by another locked instruction. So whoever takes the bias away
//! spins for a moment, then looks again after 50 µs, 100 µs … 1 ms, until the owner has
//! left its section. That happens once in the life of a lock. All others sleep for the
//! inner mutex, whose bound on waiting is theirs. An owner that finds ASKED stands in line
//! with them.
//!
//! # There is no way back
//! To give the lock a new owner while others use it takes a second fence, for the old one
//! may stand between its steps 1 and 2 and write its slot over the other's. A lock that
//! two threads take in turn would pay for two fences each turn, which is the cost of ten
//! thousand pairs. Who knows that a lock has moved to another thread says so, when nobody
//! else can reach it: [`RawBiased::rebias`].
//!
//! # Limits
//! - A handler that takes the lock while its thread is about to is told of recursion
//!   where its thread has written its slot already, or holds the inner mutex.
//! - If the process forbids itself the fence when a lock is biased already, the bias ends
//!   when its owner next uses the lock, or ends. Until then others wait.
//!
//! # Source
//! Reserving a lock for a thread: Kawachiya, Koseki, Onodera, "Lock reservation" (2002);
//! without atomics for the owner: Dice, Moir, Scherer, "Quickly reacquirable locks" (2003)
//! and Dice, Huang, Yang, "Asymmetric Dekker synchronization" (2001), which had signals
//! or page protection where Linux has `membarrier`.

use crate::atomic::{Atomic32, Ordering};
use crate::give_up::Reasons;
use crate::hooks::{Access, Hooks, LockId, Off, Path, Site};
use crate::mutex::RawMutex;
use crate::platform::{LockError, Nanos, Platform, Wait};
use crate::policy::{Policy, Standard};
use crate::slot::Slot;
use core::sync::atomic::compiler_fence;

/// In *own*: its thread does not hold the lock.
const FREE: u32 = 1 << 31;
/// In *revoked*: the owner is asked to leave.
const ASKED: u32 = 1;
/// In *revoked*: the lock is its inner mutex.
const PLAIN: u32 = 2;

/// Nanoseconds to the second look of one that waits for the owner to leave; doubled each
/// time.
const NAP: u64 = 50_000;
/// The most of them.
const LONGEST_NAP: u64 = 1_000_000;

/// A platform on which one thread can have fences executed by all others.
pub trait Fences: Platform {
    /// Whether [`Fences::fence_others`] will do so, for all that is known. Without it no
    /// lock is ever biased.
    fn can_fence() -> bool;

    /// True: each other thread of the process has executed a full fence between the
    /// beginning of the call and its end, and so has the caller. Only what `owner` did
    /// needs to be ordered so. False: that could not be had.
    fn fence_others(owner: Slot) -> bool;
}

/// How a holder has the lock: what [`RawBiased::unlock`] must be told. The owner's slot; 0:
/// by the inner mutex.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "the lock is released by it"]
pub struct Hold(u32);

impl Hold {
    const PLAIN: Hold = Hold(0);
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
    /// A free mutex, nobody's yet.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_state(H::NEW)
    }

    /// A free mutex watched with this initial state.
    #[must_use]
    pub const fn with_state(state: H::State) -> Self {
        Self { own: P::U32::ZERO, revoked: P::U32::ZERO, inner: RawMutex::new(), state }
    }

    /// What the hooks keep in this lock.
    pub const fn state(&self) -> &H::State {
        &self.state
    }

    /// The identity of this lock in reports.
    pub fn id(&self) -> LockId {
        LockId(core::ptr::from_ref(self).addr())
    }

    /// Acquires, waiting as long as it takes.
    ///
    /// # Errors
    /// As [`RawMutex::lock`].
    #[inline(always)]
    pub fn lock(&self, site: Site) -> Result<Hold, LockError> {
        self.lock_lazily(|| Wait::FOREVER, 0, site)
    }

    /// Acquires unless what `how` returns ends the wait first; asks for it only when the
    /// fast path has failed.
    ///
    /// # Errors
    /// As [`RawMutex::lock`], and the reasons in `how`.
    #[inline(always)]
    pub fn lock_lazily<'a>(
        &self,
        how: impl FnOnce() -> Wait<'a, P>,
        subclass: u32,
        site: Site,
    ) -> Result<Hold, LockError> {
        H::will_acquire(&self.state, self.id(), Access::Alone, subclass, site);
        if let Some(hold) = self.lock_own() {
            H::acquired(&self.state, self.id(), Access::Alone, Path::Fast, site);
            return Ok(hold);
        }
        if self.lock_plain() {
            H::acquired(&self.state, self.id(), Access::Alone, Path::Fast, site);
            return Ok(Hold::PLAIN);
        }
        self.lock_slow(&how(), site)
    }

    /// Acquires if that needs no waiting for another holder. Takes the bias away from
    /// another thread, which costs a fence, unless that one is seen to hold the lock.
    #[inline]
    pub fn try_lock(&self, site: Site) -> Option<Hold> {
        let hold = self.lock_own().or_else(|| self.try_lock_slow())?;
        H::acquired(&self.state, self.id(), Access::Alone, Path::Fast, site);
        Some(hold)
    }

    /// Releases.
    ///
    /// # Safety
    /// The calling thread holds the lock, and acquired it with `hold`.
    #[inline(always)]
    pub unsafe fn unlock(&self, hold: Hold) {
        H::releasing(&self.state, self.id());
        if hold == Hold::PLAIN {
            // SAFETY: acquired by the inner mutex, by this thread.
            unsafe { self.unlock_plain() };
        } else {
            // ord: BIAS-2 release, pairs with BIAS-3. The last access to the lock.
            self.own.store(hold.0 | FREE, Ordering::Release);
            if fault!(biased_release_looks_again) {
                let _ = self.belongs_to();
            }
        }
    }

    /// Makes a lock that nobody holds nobody's again: the next thread to take it is its
    /// owner. Does nothing to one whose holder has forgotten it.
    pub fn rebias(&mut self) {
        if !self.is_locked() {
            self.own.store(0, Ordering::Relaxed);
            self.revoked.store(0, Ordering::Relaxed);
        }
    }

    /// The thread that it belongs to, at some moment during the call; `None` if it is
    /// nobody's yet, or an ordinary mutex by now.
    #[must_use]
    pub fn belongs_to(&self) -> Option<Slot> {
        if self.revoked.load(Ordering::Relaxed) != 0 {
            return None;
        }
        Slot::new(self.own.load(Ordering::Relaxed) & !FREE)
    }

    /// Whether anybody holds it, at some moment during the call.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.holder().is_some()
    }

    /// Who holds it, at some moment during the call.
    #[must_use]
    pub fn holder(&self) -> Option<Slot> {
        if self.revoked.load(Ordering::Relaxed) == PLAIN {
            return self.inner.owner();
        }
        // Larger than any slot with FREE.
        Slot::new(self.own.load(Ordering::Relaxed))
    }

    /// The way of the owner.
    #[inline(always)]
    fn lock_own(&self) -> Option<Hold> {
        let me = P::me_or_zero();
        // ord: BIAS-1 acquire, pairs with BIAS-2, of one that had the slot before.
        let own = self.own.load(Ordering::Acquire);
        if own != me | FREE && !(fault!(biased_owner_takes_it_twice) && own == me) {
            return None;
        }
        if fault!(biased_owner_looks_before_it_says_so) && self.revoked.load(Ordering::Relaxed) == 0
        {
            self.own.store(me, Ordering::Relaxed);
            return Some(Hold(me));
        }
        self.own.store(me, Ordering::Relaxed);
        // ord: BIAS-5 for the compiler: the look comes after the store.
        compiler_fence(Ordering::SeqCst);
        let alone = fault!(biased_owner_looks_no_second_time);
        if alone || self.revoked.load(Ordering::Relaxed) == 0 {
            // SAFETY: the caller's thread holds it as its owner (BIASED-JOINED, kept by `lock`).
            unsafe { core::hint::assert_unchecked(me != 0) };
            return Some(Hold(me));
        }
        self.back_out();
        None
    }

    /// The owner is no longer the owner.
    #[cold]
    #[inline(never)]
    fn back_out(&self) {
        if fault!(biased_owner_that_backs_out_stays_in) {
            return;
        }
        // ord: BIAS-4 release, pairs with BIAS-3: the sections before this attempt.
        self.own.store(0, Ordering::Release);
    }

    /// The way of all when the bias is gone.
    #[inline(never)]
    fn lock_plain(&self) -> bool {
        self.revoked.load(Ordering::Relaxed) == PLAIN && self.inner.lock_fast()
    }

    /// # Safety
    /// The calling thread holds the inner mutex.
    #[inline(never)]
    unsafe fn unlock_plain(&self) {
        // SAFETY: the caller's.
        unsafe { self.inner.unlock() };
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self, how: &Wait<'_, P>, site: Site) -> Result<Hold, LockError> {
        H::will_wait(&self.state, self.id(), how.is_endless());
        let me = P::me();
        let result = if self.own.load(Ordering::Relaxed) == me.get() {
            Err(LockError::Recursive)
        } else if fault!(biased_owner_is_made_beside_the_inner_mutex)
            && self.own.load(Ordering::Relaxed) == 0
            && self.revoked.load(Ordering::Relaxed) == 0
        {
            self.own.store(me.get(), Ordering::Relaxed);
            Ok(Hold(me.get()))
        } else {
            self.inner.lock_how(how, 0, site).and_then(|()| self.settle(me, how))
        };
        match result {
            Ok(_) => H::acquired(&self.state, self.id(), Access::Alone, Path::Slow, site),
            Err(_) => H::abandoned(&self.state, self.id(), site),
        }
        result
    }

    #[cold]
    #[inline(never)]
    fn try_lock_slow(&self) -> Option<Hold> {
        const AT_ONCE: Nanos = Nanos(0);
        let me = P::me();
        let biased = self.revoked.load(Ordering::Relaxed) != PLAIN;
        if biased && Slot::new(self.own.load(Ordering::Relaxed)).is_some() {
            return None;
        }
        if !self.inner.try_lock(core::panic::Location::caller()) {
            return None;
        }
        self.settle(me, &Wait { deadline: Some(AT_ONCE), ..Wait::FOREVER }).ok()
    }

    /// The caller has the inner mutex: makes that the lock, or the caller its owner.
    fn settle(&self, me: Slot, how: &Wait<'_, P>) -> Result<Hold, LockError> {
        let revoked = self.revoked.load(Ordering::Relaxed);
        if revoked == PLAIN {
            return Ok(Hold::PLAIN);
        }
        // ord: BIAS-3 acquire, pairs with BIAS-4, where the bias has ended unasked by the caller.
        let owner = Slot::new(self.own.load(Ordering::Acquire) & !FREE);
        let result = match owner {
            None if revoked == 0 && P::can_fence() => {
                self.own.store(me.get(), Ordering::Relaxed);
                Ok(Hold(me.get()))
            }
            // It has found that it is no longer the owner, or cannot be one.
            None => Ok(Hold::PLAIN),
            Some(owner) => self.revoke(owner, how).map(|()| Hold::PLAIN),
        };
        if result == Ok(Hold::PLAIN) {
            self.revoked.store(PLAIN, Ordering::Relaxed);
        } else if result.is_ok() || !fault!(biased_one_that_gives_up_keeps_the_inner_mutex) {
            // SAFETY: the caller has it.
            unsafe { self.inner.unlock() };
        }
        result
    }

    /// Asks the owner to leave, and waits until it has.
    fn revoke(&self, owner: Slot, how: &Wait<'_, P>) -> Result<(), LockError> {
        let early = fault!(biased_lock_is_plain_before_the_owner_has_left);
        self.revoked.store(if early { PLAIN } else { ASKED }, Ordering::Relaxed);
        let mut reasons = Reasons::new(how);
        let began = P::now();
        let (mut spinning, mut turns, mut nap) = (P::processors() > 1, 0_u32, NAP);
        let mut fenced = false;
        loop {
            // ord: BIAS-3 acquire, pairs with BIAS-2 and BIAS-4: the owner's sections.
            let look = || self.own.load(Ordering::Acquire);
            let early = fault!(biased_revoker_looks_before_the_fence).then(look);
            fenced = fenced || fault!(biased_revokes_without_a_fence) || P::fence_others(owner);
            let own = early.unwrap_or_else(look);
            let free = own & FREE != 0;
            // Erased: the owner itself has found that it is asked to leave.
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
            let soon = if once { Nanos(u64::MAX) } else { P::now().after(nap) };
            nap = LONGEST_NAP.min(2 * nap);
            let until = how.deadline.map_or(soon, |deadline| deadline.min(soon));
            reasons.heard(P::wait32(&self.own, own, &Wait { deadline: Some(until), ..*how }));
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

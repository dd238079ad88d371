//! The kernel's semaphore of 2005, as it behaved on i386: the baseline that
//! mutexes were measured against.
//!
//! # Role
//! A count that goes negative under contention, a flag that says on whose
//! behalf, and a queue. It never spins: a thread that gets no permit sleeps, and
//! one that is woken looks again, in competition with every newcomer.
//!
//! # State
//! ```text
//!  63                    33    32    31                              0
//! ┌────────────────────────┬──────────┬─────────────────────────────────┐
//! │         queued         │ sleepers │           count + 2³¹           │
//! └────────────────────────┴──────────┴─────────────────────────────────┘
//! ```
//! - *count*: free permits, less one for each thread that has decremented and
//!   not been accounted for, less one for all the sleepers together if *sleepers*.
//! - *sleepers*: 1 while the sleepers have that one decrement in the count.
//! - *queued*: threads in the slow path that have joined the queue.
//!
//! # Protocol
//! Down: decrement; not negative is success. Otherwise join the queue: the decrement of the
//! sleepers goes back into the count, and the joiner's own takes its place. If the count is not
//! negative now, the joiner has a permit and clears *sleepers*. If it is negative, the joiner sets
//! *sleepers* and sleeps; when it is woken it decrements again if *sleepers* has been cleared
//! meanwhile, and looks again. A thread that leaves the queue wakes the next one, because it may
//! have cleared *sleepers* while others sleep.
//!
//! Up: increment; if the count is not positive now, wake one.
//!
//! # Invariants
//! - **CLASSIC-COUNT** With no thread between its decrement and its next step, the free
//!   permits are count + *sleepers*.
//! - **CLASSIC-SLEEPERS** A thread sleeps ⇒ *sleepers* is set, or a thread that was woken, or that
//!   is about to wake one, has not yet looked at the count again.
//!
//! # Ordering
//! Labels `CLASSIC-*` in `docs/memory-ordering.md`.
//!
//! # Progress
//! No bound: a newcomer may take the permit before the thread that was woken
//! for it, any number of times. That is the baseline's behaviour.
//!
//! # Lifetime
//! An `up` that succeeds touches the semaphore for the last time with its
//! increment; the wake-up goes by address.
//!
//! # Source
//! The semaphore described in the mutex announcement's time, rebuilt from its
//! behaviour. Where ours differs:
//! - The original guarded *sleepers* and its queue with a spin lock. Here both are in
//!   the word, and each section under that lock is one compare-exchange.
//! - The queue is the kernel's futex queue of the word. A thread that was woken
//!   in vain sleeps again at the end of the queue, where the original kept it
//!   at the front. A thread that finds the count changed before it sleeps looks
//!   again at once; the original went through the scheduler.
//! - Waking costs a system call where the original took a spin lock; `queued`
//!   avoids it when the queue is empty, which the original saw in its list.
//! - The original's `up` touched the semaphore after its increment. Sleeping on
//!   the count itself, which the increment changes, makes that unnecessary.
//! - Time-outs and cancellation were not in the original. They leave as its
//!   interrupted sleepers did.

use super::PermitOverflow;
use crate::atomic::{Atomic64, Ordering};
use crate::awaited::telling;
use crate::give_up::Reasons;
use crate::hooks::{Access, Hooks, LockId, Off, Path, Site};
use crate::platform::{Address, Awaited, AwaitedUse, LockError, Platform, WaitBounds};

/// The low half that stands for a count of zero.
const BIAS: u32 = 1 << 31;
const SLEEPERS: u64 = 1 << 32;
const QUEUED: u64 = 1 << 33;

/// A value of the word. Pure: nothing here touches memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ClassicState(u64);

impl ClassicState {
    const fn count(self) -> i32 {
        (self.low() ^ BIAS).cast_signed()
    }

    /// Returns the low half, which sleepers compare.
    const fn low(self) -> u32 {
        self.0 as u32
    }

    const fn sleepers(self) -> bool {
        self.0 & SLEEPERS != 0
    }

    const fn queued(self) -> u64 {
        self.0 / QUEUED
    }

    /// Returns the word with another count and *sleepers*; the queue stays.
    const fn with(self, count: i32, sleepers: bool) -> Self {
        let low = (count.cast_unsigned() ^ BIAS) as u64;
        let flag = if sleepers { SLEEPERS } else { 0 };
        ClassicState((self.queued() * QUEUED) | flag | low)
    }

    /// Returns the word after a thread of the queue has looked at the count, and has taken a permit
    /// or is among the sleepers. `joining`: its own decrement is still in the count.
    const fn look(self, joining: bool) -> Self {
        let count = self.count() - 1 + self.sleepers() as i32 + joining as i32;
        self.with(count, count < 0)
    }

    /// Returns the word after a thread has given up, which takes the decrement of the sleepers,
    /// and its own if `joining`, out of the count.
    const fn back_out(self, joining: bool) -> Self {
        self.with(self.count() + self.sleepers() as i32 + joining as i32, false)
    }
}

/// The kernel's semaphore of 2005. See the module documentation.
#[repr(C)]
pub struct ClassicSemaphore<P: Platform, H: Hooks = Off> {
    word: P::U64,
    state: H::State,
}

impl<P: Platform, H: Hooks> ClassicSemaphore<P, H> {
    /// The most permits that can be free: 1,073,741,824.
    pub const MAX_PERMITS: u32 = 1 << 30;

    /// Returns the word of a semaphore with this many free permits, for [`Self::from_word`];
    /// `None` for more than [`Self::MAX_PERMITS`].
    #[must_use]
    pub const fn initial_word(permits: u32) -> Option<u64> {
        if permits > Self::MAX_PERMITS { None } else { Some((permits ^ BIAS) as u64) }
    }

    /// Makes a semaphore from an atomic that holds [`Self::initial_word`]: usable in
    /// constants where the platform's atomics are.
    #[must_use]
    pub const fn from_word(word: P::U64) -> Self {
        Self { word, state: H::NEW }
    }

    /// Makes a semaphore like [`Self::from_word`], watched with this initial state.
    #[must_use]
    pub const fn with_state(word: P::U64, state: H::State) -> Self {
        Self { word, state }
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
        if self.decrement().count() > 0 {
            H::acquired(&self.state, self.id(), Access::Unit, Path::Fast, site);
            return Ok(());
        }
        self.down_slow(&how(), site)
    }

    /// Takes a permit if that needs no waiting. As in the original, it may
    /// fail although a permit is free, while the thread that was woken for it
    /// has not come yet.
    #[inline]
    pub fn try_down(&self, site: Site) -> bool {
        let taken = self.decrement().count() > 0 || self.try_down_slow();
        if taken {
            H::acquired(&self.state, self.id(), Access::Unit, Path::Fast, site);
        }
        taken
    }

    /// Gives a permit back, or adds one.
    ///
    /// # Errors
    /// [`PermitOverflow`] if [`Self::MAX_PERMITS`] are free; the semaphore is
    /// unchanged. Only this case touches the semaphore after the permit could
    /// be seen.
    #[inline]
    pub fn up(&self) -> Result<(), PermitOverflow> {
        H::releasing(&self.state, self.id());
        let sleepers_at = P::address_low(&self.word);
        // ord: CLASSIC-2 release, pairs with CLASSIC-1 and CLASSIC-3.
        let before = ClassicState(self.word.fetch_add(1, Ordering::Release));
        // One comparison for "negative" and "full".
        if before.count().cast_unsigned() < Self::MAX_PERMITS {
            return Ok(());
        }
        self.up_slow(before, sleepers_at)
    }

    /// Returns the free permits at some moment during the call; 0 also when threads wait.
    #[must_use]
    pub fn permits(&self) -> u32 {
        let seen = self.peek();
        (seen.count() + i32::from(seen.sleepers())).max(0).cast_unsigned()
    }

    fn peek(&self) -> ClassicState {
        ClassicState(self.word.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn decrement(&self) -> ClassicState {
        // ord: CLASSIC-1 acquire, pairs with CLASSIC-2. The permit may come
        // from an earlier `up` than the last change of the word: everything
        // that changes it is a read-modify-write, so the release holds on.
        ClassicState(self.word.fetch_sub(1, Ordering::Acquire))
    }

    /// Does in one step what the original did under its spin lock. Returns the word after it.
    fn step(&self, change: impl Fn(ClassicState) -> ClassicState) -> ClassicState {
        let mut seen = self.peek();
        loop {
            let after = change(seen);
            // ord: CLASSIC-3 acquire, pairs with CLASSIC-2: the step may take a
            // permit.
            match self.word.compare_exchange(seen.0, after.0, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return after,
                Err(found) => seen = ClassicState(found),
            }
        }
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
        let result = telling::<P, _>(&awaited, || self.queue(how));
        match result {
            Ok(()) => H::acquired(&self.state, self.id(), Access::Unit, Path::Slow, site),
            Err(_) => H::abandoned(&self.state, self.id(), site),
        }
        result
    }

    fn queue(&self, how: &WaitBounds<'_, P>) -> Result<(), LockError> {
        let mut reasons = Reasons::new(how);
        let mut seen = self.step(|s| leave_if_granted(ClassicState(s.0 + QUEUED).look(true)));
        let (result, left) = loop {
            if seen.count() >= 0 {
                break (Ok(()), seen);
            }
            if let Some(error) = reasons.given_up() {
                break (Err(error), self.step(|s| ClassicState(s.back_out(false).0 - QUEUED)));
            }
            reasons.heard(P::wait_low(&self.word, seen.low(), how));
            seen = self.step(|s| leave_if_granted(s.look(false)));
        };
        if left.queued() > 0 && !fault!(classic_leaver_wakes_nobody) {
            P::wake(P::address_low(&self.word), 1);
        }
        result
    }

    #[cold]
    #[inline(never)]
    fn try_down_slow(&self) -> bool {
        let left = self.step(|s| s.back_out(true));
        if left.count() >= 0 && left.queued() > 0 {
            P::wake(P::address_low(&self.word), 1);
        }
        false
    }

    #[cold]
    #[inline(never)]
    fn up_slow(&self, before: ClassicState, sleepers_at: Address) -> Result<(), PermitOverflow> {
        if before.count() < 0 {
            let before = if fault!(classic_up_looks_again) { self.peek() } else { before };
            if before.queued() > 0 {
                P::wake(sleepers_at, 1);
            }
            return Ok(());
        }
        // Take back the permit that was one too many. If others were quicker
        // there was room for it after all.
        if self.decrement().count() > 0 || self.try_down_slow() {
            return Err(PermitOverflow);
        }
        Ok(())
    }
}

/// Returns `after` without the thread in the queue, if it got a permit: one step does both.
const fn leave_if_granted(after: ClassicState) -> ClassicState {
    if after.count() >= 0 { ClassicState(after.0 - QUEUED) } else { after }
}

impl<P: Platform, H: Hooks> core::fmt::Debug for ClassicSemaphore<P, H> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let seen = self.peek();
        write!(f, "ClassicSemaphore{{count={} queued={}}}", seen.count(), seen.queued())
    }
}

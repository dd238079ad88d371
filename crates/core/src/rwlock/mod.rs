//! The reader-writer lock: one word that says who holds it, and a waiting room
//! in front of it.
//!
//! # Role
//! Many readers or one writer. Read acquisitions do not nest safely, but for those of
//! `recursive.rs`: a thread that reads may wait for ever when it asks to read again, for a writer
//! may have been promised the lock in between.
//!
//! # State
//! The word of `state`, and a mutex, the *waiting room*, that threads hold
//! while they wait, never while they hold the lock. Sixteen bytes. All zeros is
//! a free lock.
//!
//! ```text
//!  newcomers ───────────────────────────────────────────────▶ word
//!  readers that wait ────── sleep on the word, all woken ────▶ word
//!  writers that wait ─┐
//!  readers past bound ┴─▶ waiting room ─▶ next ─────────────▶ word
//! ```
//!
//! # Protocol
//! Reader: takes the lock if it admits readers. Otherwise sets *asleep* and sleeps on
//! the word; past the bound it goes through the waiting room like a writer.
//!
//! Writer: takes the lock if it is free. Otherwise takes the waiting room,
//! queueing there as for any mutex; it is then the only one that waits for the
//! word as *next*. It spins a little, names itself in the word and sleeps on the
//! wake sequence of its own slot, until that changes; past the bound it has the lock promised to
//! itself. Once it has the lock, or gives up, it leaves the waiting room to the one behind.
//!
//! Releaser: decides in one compare-exchange, by `RwLockState::settled`: a promised
//! lock goes to *next*; otherwise *next* is struck from the word and called, if it can take the
//! lock now. To call a thread is to count its wake sequence up and to wake it. Sleeping readers
//! are all woken, if they can take the lock.
//!
//! # Invariants
//! - **RWLOCK-NEXT** *next* is the holder of the waiting room.
//! - **RWLOCK-PROMISE** promised ⇒ there is a *next*, and the holders leave it no room.
//! - **RWLOCK-READERS** *asleep* ⇒ the lock does not admit readers. A reader sleeps ⇒ *asleep* is
//!   set, or the thread that cleared it is about to wake all.
//! - **RWLOCK-CALLED** *next* sleeps ⇒ the word names it, or it has been called since.
//! - **RWLOCK-LOOKS** A thread that takes the waiting room looks at the word. So a *next* that was
//!   called and gives up has nothing to pass on.
//!
//! RWLOCK-READERS and RWLOCK-CALLED hold because every step that makes room is settled: a release,
//! a downgrade, a *next* that withdraws its promise.
//!
//! # Ordering
//! Labels `RW-*` in `docs/memory-ordering.md`.
//!
//! # Progress
//! A writer waits for those before it in the waiting room, each handed the lock
//! at the first release that leaves it room after the bound, and readers that
//! come then are held off. A reader past the bound is one of those in the
//! waiting room. So neither starves the other; the waiting room's own bound is
//! the mutex's.
//!
//! # Lifetime
//! Both releases touch the lock for the last time with the atomic that
//! releases; then they wake by a word in the table of participants, or by address. The waiting
//! room is left before the lock is, or by a thread inside an acquiring call.
//!
//! # Source
//! Go's and the kernel's reader-writer locks put writers behind a mutex that
//! they keep while they write; leaving it before the section is ours, since a
//! release must not touch two words.

mod recursive;
mod state;
mod waiter;

use crate::atomic::{Atomic32, Atomic64, Ordering};
use crate::awaited::telling;
use crate::hooks::{Access, Hooks, LockId, Off, Path, Site};
use crate::mutex::RawMutex;
use crate::platform::{Awaited, AwaitedUse, LockError, Platform, WaitBounds};
use crate::policy::{Policy, Standard};
use crate::slot::Slot;
use state::{RwLockMode, RwLockState};
use waiter::{RwLockWaiter, ShortSpin, call};

/// A reader-writer lock without data. See the module documentation.
#[repr(C)]
pub struct RawRwLock<P: Platform, H: Hooks = Off, Y: Policy = Standard> {
    word: P::U64,
    room: RawMutex<P, Off, Y>,
    state: H::State,
}

impl<P: Platform, H: Hooks, Y: Policy> RawRwLock<P, H, Y> {
    /// Makes a free lock.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_state(H::NEW)
    }

    /// Makes a free lock watched with this initial state.
    #[must_use]
    pub const fn with_state(state: H::State) -> Self {
        Self { word: P::U64::ZERO, room: RawMutex::new(), state }
    }

    /// Returns what the hooks keep in this lock.
    pub const fn state(&self) -> &H::State {
        &self.state
    }

    /// Returns the identity of this lock in reports.
    pub fn id(&self) -> LockId {
        LockId(core::ptr::from_ref(self).addr())
    }

    /// Acquires for reading, waiting as long as it takes.
    ///
    /// # Errors
    /// [`LockError::Recursive`] if the caller holds it for writing,
    /// [`LockError::OwnerLost`] if the writer was left behind by `fork`; in both
    /// cases waiting would never end. Readers that were left behind cannot be
    /// told from others: a writer then waits for ever.
    /// [`LockError::TooManyReaders`] if [`MAX_SLOTS`](crate::slot::MAX_SLOTS) readers hold it.
    #[inline]
    pub fn read(&self, site: Site) -> Result<(), LockError> {
        self.read_lazily(|| WaitBounds::FOREVER, 0, site)
    }

    /// Acquires for reading unless `how` ends the wait first. `how` is asked
    /// for only past the fast path, `subclass` is told to the hooks.
    ///
    /// # Errors
    /// As [`RawRwLock::read`], and the reasons in `how`.
    #[inline]
    pub fn read_lazily<'a>(
        &self,
        how: impl FnOnce() -> WaitBounds<'a, P>,
        subclass: u32,
        site: Site,
    ) -> Result<(), LockError> {
        H::will_acquire(&self.state, self.id(), Access::Shared, subclass, site);
        if self.read_fast() {
            H::acquired(&self.state, self.id(), Access::Shared, Path::Fast, site);
            return Ok(());
        }
        self.acquire_slow(RwLockMode::Read, &how(), site)
    }

    /// Acquires for reading if that needs no waiting.
    #[inline]
    pub fn try_read(&self, site: Site) -> bool {
        let taken = self.read_fast();
        if taken {
            H::acquired(&self.state, self.id(), Access::Shared, Path::Fast, site);
        }
        taken
    }

    /// Acquires for writing, waiting as long as it takes.
    ///
    /// # Errors
    /// As [`RawRwLock::read`], but for too many readers. [`LockError::Recursive`] also in a signal handler
    /// that interrupted the caller's own wait for this lock.
    #[inline]
    pub fn write(&self, site: Site) -> Result<(), LockError> {
        self.write_lazily(|| WaitBounds::FOREVER, 0, site)
    }

    /// Acquires for writing unless `how` ends the wait first. `how` is asked
    /// for only past the fast path, `subclass` is told to the hooks.
    ///
    /// # Errors
    /// As [`RawRwLock::write`], and the reasons in `how`.
    #[inline]
    pub fn write_lazily<'a>(
        &self,
        how: impl FnOnce() -> WaitBounds<'a, P>,
        subclass: u32,
        site: Site,
    ) -> Result<(), LockError> {
        H::will_acquire(&self.state, self.id(), Access::Alone, subclass, site);
        if self.write_fast() {
            H::acquired(&self.state, self.id(), Access::Alone, Path::Fast, site);
            return Ok(());
        }
        self.acquire_slow(RwLockMode::Write, &how(), site)
    }

    /// Acquires for writing if that needs no waiting.
    #[inline]
    pub fn try_write(&self, site: Site) -> bool {
        let taken = self.write_fast() || self.try_write_slow();
        if taken {
            H::acquired(&self.state, self.id(), Access::Alone, Path::Fast, site);
        }
        taken
    }

    /// Releases a reader's hold.
    ///
    /// # Safety
    /// The caller answers for a hold for reading that has not been released.
    #[inline]
    pub unsafe fn unlock_read(&self) {
        H::releasing(&self.state, self.id());
        let mut seen = self.peek();
        while let Some(after) = seen.quietly_left() {
            match self.publish(seen, after) {
                Ok(()) => return,
                Err(found) => seen = found,
            }
        }
        self.change(RwLockState::left);
    }

    /// Releases the writer's hold.
    ///
    /// # Safety
    /// The calling thread holds the lock for writing.
    #[inline]
    pub unsafe fn unlock_write(&self) {
        H::releasing(&self.state, self.id());
        if self.publish(RwLockState::written(P::me_or_zero()), RwLockState::IDLE).is_err() {
            self.change(RwLockState::left);
        }
    }

    /// Turns the writer's hold into a reader's, with no writer in between.
    ///
    /// # Safety
    /// The calling thread holds the lock for writing.
    pub unsafe fn downgrade(&self) {
        self.change(RwLockState::downgraded);
    }

    /// Tells whether anybody holds it, at some moment during the call.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        !self.peek().free()
    }

    /// Tells whether the calling thread holds it for writing.
    #[must_use]
    pub fn is_mine(&self) -> bool {
        self.writer().is_some_and(|writer| writer.get() == P::me_or_zero())
    }

    /// Returns the writer that held it at some moment during the call.
    #[must_use]
    pub fn writer(&self) -> Option<Slot> {
        self.peek().writer()
    }

    /// Returns how many readers held it at some moment during the call.
    #[must_use]
    pub fn readers(&self) -> u32 {
        self.peek().readers()
    }

    #[inline(always)]
    fn peek(&self) -> RwLockState {
        RwLockState(self.word.load(Ordering::Relaxed))
    }

    /// Takes the lock if it admits readers; tries again when other readers
    /// were quicker.
    #[inline(always)]
    fn read_fast(&self) -> bool {
        let mut seen = self.peek();
        while seen.admits(RwLockMode::Read) {
            match self.exchange(seen, seen.read()) {
                Ok(()) => return true,
                Err(found) => seen = found,
            }
        }
        false
    }

    #[inline(always)]
    fn write_fast(&self) -> bool {
        let me = P::me_or_zero();
        me != 0 && self.exchange(RwLockState::IDLE, RwLockState::written(me)).is_ok()
    }

    /// Takes a free lock that another thread waits for, or for a thread that has not
    /// joined.
    #[cold]
    #[inline(never)]
    fn try_write_slow(&self) -> bool {
        let me = P::me();
        let mut seen = self.peek();
        while seen.admits(RwLockMode::Write) {
            match self.exchange(seen, seen.take(RwLockMode::Write, me)) {
                Ok(()) => return true,
                Err(found) => seen = found,
            }
        }
        false
    }

    #[cold]
    #[inline(never)]
    fn acquire_slow(
        &self,
        mode: RwLockMode,
        how: &WaitBounds<'_, P>,
        site: Site,
    ) -> Result<(), LockError> {
        H::will_wait(&self.state, self.id(), how.is_endless());
        let me = P::me();
        let result = if self.peek().writer() == Some(me) {
            Err(LockError::Recursive)
        } else {
            let mut waiter = RwLockWaiter::new(me, mode, how);
            telling::<P, _>(&self.awaited(mode, how), || match mode {
                RwLockMode::Read => self.read_slow(&mut waiter),
                RwLockMode::Write => self.through_the_room(&mut waiter),
            })
        };
        match result {
            Ok(()) => H::acquired(&self.state, self.id(), mode.access(), Path::Slow, site),
            Err(_) => H::abandoned(&self.state, self.id(), site),
        }
        result
    }

    /// Describes the wait of a thread that is about to wait for the lock.
    fn awaited(&self, mode: RwLockMode, how: &WaitBounds<'_, P>) -> Awaited {
        let wants = match mode {
            RwLockMode::Read => AwaitedUse::Read,
            RwLockMode::Write => AwaitedUse::Write,
        };
        let (address, name) = (self.id().0, H::name(&self.state));
        Awaited { address, wants, name, deadline: how.deadline }
    }

    /// Waits as a reader, on the word.
    fn read_slow(&self, waiter: &mut RwLockWaiter<'_, P>) -> Result<(), LockError> {
        let mut spin = ShortSpin::start::<P>(Y::HANDOFF_SPIN);
        loop {
            let seen = self.peek();
            if living::<P>(seen).admits(RwLockMode::Read) {
                if self.exchange(seen, living::<P>(seen).read()).is_ok() {
                    return Ok(());
                }
                continue;
            }
            if let Some(error) = waiter.given_up(seen) {
                return Err(error);
            }
            if spin.again::<P, Y>(seen.writer()) {
                continue;
            }
            // In a signal handler that interrupted its own thread in the
            // waiting room, there is no way through it.
            let insist = if self.room.is_mine() { None } else { Some(waiter.insist::<Y>()) };
            if insist.is_some_and(|insist| P::now() >= insist) {
                return self.through_the_room(waiter);
            }
            let asleep = seen.with_readers_asleep();
            if asleep != seen && self.exchange(seen, asleep).is_err() {
                continue;
            }
            let shown = self.awaited(waiter.mode, waiter.how).shown(waiter.how);
            waiter.sleep(insist, |wait| P::wait_low_shown(&self.word, asleep.low(), wait, &shown));
        }
    }

    fn through_the_room(&self, waiter: &mut RwLockWaiter<'_, P>) -> Result<(), LockError> {
        let shown = self.awaited(waiter.mode, waiter.how).shown(waiter.how);
        self.room.lock_within(waiter.how, &shown)?;
        let result = self.wait_as_next(waiter);
        // SAFETY: this thread holds the waiting room: it locked it above, and a mutex is unlocked
        // by its owner alone.
        unsafe { self.room.unlock() };
        result
    }

    /// Waits for the word as the holder of the waiting room.
    fn wait_as_next(&self, waiter: &mut RwLockWaiter<'_, P>) -> Result<(), LockError> {
        let (me, mode) = (waiter.me, waiter.mode);
        let wake_sequence = &P::participant(me).wake_sequence;
        let mut spin = ShortSpin::start::<P>(Y::SPIN);
        let mut promised = false;
        loop {
            // ord: RW-3 acquire, pairs with BELL-1. Read before the word: a
            // call after our look at the word changes the number we expect.
            let sequence = wake_sequence.load(Ordering::Acquire);
            // ord: RW-4 acquire, pairs with RW-2 of the thread that handed over.
            let seen = RwLockState(self.word.load(Ordering::Acquire));
            let named = seen.next() == Some(me);
            if promised && !named {
                return Ok(());
            }
            // A *next* that is not the caller was left behind by `fork` (RWLOCK-NEXT).
            let alone = seen.without_next();
            if !promised && alone.admits(mode) {
                if self.exchange(seen, alone.take(mode, me)).is_ok() {
                    return Ok(());
                }
                continue;
            }
            if let Some(error) = waiter.given_up(seen) {
                let withdrawn = if fault!(rwlock_withdraws_unsettled) {
                    self.publish(seen, alone)
                } else {
                    self.settle(seen, alone)
                };
                if withdrawn.is_ok() {
                    return Err(error);
                }
                continue;
            }
            if spin.again::<P, Y>(seen.writer()) {
                continue;
            }
            let insist = if promised { None } else { Some(waiter.insist::<Y>()) };
            if insist.is_some_and(|insist| P::now() >= insist) {
                let after = alone.with_next(me, mode).with_promise();
                promised = self.exchange(seen, after).is_ok();
                continue;
            }
            if !named && self.exchange(seen, alone.with_next(me, mode)).is_err() {
                continue;
            }
            let late = fault!(rwlock_reads_the_wake_sequence_late);
            let sequence = if late { wake_sequence.load(Ordering::Relaxed) } else { sequence };
            let shown = self.awaited(mode, waiter.how).shown(waiter.how);
            waiter.sleep(insist, |wait| P::wait32_shown(wake_sequence, sequence, wait, &shown));
        }
    }

    /// Releases or downgrades where there is more in the word than holders.
    #[cold]
    #[inline(never)]
    fn change(&self, step: fn(RwLockState) -> RwLockState) {
        let mut seen = self.peek();
        while let Err(found) = self.settle(seen, step(living::<P>(seen))) {
            seen = found;
        }
    }

    /// Changes the word to one that may leave more room, and tells the threads that can take it.
    fn settle(&self, from: RwLockState, to: RwLockState) -> Result<(), RwLockState> {
        let sleepers_at = P::address_low(&self.word);
        let (after, calls) = to.settled();
        self.publish(from, after)?;
        // From here on the lock may be gone.
        if fault!(rwlock_release_looks_again) {
            let _ = self.peek();
        }
        if let Some(next) = calls.next {
            call::<P>(next);
        }
        if calls.readers {
            P::wake(sleepers_at, u32::MAX);
        }
        Ok(())
    }

    #[inline(always)]
    fn exchange(&self, from: RwLockState, to: RwLockState) -> Result<(), RwLockState> {
        // ord: RW-1 acquire, pairs with RW-2. A writer takes after several
        // readers released: everything that changes the word is a
        // read-modify-write, so each one's release holds on.
        match self.word.compare_exchange(from.0, to.0, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(found) => Err(RwLockState(found)),
        }
    }

    #[inline(always)]
    fn publish(&self, from: RwLockState, to: RwLockState) -> Result<(), RwLockState> {
        // ord: RW-2 release, pairs with RW-1 and RW-4.
        match self.word.compare_exchange(from.0, to.0, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(found) => Err(RwLockState(found)),
        }
    }
}

/// Returns `seen` without a *next* that was left behind by `fork`.
fn living<P: Platform>(seen: RwLockState) -> RwLockState {
    match seen.next() {
        Some(next) if P::participant(next).lost() => seen.without_next(),
        _ => seen,
    }
}

impl<P: Platform, H: Hooks, Y: Policy> Default for RawRwLock<P, H, Y> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform, H: Hooks, Y: Policy> core::fmt::Debug for RawRwLock<P, H, Y> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "RawRwLock{:?}", self.peek())
    }
}

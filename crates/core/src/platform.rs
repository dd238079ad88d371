//! The machine under a lock: one trait, three worlds.
//!
//! # Role
//! Every lock in this crate is generic over [`Platform`] and touches shared
//! memory, the clock, other threads and the kernel only through it. The Linux
//! crate implements it with real atomics and the futex call, the model checker
//! with atomics whose every access is a point of exploration, the simulator
//! with atomics that charge for cache lines. There is no `cfg` that swaps an
//! algorithm: what is checked is what ships.
//!
//! # Invariants a platform must keep
//! - **PLATFORM-SLOT** A [`Slot`] returned by [`Platform::me`] belongs to the calling
//!   thread alone until that thread ends, and is the same on every call.
//! - **PLATFORM-FOREVER** The [`TableEntry`] of a slot lives for ever: a slot may change
//!   hands, its memory is never freed or moved. Locks read the participants of
//!   other threads at any time, also of threads that have ended.
//! - **PLATFORM-COMPARE** [`Platform::wait32`] and [`Platform::wait_low`] compare and sleep
//!   in one step with respect to [`Platform::wake`]: a wake-up that follows a
//!   change of the word is never lost on a waiter that expected the old value.
//!   They may return at any time with [`WaitOutcome::Woken`] (a spurious wake-up).
//! - **PLATFORM-WOKEN** A waiter that consumed a wake-up reports [`WaitOutcome::Woken`], never
//!   a time-out: a waiter that is told of a time-out has no wake-up to pass on.
//! - **PLATFORM-ADDRESS** [`Platform::wake`] takes an address, not a reference, and does not
//!   read the memory there.

use crate::atomic::{Atomic32, Halves, Ordering, Plain};
use crate::attached::Attached;
use crate::participant;
use crate::slot::Slot;

/// The entry of a platform's table for one slot.
pub type TableEntry<P> = participant::Participant<
    <P as Platform>::U32,
    Attached<<P as Platform>::U32, <P as Platform>::U64>,
>;

/// A point in time on the platform's monotonic clock, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Returns the time `ns` nanoseconds later. Saturates at the end of time, which
    /// stands for "no deadline" where a number is needed.
    #[must_use]
    pub const fn after(self, ns: u64) -> Self {
        Nanos(self.0.saturating_add(ns))
    }

    /// Returns the nanoseconds since `earlier`; zero if that lies in the future (the
    /// clocks of two processors may differ by a little).
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The reasons that end a wait, besides the lock's being granted.
///
/// The default waits for ever and ignores signals, as the kernel's
/// `mutex_lock` does.
pub struct WaitBounds<'a, P: Platform> {
    /// The time at which the waiter gives up.
    pub deadline: Option<Nanos>,
    /// The cancellation word: the waiter gives up when it is no longer zero. The thread that sets
    /// it must wake its address afterwards.
    pub cancel: Option<&'a P::U32>,
    /// Whether the waiter gives up when a signal handler ran during the sleep.
    pub interruptible: bool,
}

impl<P: Platform> WaitBounds<'_, P> {
    /// The wait that goes on until the lock is granted.
    pub const FOREVER: WaitBounds<'static, P> =
        WaitBounds { deadline: None, cancel: None, interruptible: false };

    /// Tells whether nothing ends the wait but its being granted.
    pub fn is_endless(&self) -> bool {
        self.deadline.is_none() && self.cancel.is_none() && !self.interruptible
    }

    /// Tells whether the cancellation word has been set.
    pub fn cancelled(&self) -> bool {
        // ord: WAIT-1 (relaxed): a request to stop publishes nothing.
        self.cancel.is_some_and(|word| word.load(Ordering::Relaxed) != 0)
    }
}

impl<P: Platform> Clone for WaitBounds<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Platform> Copy for WaitBounds<'_, P> {}

/// The way in which a call to [`Platform::wait32`] or [`Platform::wait_low`] ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitOutcome {
    /// The thread was woken, perhaps spuriously; the only outcome that may have consumed a
    /// wake-up (PLATFORM-WOKEN).
    Woken,
    /// The word did not hold the expected value; the caller did not sleep.
    Changed,
    /// The deadline was reached.
    TimedOut,
    /// A signal handler ran.
    Interrupted,
    /// The cancellation word was set.
    Cancelled,
}

/// The reason why an acquisition failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockError {
    /// The deadline was reached.
    TimedOut,
    /// A signal handler ran while the caller slept.
    Interrupted,
    /// The caller's cancellation word was set.
    Cancelled,
    /// The calling thread holds the lock already.
    Recursive,
    /// The holder was left behind by `fork`: nobody in this process can ever
    /// release the lock.
    OwnerLost,
    /// The reader-writer lock is held by as many readers as it can count,
    /// [`MAX_SLOTS`](crate::slot::MAX_SLOTS). Waiting for one of them could be for ever: no process
    /// has so many threads, so some of them have forgotten to release.
    TooManyReaders,
}

/// Whether a participant occupies a processor now. Always a hint: the locks
/// are correct whatever it says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnCpu {
    /// It occupies a processor.
    Yes,
    /// It occupies none: spinning for it is a waste.
    No,
    /// This platform cannot tell.
    Unknown,
}

/// The address of a word that waiters sleep on. A releaser takes it before the release, so
/// that the wake-up need not touch the lock, whose memory may be gone by then (SLEEP-LAST-TOUCH).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Address(pub usize);

/// The way in which a thread wants what it waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AwaitedUse {
    /// A mutex, whose word names its owner by a slot.
    Mutex,
    /// A biased mutex, whose word names by a slot the thread that it belongs to, with bit 31 while that
    /// does not hold it.
    BiasedMutex,
    /// A mutex whose word the kernel shares, and names its owner by the kernel's number.
    InheritingMutex,
    /// A reader-writer lock, to read; its word names a writer by a slot.
    Read,
    /// The same, to write.
    Write,
    /// A unit of a semaphore, which has no owner.
    Unit,
    /// A notification of a condition variable, which has no owner.
    Notification,
    /// The end of a turn at a once, whose word names by a slot the thread that has the turn.
    Turn,
}

/// What a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Awaited {
    /// The address of the lock: of its first word.
    pub address: usize,
    /// How the thread wants the lock.
    pub wants: AwaitedUse,
    /// The name that the program has given to the lock.
    pub name: Option<&'static str>,
    /// The time at which the wait ends in any case.
    pub deadline: Option<Nanos>,
}

impl Awaited {
    /// Returns what may be shown of the sleeps of this wait, which `how` may end.
    pub(crate) fn shown<P: Platform>(&self, how: &WaitBounds<'_, P>) -> ShownSleep {
        ShownSleep { lock: self.address, wants: self.wants, is_endless: how.is_endless() }
    }
}

/// What a thread sleeps for, as a platform may show it to an observer outside the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShownSleep {
    /// The address of the lock: of its first word, which names by a slot who has it alone. The
    /// thread may sleep on another word.
    pub lock: usize,
    /// How the thread wants the lock.
    pub wants: AwaitedUse,
    /// Whether nothing ends the wait but the lock's being granted, however often the thread looks
    /// in between.
    pub is_endless: bool,
}

/// A machine on which locks run. It keeps the invariants PLATFORM-SLOT to
/// PLATFORM-ADDRESS of the module.
pub trait Platform: Sized + 'static {
    /// The 32-bit atomic of the platform.
    type U32: Atomic32 + 'static;
    /// The 64-bit atomic of the platform.
    type U64: Halves + 'static;
    /// The plain shared field of the platform.
    type Cell<T>: Plain<T>;

    /// Returns the calling thread's slot number, or 0 before it has joined. The fast paths call
    /// it, so natively it is one load.
    fn me_or_zero() -> u32;

    /// Returns the calling thread's slot. Joins the table when needed (PLATFORM-SLOT).
    fn me() -> Slot;

    /// Returns the participant behind a slot (PLATFORM-FOREVER).
    fn participant(slot: Slot) -> &'static TableEntry<Self>;

    /// Makes one turn of a spin loop. There is no other way to spin: the model checker ends the
    /// turn of the calling thread here, the simulator lets time pass.
    fn relax();

    /// Makes so many turns of a spin loop. The simulator lets all of them pass at once.
    #[inline]
    #[track_caller]
    fn relax_for(turns: u32) {
        for _ in 0..turns {
            Self::relax();
        }
    }

    /// Lets other threads have the calling thread's processor, if one of them wants it. To a
    /// machine that gives no processors away it is a turn of a spin loop.
    #[track_caller]
    fn give_way() {
        Self::relax();
    }

    /// Returns the present time.
    fn now() -> Nanos;

    /// Returns the number of processors on which threads of this process may run. With 1,
    /// spinning can never help.
    fn processors() -> u32;

    /// Tells whether the participant in `slot` occupies a processor.
    fn on_cpu(slot: Slot) -> OnCpu;

    /// Returns how many slow unlocks a contended mutex goes through after the contention
    /// (`word.rs`), at most 127: a number for which that many exchanges cost about as much as
    /// one [`Platform::restart_releases`].
    fn slow_unlocks() -> u32 {
        127
    }

    /// Restarts the releases of all other threads. When it returns, each [`Halves::erase_low`]
    /// that was in progress has stored, which the caller sees, or will look anew and see what
    /// the caller did before. Takes microseconds where `erase_low` is not one step, and has
    /// nothing to do elsewhere.
    fn restart_releases() {}

    /// Called after a contended acquisition of the lock whose waiters sleep at `at`;
    /// [`Platform::lets_go`] follows after the release. A platform may let the calling thread keep
    /// its processor meanwhile, for a short time.
    #[inline]
    fn holds(_at: Address) {}

    /// Called after the release of the lock at `at`, for which [`Platform::holds`] may have been
    /// called, or not. Returns whether the platform has let other threads have the processor. The
    /// address may dangle (PLATFORM-ADDRESS).
    #[inline]
    fn lets_go(_at: Address) -> bool {
        false
    }

    /// Called before a thread sleeps for a lock. Returns how many threads of the process sleep
    /// so, this one included: a hint that lengthens the bound on waiting. A platform that cannot
    /// tell returns 1.
    fn begin_sleep() -> u32 {
        1
    }

    /// Called by the same thread after its sleep.
    fn end_sleep() {}

    /// Tells an observer of the process that the calling thread is about to wait. Returns whether
    /// one has taken note: only then the caller calls [`Platform::wait_ends`] afterwards. A platform
    /// without observers returns false.
    #[inline(always)]
    fn wait_begins(_awaited: &Awaited) -> bool {
        false
    }

    /// Tells the observer, which has taken note of the beginning, that the same wait has ended: with
    /// what it was for, or with this error.
    #[inline(always)]
    fn wait_ends(_awaited: &Awaited, _error: Option<LockError>) {}

    /// Sleeps while `word` holds `expected`, until woken or as `how` says.
    fn wait32(word: &Self::U32, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome;

    /// Sleeps while the low half of `word` holds `expected`.
    fn wait_low(word: &Self::U64, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome;

    /// Sleeps like [`Platform::wait_low`], but on a channel of its own: only
    /// [`Platform::wake_handoff`] wakes, not [`Platform::wake`]. (A platform may
    /// let a wait with a cancellation word be woken by both.)
    fn wait_handoff(word: &Self::U64, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome;

    /// Sleeps like [`Platform::wait32`], and may show an observer outside the process what for.
    #[track_caller]
    fn wait32_shown(
        word: &Self::U32,
        expected: u32,
        how: &WaitBounds<'_, Self>,
        _shown: &ShownSleep,
    ) -> WaitOutcome {
        Self::wait32(word, expected, how)
    }

    /// Sleeps like [`Platform::wait_low`], and may show what for.
    #[track_caller]
    fn wait_low_shown(
        word: &Self::U64,
        expected: u32,
        how: &WaitBounds<'_, Self>,
        _shown: &ShownSleep,
    ) -> WaitOutcome {
        Self::wait_low(word, expected, how)
    }

    /// Sleeps like [`Platform::wait_handoff`], and may show what for.
    #[track_caller]
    fn wait_handoff_shown(
        word: &Self::U64,
        expected: u32,
        how: &WaitBounds<'_, Self>,
        _shown: &ShownSleep,
    ) -> WaitOutcome {
        Self::wait_handoff(word, expected, how)
    }

    /// Returns the address at which waiters of [`Platform::wait32`] on `word` sleep.
    fn address32(word: &Self::U32) -> Address;

    /// Returns the address at which waiters of [`Platform::wait_low`] on `word` sleep.
    fn address_low(word: &Self::U64) -> Address;

    /// Wakes up to `count` waiters that sleep at `address`, the longest asleep
    /// first; returns how many. The address may dangle (PLATFORM-ADDRESS).
    fn wake(address: Address, count: u32) -> u32;

    /// Wakes all waiters of [`Platform::wait_handoff`] at `address`. The address
    /// may dangle (PLATFORM-ADDRESS).
    fn wake_handoff(address: Address);
}

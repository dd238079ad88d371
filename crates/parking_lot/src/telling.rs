//! What all of the locks share: how they are described, and in which order a call to the real lock
//! and what is told of it come.
//!
//! # Upgradable reads
//! Who has one keeps writers and other upgradable reads away, and lets readers in. The listener
//! knows no such way of holding. So the right to upgrade is told as a lock of its own, beside the
//! reader-writer lock: who reads upgradably holds it, and who writes passes through it, once an
//! upgradable read was seen in the program. Nothing that is told so orders a plain reader behind an
//! upgradable one.

use lockstead_told::home::Home;
use lockstead_told::{Listener, RIGHT, ToldLock, ending, flag, kind, listener, way};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Whether a lock is released by the thread that has acquired it, so that it can be said who holds
/// it. With this feature of parking_lot a guard may go to another thread, of which nobody is told.
const FOLLOWED: bool = !cfg!(feature = "send_guard");

/// The fact that a lock's acquisitions and releases are told, if they are.
const FOLLOWED_FLAG: u32 = if FOLLOWED { flag::FOLLOWED } else { 0 };

/// The text by which `lockstead run` knows, from the file of a program, that these locks are seen.
#[cfg(not(feature = "send_guard"))]
#[used]
static SEEN: [u8; 43] = *b"lockstead-parking-lot: these locks are seen";

/// Whether the program has ever had an upgradable read.
static UPGRADABLE: AtomicBool = AtomicBool::new(false);

/// Returns the address of the lock that begins here, after telling that it is new there if it is.
/// `also` is how many bytes behind it something else is told to lie.
fn settled(home: &Home, also: Option<usize>) -> usize {
    listener().map_or_else(|| home.address(), |listener| home.settle(listener, also))
}

/// Describes the mutex that begins here.
pub(crate) fn mutex(home: &Home) -> ToldLock {
    ToldLock::new(settled(home, None), kind::MUTEX, FOLLOWED_FLAG)
}

/// Describes the condition variable that begins here.
fn condition(home: &Home) -> ToldLock {
    ToldLock::new(settled(home, None), kind::CONDITION, FOLLOWED_FLAG)
}

/// Describes the reader-writer lock that begins here, whose readers wait behind a writer that waits
/// unless all of them are recursive.
pub(crate) fn rwlock(home: &Home, recursive: bool) -> ToldLock {
    let flags = if recursive { FOLLOWED_FLAG } else { FOLLOWED_FLAG | flag::WRITERS_FIRST };
    let also = UPGRADABLE.load(Relaxed).then_some(RIGHT);
    ToldLock::new(settled(home, also), kind::RWLOCK, flags)
}

/// Describes the right to upgrade at a reader-writer lock.
fn right(lock: &ToldLock) -> ToldLock {
    ToldLock::new(lock.address as usize + RIGHT, kind::RWLOCK, FOLLOWED_FLAG)
}

/// Tells that the calling thread has acquired a lock, in this way.
fn acquired(listener: &Listener, lock: &ToldLock, how: u32) {
    if FOLLOWED {
        listener.acquired(lock, how);
    }
}

/// Tells that the calling thread is about to release a lock.
fn released(listener: &Listener, lock: &ToldLock) {
    if FOLLOWED {
        listener.releases(lock);
    }
}

/// What a call that may acquire returns.
pub(crate) trait Outcome {
    /// Tells whether the lock was acquired.
    fn is_acquired(&self) -> bool;
}

impl Outcome for bool {
    fn is_acquired(&self) -> bool {
        *self
    }
}

impl<G> Outcome for Option<G> {
    fn is_acquired(&self) -> bool {
        self.is_some()
    }
}

/// A request for a lock: what is asked for and how, and until when.
pub(crate) struct Request<L> {
    /// Describes the lock; called if somebody listens.
    lock: L,
    /// The [`way`] in which it is asked for.
    way: u32,
    /// When the thread gives up; `None`: never.
    deadline: Option<Instant>,
    /// Whether it is for a reader-writer lock alone, by who has not the right to upgrade.
    passes_right: bool,
}

/// Returns when so much time will have passed; `None` if no clock goes so far.
#[inline]
pub(crate) fn after(time: Duration) -> Option<Instant> {
    listener().and_then(|_| Instant::now().checked_add(time))
}

impl<L: FnOnce() -> ToldLock> Request<L> {
    /// Asks for a mutex, or for the right to upgrade.
    #[inline]
    pub(crate) fn alone(lock: L, deadline: Option<Instant>) -> Self {
        Request { lock, way: way::ALONE, deadline, passes_right: false }
    }

    /// Asks to write.
    #[inline]
    pub(crate) fn write(lock: L, deadline: Option<Instant>) -> Self {
        Request { lock, way: way::ALONE, deadline, passes_right: true }
    }

    /// Asks to read, past a writer that waits.
    #[cfg(any(feature = "lock_api_0_4", test))]
    #[inline]
    pub(crate) fn read_recursive(lock: L, deadline: Option<Instant>) -> Self {
        Request { lock, way: way::READ | way::RECURSIVE, deadline, passes_right: false }
    }

    /// Asks to read, behind a writer that waits.
    #[inline]
    pub(crate) fn read(lock: L, deadline: Option<Instant>) -> Self {
        Request { lock, way: way::READ, deadline, passes_right: false }
    }

    /// Acquires a lock by `wait`, which blocks, and tells of it. `attempt` does the same without
    /// waiting. Returns what the one that succeeded gave.
    #[inline]
    pub(crate) fn acquire<G: Outcome>(
        self,
        attempt: impl FnOnce() -> G,
        wait: impl FnOnce() -> G,
    ) -> G {
        match listener() {
            None => wait(),
            Some(listener) => self.acquire_told(listener, attempt, wait),
        }
    }

    #[cold]
    #[inline(never)]
    fn acquire_told<G: Outcome>(
        self,
        listener: &Listener,
        attempt: impl FnOnce() -> G,
        wait: impl FnOnce() -> G,
    ) -> G {
        let lock = (self.lock)();
        let timed = if self.deadline.is_some() { way::TIMED } else { 0 };
        let got = attempt();
        if got.is_acquired() {
            self.passes_right.then(|| passes_right(listener, &lock));
            acquired(listener, &lock, self.way | timed);
            return got;
        }
        let deadline = self.deadline.map_or(0, nanoseconds);
        let frame = ptr::from_ref(&lock).addr();
        let noted = listener.wait_begins(&lock, self.way, (deadline, 0), frame);
        let got = wait();
        if noted {
            let ended = if got.is_acquired() { ending::GRANTED } else { ending::TIMED_OUT };
            listener.wait_ends(&lock, self.way, ended);
        }
        if got.is_acquired() {
            self.passes_right.then(|| passes_right(listener, &lock));
            acquired(listener, &lock, self.way | timed | way::WAITED);
        }
        got
    }

    /// Acquires the right to upgrade at a reader-writer lock, as [`acquire`](Self::acquire).
    #[inline]
    pub(crate) fn acquire_right<G: Outcome>(
        self,
        attempt: impl FnOnce() -> G,
        wait: impl FnOnce() -> G,
    ) -> G {
        match listener() {
            None => wait(),
            Some(listener) => self.acquire_right_told(listener, attempt, wait),
        }
    }

    /// Acquires the lock for reading, as far as is told, and exchanges that for the right: the
    /// request waits behind a writer as a reader's does, and behind who has the right.
    #[cold]
    #[inline(never)]
    fn acquire_right_told<G: Outcome>(
        self,
        listener: &Listener,
        attempt: impl FnOnce() -> G,
        wait: impl FnOnce() -> G,
    ) -> G {
        UPGRADABLE.store(true, Relaxed);
        let lock = (self.lock)();
        let timed = if self.deadline.is_some() { way::TIMED } else { 0 };
        let way = way::READ | way::UPGRADABLE;
        let reads = Request { lock: || lock, way, deadline: self.deadline, passes_right: false };
        let got = reads.acquire_told(listener, attempt, wait);
        if got.is_acquired() {
            released(listener, &lock);
            acquired(listener, &right(&lock), way::ALONE | timed);
        }
        got
    }
}

/// Leaves the order of who writes: behind who has the right to upgrade. The caller has the lock
/// alone, so that nobody has the right.
fn passes_right(listener: &Listener, lock: &ToldLock) {
    if UPGRADABLE.load(Relaxed) {
        let right = right(lock);
        acquired(listener, &right, way::ALONE);
        released(listener, &right);
    }
}

/// Tells of a lock that was acquired without waiting, if it was.
#[inline]
pub(crate) fn tried<G: Outcome>(got: G, lock: impl FnOnce() -> ToldLock, how: u32) -> G {
    if got.is_acquired()
        && let Some(listener) = listener()
    {
        acquired(listener, &lock(), how | way::TRIED);
    }
    got
}

/// Tells of the right to upgrade that was acquired without waiting, if it was.
#[inline]
pub(crate) fn tried_right<G: Outcome>(got: G, lock: impl FnOnce() -> ToldLock) -> G {
    let got = tried(got, || right(&lock()), way::ALONE);
    if got.is_acquired() && listener().is_some() {
        UPGRADABLE.store(true, Relaxed);
    }
    got
}

/// Tells that the caller is about to release a lock.
#[inline]
pub(crate) fn releases(lock: impl FnOnce() -> ToldLock) {
    if let Some(listener) = listener() {
        released(listener, &lock());
    }
}

/// Tells that the caller is about to give the right to upgrade back.
#[inline]
pub(crate) fn releases_right(lock: impl FnOnce() -> ToldLock) {
    releases(|| right(&lock()));
}

/// Gives back and takes again by `step`, if others wait; tells that the lock is free meanwhile.
#[inline]
pub(crate) fn bumps<G>(lock: impl FnOnce() -> ToldLock, how: u32, step: impl FnOnce() -> G) -> G {
    let Some(listener) = listener() else { return step() };
    let lock = lock();
    released(listener, &lock);
    let got = step();
    acquired(listener, &lock, how | way::TRIED);
    got
}

/// Gives the right to upgrade back and takes it again by `step`, as [`bumps`].
#[inline]
pub(crate) fn bumps_right<G>(lock: impl FnOnce() -> ToldLock, step: impl FnOnce() -> G) -> G {
    bumps(|| right(&lock()), way::ALONE, step)
}

/// Makes a writer of who has the right to upgrade, by `wait`; `attempt` does it without waiting.
#[inline]
pub(crate) fn upgrades<G: Outcome>(
    lock: impl FnOnce() -> ToldLock,
    deadline: Option<Instant>,
    attempt: impl FnOnce() -> G,
    wait: impl FnOnce() -> G,
) -> G {
    let Some(listener) = listener() else { return wait() };
    let lock = lock();
    let got = Request::alone(|| lock, deadline).acquire_told(listener, attempt, wait);
    if got.is_acquired() {
        released(listener, &right(&lock));
    }
    got
}

/// Waits for a notification by `wait`, which gives the mutex back meanwhile; tells of it. What
/// `wait` returns is whether the time was over.
pub(crate) fn waits_on(
    condvar: &Home,
    mutex: ToldLock,
    deadline: Option<Instant>,
    wait: impl FnOnce() -> bool,
) -> bool {
    let Some(listener) = listener() else { return wait() };
    let lock = condition(condvar);
    let frame = ptr::from_ref(&lock).addr();
    let until = (deadline.map_or(0, nanoseconds), mutex.address as usize);
    let noted = listener.wait_begins(&lock, way::ALONE, until, frame);
    // A wait for one condition with two mutexes panics.
    let mut ends = WaitEnds { listener, lock: &lock, noted, ending: ending::REFUSED };
    let timed_out = wait();
    ends.ending = if timed_out { ending::TIMED_OUT } else { ending::GRANTED };
    drop(ends);
    timed_out
}

/// Tells of the end of a wait when it is dropped.
struct WaitEnds<'a> {
    listener: &'a Listener,
    lock: &'a ToldLock,
    noted: bool,
    ending: u32,
}

impl Drop for WaitEnds<'_> {
    fn drop(&mut self) {
        if self.noted {
            self.listener.wait_ends(self.lock, way::ALONE, self.ending);
        }
    }
}

/// Returns a time in nanoseconds of `CLOCK_MONOTONIC`.
fn nanoseconds(deadline: Instant) -> u64 {
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
    }
    const MONOTONIC: i32 = 1;
    let mut now = [0_i64; 2];
    // SAFETY: the C library writes two numbers of 64 bits to a place on this stack: somebody listens
    // on such machines only.
    unsafe { clock_gettime(MONOTONIC, &raw mut now) };
    let now = (now[0] as u64).saturating_mul(1_000_000_000).saturating_add(now[1] as u64);
    let left = deadline.saturating_duration_since(Instant::now()).as_nanos();
    now.saturating_add(u64::try_from(left).unwrap_or(u64::MAX)).max(1)
}

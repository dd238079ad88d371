//! Calls the kernel's futexes: sleeps while a word holds a value, wakes by address.
//!
//! # Role
//! All sleeping of all locks. Private words are compared by address within the
//! process; shared ones by the page behind them, for locks in memory that
//! several processes map.
//!
//! # Protocol
//! Without a cancellation word: `FUTEX_WAIT_BITSET`, the one classic call that
//! takes an absolute time on the monotonic clock. With one: `futex_waitv` on
//! both words (Linux 5.16), else sleeps of at most `POLL` between looks at
//! the cancellation word.
//!
//! # Errors of the kernel
//! | errno | class | outcome |
//! |---|---|---|
//! | `EAGAIN` | expected: the word changed | `Changed` |
//! | `ETIMEDOUT` | expected | `TimedOut` |
//! | `EINTR` | expected: a signal handler ran | `Interrupted` |
//! | `ENOSYS`, `EPERM`, `EACCES` from `futex_waitv` | old kernel, or filtered | the sleeps between looks, from now on |
//! | `ENOMEM` from `futex_waitv` | expected, rare | `Woken` after a yield |
//! | `EFAULT` from a wake | expected: the lock is gone (PLATFORM-ADDRESS) | nobody woken |
//! | anything else | misuse or a filter | `Woken` after a yield |
//!
//! A spurious `Woken` is always allowed (PLATFORM-COMPARE), so a process whose futex calls
//! are refused ends up with locks that poll, but exclude.
//!
//! # Invariants
//! PLATFORM-COMPARE to PLATFORM-ADDRESS of the core's `platform.rs`. PLATFORM-WOKEN with two words:
//! the kernel promises the index of *one* of the words that woke a `futex_waitv`, so any
//! wake-up may have consumed the lock's and is reported as `Woken`; the caller
//! looks at its cancellation word itself. The errors consumed nothing.

use crate::sys::{KeepErrno, errno};
use core::ptr::null;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use libc::{c_int, c_long, timespec};
use lockstead_core::{AwaitedUse, Nanos, ShownSleep, WaitOutcome};

/// The threads that may sleep on a word and wake its sleepers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// The threads of this process.
    Private,
    /// The threads of all processes that map the word's memory, at any address.
    Shared,
}

/// The wake-ups at an address that a sleeper hears.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Channel {
    /// The wake-ups of [`wake`].
    Crowd,
    /// The wake-ups for the hand-off waiter of a lock.
    HandOff,
}

/// What a sleep hears, and what `/proc` shows of it beside: see `slots.rs`.
pub(crate) type HeardSleep<'a> = (Channel, Option<&'a ShownSleep>);

impl Channel {
    /// Returns the bits of a wake-up: every sleeper of the channel has one of them.
    const fn bits(self) -> u32 {
        match self {
            Channel::Crowd => !3,
            Channel::HandOff => 3,
        }
    }

    /// Returns the bits of a sleep.
    const fn heard(self, shown: Option<&ShownSleep>) -> u32 {
        match (self, shown) {
            (_, None) => self.bits(),
            (Channel::Crowd, Some(ShownSleep { is_endless: false, .. })) => !7,
            (Channel::Crowd, Some(ShownSleep { is_endless: true, .. })) => !15,
            (Channel::HandOff, Some(_)) => 1,
        }
    }
}

/// What ends a sleep besides a wake-up; see `lockstead_core::WaitBounds`.
#[derive(Clone, Copy, Debug)]
pub struct SleepUntil<'a> {
    /// Give up at this time of [`now`].
    pub deadline: Option<Nanos>,
    /// Give up when this word is no longer zero; whoever sets it wakes its
    /// address afterwards. Of the same scope as the word slept on.
    pub cancel: Option<&'a AtomicU32>,
    /// Report every signal handler that ran, also one installed with
    /// `SA_RESTART`.
    pub interruptible: bool,
}

impl SleepUntil<'_> {
    /// The sleep ends by nothing but a wake-up.
    pub const WOKEN: SleepUntil<'static> =
        SleepUntil { deadline: None, cancel: None, interruptible: false };
}

/// The longest sleep between two looks at a cancellation word where the
/// kernel cannot watch two words at once, in nanoseconds.
const POLL: u64 = 5_000_000;

/// Whether `futex_waitv` was refused, or a test has switched it off.
static WAITV_REFUSED: AtomicBool = AtomicBool::new(false);

/// Tells whether `futex_waitv` is left alone, because it was refused before.
pub(crate) fn waitv_refused() -> bool {
    WAITV_REFUSED.load(Ordering::Relaxed)
}

/// Has locks behave as if the kernel refused `futex_waitv`, or ask it anew.
/// For tests of the fall-back.
#[doc(hidden)]
pub fn refuse_waitv(refused: bool) {
    WAITV_REFUSED.store(refused, Ordering::Relaxed);
}

/// Returns the time on the monotonic clock.
#[inline]
#[must_use]
pub fn now() -> Nanos {
    let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to a timespec that lives on this stack; the clock exists on
    // every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Sleeps while `word` holds `expected`, until woken or as `until` says.
///
/// Compares and sleeps in one step with respect to [`wake`]. May return
/// [`WaitOutcome::Woken`] at any time. Leaves `errno` alone.
#[must_use]
pub fn wait(word: &AtomicU32, expected: u32, until: &SleepUntil<'_>, scope: Scope) -> WaitOutcome {
    wait_at(word.as_ptr(), expected, until, scope, (Channel::Crowd, None))
}

/// Does as [`wait`], by address: for a half of a 64-bit word. The kernel checks
/// the address, so a wrong one is an error of the call and not undefined.
pub(crate) fn wait_at(
    word: *const u32,
    expected: u32,
    until: &SleepUntil<'_>,
    scope: Scope,
    heard: HeardSleep<'_>,
) -> WaitOutcome {
    let _errno = KeepErrno::new();
    let Some(cancel) = until.cancel else {
        return wait_one(word, expected, until.deadline, until.interruptible, scope, heard);
    };
    // futex_waitv is restarted after an SA_RESTART handler even when it has a
    // deadline, so an interruptible sleep cannot use it.
    if until.interruptible || waitv_refused() {
        return wait_looking(word, expected, cancel, until, scope, heard);
    }
    match wait_two(word, expected, cancel, until.deadline, scope) {
        Some(outcome) => outcome,
        None => {
            refuse_waitv(true);
            wait_looking(word, expected, cancel, until, scope, heard)
        }
    }
}

/// Wakes up to `count` threads that sleep at `address`, the longest asleep
/// first; returns how many. Does not read the memory there, which may be
/// gone. Leaves `errno` alone.
pub fn wake(address: usize, count: u32, scope: Scope) -> u32 {
    wake_on(address, count, scope, Channel::Crowd)
}

/// Does as [`wake`], for one channel. Sleeps of `futex_waitv` hear all channels.
pub(crate) fn wake_on(address: usize, count: u32, scope: Scope, channel: Channel) -> u32 {
    let _errno = KeepErrno::new();
    let count = c_int::try_from(count).unwrap_or(c_int::MAX);
    let op = libc::FUTEX_WAKE_BITSET | flag(scope);
    // SAFETY: the kernel looks the address up and does not touch it on our
    // behalf; a wrong one is EFAULT.
    let woken = unsafe {
        libc::syscall(
            libc::SYS_futex,
            address,
            op,
            count,
            null::<timespec>(),
            null::<u32>(),
            channel.bits(),
        )
    };
    u32::try_from(woken).unwrap_or(0)
}

/// Returns the address of the lock that a sleep is for, and in its two low bits how the thread
/// wants it.
fn lock_and_use(shown: &ShownSleep) -> usize {
    let wants = match shown.wants {
        AwaitedUse::Read => 1,
        AwaitedUse::Write => 2,
        AwaitedUse::Turn => 3,
        AwaitedUse::Mutex
        | AwaitedUse::BiasedMutex
        | AwaitedUse::InheritingMutex
        | AwaitedUse::Unit
        | AwaitedUse::Notification => 0,
    };
    shown.lock | wants
}

fn flag(scope: Scope) -> c_int {
    match scope {
        Scope::Private => libc::FUTEX_PRIVATE_FLAG,
        Scope::Shared => 0,
    }
}

pub(crate) fn time(at: Nanos) -> timespec {
    timespec { tv_sec: (at.0 / 1_000_000_000) as _, tv_nsec: (at.0 % 1_000_000_000) as c_long }
}

fn wait_one(
    word: *const u32,
    expected: u32,
    deadline: Option<Nanos>,
    interruptible: bool,
    scope: Scope,
    heard: HeardSleep<'_>,
) -> WaitOutcome {
    // The kernel resumes a sleep without a time by itself after a handler
    // installed with SA_RESTART; one with a time it ends.
    let deadline = deadline.or(interruptible.then_some(Nanos(u64::MAX)));
    let time = deadline.map(time);
    let op = libc::FUTEX_WAIT_BITSET | flag(scope);
    // SAFETY: the time, when given, lives on this stack during the call; the kernel only reads
    // the word, and checks its address: a wrong one is EFAULT.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word,
            op,
            expected,
            time.as_ref().map_or(null(), core::ptr::from_ref),
            // An argument that the kernel does not look at in this call.
            heard.1.map_or(0, lock_and_use),
            heard.0.heard(heard.1),
        )
    };
    if result >= 0 {
        return WaitOutcome::Woken;
    }
    match errno() {
        libc::EAGAIN => WaitOutcome::Changed,
        libc::ETIMEDOUT => WaitOutcome::TimedOut,
        libc::EINTR => WaitOutcome::Interrupted,
        _ => refused(),
    }
}

/// The kernel's `struct futex_waitv`.
#[repr(C)]
pub(crate) struct FutexWaitv {
    value: u64,
    address: u64,
    flags: u32,
    reserved: u32,
}

impl FutexWaitv {
    pub(crate) fn new(address: *const u32, value: u32, scope: Scope) -> Self {
        /// `FUTEX2_SIZE_U32`; the private flag has the old value.
        const SIZE_32: u32 = 2;
        FutexWaitv {
            value: value.into(),
            address: address.addr() as u64,
            flags: SIZE_32 | flag(scope) as u32,
            reserved: 0,
        }
    }
}

/// Sleeps while all words hold their values; returns the highest index of those at
/// which the thread was woken. The error is in `errno`, and consumed no wake-up.
pub(crate) fn wait_vector(words: &[FutexWaitv], deadline: Option<Nanos>) -> Result<usize, ()> {
    let time = deadline.map(time);
    // SAFETY: the caller keeps the vector alive, this stack the time; the kernel only reads the
    // words, and checks their addresses: a wrong one is EFAULT.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex_waitv,
            words.as_ptr(),
            words.len(),
            0,
            time.as_ref().map_or(null(), core::ptr::from_ref),
            libc::CLOCK_MONOTONIC,
        )
    };
    usize::try_from(result).map_err(|_| ())
}

/// Sleeps on the word and the cancellation word at once. Returns `None` where the kernel, or a
/// filter, does not offer that.
fn wait_two(
    word: *const u32,
    expected: u32,
    cancel: &AtomicU32,
    deadline: Option<Nanos>,
    scope: Scope,
) -> Option<WaitOutcome> {
    let both = [FutexWaitv::new(cancel.as_ptr(), 0, scope), FutexWaitv::new(word, expected, scope)];
    if wait_vector(&both, deadline).is_ok() {
        return Some(WaitOutcome::Woken);
    }
    Some(match errno() {
        libc::EAGAIN if cancel.load(Ordering::Relaxed) != 0 => WaitOutcome::Cancelled,
        libc::EAGAIN => WaitOutcome::Changed,
        libc::ETIMEDOUT => WaitOutcome::TimedOut,
        libc::EINTR => WaitOutcome::Interrupted,
        libc::ENOSYS | libc::EPERM | libc::EACCES => return None,
        _ => refused(),
    })
}

/// Sleeps on the word alone, and looks at the cancellation word in between.
fn wait_looking(
    word: *const u32,
    expected: u32,
    cancel: &AtomicU32,
    until: &SleepUntil<'_>,
    scope: Scope,
    heard: HeardSleep<'_>,
) -> WaitOutcome {
    // A number in any case: where there is no deadline, the compiler compares with the one that
    // was never written and drops the result, which valgrind reports to the program's owner.
    let deadline = until.deadline.unwrap_or(Nanos(u64::MAX));
    loop {
        if cancel.load(Ordering::Relaxed) != 0 {
            return WaitOutcome::Cancelled;
        }
        let next = deadline.min(now().after(POLL));
        match wait_one(word, expected, Some(next), until.interruptible, scope, heard) {
            WaitOutcome::TimedOut if next != deadline => {}
            outcome => return outcome,
        }
    }
}

/// Lets other threads run after a call that should have worked did not, and has the
/// caller look again.
#[cold]
pub(crate) fn refused() -> WaitOutcome {
    // SAFETY: the call takes no argument and cannot fail.
    unsafe { libc::sched_yield() };
    WaitOutcome::Woken
}

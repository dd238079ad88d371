//! Calls the kernel about futexes with priority inheritance.
//!
//! # Errors of the kernel
//! | errno | class | outcome |
//! |---|---|---|
//! | `ETIMEDOUT` | expected | `TimedOut`: the time of this call, which may be before the deadline |
//! | `EDEADLK` | the caller holds it, or a cycle | `Deadlock` |
//! | `ESRCH` | no thread has the owner's number | `OwnerGone` |
//! | `EAGAIN`, `EINTR`, `ENOMEM` | the owner is about to end; no memory | `Again` |
//! | `ENOSYS`, `EPERM`, `EACCES` | no such call, or filtered | `Refused` |
//! | `EPERM` where the calls work | the number is a kernel thread's by now | `OwnerGone` |
//! | `EINVAL` | the owner has ended, the next owner is on the way | `Again` |
//! | anything else | misuse or a filter | `Refused` |
//!
//! `EINTR` is never seen for a lock: the kernel resumes the wait.

use crate::futex::{now, time};
use crate::sys::{self, KeepErrno, errno};
use core::ptr::null;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use libc::{c_int, timespec};
use lockstead_core::Nanos;

/// The number of `FUTEX_LOCK_PI2`, Linux 5.14: as `FUTEX_LOCK_PI`, by the monotonic clock.
const LOCK_PI2: c_int = 13;

/// The longest wait by the wall clock, which may be set while we wait, in nanoseconds.
const BY_WALL_CLOCK: u64 = 1_000_000_000;

/// The kernel, or a filter, has refused `FUTEX_LOCK_PI2`, or a test has.
static LOCK_PI2_REFUSED: AtomicBool = AtomicBool::new(false);

/// Tells whether `FUTEX_LOCK_PI2` is left alone, because it was refused before.
pub(crate) fn lock_pi2_refused() -> bool {
    LOCK_PI2_REFUSED.load(Relaxed)
}

/// Has locks behave as if the kernel refused `FUTEX_LOCK_PI2`, or ask it anew. For
/// tests of the fall-back.
#[doc(hidden)]
pub fn refuse_lock_pi2(refused: bool) {
    LOCK_PI2_REFUSED.store(refused, Relaxed);
}

/// The outcome of an attempt to acquire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PiAnswer {
    /// The caller is the owner.
    Granted,
    /// The lock did not come free within the time of the call.
    TimedOut,
    /// The wait would never have ended.
    Deadlock,
    /// The owner is no thread.
    OwnerGone,
    /// The kernel asks the caller to try again soon.
    Again,
    /// The kernel, or a filter, refuses the call.
    Refused,
}

/// Waits for the lock at `word`, until `deadline` at most.
pub(super) fn lock(word: *const u32, deadline: Option<Nanos>) -> PiAnswer {
    let _errno = KeepErrno::new();
    let Some(deadline) = deadline else { return answer(call(libc::FUTEX_LOCK_PI, word, None)) };
    if !lock_pi2_refused() {
        let result = call(LOCK_PI2, word, Some(time(deadline)));
        let refused = matches!(result, Err(libc::ENOSYS | libc::EPERM | libc::EACCES));
        if !refused || probe_lock_pi2().is_ok() {
            return answer(result);
        }
        refuse_lock_pi2(true);
    }
    let left = deadline.0.saturating_sub(now().0).min(BY_WALL_CLOCK);
    answer(call(libc::FUTEX_LOCK_PI, word, Some(time(wall_clock().after(left)))))
}

/// Takes the lock at `word` if that needs no waiting.
pub(super) fn try_lock(word: *const u32) -> PiAnswer {
    let _errno = KeepErrno::new();
    answer(call(libc::FUTEX_TRYLOCK_PI, word, None))
}

/// Releases the lock at `word`, which the caller holds; false: to be tried again.
pub(super) fn unlock(word: *const u32) -> bool {
    let _errno = KeepErrno::new();
    match call(libc::FUTEX_UNLOCK_PI, word, None) {
        Ok(()) => true,
        Err(libc::EAGAIN | libc::EINTR) => false,
        // The waiters would wait for ever.
        Err(_) => sys::die(
            "the kernel refuses to release a real-time mutex for which threads wait (a system \
             call filter that came too late, a guard on another thread, or overwritten memory)",
        ),
    }
}

/// Sleeps until `deadline`. By the bare call, which is no point of
/// cancellation; a signal may end it early.
pub(super) fn sleep_until(deadline: Nanos) {
    let _errno = KeepErrno::new();
    let time = time(deadline);
    // SAFETY: the time lives on this stack until the call returns; the kernel only reads it.
    unsafe {
        libc::syscall(
            libc::SYS_clock_nanosleep,
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const time,
            null::<timespec>(),
        )
    };
}

/// Tries whether the calls work in the calling thread; else returns the kernel's error.
pub(crate) fn probe() -> Result<(), c_int> {
    let _errno = KeepErrno::new();
    // The lock is never released: the kernel keeps nothing about one without waiters.
    let free = AtomicU32::new(0);
    call(libc::FUTEX_TRYLOCK_PI, free.as_ptr(), None)
}

/// Tries whether `FUTEX_LOCK_PI2` works; else returns the kernel's error.
pub(crate) fn probe_lock_pi2() -> Result<(), c_int> {
    let _errno = KeepErrno::new();
    let free = AtomicU32::new(0);
    call(LOCK_PI2, free.as_ptr(), None)
}

fn answer(result: Result<(), c_int>) -> PiAnswer {
    match result {
        Ok(()) => PiAnswer::Granted,
        Err(libc::ETIMEDOUT) => PiAnswer::TimedOut,
        Err(libc::EDEADLK) => PiAnswer::Deadlock,
        Err(libc::ESRCH) => PiAnswer::OwnerGone,
        Err(libc::EAGAIN | libc::EINTR | libc::ENOMEM | libc::EINVAL) => PiAnswer::Again,
        Err(libc::EPERM) if probe().is_ok() => PiAnswer::OwnerGone,
        Err(_) => PiAnswer::Refused,
    }
}

fn call(op: c_int, word: *const u32, until: Option<timespec>) -> Result<(), c_int> {
    // SAFETY: the time, when given, lives in `until` during the call. The kernel changes the
    // word as the protocol of these futexes says, and checks the address: a wrong one is
    // EFAULT.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word,
            op | libc::FUTEX_PRIVATE_FLAG,
            0,
            until.as_ref().map_or(null(), core::ptr::from_ref),
            null::<u32>(),
            0,
        )
    };
    if result == 0 { Ok(()) } else { Err(errno()) }
}

fn wall_clock() -> Nanos {
    let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to a timespec that lives on this stack; the clock exists on
    // every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut time) };
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_kernel_are_told_apart() {
        assert_eq!(answer(Ok(())), PiAnswer::Granted);
        assert_eq!(answer(Err(libc::ETIMEDOUT)), PiAnswer::TimedOut);
        assert_eq!(answer(Err(libc::EDEADLK)), PiAnswer::Deadlock);
        assert_eq!(answer(Err(libc::ESRCH)), PiAnswer::OwnerGone);
        assert_eq!(answer(Err(libc::EAGAIN)), PiAnswer::Again);
        assert_eq!(answer(Err(libc::EINVAL)), PiAnswer::Again);
        assert_eq!(answer(Err(libc::ENOSYS)), PiAnswer::Refused);
    }

    #[test]
    fn an_unknown_operation_is_refused() {
        let word = AtomicU32::new(0);
        assert_eq!(call(99, word.as_ptr(), None), Err(libc::ENOSYS));
    }
}

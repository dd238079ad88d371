//! How results of the standard library's locks become those of ours, which all three types share.

use ::std::ffi::c_int;
use ::std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};
use ::std::time::Duration;

/// The text by which `lockstead run` knows, from the file of a program, that these locks are seen.
#[used]
static SEEN: [u8; 35] = *b"lockstead-std: these locks are seen";

/// Returns the result with another guard in it.
#[inline]
pub(super) fn locked<G, O>(result: LockResult<G>, guard: impl FnOnce(G) -> O) -> LockResult<O> {
    match result {
        Ok(own) => Ok(guard(own)),
        Err(poisoned) => Err(PoisonError::new(guard(poisoned.into_inner()))),
    }
}

/// Returns the result of a trial with another guard in it.
#[inline]
pub(super) fn tried<G, O>(
    result: TryLockResult<G>,
    guard: impl FnOnce(G) -> O,
) -> TryLockResult<O> {
    match result {
        Ok(own) => Ok(guard(own)),
        Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        Err(TryLockError::Poisoned(poisoned)) => {
            Err(TryLockError::Poisoned(PoisonError::new(guard(poisoned.into_inner()))))
        }
    }
}

/// Returns what a trial has got; `None` if the lock is taken.
#[inline]
pub(super) fn at_once<G>(result: TryLockResult<G>) -> Option<LockResult<G>> {
    match result {
        Ok(guard) => Some(Ok(guard)),
        Err(TryLockError::WouldBlock) => None,
        Err(TryLockError::Poisoned(poisoned)) => Some(Err(poisoned)),
    }
}

/// Returns the end of a time from now, in nanoseconds of `CLOCK_MONOTONIC`.
pub(super) fn end_of(time: Duration) -> u64 {
    unsafe extern "C" {
        fn clock_gettime(clock: c_int, time: *mut [i64; 2]) -> c_int;
    }
    const MONOTONIC: c_int = 1;
    let mut now = [0_i64; 2];
    // SAFETY: the C library writes two numbers of 64 bits to a place on this stack: this crate is
    // built for such machines.
    unsafe { clock_gettime(MONOTONIC, &raw mut now) };
    let now = (now[0] as u64).saturating_mul(1_000_000_000).saturating_add(now[1] as u64);
    now.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)).max(1)
}

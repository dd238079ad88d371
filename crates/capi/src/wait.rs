//! How a wait may end, from C's terms to the core's, and its outcome as an errno.
//!
//! # Invariants
//! - **CAPI-HOW** C passes with `how` the argument that `enum lks_how__` demands; what that points
//!   to lives until the call returns. The program keeps it; the inline functions of the headers
//!   keep it for the program.

use crate::cancel::lks_cancel;
use lockstead_core::{LockError, Nanos, Platform, WaitBounds};
use lockstead_linux::Linux;

pub(crate) const FOREVER: u32 = 0;
pub(crate) const INTERRUPTIBLE: u32 = 1;
const KILLABLE: u32 = 2;
pub(crate) const TIMEOUT: u32 = 3;
const UNTIL: u32 = 4;

/// Calls with the wait that `how` of `enum lks_how__` and its argument mean; returns `-EINVAL` if
/// they mean nothing.
///
/// # Safety
/// CAPI-HOW holds.
pub(crate) unsafe fn waiting(
    how: u32,
    argument: u64,
    call: impl FnOnce(&WaitBounds<'_, Linux>) -> i32,
) -> i32 {
    // SAFETY: CAPI-HOW holds until this call ends: the caller keeps it.
    match unsafe { wait(how, argument) } {
        Some(how) => call(&how),
        None => -libc::EINVAL,
    }
}

/// Returns the wait that `how` of `enum lks_how__` and its argument mean; `None` if they mean
/// nothing.
///
/// # Safety
/// CAPI-HOW holds, for `'a`.
pub(crate) unsafe fn wait<'a>(how: u32, argument: u64) -> Option<WaitBounds<'a, Linux>> {
    let pointer = argument as usize;
    match how {
        FOREVER => Some(WaitBounds::FOREVER),
        INTERRUPTIBLE => Some(WaitBounds { interruptible: true, ..WaitBounds::FOREVER }),
        KILLABLE => {
            let token = core::ptr::with_exposed_provenance::<lks_cancel>(pointer);
            // SAFETY: CAPI-HOW, which the caller keeps: null, or a token that outlives the wait.
            let token = unsafe { token.as_ref() };
            Some(WaitBounds { cancel: token.map(lks_cancel::word), ..WaitBounds::FOREVER })
        }
        TIMEOUT => Some(by(Linux::now().after(argument))),
        UNTIL => {
            let deadline = core::ptr::with_exposed_provenance::<Timespec>(pointer);
            // SAFETY: CAPI-HOW: the argument is null or leads to a time; the caller keeps it.
            let deadline = unsafe { deadline.as_ref() }?;
            let nanoseconds = u64::try_from(deadline.nanoseconds).ok()?;
            if nanoseconds >= 1_000_000_000 {
                return None;
            }
            // A time before the clock began has passed.
            let seconds = u64::try_from(deadline.seconds).unwrap_or(0);
            Some(by(Nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds))))
        }
        _ => None,
    }
}

fn by(deadline: Nanos) -> WaitBounds<'static, Linux> {
    WaitBounds { deadline: Some(deadline), ..WaitBounds::FOREVER }
}

/// The `struct timespec` of 64-bit Linux.
#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

/// Returns 0 or the negative errno of an outcome.
pub(crate) fn code(outcome: Result<(), LockError>) -> i32 {
    match outcome {
        Ok(()) => 0,
        Err(error) => -errno(error),
    }
}

/// Returns the errno of an error. A fired token is an interruption, as the fatal signal is to the
/// kernel's `killable` calls.
pub(crate) fn errno(error: LockError) -> i32 {
    match error {
        LockError::TimedOut => libc::ETIMEDOUT,
        LockError::Interrupted | LockError::Cancelled => libc::EINTR,
        LockError::Recursive => libc::EDEADLK,
        LockError::OwnerLost => libc::EOWNERDEAD,
        LockError::TooManyReaders => libc::EAGAIN,
    }
}

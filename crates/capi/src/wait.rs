//! How a wait may end, from C's terms to the core's, and what came of it as errno.

use crate::cancel::lks_cancel;
use lockstead_core::{LockError, Nanos, Platform, Wait};
use lockstead_linux::Linux;

pub(crate) const FOREVER: u32 = 0;
pub(crate) const INTERRUPTIBLE: u32 = 1;
const KILLABLE: u32 = 2;
pub(crate) const TIMEOUT: u32 = 3;
const UNTIL: u32 = 4;

/// The wait that `how` of `enum lks_how__` and its argument mean; `None` if they
/// mean nothing.
///
/// # Safety
/// The argument is what `how` takes, and what it points to is there for `'a`.
pub(crate) unsafe fn wait<'a>(how: u32, argument: u64) -> Option<Wait<'a, Linux>> {
    let pointer = argument as usize;
    match how {
        FOREVER => Some(Wait::FOREVER),
        INTERRUPTIBLE => Some(Wait { interruptible: true, ..Wait::FOREVER }),
        KILLABLE => {
            let token = core::ptr::with_exposed_provenance::<lks_cancel>(pointer);
            // SAFETY: null, or a token that outlives the wait (the caller).
            let token = unsafe { token.as_ref() };
            Some(Wait { cancel: token.map(lks_cancel::word), ..Wait::FOREVER })
        }
        TIMEOUT => Some(by(Linux::now().after(argument))),
        UNTIL => {
            let deadline = core::ptr::with_exposed_provenance::<Timespec>(pointer);
            // SAFETY: a time, or null (the caller).
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

fn by(deadline: Nanos) -> Wait<'static, Linux> {
    Wait { deadline: Some(deadline), ..Wait::FOREVER }
}

/// `struct timespec` of 64-bit Linux.
#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

/// 0 or a negative errno.
pub(crate) fn code(outcome: Result<(), LockError>) -> i32 {
    match outcome {
        Ok(()) => 0,
        Err(error) => -errno(error),
    }
}

/// What an error is called in C. A fired token is an interruption, as the fatal
/// signal is to the kernel's `killable` calls.
pub(crate) fn errno(error: LockError) -> i32 {
    match error {
        LockError::TimedOut => libc::ETIMEDOUT,
        LockError::Interrupted | LockError::Cancelled => libc::EINTR,
        LockError::Recursive => libc::EDEADLK,
        LockError::OwnerLost => libc::EOWNERDEAD,
    }
}

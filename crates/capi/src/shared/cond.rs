//! The condition variable between processes, for C.

use super::{code, errno, here, lks_shared_mutex};
use crate::export::c_type;
use crate::wait;
use lockstead::shared::SharedError;
use lockstead::shared::raw::{RawCondvar, RawOutcome};

c_type! {
    /// The condition variable of C for shared mutexes, eight bytes.
    lks_shared_cond(RawCondvar): 8, 8
}

/// Releases the mutex, waits, and takes the mutex again.
///
/// # Safety
/// CAPI-HOW holds.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_shared_cond_wait_how(
    cond: Option<&lks_shared_cond>,
    mutex: Option<&lks_shared_mutex>,
    how: u32,
    argument: u64,
) -> i32 {
    let (Some(cond), Some(mutex)) = (cond, mutex) else {
        return code(Err(SharedError::NotInSegment));
    };
    // SAFETY: CAPI-HOW holds for `how` and `argument`: the caller keeps it.
    let Some(how) = (unsafe { wait::wait(how, argument) }) else { return -libc::EINVAL };
    if !mutex.0.is_mine() {
        return -libc::EPERM;
    }
    // The library has to release the mutex afterwards (HERE-WAITED).
    here::hide();
    match cond.0.wait(&mutex.0, &how) {
        Ok(waited) => match (waited.mutex, waited.ended) {
            (RawOutcome::Acquired, Some(error)) => -errno(error),
            (outcome, _) => code(Ok(outcome)),
        },
        // The child of a handler's fork: mutex and wait are the parent's.
        Err(SharedError::Cancelled) => -libc::EPERM,
        Err(error) => -errno(error),
    }
}

/// Wakes one waiter, or all.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_cond_notify_slow(cond: Option<&lks_shared_cond>, all: i32) -> i32 {
    let Some(cond) = cond else { return code(Err(SharedError::NotInSegment)) };
    if all == 0 {
        cond.0.notify_one()
    } else {
        cond.0.notify_all()
    }
    0
}

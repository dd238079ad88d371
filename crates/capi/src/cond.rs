//! The condition variable.

use crate::mutex::{lks_mutex, nowhere};
use crate::own::enter;
use crate::refuse::refuse;
use crate::{names, wait};
use lockstead_core::{LockError, RawCondvar};
use lockstead_linux::Linux;

/// The condition variable of C: the core's, eight bytes.
#[allow(non_camel_case_types, reason = "the type's name in C")]
#[repr(transparent)]
#[derive(Debug)]
pub struct lks_cond(pub(crate) RawCondvar<Linux>);

const _: () = assert!(size_of::<lks_cond>() == 8 && align_of::<lks_cond>() == 8);

impl lks_cond {
    /// # Safety
    /// The calling thread holds the mutex; `argument` is what `how` takes.
    pub(crate) unsafe fn wait_how(&self, mutex: &lks_mutex, how: u32, argument: u64) -> i32 {
        enter();
        // SAFETY: as the caller says, until this call ends.
        let Some(how) = (unsafe { wait::wait(how, argument) }) else { return -libc::EINVAL };
        // SAFETY: as the caller says.
        let ended = unsafe { self.0.wait(&mutex.0, &how, nowhere()) };
        // Only after a signal handler left the wait by fork or by a jump: the caller
        // believes that it holds the mutex.
        if let Err(error @ (LockError::Recursive | LockError::OwnerLost)) = ended {
            refuse(error, "lks_cond_wait", "mutex", mutex.address());
        }
        wait::code(ended)
    }
}

/// Nothing of a condition variable but its name outlives it.
#[unsafe(no_mangle)]
extern "C" fn lks_cond_destroy(cond: &lks_cond) {
    names::forget(core::ptr::from_ref(cond).addr());
}

/// Releases the mutex, waits, and takes the mutex again.
///
/// # Safety
/// The calling thread holds the mutex; `argument` is what `how` takes.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_cond_wait_how(
    cond: &lks_cond,
    mutex: &lks_mutex,
    how: u32,
    argument: u64,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe { cond.wait_how(mutex, how, argument) }
}

/// Wakes one of those that wait, or all.
#[unsafe(no_mangle)]
extern "C" fn lks_cond_notify_slow(cond: &lks_cond, all: i32) {
    if all == 0 { cond.0.notify_one() } else { cond.0.notify_all() }
}

//! The condition variable for C.

use crate::export::{also, c_type, destroy};
use crate::mutex::{lks_mutex, nowhere};
use crate::own::enter;
use crate::refuse::refuse;
use crate::wait::{self, FOREVER, TIMEOUT};
use core::mem::MaybeUninit;
use lockstead_core::{LockError, Off, Platform, Policy, RawCondvar, RawMutex, WaitBounds};
use lockstead_linux::Linux;

c_type! {
    /// The condition variable of C: the core's, eight bytes.
    lks_cond(RawCondvar<Linux>): 8, 8
}

destroy! { lks_cond_destroy(lks_cond); }

impl lks_cond {
    /// Releases the mutex, waits, and takes the mutex again.
    ///
    /// # Safety
    /// CAPI-HOLDER holds for the mutex, and CAPI-HOW.
    pub(crate) unsafe fn wait_how<Y: Policy>(
        &self,
        mutex: &RawMutex<Linux, Off, Y>,
        how: u32,
        argument: u64,
    ) -> i32 {
        // SAFETY: CAPI-HOW holds for `how` and `argument`, and CAPI-HOLDER for the mutex: the
        // caller keeps both.
        unsafe { wait::waiting(how, argument, |how| self.wait_bounded(mutex, how)) }
    }

    /// Releases the mutex, waits, and takes the mutex again.
    ///
    /// # Safety
    /// CAPI-HOLDER holds for the mutex.
    unsafe fn wait_bounded<Y: Policy>(
        &self,
        mutex: &RawMutex<Linux, Off, Y>,
        how: &WaitBounds<'_, Linux>,
    ) -> i32 {
        enter();
        // SAFETY: CAPI-HOLDER: the calling thread holds the mutex; the caller keeps it.
        let ended = unsafe { self.0.wait(mutex, how, nowhere()) };
        // Only after a signal handler left the wait by fork or by a jump: the caller
        // believes that it holds the mutex.
        if let Err(error @ (LockError::Recursive | LockError::OwnerLost)) = ended {
            refuse(error, "lks_cond_wait", "mutex", mutex.id().0);
        }
        wait::code(ended)
    }
}

/// Releases the mutex, waits, and takes the mutex again.
///
/// # Safety
/// CAPI-HOLDER holds for the mutex, and CAPI-HOW.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_cond_wait_how(
    cond: &lks_cond,
    mutex: &lks_mutex,
    how: u32,
    argument: u64,
) -> i32 {
    // SAFETY: CAPI-HOLDER holds for the mutex, and CAPI-HOW: the caller keeps both.
    unsafe { cond.wait_how(&mutex.0, how, argument) }
}

/// Waits as `how` says, and for so many nanoseconds at most: leaves in `left` how many of them are
/// left when the mutex is taken again, and returns `-ETIMEDOUT` if none are and nothing else ended
/// the wait.
///
/// # Safety
/// CAPI-HOLDER holds for the mutex, and CAPI-HOW.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_cond_wait_within_how(
    cond: &lks_cond,
    mutex: &lks_mutex,
    how: u32,
    argument: u64,
    left: &mut u64,
) -> i32 {
    let deadline = Linux::now().after(*left);
    // SAFETY: CAPI-HOW holds for `how` and `argument`: the caller keeps it.
    let Some(how) = (unsafe { wait::wait(how, argument) }) else { return -libc::EINVAL };
    let until = how.deadline.map_or(deadline, |until| until.min(deadline));
    let how = WaitBounds { deadline: Some(until), ..how };
    // SAFETY: CAPI-HOLDER holds for the mutex: the caller keeps it.
    let ended = unsafe { cond.wait_bounded(&mutex.0, &how) };
    *left = deadline.0.saturating_sub(Linux::now().0);
    ended
}

/// Wakes one waiter, or all.
#[unsafe(no_mangle)]
extern "C" fn lks_cond_notify_slow(cond: &lks_cond, all: i32) {
    if all == 0 { cond.0.notify_one() } else { cond.0.notify_all() }
}

/// Builds a condition variable, as the inline function of `cond.h` does.
#[unsafe(no_mangle)]
extern "C" fn lks_cond_init(cond: &mut MaybeUninit<lks_cond>) {
    cond.write(lks_cond(RawCondvar::new()));
}

also! {
    fn lks_cond_wait(cond: &lks_cond, mutex: &lks_mutex) {
        let _ = cond.wait_how(&mutex.0, FOREVER, 0);
    }
    fn lks_cond_wait_timeout(cond: &lks_cond, mutex: &lks_mutex, nanoseconds: u64) -> i32 {
        cond.wait_how(&mutex.0, TIMEOUT, nanoseconds)
    }
    fn lks_cond_notify_one(cond: &lks_cond) { cond.0.notify_one() }
    fn lks_cond_notify_all(cond: &lks_cond) { cond.0.notify_all() }
}

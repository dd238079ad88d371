//! The fair mutex for C: the mutex, word for word, whose calls wait by another policy.
//!
//! # Role
//! `fair.h` has the mutex's inline fast paths over the mutex inside. What differs is here: the slow
//! acquisition, the slow release, and the wait for a condition, which does both. A call of `mutex.rs`
//! on the same word is right, too (`RawMutex::by_policy`).

use crate::export::{also, c_type, destroy};
use crate::lks_cond;
use crate::mutex::{lock, lock_how, nowhere};
use crate::own::enter;
use crate::wait::{FOREVER, INTERRUPTIBLE, TIMEOUT};
use core::mem::MaybeUninit;
use lockstead_core::policy::Fair;
use lockstead_core::{Off, RawMutex};
use lockstead_linux::Linux;

c_type! {
    /// The fair mutex of C: the core's, eight bytes.
    lks_fair_mutex(RawMutex<Linux, Off, Fair>): 8, 8
}

destroy! { lks_fair_mutex_destroy(lks_fair_mutex); }

/// Takes the mutex, or aborts where that would take for ever.
#[unsafe(no_mangle)]
extern "C" fn lks_fair_mutex_lock_slow(mutex: &lks_fair_mutex) {
    lock(&mutex.0, "lks_fair_mutex_lock");
}

/// Takes the mutex, unless the wait ends before.
///
/// # Safety
/// CAPI-HOW holds.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_fair_mutex_lock_how(
    mutex: &lks_fair_mutex,
    how: u32,
    argument: u64,
) -> i32 {
    // SAFETY: CAPI-HOW holds for `how` and `argument`: the caller keeps it.
    unsafe { lock_how(&mutex.0, how, argument) }
}

/// Releases the mutex where the inline release found more than the owner, and did nothing.
///
/// # Safety
/// CAPI-HOLDER holds.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_fair_mutex_unlock_slow(mutex: &lks_fair_mutex) {
    // SAFETY: CAPI-HOLDER: the calling thread holds the mutex; the caller keeps it.
    unsafe { mutex.0.unlock_slow() };
}

/// Builds a free mutex, as the inline function of `fair.h` does.
#[unsafe(no_mangle)]
extern "C" fn lks_fair_mutex_init(mutex: &mut MaybeUninit<lks_fair_mutex>) {
    mutex.write(lks_fair_mutex(RawMutex::new()));
}

/// Releases the mutex, waits, and takes the mutex again.
///
/// # Safety
/// CAPI-HOLDER holds for the mutex, and CAPI-HOW.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_cond_wait_fair_how(
    cond: &lks_cond,
    mutex: &lks_fair_mutex,
    how: u32,
    argument: u64,
) -> i32 {
    // SAFETY: CAPI-HOLDER holds for the mutex, and CAPI-HOW: the caller keeps both.
    unsafe { cond.wait_how(&mutex.0, how, argument) }
}

also! {
    fn lks_fair_mutex_lock(mutex: &lks_fair_mutex) { lks_fair_mutex_lock_slow(mutex) }
    fn lks_fair_mutex_trylock(mutex: &lks_fair_mutex) -> i32 {
        enter();
        i32::from(mutex.0.try_lock(nowhere()))
    }
    fn lks_fair_mutex_lock_interruptible(mutex: &lks_fair_mutex) -> i32 {
        lock_how(&mutex.0, INTERRUPTIBLE, 0)
    }
    fn lks_fair_mutex_lock_timeout(mutex: &lks_fair_mutex, nanoseconds: u64) -> i32 {
        lock_how(&mutex.0, TIMEOUT, nanoseconds)
    }
    fn lks_fair_mutex_unlock(mutex: &lks_fair_mutex) { mutex.0.unlock() }
    fn lks_fair_mutex_is_locked(mutex: &lks_fair_mutex) -> i32 { i32::from(mutex.0.is_locked()) }
    fn lks_cond_wait_fair(cond: &lks_cond, mutex: &lks_fair_mutex) {
        let _ = cond.wait_how(&mutex.0, FOREVER, 0);
    }
    fn lks_cond_wait_fair_timeout(
        cond: &lks_cond, mutex: &lks_fair_mutex, nanoseconds: u64
    ) -> i32 {
        cond.wait_how(&mutex.0, TIMEOUT, nanoseconds)
    }
}

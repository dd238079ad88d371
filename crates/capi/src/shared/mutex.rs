//! The mutex between processes, for C.

use super::{acquire, attempt, had, here};
use crate::export::c_type;
use lockstead::shared::raw::RawMutex;

c_type! {
    /// The mutex of C that survives its owner, eight bytes.
    lks_shared_mutex(RawMutex): 8, 8
}

type Mutex<'a> = Option<&'a lks_shared_mutex>;

/// Takes the mutex, unless the wait ends before.
///
/// # Safety
/// CAPI-HOW holds.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_shared_mutex_lock_how(mutex: Mutex<'_>, how: u32, argument: u64) -> i32 {
    // SAFETY: CAPI-HOW holds for `how` and `argument`: the caller keeps it.
    unsafe {
        acquire(mutex, how, argument, |mutex, how| {
            let outcome = mutex.0.lock(how);
            here::show(mutex);
            outcome
        })
    }
}

/// Takes the mutex if that needs no wait.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_mutex_trylock_slow(mutex: Mutex<'_>) -> i32 {
    attempt(mutex, |mutex| {
        let outcome = mutex.0.try_lock();
        here::show(mutex);
        outcome
    })
}

/// Releases the mutex, or returns `-EPERM` if the calling thread does not hold it.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_mutex_unlock_slow(mutex: Mutex<'_>) -> i32 {
    had(mutex.is_some_and(|mutex| mutex.0.unlock()))
}

/// Declares what a dead owner left consistent.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_mutex_consistent(mutex: Mutex<'_>) -> i32 {
    had(mutex.is_some_and(|mutex| mutex.0.mark_consistent()))
}

/// Tells whether the calling thread holds the mutex.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_mutex_is_mine(mutex: Mutex<'_>) -> i32 {
    i32::from(mutex.is_some_and(|mutex| mutex.0.is_mine()))
}

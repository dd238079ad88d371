//! The mutex.

use super::{attempt, code, had, here};
use crate::wait;
use lockstead::shared::SharedError;
use lockstead::shared::raw::RawMutex;

/// The mutex of C that survives its owner, eight bytes.
#[allow(non_camel_case_types, reason = "the type's name in C")]
#[repr(transparent)]
#[derive(Debug)]
pub struct lks_shared_mutex(pub(super) RawMutex);

impl lks_shared_mutex {
    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }
}

/// Takes the mutex, unless the wait ends before.
///
/// # Safety
/// `argument` is what `how` takes; see `enum lks_how__`.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_shared_mutex_lock_how(
    mutex: Option<&lks_shared_mutex>,
    how: u32,
    argument: u64,
) -> i32 {
    let Some(mutex) = mutex else { return code(Err(SharedError::NotInSegment)) };
    // SAFETY: as the caller says, until this call ends.
    let Some(how) = (unsafe { wait::wait(how, argument) }) else { return -libc::EINVAL };
    let outcome = mutex.0.lock(&how);
    here::show(mutex.address());
    code(outcome)
}

/// Takes the mutex if that needs no wait.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_mutex_trylock_slow(mutex: Option<&lks_shared_mutex>) -> i32 {
    let Some(mutex) = mutex else { return code(Err(SharedError::NotInSegment)) };
    let outcome = mutex.0.try_lock();
    here::show(mutex.address());
    attempt(outcome)
}

/// Releases the mutex.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_mutex_unlock_slow(mutex: Option<&lks_shared_mutex>) -> i32 {
    had(mutex.is_some_and(|mutex| mutex.0.unlock()))
}

/// Declares what a dead owner left consistent.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_mutex_consistent(mutex: Option<&lks_shared_mutex>) -> i32 {
    had(mutex.is_some_and(|mutex| mutex.0.mark_consistent()))
}

/// Whether the calling thread has the mutex.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_mutex_is_mine(mutex: Option<&lks_shared_mutex>) -> i32 {
    i32::from(mutex.is_some_and(|mutex| mutex.0.is_mine()))
}

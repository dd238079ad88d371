//! The reader-writer lock between processes, for C.

use super::{acquire, attempt, had};
use crate::export::c_type;
use lockstead::shared::raw::RawRwLock;

c_type! {
    /// The reader-writer lock of C that survives its owners, eight bytes.
    lks_shared_rwlock(RawRwLock): 8, 8
}

type RwLock<'a> = Option<&'a lks_shared_rwlock>;

/// Takes the lock for reading, unless the wait ends before.
///
/// # Safety
/// CAPI-HOW holds.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_shared_rwlock_read_how(lock: RwLock<'_>, how: u32, argument: u64) -> i32 {
    // SAFETY: CAPI-HOW holds for `how` and `argument`: the caller keeps it.
    unsafe { acquire(lock, how, argument, |lock, how| lock.0.read(how)) }
}

/// Takes the lock for reading if that needs no wait.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_rwlock_tryread_slow(lock: RwLock<'_>) -> i32 {
    attempt(lock, |lock| lock.0.try_read())
}

/// Takes the lock for writing, unless the wait ends before.
///
/// # Safety
/// CAPI-HOW holds.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_shared_rwlock_write_how(lock: RwLock<'_>, how: u32, argument: u64) -> i32 {
    // SAFETY: CAPI-HOW holds for `how` and `argument`: the caller keeps it.
    unsafe { acquire(lock, how, argument, |lock, how| lock.0.write(how)) }
}

/// Takes the lock for writing if that needs no wait.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_rwlock_trywrite_slow(lock: RwLock<'_>) -> i32 {
    attempt(lock, |lock| lock.0.try_write())
}

/// Releases what the calling thread has of the lock.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_rwlock_unlock_slow(lock: RwLock<'_>) -> i32 {
    had(lock.is_some_and(|lock| lock.0.unlock()))
}

/// Declares what a dead writer left consistent.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_rwlock_consistent(lock: RwLock<'_>) -> i32 {
    had(lock.is_some_and(|lock| lock.0.mark_consistent()))
}

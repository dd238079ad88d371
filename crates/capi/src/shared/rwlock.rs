//! The reader-writer lock.

use super::{attempt, code, had};
use crate::wait;
use lockstead::shared::SharedError;
use lockstead::shared::raw::RawRwLock;

/// The reader-writer lock of C that survives its owners, eight bytes.
#[allow(non_camel_case_types, reason = "the type's name in C")]
#[repr(transparent)]
#[derive(Debug)]
pub struct lks_shared_rwlock(RawRwLock);

/// Takes it for reading, unless the wait ends before.
///
/// # Safety
/// `argument` is what `how` takes; see `enum lks_how__`.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_shared_rwlock_read_how(
    lock: Option<&lks_shared_rwlock>,
    how: u32,
    argument: u64,
) -> i32 {
    let Some(lock) = lock else { return code(Err(SharedError::NotInSegment)) };
    // SAFETY: as the caller says, until this call ends.
    let Some(how) = (unsafe { wait::wait(how, argument) }) else { return -libc::EINVAL };
    code(lock.0.read(&how))
}

/// Takes it for reading if that needs no wait.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_rwlock_tryread_slow(lock: Option<&lks_shared_rwlock>) -> i32 {
    attempt(lock.map_or(Err(SharedError::NotInSegment), |lock| lock.0.try_read()))
}

/// Takes it for writing, unless the wait ends before.
///
/// # Safety
/// `argument` is what `how` takes; see `enum lks_how__`.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_shared_rwlock_write_how(
    lock: Option<&lks_shared_rwlock>,
    how: u32,
    argument: u64,
) -> i32 {
    let Some(lock) = lock else { return code(Err(SharedError::NotInSegment)) };
    // SAFETY: as the caller says, until this call ends.
    let Some(how) = (unsafe { wait::wait(how, argument) }) else { return -libc::EINVAL };
    code(lock.0.write(&how))
}

/// Takes it for writing if that needs no wait.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_rwlock_trywrite_slow(lock: Option<&lks_shared_rwlock>) -> i32 {
    attempt(lock.map_or(Err(SharedError::NotInSegment), |lock| lock.0.try_write()))
}

/// Releases what the calling thread has of it.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_rwlock_unlock_slow(lock: Option<&lks_shared_rwlock>) -> i32 {
    had(lock.is_some_and(|lock| lock.0.unlock()))
}

/// Declares what a dead writer left consistent.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_rwlock_consistent(lock: Option<&lks_shared_rwlock>) -> i32 {
    had(lock.is_some_and(|lock| lock.0.mark_consistent()))
}

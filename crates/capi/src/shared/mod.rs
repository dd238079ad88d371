//! Locks in memory that processes share, and that memory, for C.
//!
//! # Role
//! The names of `lockstead::shared::raw` in C. The locks may lie anywhere in a segment's root. Each
//! call finds out by the address which segment that is, and which participant the calling thread
//! is there. So a call about no lock at all, as by a null pointer, fails with an error.
//!
//! The fast paths of the mutex are inline in the header, and `here` tells them which participant
//! the thread is. The header calls everything else.

mod cond;
mod here;
mod mutex;
mod reason;
mod rwlock;
mod segment;
mod semaphore;
mod types;

pub use cond::lks_shared_cond;
pub use mutex::lks_shared_mutex;
pub use rwlock::lks_shared_rwlock;
pub use segment::{lks_shm_options, lks_shm_segment};
pub use semaphore::lks_shared_semaphore;
pub use types::{lks_shm_field, lks_shm_type};

use crate::wait;
use lockstead::shared::raw::RawOutcome;
use lockstead::shared::{JoinError, SharedError};
use lockstead_core::WaitBounds;
use lockstead_linux::Linux;

/// Acquires a lock by `how` and its argument; returns as [`code`].
///
/// # Safety
/// CAPI-HOW holds.
unsafe fn acquire<L>(
    lock: Option<&L>,
    how: u32,
    argument: u64,
    acquire: impl FnOnce(&L, &WaitBounds<'_, Linux>) -> Result<RawOutcome, SharedError>,
) -> i32 {
    let Some(lock) = lock else { return code(Err(SharedError::NotInSegment)) };
    // SAFETY: CAPI-HOW holds for `how` and `argument`: the caller keeps it.
    unsafe { wait::waiting(how, argument, |how| code(acquire(lock, how))) }
}

/// Tries for a lock; returns 1, 0, or a negative errno as [`code`].
fn attempt<L>(
    lock: Option<&L>,
    attempt: impl FnOnce(&L) -> Result<RawOutcome, SharedError>,
) -> i32 {
    match lock.map_or(Err(SharedError::NotInSegment), attempt) {
        Ok(RawOutcome::Acquired) => 1,
        Err(SharedError::Held) => 0,
        other => code(other),
    }
}

/// Returns 0 or the negative errno of an acquisition; after `-EOWNERDEAD` the caller has the lock.
fn code(outcome: Result<RawOutcome, SharedError>) -> i32 {
    match outcome {
        Ok(RawOutcome::Acquired) => 0,
        Ok(RawOutcome::OwnerDied) => -libc::EOWNERDEAD,
        Ok(RawOutcome::NotRecoverable) => -libc::ENOTRECOVERABLE,
        Err(error) => -errno(error),
    }
}

/// Returns 0, or `-EPERM` if the calling thread does not have what it was to release or declare.
fn had(it: bool) -> i32 {
    if it { 0 } else { -libc::EPERM }
}

/// Returns the errno of an error, and remembers the reason of one that lasts.
fn errno(error: SharedError) -> i32 {
    match error {
        SharedError::TimedOut => libc::ETIMEDOUT,
        SharedError::Interrupted | SharedError::Cancelled => libc::EINTR,
        SharedError::Held => libc::EBUSY,
        SharedError::Recursive => libc::EDEADLK,
        SharedError::Spoiled => libc::ENOTRECOVERABLE,
        SharedError::TooManyClaims => {
            reason::remember(&error);
            libc::EAGAIN
        }
        SharedError::NotInSegment => {
            reason::remember(&error);
            libc::EFAULT
        }
        SharedError::Join(error) => join_errno(error),
        other => {
            reason::remember(&other);
            libc::EIO
        }
    }
}

/// Returns the errno of a refusal to take part, and remembers the reason.
fn join_errno(error: JoinError) -> i32 {
    reason::remember(&error);
    match error {
        JoinError::Foreign => libc::EFAULT,
        JoinError::Full | JoinError::WornOut => libc::EUSERS,
        JoinError::TooManySegments => libc::EMFILE,
        JoinError::NoRobustList | JoinError::UnknownList(_) => libc::ENOSYS,
        JoinError::ListInUse => libc::EBUSY,
        JoinError::ListTooLong => libc::E2BIG,
        JoinError::NoMemory(error)
        | JoinError::NoDescription(error)
        | JoinError::NoRecordLocks(error) => error,
        JoinError::FileLocked | JoinError::ForgetfulFileSystem => libc::ENOLCK,
        JoinError::TooManyProcesses => libc::EUSERS,
    }
}

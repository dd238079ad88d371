//! Locks in memory that processes share, and that memory.
//!
//! # Role
//! `lockstead::shared::raw` by its names in C. The locks may lie anywhere in a segment's
//! root; each call finds out by the address which segment that is, and who the calling
//! thread is there. So a call about no lock at all, as by a null pointer, is an error like
//! another one.
//!
//! The fast paths of the mutex are inline in the header, where `here` tells them who the
//! thread is; everything else is called.

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

use lockstead::shared::raw::Outcome;
use lockstead::shared::{JoinError, SharedError};

/// What came of an acquisition: 0 or a negative errno, with `-EOWNERDEAD` for a lock that
/// was got.
fn code(outcome: Result<Outcome, SharedError>) -> i32 {
    match outcome {
        Ok(Outcome::Acquired) => 0,
        Ok(Outcome::OwnerDied) => -libc::EOWNERDEAD,
        Ok(Outcome::NotRecoverable) => -libc::ENOTRECOVERABLE,
        Err(error) => -errno(error),
    }
}

/// What came of an attempt: 1, 0, or a negative errno as of [`code`].
fn attempt(outcome: Result<Outcome, SharedError>) -> i32 {
    match outcome {
        Ok(Outcome::Acquired) => 1,
        Err(SharedError::Held) => 0,
        other => code(other),
    }
}

/// 0, or `-EPERM`: the calling thread does not have what it was to release or declare.
fn had(it: bool) -> i32 {
    if it { 0 } else { -libc::EPERM }
}

/// What an error is called in C. What is not of the moment has its reason told.
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

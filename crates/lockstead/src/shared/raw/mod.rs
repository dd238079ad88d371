//! Segments and their locks without types: for other languages, and for programs that
//! know at run time only what they share.
//!
//! # Role
//! What [`Segment`](super::Segment) and the locks with their data do, without the data and
//! without guards: who takes a lock says itself when it gives it back. The library for C
//! and C++ stands on this.
//!
//! A lock may lie at any multiple of 8 in a segment's root; zeroes are a free one. What is
//! called at another place fails with [`SharedError::NotInSegment`](super::SharedError).
//! The types here have the words of those with data, in the same order: a
//! [`SharedMutex<T>`](super::SharedMutex) begins with a [`RawMutex`].
//!
//! Each call finds out who the calling thread is, so that a forked child, and a thread
//! that does not hold the lock, release nothing: those calls say false.
//!
//! ```
//! use lockstead::shared::raw::{Form, RawOutcome, RawMutex, RawSegment};
//! use lockstead::shared::SegmentOptions;
//!
//! let segment = RawSegment::memfd("raw", &SegmentOptions::new(), &Form::unknown(4096), |_| ())?;
//! // SAFETY: in the root, at a multiple of 8, and used as a mutex by all who use it.
//! let mutex = unsafe { segment.root().cast::<RawMutex>().as_ref() };
//! assert_eq!(mutex.lock(&lockstead_core::WaitBounds::FOREVER)?, RawOutcome::Acquired);
//! assert!(mutex.unlock());
//! assert!(!mutex.unlock());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod condvar;
mod mutex;
mod rwlock;
mod segment;
mod semaphore;

pub use super::form::{Form, UNKNOWN};
pub use condvar::{RawCondvar, RawWaited};
pub use mutex::{RawMutex, releases_by_the_word};
pub use rwlock::RawRwLock;
pub use segment::RawSegment;
pub use semaphore::RawSemaphore;

use super::error::SharedError;
use super::mutex::AcquisitionEnd;

/// A lock as it was got. See [`Locked`](super::Locked).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[must_use]
pub enum RawOutcome {
    /// The caller has it, as its last owner left it.
    Acquired,
    /// The caller has it, and its last owner died: to be declared consistent before it is
    /// released, or it is not recoverable.
    OwnerDied,
    /// Nobody has it, and nobody will.
    NotRecoverable,
}

impl RawOutcome {
    fn of(end: AcquisitionEnd, error: SharedError) -> Result<RawOutcome, SharedError> {
        match end {
            AcquisitionEnd::Clean => Ok(RawOutcome::Acquired),
            AcquisitionEnd::OwnerDied => Ok(RawOutcome::OwnerDied),
            AcquisitionEnd::NotRecoverable => Ok(RawOutcome::NotRecoverable),
            AcquisitionEnd::Failed => Err(error),
        }
    }
}

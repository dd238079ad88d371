//! What can go wrong with segments and their locks, and what to do then.

use core::fmt;
use lockstead_linux::shared::JoinError;
use std::io;

/// The reason for which a segment could not be made or opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum SegmentError {
    /// The system refused to do something.
    Io {
        /// The step that the system refused.
        doing: &'static str,
        /// The error that the system returned.
        error: io::Error,
    },
    /// It is not a plain file.
    NotAFile,
    /// It does not begin as a segment does.
    NotASegment,
    /// It was made in a format that this program does not know.
    Version {
        /// The version of the file.
        found: u32,
    },
    /// It was made on a machine of the other byte order.
    ByteOrder,
    /// It is shorter, or longer, than it was made.
    Truncated {
        /// The length with which it was made.
        should: u64,
        /// The length that it has now.
        is: u64,
    },
    /// The file does not make sense, for this reason.
    Damaged(&'static str),
    /// It was made for another type of root.
    OtherRoot {
        /// The place where the two differ first.
        difference: String,
    },
    /// There is no segment with such options; the text says what they may be.
    Options(&'static str),
    /// The process could not attach to it.
    Attach(AttachError),
}

pub use lockstead_linux::shared::AttachError;

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SegmentError::Io { doing, error } => write!(f, "{doing}: {error}"),
            SegmentError::NotAFile => f.write_str(
                "not a plain file: give the path of one that `Segment::create` has made",
            ),
            SegmentError::NotASegment => f.write_str(
                "not a segment: it does not begin as one; give the path of a file that \
                 `Segment::create` has made",
            ),
            SegmentError::Version { found } => write!(
                f,
                "a segment of version {found}, and this program knows version {}: build all \
                 programs that share it with the same version of lockstead, and make it anew",
                super::header::VERSION
            ),
            SegmentError::ByteOrder => f.write_str(
                "made on a machine of the other byte order: segments are for one machine, make \
                 one here",
            ),
            SegmentError::Truncated { should, is } => write!(
                f,
                "the file has {is} bytes and was made with {should}: it was cut or copied \
                 badly; remove it and make it anew"
            ),
            SegmentError::Damaged(what) => {
                write!(f, "damaged: {what}; remove the file and make it anew")
            }
            SegmentError::OtherRoot { difference } => write!(
                f,
                "made for another type of root: {difference}; build all programs that share it \
                 from the same source, and make it anew if the type has changed"
            ),
            SegmentError::Options(what) => write!(f, "no such segment: {what}"),
            SegmentError::Attach(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SegmentError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SegmentError::Io { error, .. } => Some(error),
            SegmentError::Attach(error) => Some(error),
            _ => None,
        }
    }
}

/// Gives an error of the system the name of what was being done.
pub(super) fn io(doing: &'static str) -> impl FnOnce(io::Error) -> SegmentError {
    move |error| SegmentError::Io { doing, error }
}

/// The reason for which a lock in a segment was not acquired; the caller holds nothing then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SharedError {
    /// The time was over.
    TimedOut,
    /// A signal handler ran on the thread while it waited.
    Interrupted,
    /// The token of the call was fired. Or this is a child that a signal handler has forked
    /// while its parent waited: it is the parent that waits on.
    Cancelled,
    /// It would have had to wait, and was only tried.
    Held,
    /// The calling thread has it already; or a peer has written so.
    Recursive,
    /// A peer has written over the words of a semaphore, which repairs itself otherwise.
    Spoiled,
    /// The thread has as many permits at once as the segment has claims for each
    /// participant.
    TooManyClaims,
    /// It does not lie in a segment that this process has open.
    NotInSegment,
    /// The calling thread cannot take part in the segment.
    Join(JoinError),
}

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SharedError::TimedOut => {
                "the wait timed out: nothing was acquired; try again, allow more time, or see who \
                 holds the lock (`lockstead shm`)"
            }
            SharedError::Interrupted => {
                "the wait was interrupted by a signal handler: nothing was acquired; act on the \
                 signal, then try again"
            }
            SharedError::Cancelled => {
                "the wait was cancelled by its token: nothing was acquired; abandon the work that \
                 needed it"
            }
            SharedError::Held => "held by somebody else: do something else first, or wait",
            SharedError::Recursive => {
                "the calling thread holds the lock already, and waiting would never end: drop the \
                 first guard before, or pass it down"
            }
            SharedError::Spoiled => {
                "a peer has written over the semaphore: make the segment anew, or repair it with \
                 `lockstead shm --recover`"
            }
            SharedError::TooManyClaims => {
                "the thread has no claim left in this segment: give permits back, or make the \
                 segment with more of them (`Options::claims`)"
            }
            SharedError::NotInSegment => {
                "the lock does not lie in a segment that this process has open: reach it through \
                 `Segment::root`"
            }
            SharedError::Join(error) => return error.fmt(f),
        })
    }
}

impl std::error::Error for SharedError {}

impl From<JoinError> for SharedError {
    fn from(error: JoinError) -> Self {
        SharedError::Join(error)
    }
}

/// The lock is of no use any more: an owner died, and the next one released it without
/// declaring what it protects consistent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NotRecoverable;

impl fmt::Display for NotRecoverable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "not recoverable: a holder died, and who found that out released the lock without \
             repairing what it protects; make the segment anew, or repair it with `lockstead shm \
             --recover`",
        )
    }
}

impl std::error::Error for NotRecoverable {}

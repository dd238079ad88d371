//! What can go wrong with locks over etcd, and what to do then.

use std::fmt;
use std::time::Duration;

/// The reason for which a lock was not acquired, or for which work under it was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClusterError {
    /// There are no such options; the text says what is allowed.
    Options(String),
    /// No endpoint answered in time.
    Unreachable {
        /// What the last one that was tried said.
        last: String,
    },
    /// etcd refused the request.
    Refused {
        /// The code of gRPC: 7 where the user may not, 16 where it is not known.
        code: i64,
        /// The reason that etcd gives.
        message: String,
    },
    /// The session's lease has ended, or may have: nothing that it holds is its own any more.
    Lost(LostBy),
    /// The key by which the lock was held is not there, although the lease may be: somebody has removed
    /// it by force.
    Removed,
    /// Somebody else has the lock.
    Held,
    /// The time for the acquisition was over.
    TimedOut,
    /// A signal handler ran.
    Interrupted,
    /// The token was fired.
    Cancelled,
    /// A dead owner's work was not repaired, and nobody gets the lock until an administrator has put it
    /// in order (`lockstead cluster release --force`).
    NotRecoverable,
    /// A writer died: whoever acquires for writing is told and may repair.
    Inconsistent,
    /// Others use the semaphore with another number of permits.
    Permits {
        /// The number of permits of those that hold or wait.
        theirs: u32,
    },
    /// The work took longer than the lock was certain for: what it did outside of etcd may have met
    /// another owner's, unless it was fenced.
    Late {
        /// The time by which it was late.
        by: Duration,
    },
    /// This host lacks something: what its processes share cannot be used, or there is no further thread.
    Local(String),
}

/// How a session came to lose its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LostBy {
    /// Its deadline passed: no endpoint has renewed the lease, or the process was stopped or suspended.
    Deadline,
    /// etcd says that the lease has ended, or was revoked.
    Ended,
    /// The session was closed.
    Closed,
    /// This is a child of the process that made the session, and has none.
    Forked,
}

impl fmt::Display for ClusterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClusterError::Options(text) => f.write_str(text),
            ClusterError::Unreachable { last } => write!(
                f,
                "no endpoint answered in time; the last one: {last}. Is etcd there, and is it \
                 --endpoints that names it?"
            ),
            ClusterError::Refused { code, message }
                if [7, 16].contains(code) || message.contains("authentication failed") =>
            {
                write!(f, "etcd refused: {message}; give a user that may (--user NAME:PASSWORD)")
            }
            ClusterError::Refused { message, .. } if message.starts_with("CommonName") => write!(
                f,
                "etcd refused: {message}; while users are in use, its gateway takes only certificates \
                 of clients whose subject has no common name"
            ),
            ClusterError::Refused { message, .. } => write!(f, "etcd refused: {message}"),
            ClusterError::Lost(by) => write!(f, "the lock is lost: {by}"),
            ClusterError::Removed => f.write_str("the lock is lost: its key was removed by force"),
            ClusterError::Held => f.write_str("somebody else has the lock"),
            ClusterError::TimedOut => f.write_str("the time to wait for the lock is over"),
            ClusterError::Interrupted => f.write_str("a signal interrupted the wait for the lock"),
            ClusterError::Cancelled => f.write_str("the wait for the lock was cancelled"),
            ClusterError::NotRecoverable => f.write_str(
                "an owner died and nobody repaired what it left; put it in order, then \
                 `lockstead cluster release --force NAME`",
            ),
            ClusterError::Inconsistent => {
                f.write_str("a writer died; acquire the lock for writing, and repair what it left")
            }
            ClusterError::Permits { theirs } => {
                write!(f, "others use this semaphore with {theirs} permits; give the same number")
            }
            ClusterError::Late { by } => {
                write!(f, "the work ended {by:?} after the lock was certain; treat it as lost")
            }
            ClusterError::Local(text) => write!(f, "on this host: {text}"),
        }
    }
}

impl fmt::Display for LostBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LostBy::Deadline => {
                "its lease was not renewed in time (etcd out of reach, or this process stopped)"
            }
            LostBy::Ended => "etcd has ended its lease",
            LostBy::Closed => "the session was closed",
            LostBy::Forked => "this is a child of the process that holds it",
        })
    }
}

impl std::error::Error for ClusterError {}

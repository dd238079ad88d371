//! The reason for which a context did not get a lock.

use core::fmt;

/// The reason for which a context did not get a lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Error {
    /// The context might wait for ever: drop all guards of the context, take this lock by
    /// [`WwMutex::lock_slow`](super::WwMutex::lock_slow), and begin again. The kernel's `-EDEADLK`.
    Deadlock,
    /// The context holds this lock already. The kernel's `-EALREADY`.
    Already,
    /// A signal handler ran while the thread slept for the lock.
    Interrupted,
    /// The deadline passed before the thread had the lock.
    TimedOut,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Deadlock => {
                "an older context is in the way and may wait for this one: drop all guards of this \
                 context, take the lock by lock_slow, then begin again"
            }
            Error::Already => {
                "this context holds the lock already: use the guard that it has, or skip locks \
                 that occur twice"
            }
            Error::Interrupted => {
                "the wait was interrupted by a signal handler: nothing was acquired; act on the \
                 signal, then try again"
            }
            Error::TimedOut => {
                "the wait timed out: nothing was acquired; try again or allow more time"
            }
        })
    }
}

impl std::error::Error for Error {}

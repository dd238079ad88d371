//! What an acquisition brings, when the last owner may have died.

use crate::error::ClusterError;
use crate::hold::Hold;
use std::ops::Deref;

/// The outcome of an acquisition: how the last owner left the lock.
#[must_use = "the lock is released as soon as this is dropped"]
#[derive(Debug)]
pub enum Locked<G: Exclusive> {
    /// The lock is as its last owner left it.
    Acquired(G),
    /// The lease of its last owner ended while it had the lock: what it protects is to be looked at,
    /// repaired, and called consistent.
    OwnerDied(Inconsistent<G>),
    /// Nobody has the lock, and nobody will until an administrator has put things in order.
    NotRecoverable,
}

impl<G: Exclusive> Locked<G> {
    pub(crate) fn new(guard: G, died: bool) -> Self {
        if died { Locked::OwnerDied(Inconsistent(Some(guard))) } else { Locked::Acquired(guard) }
    }

    /// Returns the guard, after `repair` has put in order what a dead owner left. It is not called if
    /// none died.
    ///
    /// # Errors
    /// [`ClusterError::NotRecoverable`]; as a request: what was repaired is not called consistent then.
    ///
    /// # Panics
    /// If `repair` does; the lock is then not recoverable.
    pub fn recover(self, repair: impl FnOnce(&G)) -> Result<G, ClusterError> {
        match self {
            Locked::Acquired(guard) => Ok(guard),
            Locked::OwnerDied(guard) => {
                repair(&guard);
                guard.mark_consistent()
            }
            Locked::NotRecoverable => Err(ClusterError::NotRecoverable),
        }
    }

    /// Returns the guard if no owner died. If one did the lock is released, and not recoverable.
    pub fn acquired(self) -> Option<G> {
        match self {
            Locked::Acquired(guard) => Some(guard),
            Locked::OwnerDied(_) | Locked::NotRecoverable => None,
        }
    }

    /// Tells whether an owner died, now or before.
    #[must_use]
    pub fn is_inconsistent(&self) -> bool {
        !matches!(self, Locked::Acquired(_))
    }
}

/// A guard of a lock whose owner died.
///
/// Dropped without [`mark_consistent`](Self::mark_consistent), also by a panic, it makes the lock not
/// recoverable. A session that loses its lease meanwhile leaves the next owner to be told.
#[must_use = "dropped, it makes the lock not recoverable"]
#[derive(Debug)]
pub struct Inconsistent<G: Exclusive>(Option<G>);

impl<G: Exclusive> Inconsistent<G> {
    /// Says that what the lock protects is in order again.
    ///
    /// # Errors
    /// [`ClusterError::Lost`], [`ClusterError::Removed`]; as a request. The next owner is told then.
    ///
    /// # Panics
    /// Never: the guard is there until this call or the end.
    pub fn mark_consistent(mut self) -> Result<G, ClusterError> {
        let guard = self.0.take().expect("there until the end");
        match guard.hold().mark_consistent() {
            Ok(()) => Ok(guard),
            Err(error) => {
                // Not released in good order: whoever comes next is told. Why that may fail as well is
                // the same.
                let _ = leave(guard);
                Err(error)
            }
        }
    }

    /// Releases the lock so that nobody gets it before an administrator has put things in order, and
    /// says how that went.
    ///
    /// # Errors
    /// As [`MutexGuard::unlock`](crate::MutexGuard::unlock).
    ///
    /// # Panics
    /// Never: the guard is there until this call or the end.
    pub fn give_up(mut self) -> Result<(), ClusterError> {
        self.0.take().expect("there until the end").hold_mut().release(true)
    }

    /// Releases the lock so that the next owner is told in this one's stead.
    ///
    /// # Errors
    /// As a request.
    ///
    /// # Panics
    /// Never: the guard is there until this call or the end.
    pub fn leave_to_the_next(mut self) -> Result<(), ClusterError> {
        leave(self.0.take().expect("there until the end"))
    }
}

/// Takes the place away and leaves the mark.
fn leave<G: Exclusive>(mut guard: G) -> Result<(), ClusterError> {
    guard.hold_mut().leave_marked()
}

impl<G: Exclusive> Deref for Inconsistent<G> {
    type Target = G;

    fn deref(&self) -> &G {
        self.0.as_ref().expect("there until the end")
    }
}

impl<G: Exclusive> Drop for Inconsistent<G> {
    fn drop(&mut self) {
        if let Some(mut guard) = self.0.take() {
            let _ = guard.hold_mut().release(true);
        }
    }
}

/// Guards of locks that one has alone; not for others to implement.
pub trait Exclusive: sealed::Sealed + std::fmt::Debug {}

pub(crate) mod sealed {
    use super::Hold;

    /// Reaches the place that a guard holds.
    pub trait Sealed {
        fn hold(&self) -> &Hold;
        fn hold_mut(&mut self) -> &mut Hold;
    }
}

/// Makes a guard one of those that [`Locked`] gives.
macro_rules! exclusive {
    ($name:ident) => {
        impl $crate::locked::sealed::Sealed for $name {
            fn hold(&self) -> &$crate::hold::Hold {
                &self.hold
            }

            fn hold_mut(&mut self) -> &mut $crate::hold::Hold {
                &mut self.hold
            }
        }

        impl $crate::Exclusive for $name {}
    };
}
pub(crate) use exclusive;

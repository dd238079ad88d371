//! What an acquisition brings, when the last owner may have died.

use super::error::NotRecoverable;
use core::fmt;
use core::ops::{Deref, DerefMut};

/// The outcome of an acquisition: how the last owner left the lock.
///
/// ```
/// use lockstead::shared::{Locked, SegmentOptions, Segment, SharedMutex};
///
/// let segment = Segment::<SharedMutex<[u64; 2]>>::memfd("pair", &SegmentOptions::new())?;
/// let mut pair = match segment.root().lock()? {
///     Locked::Acquired(pair) => pair,
///     Locked::OwnerDied(mut pair) => {
///         // It may have died between the two stores.
///         pair[1] = pair[0];
///         pair.mark_consistent()
///     }
///     Locked::NotRecoverable => panic!("somebody did not repair it"),
/// };
/// pair[0] += 1;
/// pair[1] += 1;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "the lock is released as soon as this is dropped"]
#[derive(Debug)]
pub enum Locked<G> {
    /// The lock is as its last owner left it.
    Acquired(G),
    /// Its last owner died while it had the lock, or found a dead owner's work and
    /// released the lock by dying too: what it protects is to be looked at, repaired,
    /// and declared consistent.
    OwnerDied(Inconsistent<G>),
    /// Nobody has the lock, and nobody will: see [`NotRecoverable`].
    NotRecoverable,
}

impl<G: HeldGuard> Locked<G> {
    /// Returns the guard, after `repair` has put in order what a dead owner left. It is not called
    /// if no owner died.
    ///
    /// # Errors
    /// [`NotRecoverable`].
    ///
    /// # Panics
    /// If `repair` does; the lock is then not recoverable.
    ///
    /// ```
    /// use lockstead::shared::{SegmentOptions, Segment, SharedMutex};
    ///
    /// let segment = Segment::<SharedMutex<[u64; 2]>>::memfd("pair", &SegmentOptions::new())?;
    /// let pair = segment.root().lock()?.recover(|pair| pair[1] = pair[0])?;
    /// assert_eq!(pair[0], pair[1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn recover(self, repair: impl FnOnce(&mut G::Target)) -> Result<G, NotRecoverable> {
        match self {
            Locked::Acquired(guard) => Ok(guard),
            Locked::OwnerDied(mut guard) => {
                repair(&mut guard);
                Ok(guard.mark_consistent())
            }
            Locked::NotRecoverable => Err(NotRecoverable),
        }
    }

    /// Returns the guard, if no owner died. If one did the lock is released, and not recoverable:
    /// for what cannot be repaired.
    ///
    /// ```
    /// use lockstead::shared::{SegmentOptions, Segment, SharedMutex};
    ///
    /// let segment = Segment::<SharedMutex<u64>>::memfd("one", &SegmentOptions::new())?;
    /// let mut number = segment.root().lock()?.acquired().expect("nobody died");
    /// *number += 1;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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

/// A guard of a lock whose owner died. Gives access to what is to be repaired.
///
/// Dropped without [`mark_consistent`](Self::mark_consistent), also by a panic, it makes
/// the lock not recoverable.
#[must_use = "dropped, it makes the lock not recoverable"]
pub struct Inconsistent<G>(G);

impl<G: HeldGuard> Inconsistent<G> {
    pub(super) fn new(guard: G) -> Self {
        Inconsistent(guard)
    }

    /// Declares that what the lock protects is in order again.
    pub fn mark_consistent(self) -> G {
        self.0.mark_consistent(sealed::Ours);
        self.0
    }
}

impl<G: HeldGuard> Deref for Inconsistent<G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.0
    }
}

impl<G: HeldGuard> DerefMut for Inconsistent<G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        self.0.repair(sealed::Ours)
    }
}

impl<G: fmt::Debug> fmt::Debug for Inconsistent<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Inconsistent").field(&self.0).finish()
    }
}

/// Guards that [`Locked`] gives; not for others to implement, and nothing to call.
pub trait HeldGuard: Deref + sealed::Sealed {
    /// Reaches the data of a lock that this guard holds alone.
    #[doc(hidden)]
    fn repair(&mut self, ours: sealed::Ours) -> &mut Self::Target;

    /// Has the lock's word say so.
    #[doc(hidden)]
    fn mark_consistent(&self, ours: sealed::Ours);
}

pub(super) mod sealed {
    pub trait Sealed {}

    /// A token for the calls that only this module makes: nobody else can name its type, or a
    /// reader could change the data through its guard.
    #[derive(Clone, Copy, Debug)]
    pub struct Ours;
}

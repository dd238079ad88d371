//! Doing something once, with a state that can be looked at.

use core::fmt;

/// How far a [`Once`] has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnceState {
    /// No initialiser has begun.
    New,
    /// The last initialiser panicked.
    Poisoned,
    /// A thread runs an initialiser.
    InProgress,
    /// An initialiser has ended well.
    Done,
}

impl OnceState {
    /// Tells whether the last initialiser panicked.
    #[inline]
    #[must_use]
    pub fn poisoned(self) -> bool {
        self == OnceState::Poisoned
    }

    /// Tells whether an initialiser has ended well.
    #[inline]
    #[must_use]
    pub fn done(self) -> bool {
        self == OnceState::Done
    }
}

/// Something that is done once: [`crate::Once`] with parking_lot's names.
///
/// ```
/// use lockstead::parking_lot::{Once, OnceState};
///
/// static SETUP: Once = Once::new();
/// assert_eq!(SETUP.state(), OnceState::New);
/// SETUP.call_once(|| println!("once"));
/// SETUP.call_once_force(|_| unreachable!("it is done"));
/// assert!(SETUP.state().done());
/// ```
#[derive(Default)]
pub struct Once {
    once: crate::Once,
}

impl Once {
    /// Creates a once of which nothing is done yet.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Once { once: crate::Once::new() }
    }

    /// Returns how far it has come, at some moment during the call.
    #[inline]
    #[must_use]
    pub fn state(&self) -> OnceState {
        match self.once.raw().state() {
            lockstead_core::OnceState::Incomplete => OnceState::New,
            lockstead_core::OnceState::Running(_) => OnceState::InProgress,
            lockstead_core::OnceState::Complete => OnceState::Done,
            lockstead_core::OnceState::Poisoned => OnceState::Poisoned,
        }
    }

    /// Runs `f`, unless that was done; waits if another thread is at it.
    ///
    /// # Panics
    /// As [`crate::Once`], also if an earlier initialiser panicked.
    #[inline]
    #[track_caller]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        self.once.call_once(f);
    }

    /// Does what [`call_once`](Self::call_once) does, but runs `f` also when an earlier initialiser
    /// panicked, and tells it.
    ///
    /// # Panics
    /// On recursion and on a runner lost in `fork`.
    #[inline]
    #[track_caller]
    pub fn call_once_force<F: FnOnce(OnceState)>(&self, f: F) {
        self.once.call_once_force(|poisoned| {
            f(if poisoned { OnceState::Poisoned } else { OnceState::New });
        });
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("state", &self.state()).finish()
    }
}

//! What is done once.

use ::std::fmt;
use ::std::sync::{self, OnceState};
use lockstead_told::home::Home;
use lockstead_told::once::Turn;

/// A [`std::sync::Once`](::std::sync::Once) that tells of its use.
#[repr(C)]
pub struct Once {
    home: Home,
    inner: sync::Once,
}

/// A once that nobody has done.
#[deprecated(note = "the `Once::new()` function is now preferred")]
#[allow(clippy::declare_interior_mutable_const)]
pub const ONCE_INIT: Once = Once::new();

impl Once {
    /// Creates a once that nobody has done.
    #[inline]
    #[must_use]
    #[expect(clippy::new_without_default, reason = "the standard library's has no default")]
    pub const fn new() -> Once {
        Once { home: Home::new(), inner: sync::Once::new() }
    }

    /// Calls `f` if nobody has done so, and waits for whoever is doing it.
    ///
    /// # Panics
    /// If another call of an `f` has panicked.
    #[inline]
    #[track_caller]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        let turn = Turn::of(&self.home);
        turn.begins(self.inner.is_completed());
        self.inner.call_once(|| turn.initialises(f));
    }

    /// Calls `f` if nobody has done so to its end, and waits for whoever is doing it.
    #[inline]
    pub fn call_once_force<F: FnOnce(&OnceState)>(&self, f: F) {
        let turn = Turn::of(&self.home);
        turn.begins(self.inner.is_completed());
        self.inner.call_once_force(|state| turn.initialises(|| f(state)));
    }

    /// Tells whether it was done.
    #[inline]
    pub fn is_completed(&self) -> bool {
        self.inner.is_completed()
    }

    /// Waits until somebody has done it.
    ///
    /// # Panics
    /// If whoever did it has panicked.
    pub fn wait(&self) {
        self.inner.wait();
    }

    /// Waits until somebody has done it to its end.
    pub fn wait_force(&self) {
        self.inner.wait_force();
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

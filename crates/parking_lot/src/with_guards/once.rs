//! What is done once.

use crate::telling;
use lockstead_told::once::Turn;
use real::OnceState;
use std::{fmt, ptr};

/// A once that tells of its use.
pub struct Once(real::Once);

impl Once {
    /// Creates a once that nobody has done.
    #[inline]
    #[must_use]
    pub const fn new() -> Once {
        Once(real::Once::new())
    }

    fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Returns how far it is done.
    #[inline]
    pub fn state(&self) -> OnceState {
        self.0.state()
    }

    /// Calls `f` if nobody has done so, and waits for whoever is doing it.
    ///
    /// # Panics
    /// If another call of an `f` has panicked.
    #[inline]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        let turn = Turn::of(self.address());
        turn.begins(self.0.state().done());
        self.0.call_once(|| turn.initialises(f));
    }

    /// Calls `f` if nobody has done so to its end, and waits for whoever is doing it.
    #[inline]
    pub fn call_once_force<F: FnOnce(OnceState)>(&self, f: F) {
        let turn = Turn::of(self.address());
        turn.begins(self.0.state().done());
        self.0.call_once_force(|state| turn.initialises(|| f(state)));
    }

    /// Creates a once that is done.
    #[inline]
    #[must_use]
    pub const fn new_completed() -> Once {
        Once(real::Once::new_completed())
    }

    /// Tells whether it was done.
    #[inline]
    pub fn is_completed(&self) -> bool {
        self.0.is_completed()
    }

    /// Waits until somebody has done it.
    ///
    /// # Panics
    /// If whoever did it has panicked.
    pub fn wait(&self) {
        self.0.wait();
    }

    /// Waits until somebody has done it to its end.
    pub fn wait_force(&self) {
        self.0.wait_force();
    }
}

impl Default for Once {
    #[inline]
    fn default() -> Once {
        Once::new()
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Drop for Once {
    #[inline]
    fn drop(&mut self) {
        telling::dies(self);
    }
}

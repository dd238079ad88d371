//! What is done once.

use crate::telling;
use lockstead_told::once::Turn;
use real_0_12::OnceState;
use std::{fmt, ptr};

/// A once that tells of its use.
pub struct Once(real_0_12::Once);

impl Once {
    /// Creates a once that nobody has done.
    #[inline]
    #[must_use]
    pub const fn new() -> Once {
        Once(real_0_12::Once::new())
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

//! What is done once.

use lockstead_told::home::Home;
use lockstead_told::once::Turn;
use real_0_12::OnceState;
use std::fmt;

/// A once that tells of its use.
#[repr(C)]
pub struct Once(Home, real_0_12::Once);

impl Once {
    /// Creates a once that nobody has done.
    #[inline]
    #[must_use]
    pub const fn new() -> Once {
        Once(Home::new(), real_0_12::Once::new())
    }

    fn turn(&self) -> Turn {
        Turn::of(&self.0)
    }

    /// Returns how far it is done.
    #[inline]
    pub fn state(&self) -> OnceState {
        self.1.state()
    }

    /// Calls `f` if nobody has done so, and waits for whoever is doing it.
    ///
    /// # Panics
    /// If another call of an `f` has panicked.
    #[inline]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        let turn = self.turn();
        turn.begins(self.1.state().done());
        self.1.call_once(|| turn.initialises(f));
    }

    /// Calls `f` if nobody has done so to its end, and waits for whoever is doing it.
    #[inline]
    pub fn call_once_force<F: FnOnce(OnceState)>(&self, f: F) {
        let turn = self.turn();
        turn.begins(self.1.state().done());
        self.1.call_once_force(|state| turn.initialises(|| f(state)));
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
        self.1.fmt(f)
    }
}

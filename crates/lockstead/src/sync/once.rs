//! Doing something once, with a state for the initialiser.

/// Tells an initialiser whether an earlier one panicked.
#[derive(Debug)]
pub struct OnceState {
    poisoned: bool,
}

impl OnceState {
    /// Tells whether an earlier initialiser panicked.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.poisoned
    }
}

/// Something that is done once: [`crate::Once`] with the signatures of [`std::sync::Once`].
///
/// ```
/// use lockstead::sync::Once;
///
/// static SETUP: Once = Once::new();
/// SETUP.call_once_force(|state| assert!(!state.is_poisoned()));
/// assert!(SETUP.is_completed());
/// ```
#[derive(Debug)]
pub struct Once {
    once: crate::Once,
}

impl Once {
    /// Creates a once of which nothing is done yet.
    #[expect(clippy::new_without_default, reason = "std's has no default either")]
    #[must_use]
    pub const fn new() -> Self {
        Once { once: crate::Once::new() }
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
    pub fn call_once_force<F: FnOnce(&OnceState)>(&self, f: F) {
        self.once.call_once_force(|state| f(&OnceState { poisoned: state.poisoned() }));
    }

    /// Tells whether the initialiser has run; what it wrote can be read then.
    #[inline]
    #[must_use]
    pub fn is_completed(&self) -> bool {
        self.once.is_completed()
    }
}

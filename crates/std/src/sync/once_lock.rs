//! The value that is written once.

use ::std::fmt;
use ::std::sync;
use lockstead_told::home::Home;
use lockstead_told::once::Turn;

/// A [`std::sync::OnceLock`](::std::sync::OnceLock) that tells of its use.
#[repr(C)]
pub struct OnceLock<T> {
    home: Home,
    inner: sync::OnceLock<T>,
}

impl<T> OnceLock<T> {
    /// Creates one that has no value.
    #[inline]
    #[must_use]
    pub const fn new() -> OnceLock<T> {
        OnceLock { home: Home::new(), inner: sync::OnceLock::new() }
    }

    /// Returns the value, if it is there.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.inner.get()
    }

    /// Returns the value, if it is there, for changing it.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.inner.get_mut()
    }

    /// Waits until somebody has written the value.
    #[inline]
    pub fn wait(&self) -> &T {
        self.inner.wait()
    }

    /// Writes the value.
    ///
    /// # Errors
    /// If it was written before, with `value`.
    #[inline]
    pub fn set(&self, value: T) -> Result<(), T> {
        self.inner.set(value)
    }

    /// Returns the value; if there is none, the one that `f` returns, or another thread's `f`.
    #[inline]
    pub fn get_or_init<F: FnOnce() -> T>(&self, f: F) -> &T {
        let turn = Turn::of(&self.home);
        turn.begins(self.inner.get().is_some());
        self.inner.get_or_init(|| turn.initialises(f))
    }

    /// Returns the value, if there is one.
    #[inline]
    pub fn into_inner(self) -> Option<T> {
        self.inner.into_inner()
    }

    /// Takes the value out, if there is one.
    #[inline]
    pub fn take(&mut self) -> Option<T> {
        self.inner.take()
    }
}

impl<T> Default for OnceLock<T> {
    #[inline]
    fn default() -> OnceLock<T> {
        OnceLock::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T: Clone> Clone for OnceLock<T> {
    fn clone(&self) -> OnceLock<T> {
        OnceLock { home: Home::new(), inner: self.inner.clone() }
    }
}

impl<T> From<T> for OnceLock<T> {
    fn from(value: T) -> OnceLock<T> {
        OnceLock { home: Home::new(), inner: value.into() }
    }
}

impl<T: PartialEq> PartialEq for OnceLock<T> {
    #[inline]
    fn eq(&self, other: &OnceLock<T>) -> bool {
        self.inner == other.inner
    }
}

impl<T: Eq> Eq for OnceLock<T> {}

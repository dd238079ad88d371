//! Data that is made when it is first looked at.

use crate::OnceLock;
use core::cell::Cell;
use core::fmt;
use core::ops::Deref;

/// Data that its initialiser makes when it is first looked at: [`std::sync::LazyLock`] over
/// [`OnceLock`].
///
/// If the initialiser panics, the value is lost: every later look panics.
///
/// # Panics
/// Looking at the value panics, rather than hang, inside the initialiser, and when the thread that ran it
/// was left behind by `fork`.
///
/// # Example
/// ```
/// use lockstead::LazyLock;
///
/// static WORDS: LazyLock<Vec<&str>> = LazyLock::new(|| "to be or not".split(' ').collect());
/// assert_eq!(WORDS.len(), 4);
/// ```
pub struct LazyLock<T, F = fn() -> T> {
    cell: OnceLock<T>,
    /// Taken by the thread that runs it, which `cell` makes sure is one.
    init: Cell<Option<F>>,
}

// SAFETY: threads share `&T`, as of `OnceLock`; the initialiser is moved to the thread that runs it,
// and touched by that alone.
unsafe impl<T: Send + Sync, F: Send> Sync for LazyLock<T, F> {}

impl<T, F: FnOnce() -> T> LazyLock<T, F> {
    /// Creates data that `init` will make.
    pub const fn new(init: F) -> Self {
        LazyLock { cell: OnceLock::new(), init: Cell::new(Some(init)) }
    }

    /// Makes the data if nobody has, and returns it.
    ///
    /// # Panics
    /// See the type.
    ///
    /// ```
    /// use lockstead::LazyLock;
    ///
    /// let answer = LazyLock::new(|| 42);
    /// assert_eq!(LazyLock::force(&answer), &42);
    /// ```
    #[inline]
    #[track_caller]
    pub fn force(this: &Self) -> &T {
        this.cell.get_or_init(|| match this.init.take() {
            Some(init) => init(),
            None => panic!("poisoned: the initialiser of this LazyLock has panicked"),
        })
    }
}

impl<T, F: FnOnce() -> T> Deref for LazyLock<T, F> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        LazyLock::force(self)
    }
}

impl<T: Default> Default for LazyLock<T> {
    fn default() -> Self {
        LazyLock::new(T::default)
    }
}

/// Shows the data if it has been made; makes nothing.
impl<T: fmt::Debug, F> fmt::Debug for LazyLock<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_tuple("LazyLock");
        match self.cell.get() {
            Some(value) => out.field(value),
            None => out.field(&format_args!("<uninit>")),
        };
        out.finish()
    }
}

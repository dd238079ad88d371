//! Doing something once, and data that is made once.
//!
//! # Invariants
//! - **ONCE-WRITTEN** Only the thread that runs the initialiser touches the value, until the once
//!   is completed; then it is initialised, and nobody writes it through a shared reference.

use crate::error::{Cancelled, Interrupted, TimedOut};
use crate::refusal::refuse_once;
use crate::{CancelToken, time};
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use lockstead_core::{LockError, OnceError, RawOnce, WaitBounds};
use lockstead_linux::Linux;
use std::time::Duration;

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

/// Something that is done once: the first caller runs the initialiser, the
/// others wait for it. 4 bytes, one load when it is done.
///
/// # Panics
/// Every call panics, rather than hang, when made from inside the initialiser,
/// and when the thread that ran the initialiser was left behind by `fork`. When
/// an initialiser panicked, later calls panic too, except
/// [`call_once_force`](Self::call_once_force).
///
/// # Example
/// ```
/// use lockstead::Once;
///
/// static SETUP: Once = Once::new();
/// for _ in 0..2 {
///     SETUP.call_once(|| println!("once"));
/// }
/// assert!(SETUP.is_completed());
/// ```
pub struct Once {
    raw: RawOnce<Linux>,
}

impl Once {
    /// Creates a once of which nothing is done yet.
    #[must_use]
    pub const fn new() -> Self {
        Once { raw: RawOnce::new() }
    }

    /// Tells whether the initialiser has run; what it wrote can be read then.
    #[inline]
    #[must_use]
    pub fn is_completed(&self) -> bool {
        self.raw.is_completed()
    }

    /// Returns how far it has come, at some moment during the call.
    ///
    /// ```
    /// use lockstead::{Once, OnceState};
    ///
    /// let once = Once::new();
    /// assert_eq!(once.state(), OnceState::New);
    /// once.call_once(|| {});
    /// assert!(once.state().done());
    /// ```
    #[inline]
    #[must_use]
    pub fn state(&self) -> OnceState {
        match self.raw.state() {
            lockstead_core::OnceState::Incomplete => OnceState::New,
            lockstead_core::OnceState::Running(_) => OnceState::InProgress,
            lockstead_core::OnceState::Complete => OnceState::Done,
            lockstead_core::OnceState::Poisoned => OnceState::Poisoned,
        }
    }

    /// Runs `f`, unless that was done; waits if another thread is at it.
    ///
    /// # Panics
    /// See the type.
    #[inline]
    #[track_caller]
    pub fn call_once(&self, f: impl FnOnce()) {
        if !self.is_completed() {
            self.settle(self.raw.call_once(&WaitBounds::FOREVER, f));
        }
    }

    /// Does what [`call_once`](Self::call_once) does, but runs `f` also when an earlier initialiser
    /// panicked, and tells it: the state is `New` or `Poisoned`.
    ///
    /// # Panics
    /// On recursion and on a runner lost in `fork`.
    #[inline]
    #[track_caller]
    pub fn call_once_force(&self, f: impl FnOnce(OnceState)) {
        if !self.is_completed() {
            let f = |poisoned| f(if poisoned { OnceState::Poisoned } else { OnceState::New });
            self.settle(self.raw.call_once_force(&WaitBounds::FOREVER, f));
        }
    }

    /// Does what [`call_once`](Self::call_once) does, but waits for another thread's initialiser at
    /// most `timeout`. Its own it runs to the end.
    ///
    /// # Errors
    /// [`TimedOut`]: the other's initialiser still runs, `f` was not called.
    ///
    /// # Panics
    /// See the type.
    #[track_caller]
    pub fn call_once_timeout(&self, timeout: Duration, f: impl FnOnce()) -> Result<(), TimedOut> {
        match self.raw.call_once(&time::within(timeout), f) {
            Err(OnceError::NotAwaited(LockError::TimedOut)) => Err(TimedOut),
            other => {
                self.settle(other);
                Ok(())
            }
        }
    }

    /// Does what [`call_once`](Self::call_once) does, unless a signal handler runs while the thread
    /// sleeps for another's initialiser.
    ///
    /// # Errors
    /// [`Interrupted`]: a handler ran, `f` was not called.
    ///
    /// # Panics
    /// See the type.
    #[track_caller]
    pub fn call_once_interruptible(&self, f: impl FnOnce()) -> Result<(), Interrupted> {
        match self.raw.call_once(&time::INTERRUPTIBLE, f) {
            Err(OnceError::NotAwaited(LockError::Interrupted)) => Err(Interrupted),
            other => {
                self.settle(other);
                Ok(())
            }
        }
    }

    /// Does what [`call_once`](Self::call_once) does, unless `token` is fired while another
    /// thread's initialiser runs.
    ///
    /// # Errors
    /// [`Cancelled`]: the token was fired, `f` was not called.
    ///
    /// # Panics
    /// See the type.
    #[track_caller]
    pub fn call_once_killable(
        &self,
        token: &CancelToken,
        f: impl FnOnce(),
    ) -> Result<(), Cancelled> {
        match self.raw.call_once(&token.wait(), f) {
            Err(OnceError::NotAwaited(LockError::Cancelled)) => Err(Cancelled),
            other => {
                self.settle(other);
                Ok(())
            }
        }
    }

    #[track_caller]
    fn settle(&self, outcome: Result<(), OnceError>) {
        if let Err(error) = outcome {
            refuse_once(error, core::ptr::from_ref(self).addr(), "()");
        }
    }
}

impl Default for Once {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Once({:?})", self.raw.state())
    }
}

/// Data that is made once, by the first thread that asks for it.
///
/// An initialiser that panics leaves the cell empty, and the next caller runs
/// its own.
///
/// # Panics
/// [`get_or_init`](Self::get_or_init) and [`set`](Self::set) panic, rather than
/// hang, when called from inside the initialiser, and when the thread that ran
/// it was left behind by `fork`.
///
/// # Example
/// ```
/// use lockstead::OnceLock;
///
/// static CONFIG: OnceLock<String> = OnceLock::new();
/// assert!(CONFIG.get().is_none());
/// assert_eq!(CONFIG.get_or_init(|| "first".into()), "first");
/// assert_eq!(CONFIG.get_or_init(|| "second".into()), "first");
/// assert_eq!(CONFIG.set("third".into()), Err("third".into()));
/// ```
pub struct OnceLock<T> {
    once: RawOnce<Linux>,
    /// The data, initialised exactly if `once` is completed; then never written through a shared
    /// reference.
    value: UnsafeCell<MaybeUninit<T>>,
    owns: PhantomData<T>,
}

// SAFETY: ONCE-WRITTEN: threads share `&T` once it is made (Sync), and one may have made it for
// another to drop (Send).
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}

impl<T> OnceLock<T> {
    /// Creates an empty cell.
    #[must_use]
    pub const fn new() -> Self {
        OnceLock {
            once: RawOnce::new(),
            value: UnsafeCell::new(MaybeUninit::uninit()),
            owns: PhantomData,
        }
    }

    /// Returns the data, if it has been made. Never waits.
    #[inline]
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: ONCE-WRITTEN: the once is completed, so the value is initialised and only read.
        self.once.is_completed().then(|| unsafe { (*self.value.get()).assume_init_ref() })
    }

    /// Returns the data, if it has been made.
    #[must_use]
    pub fn get_mut(&mut self) -> Option<&mut T> {
        // SAFETY: ONCE-WRITTEN: the once is completed; the cell is borrowed exclusively.
        self.once.is_completed().then(|| unsafe { self.value.get_mut().assume_init_mut() })
    }

    /// Returns the data; made by `f` if nobody has. Waits if another thread is at it.
    ///
    /// # Panics
    /// On recursion and on a runner lost in `fork`, and if `f` does.
    #[inline]
    #[track_caller]
    pub fn get_or_init(&self, f: impl FnOnce() -> T) -> &T {
        if let Some(value) = self.get() {
            return value;
        }
        self.init(f);
        self.get().expect("the initialiser has run")
    }

    /// Puts `value` in, if the cell is empty. Waits if another thread is about
    /// to fill it.
    ///
    /// # Errors
    /// `value`, if the cell was full.
    ///
    /// # Panics
    /// On recursion and on a runner lost in `fork`.
    #[track_caller]
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        if self.get().is_none() {
            self.init(|| value.take().expect("called once"));
        }
        value.map_or(Ok(()), Err)
    }

    /// Returns the data, if it has been made.
    #[must_use]
    pub fn into_inner(mut self) -> Option<T> {
        self.take()
    }

    /// Empties the cell and returns what was in it.
    pub fn take(&mut self) -> Option<T> {
        let once = core::mem::take(&mut self.once);
        // SAFETY: ONCE-WRITTEN: the once is completed; the cell is empty from now on, so the data
        // is read out once.
        once.is_completed().then(|| unsafe { self.value.get_mut().assume_init_read() })
    }

    #[cold]
    #[track_caller]
    fn init(&self, f: impl FnOnce() -> T) {
        let outcome = self.once.call_once_force(&WaitBounds::FOREVER, |_| {
            let value = f();
            // SAFETY: ONCE-WRITTEN: this is the one runner.
            unsafe { (*self.value.get()).write(value) };
        });
        if let Err(error) = outcome {
            refuse_once(error, core::ptr::from_ref(self).addr(), core::any::type_name::<T>());
        }
    }
}

impl<T> Drop for OnceLock<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<T> for OnceLock<T> {
    fn from(value: T) -> Self {
        let cell = Self::new();
        assert!(cell.set(value).is_ok(), "a new cell is empty");
        cell
    }
}

/// Shows the data if it has been made; never waits.
impl<T: fmt::Debug> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_tuple("OnceLock");
        match self.get() {
            Some(value) => out.field(value),
            None => out.field(&format_args!("<empty>")),
        };
        out.finish()
    }
}

//! The value that its first user computes.
//!
//! # State
//! The standard library's cannot be had inside: what computes the value is a part of its type, and
//! nobody but the compiler makes functions. So this is one of the same size, over its `Once`. Before
//! that is completed the data is the function, afterwards the value; if the function has panicked, the
//! once is poisoned and the data is neither.

use ::std::cell::UnsafeCell;
use ::std::fmt;
use ::std::mem::ManuallyDrop;
use ::std::ops::{Deref, DerefMut};
use ::std::panic::{RefUnwindSafe, UnwindSafe};
use ::std::sync::Once;
use lockstead_told::home::Home;
use lockstead_told::once::Turn;

union Data<T, F> {
    value: ManuallyDrop<T>,
    function: ManuallyDrop<F>,
}

/// A [`std::sync::LazyLock`](::std::sync::LazyLock) that tells of its use.
#[repr(C)]
pub struct LazyLock<T, F = fn() -> T> {
    home: Home,
    once: Once,
    data: UnsafeCell<Data<T, F>>,
}

// SAFETY: the data is written by one thread, before the once is completed, and then only read, by
// references to `T`; the function is called or dropped by one thread, which may be another one than
// has made it.
unsafe impl<T: Sync + Send, F: Send> Sync for LazyLock<T, F> {}
impl<T: RefUnwindSafe + UnwindSafe, F: UnwindSafe> RefUnwindSafe for LazyLock<T, F> {}
impl<T: UnwindSafe, F: UnwindSafe> UnwindSafe for LazyLock<T, F> {}

impl<T, F: FnOnce() -> T> LazyLock<T, F> {
    /// Creates one whose value `f` computes for its first user.
    #[inline]
    pub const fn new(f: F) -> LazyLock<T, F> {
        let data = UnsafeCell::new(Data { function: ManuallyDrop::new(f) });
        LazyLock { home: Home::new(), once: Once::new(), data }
    }

    /// Returns the value, which the first caller computes while others wait.
    ///
    /// # Panics
    /// If the function panics, or has panicked before.
    #[inline]
    #[track_caller]
    pub fn force(this: &LazyLock<T, F>) -> &T {
        let turn = Turn::of(&this.home);
        turn.begins(this.once.is_completed());
        this.once.call_once_force(|state| {
            if state.is_poisoned() {
                panic!("LazyLock instance has previously been poisoned");
            }
            // SAFETY: the once lets one thread in here, once, and nobody else looks at the data
            // before it is completed. The function is taken out and never again.
            let function = unsafe { ManuallyDrop::take(&mut (*this.data.get()).function) };
            let value = turn.initialises(function);
            // SAFETY: as above; what the function was is moved out.
            unsafe { (*this.data.get()).value = ManuallyDrop::new(value) };
        });
        // SAFETY: the once is completed, so that the data is the value, and stays so.
        unsafe { &(*this.data.get()).value }
    }

    /// Returns the value for changing it, which the first caller computes.
    ///
    /// # Panics
    /// As [`force`](Self::force).
    #[inline]
    #[track_caller]
    pub fn force_mut(this: &mut LazyLock<T, F>) -> &mut T {
        LazyLock::force(this);
        // SAFETY: the once is completed, so that the data is the value, and nobody else has it.
        unsafe { &mut this.data.get_mut().value }
    }
}

impl<T, F> LazyLock<T, F> {
    /// Returns the value, if it was computed.
    #[inline]
    pub fn get(this: &LazyLock<T, F>) -> Option<&T> {
        // SAFETY: the once is completed, so that the data is the value, and stays so.
        this.once.is_completed().then(|| unsafe { &*(*this.data.get()).value })
    }

    /// Returns the value for changing it, if it was computed.
    #[inline]
    pub fn get_mut(this: &mut LazyLock<T, F>) -> Option<&mut T> {
        // SAFETY: the once is completed, so that the data is the value, and nobody else has it.
        this.once.is_completed().then(|| unsafe { &mut *this.data.get_mut().value })
    }
}

impl<T, F> Drop for LazyLock<T, F> {
    fn drop(&mut self) {
        if self.once.is_completed() {
            // SAFETY: the data is the value, which nobody looks at any more.
            return unsafe { ManuallyDrop::drop(&mut self.data.get_mut().value) };
        }
        let mut poisoned = false;
        self.once.call_once_force(|state| poisoned = state.is_poisoned());
        if !poisoned {
            // SAFETY: nobody has called the function, so that the data is the function.
            unsafe { ManuallyDrop::drop(&mut self.data.get_mut().function) };
        }
    }
}

impl<T, F: FnOnce() -> T> Deref for LazyLock<T, F> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        LazyLock::force(self)
    }
}

impl<T, F: FnOnce() -> T> DerefMut for LazyLock<T, F> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        LazyLock::force_mut(self)
    }
}

impl<T: Default> Default for LazyLock<T> {
    #[inline]
    fn default() -> LazyLock<T> {
        LazyLock::new(T::default)
    }
}

impl<T: fmt::Debug, F> fmt::Debug for LazyLock<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tuple = f.debug_tuple("LazyLock");
        match LazyLock::get(self) {
            Some(value) => tuple.field(value),
            None => tuple.field(&format_args!("<uninit>")),
        };
        tuple.finish()
    }
}

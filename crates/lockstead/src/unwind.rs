//! What a panic may leave behind: these locks are as safe to use after one as those of `std`.
//!
//! `std` says of its mutex and its reader-writer lock that they are unwind-safe whatever is inside,
//! because a panic poisons them. Those here that are not poisoned promise less, and are called safe
//! all the same: code that moves over compiles, and a lock that a panic has released is whole; only what it
//! guards may be half done, as after any early return. `parking_lot`'s are not.

use crate::{Condvar, Hooks, LazyLock, Mutex, Once, OnceLock, RwLock, poison};
use std::panic::{RefUnwindSafe, UnwindSafe};

impl<T: ?Sized, H: Hooks> UnwindSafe for Mutex<T, H> {}
impl<T: ?Sized, H: Hooks> RefUnwindSafe for Mutex<T, H> {}
impl<T: ?Sized, H: Hooks> UnwindSafe for RwLock<T, H> {}
impl<T: ?Sized, H: Hooks> RefUnwindSafe for RwLock<T, H> {}
impl<T: ?Sized> UnwindSafe for poison::Mutex<T> {}
impl<T: ?Sized> RefUnwindSafe for poison::Mutex<T> {}
impl<T: ?Sized> UnwindSafe for poison::RwLock<T> {}
impl<T: ?Sized> RefUnwindSafe for poison::RwLock<T> {}
impl UnwindSafe for Condvar {}
impl RefUnwindSafe for Condvar {}
impl UnwindSafe for Once {}
impl RefUnwindSafe for Once {}
impl<T: UnwindSafe> UnwindSafe for OnceLock<T> {}
impl<T: RefUnwindSafe + UnwindSafe> RefUnwindSafe for OnceLock<T> {}
impl<T: UnwindSafe, F: UnwindSafe> UnwindSafe for LazyLock<T, F> {}
impl<T: RefUnwindSafe + UnwindSafe, F: UnwindSafe> RefUnwindSafe for LazyLock<T, F> {}

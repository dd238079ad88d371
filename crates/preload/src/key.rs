//! Holds the library's own key of thread-specific values: by its destructor the library
//! learns that a thread ends. [`interpose::keys`](crate::interpose::keys) makes it, and lends it to
//! the program.

use crate::real::call;
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The number of no key.
pub const NONE: u32 = u32::MAX;

/// The number of the library's key; [`NONE`] before there is one.
pub static OURS: AtomicU32 = AtomicU32::new(NONE);

/// Has the destructor run at the end of the calling thread, with this value.
pub fn watch_end(value: usize) {
    // SAFETY: `start` has found the real functions before any thread gets a record; the key
    // is the library's own, and one for which glibc allocates nothing.
    unsafe { call::pthread_setspecific()(OURS.load(Relaxed), value as *const c_void) };
}

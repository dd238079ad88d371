//! Stands before glibc's functions, by family: the program's calls come here first.
//!
//! # How to write one
//! Export it with a macro of [`thunk`](mod@crate::thunk). In it, call the real
//! function through [`real::call`](crate::real::call), and around it what
//! [`record`](crate::record) offers:
//!
//! - a lock: the trying form of the real function, then
//!   [`acquisition_begins`](crate::record::acquisition_begins), which names the blocking form if that
//!   is needed, in the two halves of [`cancellable!`](crate::cancellable);
//!   [`release`](crate::record::release) **before** the real release;
//! - a try: the real function, then [`tried`](crate::record::tried);
//! - a wait that ends in holding nothing:
//!   [`wait_begins`](crate::record::wait_begins), the real function,
//!   [`wait_ends`](crate::record::wait_ends), in such halves too: a thread may be cancelled
//!   there, or `lockstead attach` may want to leave;
//! - initialisation and destruction: [`Me::initialised`](crate::me::Me::initialised)
//!   after the real one, [`Me::destroyed`](crate::me::Me::destroyed) before it.
//!
//! # Invariants
//! - **INTERPOSE-ARGUMENTS** An implementation is called by its thunk alone, with the
//!   program's arguments: the program owes them what the function of that name demands, and
//!   so they may go on to the real one. The call at `&Site` is alive meanwhile.
//! - **INTERPOSE-ANSWER** The program gets what the real function returned, and `errno` as it left
//!   it. Nothing else here touches `errno`; a real function that is called
//!   beside the one that the program asked for must not be seen in it either
//!   ([`SavedErrno`]).
//! - **INTERPOSE-RESOLVED** Before the real functions are known, a call passes through: every
//!   implementation begins with [`real::resolve`](crate::real::resolve), a load
//!   and a branch, unless it comes from a path that needs a ledger.

pub mod aliases;
pub mod barrier;
pub mod c11;
pub mod code;
pub mod condition;
pub mod futex;
pub mod jail;
pub mod join;
pub mod keys;
#[cfg(feature = "check")]
pub mod memory;
pub mod mutex;
pub mod rwlock;
pub mod semaphore;
pub mod spin;
pub mod threads;
pub mod until;

use crate::tls;
use core::ffi::c_int;
use core::ptr::null_mut;

unsafe extern "C" {
    fn __errno_location() -> *mut c_int;
}

/// The program's `errno` as it was; put back when this goes. A thread on a thread
/// pointer that is not the C library's has none.
#[derive(Debug)]
pub struct SavedErrno {
    place: *mut c_int,
    value: c_int,
}

impl SavedErrno {
    /// Remembers the program's `errno` until dropped.
    #[must_use]
    pub fn keep() -> Self {
        if tls::own().is_none() {
            return SavedErrno { place: null_mut(), value: 0 };
        }
        // SAFETY: the C library keeps the calling thread's errno as long as the thread lives.
        unsafe {
            let place = __errno_location();
            SavedErrno { place, value: *place }
        }
    }

    /// Returns the value that `errno` had.
    #[must_use]
    pub fn value(&self) -> c_int {
        self.value
    }
}

impl Drop for SavedErrno {
    fn drop(&mut self) {
        if !self.place.is_null() {
            // SAFETY: the C library keeps the thread's errno as long as the thread lives; a raw
            // pointer keeps this value on its thread.
            unsafe { *self.place = self.value };
        }
    }
}

//! lockstead for C and C++: what stands behind `lockstead.h`.
//!
//! # Role
//! The functions that the headers declare. The fast paths are inline there, on the
//! same words as in the core; here is what they call when they cannot go on. What
//! both sides assume of the layout both assert.
//!
//! # Rules
//! - All names that other languages see begin with `lks_`.
//! - Nothing unwinds into C: a function that finds that it could only hang prints
//!   why and aborts, or returns a negative `errno`.
//! - A thread's number is told to the inline fast paths (`own`) before any call here
//!   returns with a lock.

#[cfg(not(target_endian = "little"))]
compile_error!("the inline release erases the half of the word at its own address");

mod cancel;
#[cfg(feature = "check")]
mod check;
mod cond;
mod mutex;
mod names;
mod once;
mod own;
mod plain;
mod refuse;
mod rt;
mod rwlock;
mod semaphore;
mod shared;
mod wait;
mod ww;

pub use cancel::lks_cancel;
pub use cond::lks_cond;
pub use mutex::lks_mutex;
pub use once::lks_once;
pub use rt::{lks_rt_mutex, lks_rt_recursive_mutex};
pub use rwlock::lks_rwlock;
pub use semaphore::lks_semaphore;
pub use shared::{
    lks_shared_cond, lks_shared_mutex, lks_shared_rwlock, lks_shared_semaphore, lks_shm_field,
    lks_shm_options, lks_shm_segment, lks_shm_type,
};
pub use ww::lks_ww_mutex;

/// The version of the library, a string.
#[unsafe(no_mangle)]
extern "C" fn lks_version() -> *const core::ffi::c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Does now what the first lock operation that waits would do.
#[unsafe(no_mangle)]
extern "C" fn lks_prepare() {
    lockstead_linux::prepare();
}

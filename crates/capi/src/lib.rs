//! lockstead for C and C++: what stands behind `lockstead.h`.
//!
//! # Role
//! ```text
//!   program ──▶ headers: inline fast paths ──▶ the lock's word
//!                  │ cannot go on                   ▲
//!                  ▼                                │
//!               this library ──▶ the core, lockstead::shared
//! ```
//! The fast paths are inline in the headers, on the same words as in the core. This library has
//! the functions that they call when they cannot go on, and the inline functions once more for
//! languages that cannot use a header. Both sides assert what they assume of the layout.
//!
//! # Invariants
//! The program keeps these. The headers state them beside each function; the checking build and
//! clang's thread-safety analysis find where a program breaks them.
//!
//! - **CAPI-HOLDER** A function that ends or passes on a hold is called by the thread that has the
//!   hold, or that answers for it.
//! - **CAPI-MEMORY** A reference to a lock points to a lock that was initialised and lives until
//!   the call returns; a pointer to a string, a description or options to one of its kind.
//!
//! # Rules
//! - All names that other languages see begin with `lks_`.
//! - Nothing unwinds into C: a function that finds that it could only hang prints
//!   why and aborts, or returns a negative `errno`.
//! - A call writes the thread's number where the inline fast paths find it (`own`) before it
//!   returns with a lock.

#[cfg(not(target_endian = "little"))]
compile_error!("the inline release erases the half of the word at its own address");

mod cancel;
#[cfg(feature = "check")]
mod check;
mod cond;
mod export;
mod fair;
mod mutex;
mod names;
mod once;
mod own;
mod refuse;
mod rt;
mod rwlock;
mod semaphore;
mod shared;
mod wait;
mod ww;

pub use cancel::lks_cancel;
pub use cond::lks_cond;
pub use fair::lks_fair_mutex;
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

/// Returns the version of the library, a string.
#[unsafe(no_mangle)]
extern "C" fn lks_version() -> *const core::ffi::c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Does now what the first lock operation that waits would do, such as memory for its table.
#[unsafe(no_mangle)]
extern "C" fn lks_prepare() {
    lockstead_linux::prepare();
}

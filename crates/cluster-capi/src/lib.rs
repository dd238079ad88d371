//! The mutex over etcd for C and C++: what stands behind `lockstead_cluster.h`.
//!
//! # Role
//! ```text
//!   program ──▶ lockstead_cluster.h ──▶ this library ──▶ lockstead-cluster ──▶ etcd
//! ```
//! A library of its own: that of the locks in memory allocates nothing behind a program's back and has no
//! client of a network. Both may be in one program. This one starts threads, allocates, and reads the
//! files of certificates.
//!
//! # Invariants
//! The program keeps these; the header states them beside each function.
//!
//! - **ABROAD-MEMORY** A pointer that a call is given is null where the header says so, or points to what
//!   the header says, until the call returns: strings end with a zero byte, options begin with their size.
//! - **ABROAD-HANDLE** A handle came from this library and was not yet given back by the call that ends it,
//!   nor is while another thread uses it.
//!
//! # Rules
//! - All names that other languages see begin with `lks_cluster_`.
//! - Results are zero or a negative `errno`; the text of the last one of a thread is kept for it.
//! - Nothing unwinds into C: what would panic aborts.

mod cancel;
mod guard;
mod options;
mod reason;
mod session;

pub use cancel::lks_cluster_cancel;
pub use guard::lks_cluster_guard;
pub use options::lks_cluster_options;
pub use session::lks_cluster_session;

/// Returns the version of the library, a string.
#[unsafe(no_mangle)]
extern "C" fn lks_cluster_version() -> *const core::ffi::c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

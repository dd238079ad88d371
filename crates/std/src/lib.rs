//! The standard library, with mutexes, reader-writer locks, condition variables and onces that
//! `lockstead run` sees: all of `::std`, and in [`sync`] types of the same names and functions that
//! tell of each acquisition and release.
//!
//! One line of `Cargo.toml` has a crate use it, whatever its edition, without a change of its
//! source; the name on the left does it:
//!
//! ```toml
//! [target.'cfg(lockstead)'.dependencies]
//! std = { package = "lockstead-std", version = "0.1" }
//! ```
//!
//! ```sh
//! RUSTFLAGS="--cfg lockstead" lockstead run --check -- cargo test
//! ```
//!
//! `lockstead run --check --rust -- cargo test` does the same for all crates of a build, and needs
//! no line at all.
//!
//! # What changes
//! The locks have the traits and the behaviour of those of the standard library, which they have
//! inside: the lock that is checked is the lock that ships. They are larger by a word, in which a lock
//! notes where it was told first, since none has a destructor that could tell of its end. Guards are
//! larger too. (A [`sync::LazyLock`] is one of its own, over the standard library's `Once`.) Without
//! `lockstead run` an acquisition and a release cost a load and a branch each.
//!
//! # What it does not see
//! What the standard library locks for itself (channels, standard streams, [`sync::Barrier`]), locks
//! of crates that are built without this line, and locks that are held across an `.await`, such as
//! tokio's: these belong to a task, not to a thread.

pub use ::std::*;

pub mod sync;

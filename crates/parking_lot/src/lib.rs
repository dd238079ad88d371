//! parking_lot, with mutexes, reader-writer locks, conditions and onces that `lockstead run` sees:
//! all of the real crate, and in the place of its locks types of the same names and functions that
//! tell of each acquisition and release.
//!
//! `lockstead run --check --rust -- cargo test` has every crate of a build use it and needs no line
//! anywhere. One line of `Cargo.toml` does it for one crate:
//!
//! ```toml
//! parking_lot = { package = "lockstead-parking-lot", version = "0.1" }
//! ```
//!
//! # What changes
//! The types have the traits and the behaviour of the real ones, which they have inside: the lock that
//! is checked is the lock that ships. They are larger by a word, in which a lock notes where it was
//! told first, since none has a destructor that could tell of its end. Without `lockstead run` an
//! acquisition and a release cost a load and a branch each.
//!
//! # Versions
//! The locks of parking_lot 0.13 follow lock_api 0.5, where a lock gives out what its guard holds.
//! Those of 0.11 and 0.12 follow lock_api 0.4: the feature `lock_api_0_4` takes their place.
//!
//! # Invariants
//! - **LOT-INSIDE** A lock has a real one inside, and each call goes on to that one: whoever holds the
//!   lock in some way holds the real one in the same way, and nobody else does.
//!
//! # What it does not see
//! The locks that others build on `parking_lot_core`. With the feature `send_guard`, by which a guard may
//! go to another thread, nothing is told but waits.

mod telling;
#[cfg(test)]
mod tests;
#[cfg(any(not(feature = "lock_api_0_4"), test))]
#[doc(hidden)]
pub mod with_guards;
#[cfg(any(feature = "lock_api_0_4", test))]
#[doc(hidden)]
pub mod with_markers;

#[cfg(not(feature = "lock_api_0_4"))]
pub use self::with_guards::*;
#[cfg(feature = "lock_api_0_4")]
pub use self::with_markers::*;

//! The locks behind the traits of the crate `lock_api` 0.5, for code that is generic over its
//! locks.
//!
//! With the feature `lock_api_0_4` the raw types have
//! the traits of 0.4 as well, and the module `lock_api_0_4` the aliases.
//!
//! [`Mutex`], [`RwLock`] and [`Condvar`] have the same names and sizes here as
//! at the root of the crate. Timed forms, recursive reads and downgrading are there. Upgradable reads
//! are in a raw type of their own, [`RawUpgradableRwLock`], since its writers pay for them, and so is a
//! mutex that is granted strictly in turn, [`RawFifoMutex`]. [`RawFairMutex`] is the mutex whose waits are short. A fair unlock of the others is an
//! ordinary one: handing over past the bound is what keeps them fair.
//!
//! ```
//! use lockstead::lock_api::{Mutex, RwLock};
//!
//! static HITS: Mutex<u32> = Mutex::new(0);
//! *HITS.lock() += 1;
//!
//! let routes = RwLock::new(vec!["/"]);
//! assert_eq!(routes.read().len(), 1);
//! ```
//!
//! # Invariants
//! - **LOCK-API-STATE** Whoever calls an unlocking function of the traits has the hold that the
//!   function ends. `lock_api` keeps it by its guards, which do not leave their thread, or by `send_guard`
//!   with their hold.

mod condvar;
mod fifo;
mod mutex;
mod rwlock;
pub(crate) mod sent;
mod upgradable;
mod upgrades;

pub use crate::fifo::RawFifoMutex;
pub use condvar::RawCondvar;
pub use mutex::{RawFairMutex, RawMutex};
pub use rwlock::RawRwLock;
pub use upgradable::RawUpgradableRwLock;

/// `lock_api`'s mutex over lockstead's.
pub type Mutex<T> = ::lock_api::Mutex<RawMutex, T>;
/// The guard of a [`Mutex`].
pub type MutexGuard<'a, T> = ::lock_api::MutexGuard<'a, RawMutex, T>;
/// A guard narrowed to a part of the data of a [`Mutex`].
pub type MappedMutexGuard<'a, T> = ::lock_api::MappedMutexGuard<'a, RawMutex, T>;

/// `lock_api`'s reader-writer lock over lockstead's.
pub type RwLock<T> = ::lock_api::RwLock<RawRwLock, T>;
/// A reader's guard of a [`RwLock`].
pub type RwLockReadGuard<'a, T> = ::lock_api::RwLockReadGuard<'a, RawRwLock, T>;
/// The writer's guard of a [`RwLock`].
pub type RwLockWriteGuard<'a, T> = ::lock_api::RwLockWriteGuard<'a, RawRwLock, T>;
/// `lock_api`'s condition variable over lockstead's.
pub type Condvar = ::lock_api::Condvar<RawCondvar>;

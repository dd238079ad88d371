//! The names and types of the crate `parking_lot` 0.12, over lockstead's locks: what says
//! `use parking_lot::...` compiles with `use lockstead::parking_lot;` before it.
//!
//! For programs whose dependencies lock, too, there is a package with the name `parking_lot` that has
//! nothing but this in it; `docs/migration.md` says how one line of `Cargo.toml` puts it in the
//! real one's place.
//!
//! ```
//! use lockstead::parking_lot;
//! use parking_lot::{Condvar, Mutex, RwLock, RwLockUpgradableReadGuard, const_mutex};
//!
//! static QUEUE: Mutex<Vec<u32>> = const_mutex(Vec::new());
//! static FILLED: Condvar = Condvar::new();
//!
//! QUEUE.lock().push(7);
//! assert!(!FILLED.notify_one(), "nobody waits");
//!
//! let routes = RwLock::new(vec!["/"]);
//! let reading = routes.upgradable_read();
//! if !reading.contains(&"/about") {
//!     RwLockUpgradableReadGuard::upgrade(reading).push("/about");
//! }
//! ```
//!
//! # What differs
//! - A thread that locks again what it has panics, with both places, where it hung. (With a limit of
//!   time it waits for that long, as there.)
//! - A `Mutex` has 8 bytes (1), a `RwLock` 24 (8), a `Condvar` 16 (8), a `FairMutex` 24 (1), a
//!   `Once` 4 (1).
//! - `unlock_fair` of a `Mutex` or a `RwLock` is an ordinary release: a waiter has the lock past the
//!   bound (see [`Mutex`](crate::Mutex)) at the latest, not at once. `FairMutex` is
//!   strictly in turn, and `MutexGuard::bump` lets one go first that waits.
//! - Writing costs a `RwLock` another pair of a mutex, for the sake of the upgradable reads.
//! - All whom `Condvar::notify_all` wakes want the mutex at once, and several mutexes may be used
//!   with one condition variable. A thread that waits with a mutex that it does not hold any more
//!   (after `fork`) ends the process.
//! - `check_deadlock` does not exist: `lockstead run` finds deadlocks, of all locks.
//! - With the feature `send_guard` a thread that asks for what it has acquired itself is not refused,
//!   for the guard may be elsewhere; it looks again every millisecond.

mod condvar;

pub use crate::fifo::RawFifoMutex as RawFairMutex;
pub use crate::lock_api::{RawMutex, RawUpgradableRwLock as RawRwLock};
pub use crate::{Once, OnceState, WaitTimeoutResult};
pub use ::lock_api_0_4 as lock_api;
pub use condvar::Condvar;

use lockstead_core::Platform;
use lockstead_linux::Linux;

/// A mutex for the data inside.
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
/// The guard of a [`Mutex`].
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;
/// A guard narrowed to a part of the data of a [`Mutex`].
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;

/// A mutex that is granted in the order of asking.
///
/// ```
/// use lockstead::parking_lot::{FairMutex, const_fair_mutex};
///
/// static TURNS: FairMutex<u32> = const_fair_mutex(0);
/// *TURNS.lock() += 1;
/// assert_eq!(*TURNS.lock(), 1);
/// ```
pub type FairMutex<T> = lock_api::Mutex<RawFairMutex, T>;
/// The guard of a [`FairMutex`].
pub type FairMutexGuard<'a, T> = lock_api::MutexGuard<'a, RawFairMutex, T>;
/// A guard narrowed to a part of the data of a [`FairMutex`].
pub type MappedFairMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawFairMutex, T>;

/// A mutex that its holder may lock again; its guards give shared access.
///
/// ```
/// use lockstead::parking_lot::ReentrantMutex;
/// use std::cell::Cell;
///
/// let depth = ReentrantMutex::new(Cell::new(0));
/// let outer = depth.lock();
/// let inner = depth.lock();
/// inner.set(outer.get() + 2);
/// assert_eq!(outer.get(), 2);
/// ```
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<RawMutex, RawThreadId, T>;
/// The guard of a [`ReentrantMutex`].
pub type ReentrantMutexGuard<'a, T> = lock_api::ReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;
/// A guard narrowed to a part of the data of a [`ReentrantMutex`].
pub type MappedReentrantMutexGuard<'a, T> =
    lock_api::MappedReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

/// A reader-writer lock for the data inside, with upgradable and recursive reads.
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;
/// A reader's guard of a [`RwLock`].
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;
/// The writer's guard of a [`RwLock`].
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;
/// The guard of the one reader of a [`RwLock`] that may go on to write.
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;
/// A reader's guard narrowed to a part of the data of a [`RwLock`].
pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLock, T>;
/// The writer's guard narrowed to a part of the data of a [`RwLock`].
pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLock, T>;

#[cfg(feature = "arc_lock")]
pub use lock_api::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard,
};

/// Names threads to a [`ReentrantMutex`]: by their slots.
#[derive(Debug)]
pub struct RawThreadId;

// SAFETY: a slot belongs to one thread as long as that lives.
unsafe impl lock_api::GetThreadId for RawThreadId {
    const INIT: Self = RawThreadId;

    #[inline]
    fn nonzero_thread_id(&self) -> core::num::NonZeroUsize {
        let slot = Linux::me().get() as usize;
        core::num::NonZeroUsize::new(slot).expect("slots begin with 1")
    }
}

/// Creates a free mutex in a constant.
///
/// ```
/// use lockstead::parking_lot::{Mutex, const_mutex};
///
/// static HITS: Mutex<u32> = const_mutex(0);
/// *HITS.lock() += 1;
/// ```
pub const fn const_mutex<T>(value: T) -> Mutex<T> {
    Mutex::const_new(<RawMutex as lock_api::RawMutex>::INIT, value)
}

/// Creates a free fair mutex in a constant; see [`FairMutex`].
pub const fn const_fair_mutex<T>(value: T) -> FairMutex<T> {
    FairMutex::const_new(<RawFairMutex as lock_api::RawMutex>::INIT, value)
}

/// Creates a free reentrant mutex in a constant; see [`ReentrantMutex`].
pub const fn const_reentrant_mutex<T>(value: T) -> ReentrantMutex<T> {
    let raw = <RawMutex as lock_api::RawMutex>::INIT;
    ReentrantMutex::const_new(raw, <RawThreadId as lock_api::GetThreadId>::INIT, value)
}

/// Creates a free reader-writer lock in a constant.
///
/// ```
/// use lockstead::parking_lot::{RwLock, const_rwlock};
///
/// static ROUTES: RwLock<Vec<&str>> = const_rwlock(Vec::new());
/// ROUTES.write().push("/");
/// ```
pub const fn const_rwlock<T>(value: T) -> RwLock<T> {
    RwLock::const_new(<RawRwLock as lock_api::RawRwLock>::INIT, value)
}

//! The locks of parking_lot 0.11 and 0.12, by lock_api 0.4: a raw lock says that it was acquired, and
//! its guards have a marker.

mod condvar;
mod mutex;
mod once;
mod rwlock;

pub use self::condvar::{Condvar, WaitTimeoutResult};
pub use self::mutex::{
    FairMutex, FairMutexGuard, MappedFairMutexGuard, MappedMutexGuard, MappedReentrantMutexGuard,
    Mutex, MutexGuard, RawFairMutex, RawMutex, ReentrantMutex, ReentrantMutexGuard,
    const_fair_mutex, const_mutex, const_reentrant_mutex,
};
pub use self::once::Once;
pub use self::rwlock::{
    MappedRwLockReadGuard, MappedRwLockWriteGuard, RawRwLock, RwLock, RwLockReadGuard,
    RwLockUpgradableReadGuard, RwLockWriteGuard, const_rwlock,
};
pub use real_0_12::*;

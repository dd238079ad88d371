//! The locks of parking_lot 0.13, by lock_api 0.5: a raw lock gives out what its guard holds.

mod condvar;
mod mutex;
mod once;
mod rwlock;

pub use self::condvar::{Condvar, RawCondvar};
pub use self::mutex::{
    FairMutex, FairMutexGuard, MappedFairMutexGuard, MappedMutexGuard, MappedReentrantMutexGuard,
    Mutex, MutexGuard, RawFairMutex, RawMutex, ReentrantMutex, ReentrantMutexGuard,
};
pub use self::once::Once;
pub use self::rwlock::{
    MappedRecursiveRwLockReadGuard, MappedRecursiveRwLockWriteGuard, MappedRwLockReadGuard,
    MappedRwLockWriteGuard, RawRwLock, RawRwLockRecursive, RecursiveRwLock,
    RecursiveRwLockReadGuard, RecursiveRwLockUpgradableReadGuard, RecursiveRwLockWriteGuard,
    RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard,
};
pub use real::*;

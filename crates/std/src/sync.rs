//! The module `std::sync`, in which three types and their guards tell of what they do.

mod condvar;
mod mutex;
mod rwlock;
mod telling;

pub use self::condvar::Condvar;
pub use self::mutex::{Mutex, MutexGuard};
pub use self::rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use ::std::sync::*;

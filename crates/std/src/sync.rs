//! The module `std::sync`, in which the locks and what is initialised once tell of what they do.

mod condvar;
mod lazy_lock;
mod mutex;
mod once;
mod once_lock;
mod rwlock;
mod telling;

pub use self::condvar::Condvar;
pub use self::lazy_lock::LazyLock;
pub use self::mutex::{Mutex, MutexGuard};
#[expect(deprecated, reason = "the standard library has it")]
pub use self::once::ONCE_INIT;
pub use self::once::Once;
pub use self::once_lock::OnceLock;
pub use self::rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use ::std::sync::*;

//! Locks for the threads of one process on Linux.

mod cancel;
mod condvar;
mod dec_and_lock;
mod error;
mod guard;
pub mod lock_api;
#[cfg(feature = "lock_api_0_4")]
pub mod lock_api_0_4;
mod mutex;
mod named;
mod once;
mod owner;
pub mod poison;
mod refusal;
mod rwlock;
mod rwlock_guard;
mod semaphore;
mod time;

pub use cancel::CancelToken;
pub use condvar::Condvar;
pub use dec_and_lock::{Counter, dec_and_lock};
pub use error::{Cancelled, Interrupted, TimedOut};
pub use guard::{MappedMutexGuard, MutexGuard};
pub use lockstead_core::{Hooks, LockId, Off, Path, Site};
pub use mutex::Mutex;
pub use named::{Label, Named, NamedMutex, NamedRwLock};
pub use once::{Once, OnceLock};
pub use owner::Owner;
pub use rwlock::RwLock;
pub use rwlock_guard::{RwLockReadGuard, RwLockWriteGuard};
pub use semaphore::classic;
pub use semaphore::tuned::{Permit, Semaphore};

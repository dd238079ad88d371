//! The shape of [`std::sync`] over lockstead's locks: what says `use std::sync::...` compiles with
//! `use lockstead::sync::...` in its place.
//!
//! Mutex and reader-writer lock are those of [`poison`](crate::poison), with `LockResult`s; the
//! condition variable takes a guard and gives it back. What std has that is no lock of ours (`Arc`,
//! `mpsc`, `atomic`, `Barrier`) is std's own.
//!
//! ```
//! use lockstead::sync::{Arc, Condvar, LazyLock, Mutex, RwLock};
//!
//! static NAMES: LazyLock<RwLock<Vec<&str>>> = LazyLock::new(|| RwLock::new(vec!["a"]));
//! assert_eq!(NAMES.read().unwrap().len(), 1);
//!
//! let pair = Arc::new((Mutex::new(false), Condvar::new()));
//! std::thread::scope(|s| {
//!     s.spawn(|| {
//!         *pair.0.lock().unwrap() = true;
//!         pair.1.notify_one();
//!     });
//!     let ready = pair.1.wait_while(pair.0.lock().unwrap(), |ready| !*ready).unwrap();
//!     assert!(*ready);
//! });
//! ```
//!
//! Differences: a thread that locks again what it has panics; guards of a mutex are `!Send`, as std's;
//! `Mutex` has 16 bytes beside the data; there is no `Once::wait` and no `OnceLock::wait`.

mod condvar;
mod once;

pub use crate::poison::{
    LockResult, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
    TryLockError, TryLockResult,
};
pub use crate::{LazyLock, OnceLock, WaitTimeoutResult};
pub use condvar::Condvar;
pub use once::{Once, OnceState};
pub use std::sync::{Arc, Barrier, BarrierWaitResult, Weak, atomic, mpsc};

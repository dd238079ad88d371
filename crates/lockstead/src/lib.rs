//! Locks for the threads of one process on Linux: a mutex of 8 bytes whose
//! every wait can end, and that hands itself over before anybody starves. And, in
//! [`shared`], locks for several processes.
//!
//! ```
//! use lockstead::Mutex;
//! use std::time::Duration;
//!
//! static ORDERS: Mutex<Vec<u32>> = Mutex::new(Vec::new());
//!
//! ORDERS.lock().push(7);
//! match ORDERS.lock_timeout(Duration::from_millis(50)) {
//!     Ok(orders) => println!("{} order(s)", orders.len()),
//!     Err(late) => eprintln!("{late}: held by {:?}", ORDERS.owner()),
//! }
//! ```
//!
//! # What it gives
//! - Every wait has a form with a timeout or deadline, one that a signal
//!   handler ends, and one that another thread ends by a [`CancelToken`].
//! - Waiting is bounded: newcomers may overtake for speed, but a thread that
//!   has waited past a bound (see [`Mutex`]) is handed the lock.
//! - Locking twice on one thread, or what nobody is left to release after
//!   `fork`, panics with names and places instead of hanging.
//! - The memory of a lock may be freed by the thread that acquired it next.
//! - Constant constructors; all-zero bytes are a free lock; no allocation.
//!
//! # When not to use it
//! - Not on Linux, or not on 64 bits: it does not build there.
//! - Between processes: these locks are for the threads of one. Those of [`shared`] are
//!   for several, and survive their holders.
//! - In `async` code, held across `.await`: the guards are not `Send`.
//! - In coroutines that move between threads while they hold a lock, for the same reason. Between
//!   moves they may use all locks, and a semaphore's permits move along.
//! - Where a signal handler leaves, by `longjmp`, a call that it has interrupted: a wake-up may be
//!   lost. The lock is not torn, and waits that can end do.
//! - Where nothing of the list above matters: `std::sync` is there already.
//!
//! # The types
//!
//! | type | bytes | for |
//! |---|---|---|
//! | [`Mutex`] | 8 | exclusion, one owner |
//! | [`BiasedMutex`] | 16 | data that one thread uses all but always: no atomic instruction until another one comes |
//! | [`NamedMutex`], [`NamedRwLock`] | 32, 40 | the same with a name and the place of the latest acquisition |
//! | [`poison::Mutex`], [`poison::RwLock`] | 16, 24 | the same for those who want to know of a holder's panic |
//! | [`RwLock`] | 16 | many readers or one writer |
//! | [`Condvar`] | 8 | waiting, with a mutex, for its data to change |
//! | [`Semaphore`] | 8 | counting permits; the kernel's `down` and `up` |
//! | [`classic::Semaphore`] | 8 | the semaphore of 2005, for comparison |
//! | [`Once`], [`OnceLock`], [`LazyLock`] | 4 | initialising once |
//! | [`FairMutex`] | 8 | the mutex for those who serve requests: short waits before throughput |
//! | [`FifoMutex`] | 24 | a mutex that is granted in the order of asking |
//! | [`CancelToken`] | 4 | ending other threads' waits |
//! | [`ww::WwMutex`] | 24 | several locks at a time, in any order, without deadlock |
//! | [`rt::RtMutex`], [`rt::RtRecursiveMutex`] | 8, 16 | threads with real-time priorities: who waits lends its priority |
//! | [`sync`] | | the shape of [`std::sync`], with poison |
//! | `parking_lot` | | the shape of parking_lot 0.12, by the feature of that name |
//! | [`lock_api`] | | the locks behind the traits of the crate `lock_api` 0.5 |
//! | [`shared`] | 8 | mutex, reader-writer lock, semaphore, condition variable in memory that processes share |
//!
//! [`dec_and_lock`] drops a reference count and locks only for the last one.
//!
//! # The kernel's names
//!
//! | kernel | here |
//! |---|---|
//! | `mutex_lock`, `mutex_trylock` | [`Mutex::lock`], [`Mutex::try_lock`] |
//! | `mutex_lock_interruptible`, `mutex_lock_killable` | [`Mutex::lock_interruptible`], [`Mutex::lock_killable`] |
//! | `mutex_lock_nested`, `mutex_lock_interruptible_nested` | [`Mutex::lock_nested`], [`Mutex::lock_interruptible_nested`] |
//! | `mutex_unlock` | dropping the guard |
//! | `mutex_is_locked` | [`Mutex::is_locked`] |
//! | `ww_mutex_*`, `ww_acquire_*` | [`ww`] |
//! | `rt_mutex_*` | [`rt`] |
//! | `atomic_dec_and_mutex_lock` | [`dec_and_lock`] |
//! | `down`, `down_trylock`, `down_timeout`, `up` | [`Semaphore::down`], [`Semaphore::try_down`], [`Semaphore::down_timeout`], [`Semaphore::up`] |
//!
//! # Features
//! All are off by default. `derive`: `#[derive(Shareable)]` for [`shared`], by a crate of macros, which
//! takes `syn`.
//!
//! `lock_api_0_4`: the traits of `lock_api` 0.4 as well, for
//! crates that have not moved to 0.5.
//!
//! `parking_lot`: the module of that name, for code that was written for
//! parking_lot 0.12. With it `arc_lock`, `owning_ref`, `serde` and `send_guard` are as there; `serde`
//! serves the types at the root of the crate, too.
//!
//! `check`, for tests and development: lock order and lock rules
//! are checked while the program runs, as the kernel's lockdep does. The locks
//! are larger then, and slower; without it nothing of this exists.

mod aliases;
mod biased;
mod cancel;
#[cfg(feature = "check")]
pub mod check;
#[cfg(doctest)]
mod compile_fail;
mod condvar;
mod dec_and_lock;
mod error;
mod fair;
mod fifo;
mod guard;
mod lazy;
pub mod lock_api;
#[cfg(feature = "lock_api_0_4")]
pub mod lock_api_0_4;
mod mutex;
mod named;
mod once;
mod owner;
#[cfg(feature = "parking_lot")]
pub mod parking_lot;
pub mod poison;
mod refusal;
pub mod rt;
mod rwlock;
mod rwlock_guard;
mod semaphore;
#[cfg(feature = "serde")]
mod serialize;
pub mod shared;
pub mod sync;
mod time;
mod unwind;
pub mod ww;

pub use aliases::{FifoMutex, FifoMutexGuard, const_mutex, const_rwlock};
pub use biased::{BiasedMutex, BiasedMutexGuard};
pub use cancel::CancelToken;
pub use condvar::{Condvar, WaitTimeoutResult};
pub use dec_and_lock::{Counter, dec_and_lock};
pub use error::{Cancelled, Interrupted, TimedOut};
pub use fair::{Fair, FairMutex};
pub use guard::{MappedMutexGuard, MutexGuard};
pub use lazy::LazyLock;
pub use lockstead_core::{Access, Hooks, LockId, Off, Path, Site};
pub use mutex::Mutex;
pub use named::{Label, Named, NamedMutex, NamedRwLock};
pub use once::{Once, OnceLock, OnceState};
pub use owner::Owner;
pub use rwlock::RwLock;
pub use rwlock_guard::{
    MappedRwLockReadGuard, MappedRwLockWriteGuard, RwLockReadGuard, RwLockWriteGuard,
};
/// The hooks of locks without a name: nothing, or with the feature `check` what
/// checks their use.
#[cfg(not(feature = "check"))]
pub type Unnamed = Off;
/// The hooks of locks without a name: those that check their use.
#[cfg(feature = "check")]
pub type Unnamed = check::Checked;

pub use semaphore::classic;
pub use semaphore::tuned::{Permit, Semaphore};

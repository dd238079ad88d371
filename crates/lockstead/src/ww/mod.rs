//! Any set of locks, in any order, without deadlock: the kernel's wait/wound
//! mutexes.
//!
//! A thread that needs several locks acquires them in a [`Context`]. Where two
//! contexts want what the other has, the younger one gets [`Error::Deadlock`]
//! instead of waiting: it drops all its guards, waits for the lock that it was
//! refused ([`WwMutex::lock_slow`]), and begins again, with its old age. The oldest
//! context is not refused, but once for a wound that it has outlived, so each gets all
//! its locks in time.
//!
//! [`lock_all`] does all of that:
//!
//! ```
//! use lockstead::ww::{Class, WwMutex, lock_all};
//!
//! static ACCOUNTS: Class = Class::wound_wait("accounts");
//! static ANN: WwMutex<i64> = WwMutex::new(&ACCOUNTS, 100);
//! static BOB: WwMutex<i64> = WwMutex::new(&ACCOUNTS, 0);
//!
//! fn pay(from: &WwMutex<i64>, to: &WwMutex<i64>, amount: i64) {
//!     let context = ACCOUNTS.begin();
//!     let mut both = lock_all(&context, &[from, to]).expect("two accounts");
//!     *both[0] -= amount;
//!     *both[1] += amount;
//! }
//!
//! std::thread::scope(|s| {
//!     s.spawn(|| pay(&ANN, &BOB, 30));
//!     s.spawn(|| pay(&BOB, &ANN, 10));
//! });
//! assert_eq!((*ANN.lock_alone(), *BOB.lock_alone()), (80, 20));
//! ```
//!
//! By hand, when which lock comes next depends on what the others guard:
//!
//! ```
//! use lockstead::ww::{Class, Error, WwMutex};
//!
//! static NODES: Class = Class::wait_die("nodes");
//! let nodes = [WwMutex::new(&NODES, 1), WwMutex::new(&NODES, 0)];
//!
//! let context = NODES.begin();
//! let mut refused: Option<&WwMutex<usize>> = None;
//! let sum = loop {
//!     // After a refusal: the lock in question first, with nothing else held.
//!     let waited = refused.take().map(|node| node.lock_slow(&context));
//!     drop(waited); // (or keep it, and skip it below)
//!     let first = match nodes[0].lock(&context) {
//!         Ok(guard) => guard,
//!         Err(Error::Deadlock) => {
//!             refused = Some(&nodes[0]);
//!             continue;
//!         }
//!         Err(other) => panic!("{other}"),
//!     };
//!     match nodes[*first].lock(&context) {
//!         Ok(second) => break *first + *second,
//!         Err(Error::Deadlock) => refused = Some(&nodes[*first]),
//!         Err(other) => panic!("{other}"),
//!     }
//! };
//! assert_eq!(sum, 1);
//! ```
//!
//! # Which scheme
//! [`Class::wait_die`]: a context that holds locks and meets an older holder is refused at once.
//! [`Class::wound_wait`]: it waits for that holder, and a context that is met by an older one is
//! refused when it next has to wait itself. In both, a context that holds locks is refused
//! where an older one waits already. What they do is much the same, and so is what they
//! cost: with 2 to 16 threads that take 2 to 4 of 4 to 16 locks, for 0 to 20 µs, wound-wait had 0.85
//! to 1.23 of the rounds of wait-die on a machine with two processors, and neither was always
//! ahead (`lockstead bench ww`). Take either; wound-wait never has an older context back
//! off for a younger one that it meets, nor a younger one for an older one that lets go soon.
//!
//! # The kernel's names
//!
//! | kernel | here |
//! |---|---|
//! | `DEFINE_WD_CLASS`, `DEFINE_WW_CLASS` | [`Class::wait_die`], [`Class::wound_wait`] |
//! | `ww_acquire_init`, `ww_acquire_done` | [`Class::begin`], [`Context::done`] |
//! | `ww_acquire_fini` | dropping the context |
//! | `ww_mutex_lock`, `-EDEADLK`, `-EALREADY` | [`WwMutex::lock`], [`Error::Deadlock`], [`Error::Already`] |
//! | `ww_mutex_lock_interruptible` | [`WwMutex::lock_interruptible`] |
//! | `ww_mutex_lock_slow`, `_interruptible` | [`WwMutex::lock_slow`], [`WwMutex::lock_slow_interruptible`] |
//! | `ww_mutex_trylock` | [`WwMutex::try_lock`], [`WwMutex::try_lock_alone`] |
//! | `ww_mutex_lock(lock, NULL)` | [`WwMutex::lock_alone`] |
//! | `ww_mutex_unlock` | dropping the guard |
//!
//! # Misuse
//! Much of what the kernel checks at run time the borrow checker checks here: a
//! guard cannot outlive its context, nor a context leave its thread. The rest is
//! reported in a build with the feature `check`: a lock of another class, a lock
//! after [`Context::done`], another lock than the refused one or the refused one
//! before the others are released, a second context of the class, `done` twice, a
//! `lock_slow` without a refusal, a leaked guard, and a lock taken alone by a thread
//! that holds others of its class in a context.

mod all;
mod class;
mod error;
mod guard;
mod mutex;
mod rules;

pub use all::{LockAllError, lock_all};
pub use class::{Class, Context};
pub use error::Error;
pub use guard::WwGuard;
pub use lockstead_core::ww::{CONTEXTS_PER_THREAD, Scheme};
pub use mutex::WwMutex;

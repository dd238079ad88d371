//! Mutexes for threads with real-time priorities: who waits lends the holder its
//! priority.
//!
//! A thread of high priority that waits for a lock waits for its holder, and so for
//! all that may keep the holder from its processor: any thread of a priority in
//! between, for as long as it likes. With these locks the kernel runs the holder with
//! the highest priority among those who wait for it, along chains of locks too, until
//! it releases. Whoever of them has the highest priority is next.
//!
//! | type | bytes | for |
//! |---|---|---|
//! | [`RtMutex`] | 8 | exclusion, one owner, not recursive |
//! | [`RtRecursiveMutex`] | 16 | the same, and the holder may acquire it again |
//! | [`NamedRtMutex`] | 32 | an [`RtMutex`] with a name and the place of the latest acquisition |
//!
//! ```
//! use lockstead::rt::RtMutex;
//!
//! static SETPOINT: RtMutex<f64> = RtMutex::new(0.0);
//!
//! *SETPOINT.lock() += 0.5; // by whichever thread, of whichever priority
//! assert_eq!(*SETPOINT.lock(), 0.5);
//! ```
//!
//! # How they differ from [`Mutex`](crate::Mutex)
//! - Nobody barges and nobody spins: a lock for which threads wait goes to the first
//!   of them, in the order of their priorities, by a call on both sides. Under
//!   contention that is slower by far than [`Mutex`](crate::Mutex), which is the right
//!   lock for threads without real-time priorities.
//! - A signal handler, and a [`CancelToken`](crate::CancelToken), end a wait up to 5 ms
//!   late, and the handler is held off that long: the kernel itself resumes these waits
//!   after every handler.
//! - Cycles of waiting threads panic instead of hanging, as far as they consist of
//!   these locks and of other PI futexes of the process: in the thread that would close
//!   the cycle, if nothing else ends its wait. A wait with a deadline or token goes on,
//!   for the cycle may open; it looks every millisecond then and lends nothing.
//! - A holder that ends (with its guard leaked) is noticed: who waits, or asks later,
//!   panics, and so do all others from then on.
//! - No [`Condvar`](crate::Condvar) goes with them, for its mutex is the other one.
//!
//! As with the other mutexes a panic of the holder releases and does not poison.
//!
//! # Without the kernel's help
//! Where the kernel or a system call filter refuses the calls the locks exclude as
//! before, and everything else holds but the inheritance, the order of the waiters, and
//! the panics for cycles of several threads. [`inherits`] tells, and so does `lockstead
//! features`.
//!
//! # Source
//! Sha, Rajkumar, Lehoczky: *Priority Inheritance Protocols* (1990). The kernel's
//! `rt_mutex` and PI futex (Molnar, Gleixner, 2006).

mod guard;
mod mutex;
mod owner;
mod raw;
mod recursive;
mod refusal;

pub use guard::{MappedRtMutexGuard, RtMutexGuard};
pub use lockstead_linux::pi::inherits;
pub use mutex::{NamedRtMutex, RtMutex};
pub use owner::Owner;
pub use recursive::{RtRecursiveMutex, RtRecursiveMutexGuard};

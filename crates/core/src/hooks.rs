//! Hooks, by which a watcher is told of what happens to a lock. By default nothing watches, at
//! no cost.
//!
//! # Role
//! A lock takes a type parameter `H: Hooks`. With [`Off`] every call below is
//! empty and inlined away, the state is zero bytes, and the fast path is the
//! same instructions as without hooks (`bench/instructions` counts them). With another type
//! the *same* fast path still runs: a build that watches exercises the code
//! that ships.
//!
//! # Rules
//! A hook never takes a lock of this crate and never panics between two steps of a protocol. It
//! does not allocate through the program's allocator if it is to serve under an interposed
//! program.

use crate::policy::{Policy, Standard};
use core::panic::Location;

/// The identity of a lock in reports: its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct LockId(pub usize);

/// The place in the source that a call came from.
pub type Site = &'static Location<'static>;

/// The way in which the caller shares what it asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// The caller shares it with nobody: a mutex, or a reader-writer lock for writing.
    Alone,
    /// The caller shares it with other readers.
    Shared,
    /// The caller takes one unit of a semaphore, which another thread may give back.
    Unit,
}

/// The path on which an acquisition was granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Path {
    /// The inline compare-exchange, or a successful `try_lock`.
    Fast,
    /// The slow path, after the fast one has failed.
    Slow,
}

/// A watcher of locks, which are told of as they are used. All functions do nothing by default.
pub trait Hooks: Sized + 'static {
    /// The policy by which threads wait for a mutex of the crate `lockstead`, whose one parameter this is.
    /// The locks of this crate have a parameter for it.
    type Waits: Policy;
    /// The data that the watcher keeps in each lock.
    type State: Sized;
    /// The state of a fresh lock.
    const NEW: Self::State;

    /// Called before an acquisition that may wait. `subclass` is the nesting level
    /// given by the `_nested` calls, else 0. [`acquired`](Self::acquired) or
    /// [`abandoned`](Self::abandoned) follows on the same thread; in between come
    /// only calls of a signal handler's, in the same order.
    #[inline(always)]
    fn will_acquire(
        _state: &Self::State,
        _lock: LockId,
        _access: Access,
        _subclass: u32,
        _site: Site,
    ) {
    }

    /// Called when the fast path of an acquisition announced by `will_acquire` has failed.
    /// `endless`: nothing but the lock itself ends the wait.
    #[inline(always)]
    fn will_wait(_state: &Self::State, _lock: LockId, _endless: bool) {}

    /// Called after a successful acquisition, before the caller's critical section;
    /// without a [`will_acquire`](Self::will_acquire) if it was only tried.
    #[inline(always)]
    fn acquired(_state: &Self::State, _lock: LockId, _access: Access, _path: Path, _site: Site) {}

    /// Called when an acquisition announced by `will_acquire` has failed.
    #[inline(always)]
    fn abandoned(_state: &Self::State, _lock: LockId, _site: Site) {}

    /// Called before the releasing atomic, while the caller still holds the lock.
    #[inline(always)]
    fn releasing(_state: &Self::State, _lock: LockId) {}

    /// Returns the name given to the lock, for messages.
    fn name(_state: &Self::State) -> Option<&'static str> {
        None
    }

    /// Returns where the lock was last acquired, for messages, if the watcher keeps it.
    fn acquired_at(_state: &Self::State) -> Option<Site> {
        None
    }
}

/// The watcher that does nothing, and costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Off;

impl Hooks for Off {
    type Waits = Standard;
    type State = ();
    const NEW: () = ();
}

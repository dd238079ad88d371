//! What watches a lock: nothing, by default, at no cost.
//!
//! # Role
//! A lock takes a type parameter `H: Hooks`. With [`Off`] every call below is
//! empty and inlined away, the state is zero bytes, and the fast path is the
//! same instructions as without hooks (a test counts them). With another type
//! the *same* fast path still runs: a build that watches exercises the code
//! that ships.
//!
//! # Rules
//! A hook never takes a lock of this crate, never panics while the lock is
//! held by somebody else's protocol step, and does not allocate through the
//! program's allocator if it is to serve under an interposed program.

use core::panic::Location;

/// The identity of a lock in reports: its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct LockId(pub usize);

/// Where a call came from.
pub type Site = &'static Location<'static>;

/// With whom the caller shares what it asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// With nobody: a mutex, or a reader-writer lock for writing.
    Alone,
    /// With other readers.
    Shared,
    /// One unit of a semaphore, which whoever has it need not give back.
    Unit,
}

/// How an acquisition was granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Path {
    /// The inline compare-exchange, or a successful `try_lock`.
    Fast,
    /// Past the fast path.
    Slow,
}

/// What watches a lock. All functions default to nothing.
pub trait Hooks: Sized + 'static {
    /// What the watcher keeps in each lock.
    type State: Sized;
    /// The state of a fresh lock.
    const NEW: Self::State;

    /// Before an acquisition that may wait. `subclass` is the nesting level
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

    /// An acquisition announced by `will_acquire` has failed its fast path.
    /// `endless`: nothing but the lock itself ends the wait.
    #[inline(always)]
    fn will_wait(_state: &Self::State, _lock: LockId, _endless: bool) {}

    /// After a successful acquisition, before the caller's critical section;
    /// without a [`will_acquire`](Self::will_acquire) if it was only tried.
    #[inline(always)]
    fn acquired(_state: &Self::State, _lock: LockId, _access: Access, _path: Path, _site: Site) {}

    /// An acquisition announced by `will_acquire` failed.
    #[inline(always)]
    fn abandoned(_state: &Self::State, _lock: LockId, _site: Site) {}

    /// Before the releasing atomic: the caller still holds the lock.
    #[inline(always)]
    fn releasing(_state: &Self::State, _lock: LockId) {}

    /// The name given to the lock, for messages.
    fn name(_state: &Self::State) -> Option<&'static str> {
        None
    }

    /// Where the lock was last acquired, for messages, if the watcher keeps it.
    fn acquired_at(_state: &Self::State) -> Option<Site> {
        None
    }
}

/// Nothing watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Off;

impl Hooks for Off {
    type State = ();
    const NEW: () = ();
}

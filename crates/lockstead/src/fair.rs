//! The mutex whose waits are short.

use crate::{Hooks, Mutex, Unnamed};
use core::fmt;
use core::ops::{Deref, DerefMut};
use lockstead_core::{Access, LockId, Path, Site, policy};

/// The hooks behind [`FairMutex`]: they do what those of a mutex without a name do, and have threads
/// wait by the policy [`Fair`](policy::Fair).
#[derive(Clone, Copy, Debug, Default)]
pub struct Fair;

impl Hooks for Fair {
    type Waits = policy::Fair;
    type State = <Unnamed as Hooks>::State;
    #[cfg_attr(
        feature = "check",
        expect(
            clippy::declare_interior_mutable_const,
            reason = "the state of a fresh lock, copied once"
        )
    )]
    const NEW: Self::State = Unnamed::NEW;

    #[inline(always)]
    #[track_caller]
    fn will_acquire(state: &Self::State, id: LockId, access: Access, subclass: u32, site: Site) {
        Unnamed::will_acquire(state, id, access, subclass, site);
    }

    #[inline(always)]
    #[track_caller]
    fn will_wait(state: &Self::State, id: LockId, endless: bool) {
        Unnamed::will_wait(state, id, endless);
    }

    #[inline(always)]
    fn acquired(state: &Self::State, id: LockId, access: Access, path: Path, site: Site) {
        Unnamed::acquired(state, id, access, path, site);
    }

    #[inline(always)]
    fn abandoned(state: &Self::State, id: LockId, site: Site) {
        Unnamed::abandoned(state, id, site);
    }

    #[inline(always)]
    fn releasing(state: &Self::State, id: LockId) {
        Unnamed::releasing(state, id);
    }

    fn name(state: &Self::State) -> Option<&'static str> {
        Unnamed::name(state)
    }

    fn acquired_at(state: &Self::State) -> Option<Site> {
        Unnamed::acquired_at(state)
    }
}

/// A [`Mutex`] for those who serve requests: its longest waits are short, at some cost in work per
/// processor time.
///
/// It is that mutex, word for word, with the same guard, the same bytes and the same fast path; only
/// threads that wait for it behave otherwise. Where there are more threads than processors, each
/// keeps its processor for a batch of sections, 25 µs long, and then lets others have it
/// ([`policy::Fair`]). A thread that has waited for 0.3 ms, and 0.1 ms for each that sleeps for a lock,
/// asks to be handed the lock at the next release. A thread that gives its processor up may hold another
/// lock meanwhile, whose waiters wait for that turn, too.
///
/// `docs/frontier.md` shows what each of the two gives and costs. [`FifoMutex`](crate::FifoMutex) is
/// granted strictly in the order of asking, which is dear.
///
/// A mutex that nobody has becomes one of the other kind by
/// `FairMutex::new(mutex.into_inner())`, and back in the same way, which moves the data and does nothing else.
///
/// # Example
/// ```
/// use lockstead::{Condvar, FairMutex};
///
/// static QUEUE: FairMutex<Vec<u32>> = FairMutex::new(Vec::new());
/// static FILLED: Condvar = Condvar::new();
///
/// std::thread::scope(|s| {
///     s.spawn(|| {
///         QUEUE.lock().push(7);
///         FILLED.notify_one();
///     });
///     let mut queue = QUEUE.lock();
///     while queue.is_empty() {
///         FILLED.wait(&mut queue);
///     }
///     assert_eq!(queue.pop(), Some(7));
/// });
/// ```
///
/// # Source
/// parking_lot's waiters, which yield before they sleep, and are handed the lock now and then.
#[repr(transparent)]
pub struct FairMutex<T: ?Sized>(Mutex<T, Fair>);

#[cfg(not(feature = "check"))]
const _: () = assert!(size_of::<FairMutex<()>>() == 8);

impl<T> FairMutex<T> {
    /// Creates a free mutex that guards `value`.
    #[inline]
    #[cfg_attr(feature = "check", track_caller)]
    pub const fn new(value: T) -> Self {
        #[cfg(feature = "check")]
        let state = crate::check::CheckedLock::new(None, Some(core::panic::Location::caller()));
        #[cfg(not(feature = "check"))]
        let state = ();
        FairMutex(Mutex::with_hooks(state, value))
    }

    /// Returns the data. Nobody else can hold the mutex: it is the caller's own.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> Deref for FairMutex<T> {
    type Target = Mutex<T, Fair>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T: ?Sized> DerefMut for FairMutex<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl<T: Default> Default for FairMutex<T> {
    #[cfg_attr(feature = "check", track_caller)]
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for FairMutex<T> {
    #[cfg_attr(feature = "check", track_caller)]
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for FairMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

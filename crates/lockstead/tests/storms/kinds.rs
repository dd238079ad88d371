//! The kinds of locks, each taken and released in the same words.

use crate::frame::{Hasty, Patient};
use crate::visitors::Take;
use lockstead::rt::{RtRecursiveMutex, RtRecursiveMutexGuard};
use lockstead_core::biased::BiasedHold;
use lockstead_core::ww::{Class, Context, ContextPatience, RawWwMutex, Scheme, WwError};
use lockstead_core::{
    ClassicSemaphore, LockError, Off, OnceError, OnceTurn, Platform, RawBiased, RawCondvar,
    RawMutex, RawOnce, RawRwLock, TunedSemaphore, WaitBounds,
};
use lockstead_linux::Linux;
use lockstead_linux::pi::{PiError, PiWord};
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

type How<'a> = WaitBounds<'a, Linux>;

/// Makes kinds whose holder keeps nothing, each by its name, type, a fresh one, and how it is taken,
/// tried and released.
macro_rules! plain {
    ($($name:ident, $lock:ty, $fresh:expr, $take:expr, $try:expr, $release:expr;)*) => {
        $(
            pub(crate) struct $name;

            impl Take for $name {
                type Lock = $lock;
                type Hold = ();

                fn fresh() -> Self::Lock {
                    $fresh
                }
                fn lock(lock: &Self::Lock, how: &How<'_>) -> Result<(), LockError> {
                    let take: fn(&Self::Lock, &How<'_>) -> Result<(), LockError> = $take;
                    take(lock, how)
                }
                fn try_lock(lock: &Self::Lock) -> Option<()> {
                    let take: fn(&Self::Lock) -> bool = $try;
                    take(lock).then_some(())
                }
                unsafe fn unlock(lock: &Self::Lock, (): ()) {
                    let release: fn(&Self::Lock) = $release;
                    release(lock);
                }
            }
        )*
    };
}

plain! {
    Mutex, RawMutex<Linux, Off, Patient>, RawMutex::new(),
        |lock, how| lock.lock_how(how, 0, Location::caller()),
        |lock| lock.try_lock(Location::caller()),
        // SAFETY: `unlock` has its caller promise that this thread holds the lock.
        |lock| unsafe { lock.unlock() };
    Shipped, RawMutex<Linux>, RawMutex::new(),
        |lock, how| lock.lock_how(how, 0, Location::caller()),
        |lock| lock.try_lock(Location::caller()),
        // SAFETY: `unlock` has its caller promise that this thread holds the lock.
        |lock| unsafe { lock.unlock() };
    HastyMutex, RawMutex<Linux, Off, Hasty>, RawMutex::new(),
        |lock, how| lock.lock_how(how, 0, Location::caller()),
        |lock| lock.try_lock(Location::caller()),
        // SAFETY: `unlock` has its caller promise that this thread holds the lock.
        |lock| unsafe { lock.unlock() };
    Write, RawRwLock<Linux, Off, Patient>, RawRwLock::new(),
        |lock, how| lock.write_lazily(|| *how, 0, Location::caller()),
        |lock| lock.try_write(Location::caller()),
        // SAFETY: `unlock` has its caller promise that this thread holds the lock.
        |lock| unsafe { lock.unlock_write() };
    Read, RawRwLock<Linux, Off, Patient>, RawRwLock::new(),
        |lock, how| lock.read_lazily(|| *how, 0, Location::caller()),
        |lock| lock.try_read(Location::caller()),
        // SAFETY: `unlock` has its caller promise that this thread holds the lock.
        |lock| unsafe { lock.unlock_read() };
    HastyWrite, RawRwLock<Linux, Off, Hasty>, RawRwLock::new(),
        |lock, how| lock.write_lazily(|| *how, 0, Location::caller()),
        |lock| lock.try_write(Location::caller()),
        // SAFETY: `unlock` has its caller promise that this thread holds the lock.
        |lock| unsafe { lock.unlock_write() };
    Tuned, TunedSemaphore<Linux, Off, Patient>, TunedSemaphore::new(1).expect("few"),
        |lock, how| lock.down_how(how, Location::caller()),
        |lock| lock.try_down(Location::caller()),
        |lock| lock.up().expect("few");
    Classic, ClassicSemaphore<Linux>, ClassicSemaphore::new(1).expect("few"),
        |lock, how| lock.down_how(how, Location::caller()),
        |lock| lock.try_down(Location::caller()),
        |lock| lock.up().expect("few");
    Bare, RawWwMutex<Linux, Patient>, RawWwMutex::new(),
        |lock, how| lock.lock_alone(how, Location::caller()),
        |lock| lock.try_lock(None, Location::caller()),
        // SAFETY: `unlock` has its caller promise that this thread holds the lock.
        |lock| unsafe { lock.unlock(None) };
    Rt, PiWord, PiWord::new(),
        |lock, how| if lock.lock_fast() { Ok(()) } else { lock.lock_slow(how).map_err(pi_error) },
        |lock| lock.lock_fast() || lock.try_lock_slow(),
        // SAFETY: `unlock` has its caller promise that this thread holds the lock.
        |lock| unsafe { lock.unlock() };
}

/// Says in the words of the other locks why a real-time mutex was not acquired.
pub(crate) fn pi_error(error: PiError) -> LockError {
    match error {
        PiError::TimedOut => LockError::TimedOut,
        PiError::Interrupted => LockError::Interrupted,
        PiError::Cancelled => LockError::Cancelled,
        PiError::Recursive => LockError::Recursive,
        PiError::Deadlock | PiError::OwnerLost => LockError::OwnerLost,
    }
}

/// The recursive real-time mutex, acquired twice by who waits as long as it takes.
pub(crate) struct RecursiveRt;

impl RecursiveRt {
    /// Returns the word with which the mutex begins, as its layout says: by it a visitor takes the mutex that
    /// comes with bounds which the mutex has no form for.
    fn word(lock: &RtRecursiveMutex<()>) -> &PiWord {
        // SAFETY: the mutex and what it begins with are `repr(C)`, and the word comes first in both.
        unsafe { &*std::ptr::from_ref(lock).cast() }
    }
}

impl Take for RecursiveRt {
    type Lock = RtRecursiveMutex<()>;
    type Hold = Option<[RtRecursiveMutexGuard<'static, ()>; 2]>;

    fn fresh() -> Self::Lock {
        RtRecursiveMutex::new(())
    }
    fn lock(lock: &Self::Lock, how: &How<'_>) -> Result<Self::Hold, LockError> {
        if how.deadline.is_some() || how.cancel.is_some() {
            return Rt::lock(Self::word(lock), how).map(|()| None);
        }
        // SAFETY: the page with the lock is mapped until all that visit it have gone.
        let lock: &'static Self::Lock = unsafe { &*std::ptr::from_ref(lock) };
        Ok(Some([lock.lock(), lock.lock()]))
    }
    fn try_lock(lock: &Self::Lock) -> Option<Self::Hold> {
        // SAFETY: the page with the lock is mapped until all that visit it have gone.
        let lock: &'static Self::Lock = unsafe { &*std::ptr::from_ref(lock) };
        lock.try_lock().map(|outer| Some([lock.lock(), outer]))
    }
    unsafe fn unlock(lock: &Self::Lock, hold: Self::Hold) {
        match hold {
            // The first of them leaves the mutex with its thread, the second one releases it.
            Some(guards) => drop(guards),
            // SAFETY: the caller holds the mutex, by its word.
            None => unsafe { Rt::unlock(Self::word(lock), ()) },
        }
    }
}

pub(crate) struct Biased;

impl Take for Biased {
    type Lock = RawBiased<Linux, Off, Hasty>;
    type Hold = BiasedHold;

    fn fresh() -> Self::Lock {
        RawBiased::new()
    }
    fn lock(lock: &Self::Lock, how: &How<'_>) -> Result<BiasedHold, LockError> {
        lock.lock_lazily(|| *how, 0, Location::caller())
    }
    fn try_lock(lock: &Self::Lock) -> Option<BiasedHold> {
        lock.try_lock(Location::caller())
    }
    unsafe fn unlock(lock: &Self::Lock, hold: BiasedHold) {
        // SAFETY: the caller promises that this thread holds the lock by `hold`.
        unsafe { lock.unlock(hold) };
    }
}

static CLASS: Class<Linux> = Class::new(Scheme::WoundWait);

/// A wait/wound mutex in a context of its own.
pub(crate) struct InContext;

impl Take for InContext {
    type Lock = RawWwMutex<Linux, Patient>;
    type Hold = Context<Linux>;

    fn fresh() -> Self::Lock {
        RawWwMutex::new()
    }
    fn lock(lock: &Self::Lock, how: &How<'_>) -> Result<Self::Hold, LockError> {
        let context = Context::begin(&CLASS).expect("few at a time");
        let (deadline, interruptible) = (how.deadline, how.interruptible);
        // Contexts cannot be cancelled: such a wait ends soon instead.
        let deadline = deadline.or(how.cancel.map(|_| Linux::now().after(100_000)));
        match lock.lock_how(
            &context,
            &ContextPatience { deadline, interruptible },
            Location::caller(),
        ) {
            Ok(()) => Ok(context),
            Err(WwError::Lock(error)) => {
                context.finish();
                Err(error)
            }
            Err(error) => panic!("a context that holds nothing: {error:?}"),
        }
    }
    fn try_lock(lock: &Self::Lock) -> Option<Self::Hold> {
        let context = Context::begin(&CLASS).expect("few at a time");
        if lock.try_lock(Some(&context), Location::caller()) {
            return Some(context);
        }
        context.finish();
        None
    }
    unsafe fn unlock(lock: &Self::Lock, context: Self::Hold) {
        // SAFETY: the caller promises that this thread holds the lock in this context.
        unsafe { lock.unlock(Some(&context)) };
        context.finish();
    }
}

/// A once, held by whoever runs the initialiser or has found that it was run.
pub(crate) struct Once;

impl Take for Once {
    type Lock = RawOnce<Linux>;
    type Hold = bool;

    fn fresh() -> Self::Lock {
        RawOnce::new()
    }
    fn lock(lock: &Self::Lock, how: &How<'_>) -> Result<bool, LockError> {
        match lock.begin(true, how) {
            Ok(turn) => Ok(turn.map(std::mem::forget).is_some()),
            Err(OnceError::NotAwaited(error)) => Err(error),
            Err(OnceError::Poisoned) => unreachable!("no initialiser fails"),
        }
    }
    fn try_lock(lock: &Self::Lock) -> Option<bool> {
        lock.is_completed().then_some(false)
    }
    unsafe fn unlock(lock: &Self::Lock, runs: bool) {
        if runs {
            // SAFETY: `begin` gave this thread the turn, which it has not ended.
            OnceTurn::complete(unsafe { lock.turn() });
        }
    }
}

/// A door that whoever comes first opens, and others wait for: a condition variable, which is
/// notified under its mutex.
pub(crate) struct Door {
    mutex: RawMutex<Linux, Off, Patient>,
    opened: RawCondvar<Linux>,
    is_open: AtomicBool,
}

/// One that waits until the door is open, and then has its mutex.
pub(crate) struct Condition;

impl Take for Condition {
    type Lock = Door;
    type Hold = ();

    fn fresh() -> Door {
        let is_open = AtomicBool::new(false);
        Door { mutex: RawMutex::new(), opened: RawCondvar::new(), is_open }
    }
    fn lock(door: &Door, how: &How<'_>) -> Result<(), LockError> {
        let here = Location::caller();
        door.mutex.lock_how(how, 0, here)?;
        while !door.is_open.load(Relaxed) {
            // SAFETY: this thread holds the mutex, before the call and after it.
            if let Err(error) = unsafe { door.opened.wait(&door.mutex, how, here) } {
                // SAFETY: this thread holds the mutex after a wait that failed, since nobody forks.
                unsafe { door.mutex.unlock() };
                return Err(error);
            }
        }
        Ok(())
    }
    fn try_lock(door: &Door) -> Option<()> {
        if !door.mutex.try_lock(Location::caller()) {
            return None;
        }
        if door.is_open.load(Relaxed) {
            return Some(());
        }
        // SAFETY: this thread has taken the mutex above, and releases it once.
        unsafe { door.mutex.unlock() };
        None
    }
    unsafe fn unlock(door: &Door, (): ()) {
        // SAFETY: the caller promises that this thread holds the mutex.
        unsafe { door.mutex.unlock() };
    }
}

/// The one that opens the door.
pub(crate) struct Opens;

impl Take for Opens {
    type Lock = Door;
    type Hold = ();
    const COMES_LATER: bool = true;

    fn fresh() -> Door {
        Condition::fresh()
    }
    fn lock(door: &Door, how: &How<'_>) -> Result<(), LockError> {
        door.mutex.lock_how(how, 0, Location::caller())
    }
    fn try_lock(door: &Door) -> Option<()> {
        door.mutex.try_lock(Location::caller()).then_some(())
    }
    unsafe fn unlock(door: &Door, (): ()) {
        door.is_open.store(true, Relaxed);
        door.opened.notify_all();
        // SAFETY: the caller promises that this thread holds the mutex.
        unsafe { door.mutex.unlock() };
    }
}

//! lockstead's own locks, as the crate `lockstead` uses them.

use super::BenchLock;
use core::cell::OnceCell;
use core::panic::Location;
use lockstead_core::biased::BiasedHold;
use lockstead_core::policy::Fair;
use lockstead_core::ww::{Class, Context, RawWwMutex, Scheme, WwError};
use lockstead_core::{
    ClassicSemaphore, LockError, Off, PermitOverflow, Policy, RawBiased, RawMutex, Standard,
    TunedSemaphore, WaitBounds,
};
use lockstead_linux::Linux;
use lockstead_linux::pi::{PiError, PiWord};

/// The mutex of this project, by its policy for throughput.
pub type Lockstead = ByPolicy<Standard>;
/// The mutex of this project, by its policy for short waits.
pub type LocksteadFair = ByPolicy<Fair>;

/// The mutex of this project, by some policy.
pub struct ByPolicy<Y: Policy>(RawMutex<Linux, Off, Y>);

impl<Y: Policy> BenchLock for ByPolicy<Y> {
    fn new() -> Self {
        Self(RawMutex::new())
    }

    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        self.0.lock(Location::caller()).unwrap_or_else(refused);
        let result = section();
        // SAFETY: by PEER-HELD this thread holds the lock, which it took above.
        unsafe { self.0.unlock() };
        result
    }
}

#[cold]
fn refused(error: LockError) {
    unreachable!("a measuring loop takes a lock that it does not hold: {error:?}")
}

/// The mutex that belongs to one thread until another one comes.
pub struct Biased(RawBiased<Linux>);

impl BenchLock for Biased {
    fn new() -> Self {
        Self(RawBiased::new())
    }

    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        let hold = self.0.lock(Location::caller()).unwrap_or_else(refused_biased);
        let result = section();
        // SAFETY: by PEER-HELD this thread holds the lock in this way since it took it above.
        unsafe { self.0.unlock(hold) };
        result
    }
}

#[cold]
fn refused_biased(error: LockError) -> BiasedHold {
    unreachable!("a measuring loop takes a lock that it does not hold: {error:?}")
}

/// The semaphore of 2005, with one permit.
pub struct SemaphoreClassic(ClassicSemaphore<Linux>);

impl BenchLock for SemaphoreClassic {
    fn new() -> Self {
        Self(ClassicSemaphore::new(1).expect("one permit is possible"))
    }

    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        self.0.down(Location::caller());
        let result = section();
        self.0.up().unwrap_or_else(overflowed);
        result
    }
}

/// The semaphore with the mutex's tricks, with one permit.
pub struct SemaphoreTuned(TunedSemaphore<Linux>);

impl BenchLock for SemaphoreTuned {
    fn new() -> Self {
        Self(TunedSemaphore::new(1).expect("one permit is possible"))
    }

    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        self.0.down(Location::caller());
        let result = section();
        self.0.up().unwrap_or_else(overflowed);
        result
    }
}

#[cold]
fn overflowed(error: PermitOverflow) {
    unreachable!("a measuring loop gives back the one permit it took: {error:?}")
}

/// The wait/wound mutex, in a context that each thread begins once.
pub struct WaitWound(RawWwMutex<Linux>);

static CLASS: Class<Linux> = Class::new(Scheme::WoundWait);

thread_local! {
    /// The context of the thread. It has no destructor, so that reaching it is one look, as at
    /// any other variable.
    static CONTEXT: OnceCell<Context<Linux>> = const { OnceCell::new() };
}

impl BenchLock for WaitWound {
    fn new() -> Self {
        Self(RawWwMutex::new())
    }

    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        // Taken out of the closure, which is not always inlined.
        let context = CONTEXT.with(|context| std::ptr::from_ref(context.get_or_init(begun)));
        // SAFETY: the context is a variable of the calling thread without a destructor, and only
        // that thread uses it.
        let context = unsafe { &*context };
        self.0.lock(context, Location::caller()).unwrap_or_else(refused_in_context);
        let result = section();
        // SAFETY: by PEER-HELD this thread holds the lock in this context since it took it above.
        unsafe { self.0.unlock(Some(context)) };
        result
    }
}

#[cold]
fn begun() -> Context<Linux> {
    Context::begin(&CLASS).expect("the only context of its thread")
}

#[cold]
fn refused_in_context(error: WwError) {
    unreachable!("a measuring loop holds one lock at a time: {error:?}")
}

/// The real-time mutex of this project.
pub struct RealTime(PiWord);

impl BenchLock for RealTime {
    fn new() -> Self {
        Self(PiWord::new())
    }

    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        if !self.0.lock_fast() {
            self.0.lock_slow(&WaitBounds::FOREVER).unwrap_or_else(refused_by_inheritance);
        }
        let result = section();
        // SAFETY: by PEER-HELD this thread holds the lock, which it took above.
        unsafe { self.0.unlock() };
        result
    }
}

#[cold]
fn refused_by_inheritance(error: PiError) {
    unreachable!("a measuring loop takes a lock that it does not hold: {error:?}")
}

//! The mutex for C.

use crate::export::{also, c_type, destroy};
use crate::own::enter;
use crate::refuse::{die, refuse};
use crate::wait::{self, INTERRUPTIBLE, TIMEOUT};
use core::mem::MaybeUninit;
use core::panic::Location;
use core::sync::atomic::{AtomicI32, Ordering};
use lockstead_core::{Off, Policy, RawMutex, Site};
use lockstead_linux::Linux;

c_type! {
    /// The mutex of C: the core's, eight bytes.
    lks_mutex(RawMutex<Linux>): 8, 8
}

destroy! { lks_mutex_destroy(lks_mutex); }

/// Returns the place of a call, which the core asks for; a lock without hooks does not look.
pub(crate) fn nowhere() -> Site {
    Location::caller()
}

/// Takes the mutex for `call`, or aborts where that would take for ever.
pub(crate) fn lock<Y: Policy>(mutex: &RawMutex<Linux, Off, Y>, call: &str) {
    enter();
    if let Err(error) = mutex.lock(nowhere()) {
        refuse(error, call, "mutex", mutex.id().0);
    }
}

/// Takes the mutex, unless the wait ends before.
///
/// # Safety
/// CAPI-HOW holds.
pub(crate) unsafe fn lock_how<Y: Policy>(
    mutex: &RawMutex<Linux, Off, Y>,
    how: u32,
    argument: u64,
) -> i32 {
    enter();
    // SAFETY: CAPI-HOW holds for `how` and `argument`: the caller keeps it.
    unsafe { wait::waiting(how, argument, |how| wait::code(mutex.lock_how(how, 0, nowhere()))) }
}

/// Takes the mutex, or aborts where that would take for ever.
#[unsafe(no_mangle)]
extern "C" fn lks_mutex_lock_slow(mutex: &lks_mutex) {
    lock(&mutex.0, "lks_mutex_lock");
}

/// Takes the mutex, unless the wait ends before.
///
/// # Safety
/// CAPI-HOW holds.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_mutex_lock_how(mutex: &lks_mutex, how: u32, argument: u64) -> i32 {
    // SAFETY: CAPI-HOW holds for `how` and `argument`: the caller keeps it.
    unsafe { lock_how(&mutex.0, how, argument) }
}

/// Takes the mutex if it is free; returns 1 if it did.
#[unsafe(no_mangle)]
extern "C" fn lks_mutex_trylock_slow(mutex: &lks_mutex) -> i32 {
    enter();
    i32::from(mutex.0.try_lock(nowhere()))
}

/// Releases the mutex where the inline release found more than the owner, and did nothing.
///
/// # Safety
/// CAPI-HOLDER holds.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_mutex_unlock_slow(mutex: &lks_mutex) {
    // SAFETY: CAPI-HOLDER: the calling thread holds the mutex; the caller keeps it.
    unsafe { mutex.0.unlock_slow() };
}

/// Builds a free mutex, as the inline function of `mutex.h` does.
#[unsafe(no_mangle)]
extern "C" fn lks_mutex_init(mutex: &mut MaybeUninit<lks_mutex>) {
    mutex.write(lks_mutex(RawMutex::new()));
}

also! {
    fn lks_mutex_lock(mutex: &lks_mutex) { lks_mutex_lock_slow(mutex) }
    fn lks_mutex_trylock(mutex: &lks_mutex) -> i32 { lks_mutex_trylock_slow(mutex) }
    fn lks_mutex_lock_interruptible(mutex: &lks_mutex) -> i32 {
        lock_how(&mutex.0, INTERRUPTIBLE, 0)
    }
    fn lks_mutex_lock_timeout(mutex: &lks_mutex, nanoseconds: u64) -> i32 {
        lock_how(&mutex.0, TIMEOUT, nanoseconds)
    }
    fn lks_mutex_unlock(mutex: &lks_mutex) { mutex.0.unlock() }
    fn lks_mutex_is_locked(mutex: &lks_mutex) -> i32 { i32::from(mutex.0.is_locked()) }
}

/// Drops a reference, and takes the mutex if that was the last; returns 1 if it was. Aborts if
/// there is no reference to drop.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn lks_atomic_dec_and_mutex_lock(
    count: &AtomicI32,
    mutex: &lks_mutex,
) -> i32 {
    let decrement_above = |floor: i32| {
        // ord: DEC-1 acq_rel, pairs with itself.
        count.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |count| {
            (count > floor).then(|| count - 1)
        })
    };
    if decrement_above(1).is_ok() {
        return 0;
    }
    if count.load(Ordering::Relaxed) > 0 {
        lock(&mutex.0, "lks_atomic_dec_and_mutex_lock");
        match decrement_above(0) {
            Ok(1) => return 1,
            left => {
                // SAFETY: CAPI-HOLDER: this call has locked the mutex.
                unsafe { mutex.0.unlock() };
                if left.is_ok() {
                    return 0;
                }
            }
        }
    }
    die("lks_atomic_dec_and_mutex_lock: the count is zero already: a reference was dropped more \
         than once")
}

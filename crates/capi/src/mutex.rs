//! The mutex.

use crate::own::enter;
use crate::refuse::{die, refuse};
use crate::{names, wait};
use core::panic::Location;
use core::sync::atomic::{AtomicI32, Ordering};
use lockstead_core::{RawMutex, Site};
use lockstead_linux::Linux;

/// The mutex of C: the core's, eight bytes.
#[allow(non_camel_case_types, reason = "the type's name in C")]
#[repr(transparent)]
#[derive(Debug)]
pub struct lks_mutex(pub(crate) RawMutex<Linux>);

const _: () = assert!(size_of::<lks_mutex>() == 8 && align_of::<lks_mutex>() == 8);

/// The core wants to know where a call comes from; a hookless lock does not ask.
pub(crate) fn nowhere() -> Site {
    Location::caller()
}

impl lks_mutex {
    pub(crate) fn address(&self) -> usize {
        self.0.id().0
    }

    pub(crate) fn lock(&self, call: &str) {
        enter();
        if let Err(error) = self.0.lock(nowhere()) {
            refuse(error, call, "mutex", self.address());
        }
    }

    /// # Safety
    /// `argument` is what `how` takes; see `enum lks_how__`.
    pub(crate) unsafe fn lock_how(&self, how: u32, argument: u64) -> i32 {
        enter();
        // SAFETY: as the caller says, until this call ends.
        let Some(how) = (unsafe { wait::wait(how, argument) }) else { return -libc::EINVAL };
        wait::code(self.0.lock_how(&how, 0, nowhere()))
    }
}

/// Nothing of a mutex but its name outlives it.
#[unsafe(no_mangle)]
extern "C" fn lks_mutex_destroy(mutex: &lks_mutex) {
    names::forget(mutex.address());
}

/// Takes the mutex, or aborts where that would take for ever.
#[unsafe(no_mangle)]
extern "C" fn lks_mutex_lock_slow(mutex: &lks_mutex) {
    mutex.lock("lks_mutex_lock");
}

/// Takes the mutex, unless the wait ends before.
///
/// # Safety
/// `argument` is what `how` takes; see `enum lks_how__`.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_mutex_lock_how(mutex: &lks_mutex, how: u32, argument: u64) -> i32 {
    // SAFETY: as the caller says.
    unsafe { mutex.lock_how(how, argument) }
}

/// Takes the mutex if it is free.
#[unsafe(no_mangle)]
extern "C" fn lks_mutex_trylock_slow(mutex: &lks_mutex) -> i32 {
    enter();
    i32::from(mutex.0.try_lock(nowhere()))
}

/// Releases where the inline release found more than the owner, and did nothing.
///
/// # Safety
/// The calling thread holds the mutex.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_mutex_unlock_slow(mutex: &lks_mutex) {
    // SAFETY: the caller's promise.
    unsafe { mutex.0.unlock_slow() };
}

/// Drops a reference, and takes the mutex if that was the last.
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
        mutex.lock("lks_atomic_dec_and_mutex_lock");
        match decrement_above(0) {
            Ok(1) => return 1,
            left => {
                // SAFETY: locked above.
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

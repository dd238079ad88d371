//! The mutexes with priority inheritance, for C.
//!
//! The headers call all of it and inline nothing. A word has to hold the kernel's number of the
//! thread and the process's generation, which change at `fork`.
//!
//! # Invariants
//! - **RT-AGAIN** Only the thread that holds a recursive mutex reads or writes how often it took
//!   it again; 0 while nobody holds it.

use crate::export::{c_type, destroy};
use crate::wait;
use core::cell::Cell;
use lockstead_core::WaitBounds;
use lockstead_linux::Linux;
use lockstead_linux::pi::{PiError, PiWord};

c_type! {
    /// The real-time mutex of C: the word that the kernel shares.
    lks_rt_mutex(PiWord): 8, 8
}

destroy! {
    lks_rt_mutex_destroy(lks_rt_mutex);
    lks_rt_recursive_mutex_destroy(lks_rt_recursive_mutex);
}

/// The real-time mutex of C that its holder may take again.
#[allow(non_camel_case_types, reason = "the type's name in C")]
#[repr(C)]
#[derive(Debug)]
pub struct lks_rt_recursive_mutex {
    pub(crate) word: PiWord,
    /// The number of acquisitions after the first one. Only the holder uses it (RT-AGAIN).
    again: Cell<u32>,
    spare: u32,
}

const _: () = assert!(size_of::<lks_rt_recursive_mutex>() == 16);
const _: () = assert!(core::mem::offset_of!(lks_rt_recursive_mutex, again) == 8);

/// Returns the errno of an error.
fn errno(error: PiError) -> i32 {
    match error {
        PiError::TimedOut => libc::ETIMEDOUT,
        PiError::Cancelled | PiError::Interrupted => libc::EINTR,
        PiError::Recursive | PiError::Deadlock => libc::EDEADLK,
        PiError::OwnerLost => libc::EOWNERDEAD,
    }
}

/// Takes a mutex that was not free. It stands apart, so that a caller that finds a free mutex
/// saves no registers for it.
///
/// # Safety
/// CAPI-HOW holds.
#[cold]
#[inline(never)]
unsafe fn lock_slow(word: &PiWord, how: u32, argument: u64) -> i32 {
    let lock = |how: &WaitBounds<'_, Linux>| {
        word.lock_slow(how).map_or_else(|error| -errno(error), |()| 0)
    };
    // SAFETY: CAPI-HOW holds for `how` and `argument`: the caller keeps it.
    unsafe { wait::waiting(how, argument, lock) }
}

impl lks_rt_mutex {
    /// Takes the mutex, unless the wait ends before.
    ///
    /// # Safety
    /// CAPI-HOW holds.
    pub(crate) unsafe fn lock_how(&self, how: u32, argument: u64) -> i32 {
        if self.0.lock_fast() {
            return 0;
        }
        // SAFETY: CAPI-HOW holds for `how` and `argument`: the caller keeps it.
        unsafe { lock_slow(&self.0, how, argument) }
    }

    pub(crate) fn try_lock(&self) -> bool {
        self.0.lock_fast() || self.0.try_lock_slow()
    }
}

impl lks_rt_recursive_mutex {
    /// Takes the mutex once more. Returns `None` if the calling thread does not hold it.
    fn again(&self) -> Option<i32> {
        if !self.word.is_mine() {
            return None;
        }
        let Some(again) = self.again.get().checked_add(1) else { return Some(-libc::EAGAIN) };
        self.again.set(again);
        Some(0)
    }

    /// Takes the mutex, unless the wait ends before.
    ///
    /// # Safety
    /// CAPI-HOW holds.
    pub(crate) unsafe fn lock_how(&self, how: u32, argument: u64) -> i32 {
        if self.word.lock_fast() {
            return 0;
        }
        if let Some(result) = self.again() {
            return result;
        }
        // SAFETY: CAPI-HOW holds for `how` and `argument`: the caller keeps it.
        unsafe { lock_slow(&self.word, how, argument) }
    }

    pub(crate) fn try_lock(&self) -> i32 {
        if self.word.lock_fast() || self.word.try_lock_slow() {
            return 1;
        }
        i32::from(self.again() == Some(0))
    }

    /// Takes one acquisition back, and releases the mutex with the last one.
    ///
    /// # Safety
    /// CAPI-HOLDER holds.
    pub(crate) unsafe fn unlock(&self) {
        match self.again.get() {
            // SAFETY: CAPI-HOLDER: this is the calling thread's last hold; the caller keeps it.
            0 => unsafe { self.word.unlock() },
            again => self.again.set(again - 1),
        }
    }

    /// Returns how often the calling thread holds the mutex.
    pub(crate) fn depth(&self) -> u64 {
        if self.word.is_mine() { u64::from(self.again.get()) + 1 } else { 0 }
    }
}

/// Tells whether a waiter for these mutexes lends its priority here.
#[unsafe(no_mangle)]
extern "C" fn lks_rt_inherits() -> i32 {
    i32::from(lockstead_linux::pi::inherits())
}

/// Takes the mutex, unless the wait ends before.
///
/// # Safety
/// CAPI-HOW holds.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_rt_mutex_lock_how(mutex: &lks_rt_mutex, how: u32, argument: u64) -> i32 {
    // SAFETY: CAPI-HOW holds for `how` and `argument`: the caller keeps it.
    unsafe { mutex.lock_how(how, argument) }
}

/// Takes the mutex if it is free; returns 1 if it did.
#[unsafe(no_mangle)]
extern "C" fn lks_rt_mutex_trylock_slow(mutex: &lks_rt_mutex) -> i32 {
    i32::from(mutex.try_lock())
}

/// Releases the mutex, for the inline function of `rt.h`.
///
/// # Safety
/// CAPI-HOLDER holds.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_rt_mutex_unlock_slow(mutex: &lks_rt_mutex) {
    // SAFETY: CAPI-HOLDER: the calling thread holds the mutex; the caller keeps it.
    unsafe { mutex.0.unlock() };
}

/// Tells whether anybody holds the mutex.
#[unsafe(no_mangle)]
extern "C" fn lks_rt_mutex_is_locked(mutex: &lks_rt_mutex) -> i32 {
    i32::from(mutex.0.is_locked())
}

/// Tells whether the calling thread holds the mutex.
#[unsafe(no_mangle)]
extern "C" fn lks_rt_mutex_is_mine(mutex: &lks_rt_mutex) -> i32 {
    i32::from(mutex.0.is_mine())
}

/// Takes the mutex, or takes it again, unless the wait ends before.
///
/// # Safety
/// CAPI-HOW holds.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_rt_recursive_mutex_lock_how(
    mutex: &lks_rt_recursive_mutex,
    how: u32,
    argument: u64,
) -> i32 {
    // SAFETY: CAPI-HOW holds for `how` and `argument`: the caller keeps it.
    unsafe { mutex.lock_how(how, argument) }
}

/// Takes the mutex if it is free or the caller holds it; returns 1 if it did.
#[unsafe(no_mangle)]
extern "C" fn lks_rt_recursive_mutex_trylock_slow(mutex: &lks_rt_recursive_mutex) -> i32 {
    mutex.try_lock()
}

/// Takes one acquisition of the mutex back, and releases it with the last one.
///
/// # Safety
/// CAPI-HOLDER holds.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_rt_recursive_mutex_unlock_slow(mutex: &lks_rt_recursive_mutex) {
    // SAFETY: CAPI-HOLDER: the calling thread holds the mutex; the caller keeps it.
    unsafe { mutex.unlock() };
}

/// Tells whether anybody holds the mutex.
#[unsafe(no_mangle)]
extern "C" fn lks_rt_recursive_mutex_is_locked(mutex: &lks_rt_recursive_mutex) -> i32 {
    i32::from(mutex.word.is_locked())
}

/// Returns how often the calling thread holds the mutex.
#[unsafe(no_mangle)]
extern "C" fn lks_rt_recursive_mutex_depth(mutex: &lks_rt_recursive_mutex) -> u64 {
    mutex.depth()
}

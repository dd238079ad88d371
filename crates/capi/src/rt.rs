//! The mutexes with priority inheritance.
//!
//! All of it is called: what a word has to hold is the kernel's number of the thread and
//! the process's generation, which change at `fork`, and so are not for inline code that
//! was compiled before.

use crate::{names, wait};
use core::cell::Cell;
use lockstead_linux::pi::{PiError, PiWord};

/// The real-time mutex of C: the word that the kernel shares.
#[allow(non_camel_case_types, reason = "the type's name in C")]
#[repr(transparent)]
#[derive(Debug)]
pub struct lks_rt_mutex(pub(crate) PiWord);

/// The same, which its holder may take again.
#[allow(non_camel_case_types, reason = "the type's name in C")]
#[repr(C)]
#[derive(Debug)]
pub struct lks_rt_recursive_mutex {
    pub(crate) word: PiWord,
    /// Acquisitions after the first one; the holder's alone, 0 while there is none.
    again: Cell<u32>,
    spare: u32,
}

const _: () = assert!(size_of::<lks_rt_mutex>() == 8 && align_of::<lks_rt_mutex>() == 8);
const _: () = assert!(size_of::<lks_rt_recursive_mutex>() == 16);
const _: () = assert!(core::mem::offset_of!(lks_rt_recursive_mutex, again) == 8);

/// What an error is called in C.
fn errno(error: PiError) -> i32 {
    match error {
        PiError::TimedOut => libc::ETIMEDOUT,
        PiError::Cancelled | PiError::Interrupted => libc::EINTR,
        PiError::Recursive | PiError::Deadlock => libc::EDEADLK,
        PiError::OwnerLost => libc::EOWNERDEAD,
    }
}

/// Apart, so that who finds a free mutex saves no registers for it.
///
/// # Safety
/// `argument` is what `how` takes; see `enum lks_how__`.
#[cold]
#[inline(never)]
unsafe fn lock_slow(word: &PiWord, how: u32, argument: u64) -> i32 {
    // SAFETY: as the caller says, until this call ends.
    let Some(how) = (unsafe { wait::wait(how, argument) }) else { return -libc::EINVAL };
    match word.lock_slow(&how) {
        Ok(()) => 0,
        Err(error) => -errno(error),
    }
}

impl lks_rt_mutex {
    /// # Safety
    /// `argument` is what `how` takes; see `enum lks_how__`.
    pub(crate) unsafe fn lock_how(&self, how: u32, argument: u64) -> i32 {
        if self.0.lock_fast() {
            return 0;
        }
        // SAFETY: as the caller says.
        unsafe { lock_slow(&self.0, how, argument) }
    }

    pub(crate) fn try_lock(&self) -> bool {
        self.0.lock_fast() || self.0.try_lock_slow()
    }
}

impl lks_rt_recursive_mutex {
    /// Once more, if the calling thread has it; `None`: it has it not.
    fn again(&self) -> Option<i32> {
        if !self.word.is_mine() {
            return None;
        }
        let Some(again) = self.again.get().checked_add(1) else { return Some(-libc::EAGAIN) };
        self.again.set(again);
        Some(0)
    }

    /// # Safety
    /// `argument` is what `how` takes; see `enum lks_how__`.
    pub(crate) unsafe fn lock_how(&self, how: u32, argument: u64) -> i32 {
        if self.word.lock_fast() {
            return 0;
        }
        if let Some(result) = self.again() {
            return result;
        }
        // SAFETY: as the caller says.
        unsafe { lock_slow(&self.word, how, argument) }
    }

    pub(crate) fn try_lock(&self) -> i32 {
        if self.word.lock_fast() || self.word.try_lock_slow() {
            return 1;
        }
        i32::from(self.again() == Some(0))
    }

    /// # Safety
    /// The calling thread has it.
    pub(crate) unsafe fn unlock(&self) {
        match self.again.get() {
            // SAFETY: as the caller says.
            0 => unsafe { self.word.unlock() },
            again => self.again.set(again - 1),
        }
    }

    /// How often the calling thread has it.
    pub(crate) fn depth(&self) -> u64 {
        if self.word.is_mine() { u64::from(self.again.get()) + 1 } else { 0 }
    }
}

/// Whether waiting for these mutexes lends priorities here.
#[unsafe(no_mangle)]
extern "C" fn lks_rt_inherits() -> i32 {
    i32::from(lockstead_linux::pi::inherits())
}

/// Nothing of a mutex but its name outlives it.
#[unsafe(no_mangle)]
extern "C" fn lks_rt_mutex_destroy(mutex: *const lks_rt_mutex) {
    names::forget(mutex.addr());
}

/// Takes the mutex, unless the wait ends before.
///
/// # Safety
/// `argument` is what `how` takes; see `enum lks_how__`.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_rt_mutex_lock_how(mutex: &lks_rt_mutex, how: u32, argument: u64) -> i32 {
    // SAFETY: as the caller says.
    unsafe { mutex.lock_how(how, argument) }
}

/// Takes the mutex if it is free.
#[unsafe(no_mangle)]
extern "C" fn lks_rt_mutex_trylock_slow(mutex: &lks_rt_mutex) -> i32 {
    i32::from(mutex.try_lock())
}

/// Releases the mutex.
///
/// # Safety
/// The calling thread has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_rt_mutex_unlock_slow(mutex: &lks_rt_mutex) {
    // SAFETY: as the caller says.
    unsafe { mutex.0.unlock() };
}

/// Whether anybody has the mutex.
#[unsafe(no_mangle)]
extern "C" fn lks_rt_mutex_is_locked(mutex: &lks_rt_mutex) -> i32 {
    i32::from(mutex.0.is_locked())
}

/// Whether the calling thread has it.
#[unsafe(no_mangle)]
extern "C" fn lks_rt_mutex_is_mine(mutex: &lks_rt_mutex) -> i32 {
    i32::from(mutex.0.is_mine())
}

/// Nothing of a mutex but its name outlives it.
#[unsafe(no_mangle)]
extern "C" fn lks_rt_recursive_mutex_destroy(mutex: *const lks_rt_recursive_mutex) {
    names::forget(mutex.addr());
}

/// Takes the mutex, or takes it again, unless the wait ends before.
///
/// # Safety
/// `argument` is what `how` takes; see `enum lks_how__`.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_rt_recursive_mutex_lock_how(
    mutex: &lks_rt_recursive_mutex,
    how: u32,
    argument: u64,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe { mutex.lock_how(how, argument) }
}

/// Takes the mutex if it is free or the caller's.
#[unsafe(no_mangle)]
extern "C" fn lks_rt_recursive_mutex_trylock_slow(mutex: &lks_rt_recursive_mutex) -> i32 {
    mutex.try_lock()
}

/// Releases the mutex once.
///
/// # Safety
/// The calling thread has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_rt_recursive_mutex_unlock_slow(mutex: &lks_rt_recursive_mutex) {
    // SAFETY: as the caller says.
    unsafe { mutex.unlock() };
}

/// Whether anybody has the mutex.
#[unsafe(no_mangle)]
extern "C" fn lks_rt_recursive_mutex_is_locked(mutex: &lks_rt_recursive_mutex) -> i32 {
    i32::from(mutex.word.is_locked())
}

/// How often the calling thread has it.
#[unsafe(no_mangle)]
extern "C" fn lks_rt_recursive_mutex_depth(mutex: &lks_rt_recursive_mutex) -> u64 {
    mutex.depth()
}

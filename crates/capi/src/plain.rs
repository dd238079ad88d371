//! Inline functions of the headers once more, as functions of the library: for
//! languages that cannot use a header.
//!
//! Each does what its namesake does; the headers are where they are described.

use crate::mutex::nowhere;
use crate::own::enter;
use crate::wait::{self, INTERRUPTIBLE, TIMEOUT};
use crate::{lks_cond, lks_mutex, lks_rwlock, lks_semaphore};
use core::mem::MaybeUninit;
use lockstead_core::{RawCondvar, RawMutex, RawRwLock};

/// See `mutex.h`.
#[unsafe(no_mangle)]
extern "C" fn lks_mutex_init(mutex: &mut MaybeUninit<lks_mutex>) {
    mutex.write(lks_mutex(RawMutex::new()));
}

/// See `mutex.h`.
#[unsafe(no_mangle)]
extern "C" fn lks_mutex_lock(mutex: &lks_mutex) {
    mutex.lock("lks_mutex_lock");
}

/// See `mutex.h`.
#[unsafe(no_mangle)]
extern "C" fn lks_mutex_trylock(mutex: &lks_mutex) -> i32 {
    enter();
    i32::from(mutex.0.try_lock(nowhere()))
}

/// See `mutex.h`.
#[unsafe(no_mangle)]
extern "C" fn lks_mutex_lock_interruptible(mutex: &lks_mutex) -> i32 {
    // SAFETY: this way of waiting takes no argument.
    unsafe { mutex.lock_how(INTERRUPTIBLE, 0) }
}

/// See `mutex.h`.
#[unsafe(no_mangle)]
extern "C" fn lks_mutex_lock_timeout(mutex: &lks_mutex, nanoseconds: u64) -> i32 {
    // SAFETY: the argument is a number.
    unsafe { mutex.lock_how(TIMEOUT, nanoseconds) }
}

/// See `mutex.h`.
///
/// # Safety
/// The calling thread holds the mutex.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_mutex_unlock(mutex: &lks_mutex) {
    // SAFETY: as the caller says.
    unsafe { mutex.0.unlock() };
}

/// See `mutex.h`.
#[unsafe(no_mangle)]
extern "C" fn lks_mutex_is_locked(mutex: &lks_mutex) -> i32 {
    i32::from(mutex.0.is_locked())
}

/// See `semaphore.h`.
#[unsafe(no_mangle)]
extern "C" fn lks_semaphore_init(semaphore: &mut MaybeUninit<lks_semaphore>, permits: u32) -> i32 {
    match lockstead_core::TunedSemaphore::new(permits) {
        Some(fresh) => {
            semaphore.write(lks_semaphore(fresh));
            0
        }
        None => -libc::EINVAL,
    }
}

/// See `semaphore.h`.
#[unsafe(no_mangle)]
extern "C" fn lks_semaphore_down(semaphore: &lks_semaphore) {
    enter();
    semaphore.0.down(nowhere());
}

/// See `semaphore.h`.
#[unsafe(no_mangle)]
extern "C" fn lks_semaphore_down_trylock(semaphore: &lks_semaphore) -> i32 {
    i32::from(!semaphore.0.try_down(nowhere()))
}

/// See `semaphore.h`.
#[unsafe(no_mangle)]
extern "C" fn lks_semaphore_down_timeout(semaphore: &lks_semaphore, nanoseconds: u64) -> i32 {
    // SAFETY: the argument is a number.
    unsafe { semaphore.down_how(TIMEOUT, nanoseconds) }
}

/// See `semaphore.h`.
#[unsafe(no_mangle)]
extern "C" fn lks_semaphore_up(semaphore: &lks_semaphore) -> i32 {
    semaphore.up()
}

/// See `rwlock.h`.
#[unsafe(no_mangle)]
extern "C" fn lks_rwlock_init(lock: &mut MaybeUninit<lks_rwlock>) {
    lock.write(lks_rwlock(RawRwLock::new()));
}

/// See `rwlock.h`.
#[unsafe(no_mangle)]
extern "C" fn lks_rwlock_read(lock: &lks_rwlock) {
    enter();
    lock.settle(lock.0.read(nowhere()), "lks_rwlock_read");
}

/// See `rwlock.h`.
#[unsafe(no_mangle)]
extern "C" fn lks_rwlock_tryread(lock: &lks_rwlock) -> i32 {
    i32::from(lock.0.try_read(nowhere()))
}

/// See `rwlock.h`.
///
/// # Safety
/// There is a hold for reading that the caller answers for.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_rwlock_unread(lock: &lks_rwlock) {
    // SAFETY: as the caller says.
    unsafe { lock.0.unlock_read() };
}

/// See `rwlock.h`.
#[unsafe(no_mangle)]
extern "C" fn lks_rwlock_write(lock: &lks_rwlock) {
    enter();
    lock.settle(lock.0.write(nowhere()), "lks_rwlock_write");
}

/// See `rwlock.h`.
#[unsafe(no_mangle)]
extern "C" fn lks_rwlock_trywrite(lock: &lks_rwlock) -> i32 {
    enter();
    i32::from(lock.0.try_write(nowhere()))
}

/// See `rwlock.h`.
///
/// # Safety
/// The calling thread has the hold for writing.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_rwlock_unwrite(lock: &lks_rwlock) {
    // SAFETY: as the caller says.
    unsafe { lock.0.unlock_write() };
}

/// See `cond.h`.
#[unsafe(no_mangle)]
extern "C" fn lks_cond_init(cond: &mut MaybeUninit<lks_cond>) {
    cond.write(lks_cond(RawCondvar::new()));
}

/// See `cond.h`.
///
/// # Safety
/// The calling thread holds the mutex.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_cond_wait(cond: &lks_cond, mutex: &lks_mutex) {
    // SAFETY: as the caller says; this way of waiting takes no argument.
    unsafe { cond.wait_how(mutex, wait::FOREVER, 0) };
}

/// See `cond.h`.
///
/// # Safety
/// The calling thread holds the mutex.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_cond_wait_timeout(
    cond: &lks_cond,
    mutex: &lks_mutex,
    nanoseconds: u64,
) -> i32 {
    // SAFETY: as the caller says; the argument is a number.
    unsafe { cond.wait_how(mutex, TIMEOUT, nanoseconds) }
}

/// See `cond.h`.
#[unsafe(no_mangle)]
extern "C" fn lks_cond_notify_one(cond: &lks_cond) {
    cond.0.notify_one();
}

/// See `cond.h`.
#[unsafe(no_mangle)]
extern "C" fn lks_cond_notify_all(cond: &lks_cond) {
    cond.0.notify_all();
}

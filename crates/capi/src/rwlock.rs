//! The reader-writer lock for C.

use crate::export::{also, c_type, destroy};
use crate::mutex::nowhere;
use crate::own::enter;
use crate::refuse::refuse;
use crate::wait;
use core::mem::MaybeUninit;
use lockstead_core::{LockError, RawRwLock};
use lockstead_linux::Linux;

c_type! {
    /// The reader-writer lock of C: the core's, sixteen bytes.
    lks_rwlock(RawRwLock<Linux>): 16, 8
}

destroy! { lks_rwlock_destroy(lks_rwlock); }

impl lks_rwlock {
    pub(crate) fn settle(&self, outcome: Result<(), LockError>, call: &str) {
        if let Err(error) = outcome {
            refuse(error, call, "reader-writer lock", self.0.id().0);
        }
    }
}

/// Takes the lock for reading, or aborts where that would take for ever.
#[unsafe(no_mangle)]
extern "C" fn lks_rwlock_read_slow(lock: &lks_rwlock) {
    enter();
    lock.settle(lock.0.read(nowhere()), "lks_rwlock_read");
}

/// Takes the lock for reading, unless the wait ends before.
///
/// # Safety
/// CAPI-HOW holds.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_rwlock_read_how(lock: &lks_rwlock, how: u32, argument: u64) -> i32 {
    enter();
    // SAFETY: CAPI-HOW holds for `how` and `argument`: the caller keeps it.
    unsafe {
        wait::waiting(how, argument, |how| wait::code(lock.0.read_lazily(|| *how, 0, nowhere())))
    }
}

/// Releases the hold for reading.
///
/// # Safety
/// CAPI-HOLDER holds, for a hold for reading.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_rwlock_unread_slow(lock: &lks_rwlock) {
    // SAFETY: CAPI-HOLDER: the caller has, or answers for, a hold for reading.
    unsafe { lock.0.unlock_read() };
}

/// Takes the lock for writing, or aborts where that would take for ever.
#[unsafe(no_mangle)]
extern "C" fn lks_rwlock_write_slow(lock: &lks_rwlock) {
    enter();
    lock.settle(lock.0.write(nowhere()), "lks_rwlock_write");
}

/// Takes the lock for writing, unless the wait ends before.
///
/// # Safety
/// CAPI-HOW holds.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_rwlock_write_how(lock: &lks_rwlock, how: u32, argument: u64) -> i32 {
    enter();
    // SAFETY: CAPI-HOW holds for `how` and `argument`: the caller keeps it.
    unsafe {
        wait::waiting(how, argument, |how| wait::code(lock.0.write_lazily(|| *how, 0, nowhere())))
    }
}

/// Takes the lock for writing if that needs no wait; returns 1 if it did.
#[unsafe(no_mangle)]
extern "C" fn lks_rwlock_trywrite_slow(lock: &lks_rwlock) -> i32 {
    enter();
    i32::from(lock.0.try_write(nowhere()))
}

/// Releases the hold for writing.
///
/// # Safety
/// CAPI-HOLDER holds, for the hold for writing.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_rwlock_unwrite_slow(lock: &lks_rwlock) {
    // SAFETY: CAPI-HOLDER: the calling thread holds the lock for writing; the caller keeps it.
    unsafe { lock.0.unlock_write() };
}

/// Turns the hold for writing into one for reading.
///
/// # Safety
/// CAPI-HOLDER holds, for the hold for writing.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_rwlock_downgrade_slow(lock: &lks_rwlock) {
    // SAFETY: CAPI-HOLDER: the calling thread holds the lock for writing; the caller keeps it.
    unsafe { lock.0.downgrade() };
}

/// Builds a free lock, as the inline function of `rwlock.h` does.
#[unsafe(no_mangle)]
extern "C" fn lks_rwlock_init(lock: &mut MaybeUninit<lks_rwlock>) {
    lock.write(lks_rwlock(RawRwLock::new()));
}

also! {
    fn lks_rwlock_read(lock: &lks_rwlock) { lks_rwlock_read_slow(lock) }
    fn lks_rwlock_tryread(lock: &lks_rwlock) -> i32 { i32::from(lock.0.try_read(nowhere())) }
    fn lks_rwlock_unread(lock: &lks_rwlock) { lks_rwlock_unread_slow(lock) }
    fn lks_rwlock_write(lock: &lks_rwlock) { lks_rwlock_write_slow(lock) }
    fn lks_rwlock_trywrite(lock: &lks_rwlock) -> i32 { lks_rwlock_trywrite_slow(lock) }
    fn lks_rwlock_unwrite(lock: &lks_rwlock) { lks_rwlock_unwrite_slow(lock) }
}

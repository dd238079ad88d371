//! The reader-writer lock.

use crate::mutex::nowhere;
use crate::own::enter;
use crate::refuse::refuse;
use crate::{names, wait};
use lockstead_core::{LockError, RawRwLock};
use lockstead_linux::Linux;

/// The reader-writer lock of C: the core's, sixteen bytes.
#[allow(non_camel_case_types, reason = "the type's name in C")]
#[repr(transparent)]
#[derive(Debug)]
pub struct lks_rwlock(pub(crate) RawRwLock<Linux>);

const _: () = assert!(size_of::<lks_rwlock>() == 16 && align_of::<lks_rwlock>() == 8);

impl lks_rwlock {
    pub(crate) fn settle(&self, outcome: Result<(), LockError>, call: &str) {
        if let Err(error) = outcome {
            refuse(error, call, "reader-writer lock", self.0.id().0);
        }
    }
}

/// Nothing of a lock but its name outlives it.
#[unsafe(no_mangle)]
extern "C" fn lks_rwlock_destroy(lock: &lks_rwlock) {
    names::forget(lock.0.id().0);
}

/// Takes it for reading, or aborts where that would take for ever.
#[unsafe(no_mangle)]
extern "C" fn lks_rwlock_read_slow(lock: &lks_rwlock) {
    enter();
    lock.settle(lock.0.read(nowhere()), "lks_rwlock_read");
}

/// Takes it for reading, unless the wait ends before.
///
/// # Safety
/// `argument` is what `how` takes; see `enum lks_how__`.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_rwlock_read_how(lock: &lks_rwlock, how: u32, argument: u64) -> i32 {
    enter();
    // SAFETY: as the caller says, until this call ends.
    let Some(how) = (unsafe { wait::wait(how, argument) }) else { return -libc::EINVAL };
    wait::code(lock.0.read_lazily(|| how, 0, nowhere()))
}

/// Releases a hold for reading.
///
/// # Safety
/// There is one that the caller answers for.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_rwlock_unread_slow(lock: &lks_rwlock) {
    // SAFETY: as the caller says.
    unsafe { lock.0.unlock_read() };
}

/// Takes it for writing, or aborts where that would take for ever.
#[unsafe(no_mangle)]
extern "C" fn lks_rwlock_write_slow(lock: &lks_rwlock) {
    enter();
    lock.settle(lock.0.write(nowhere()), "lks_rwlock_write");
}

/// Takes it for writing, unless the wait ends before.
///
/// # Safety
/// `argument` is what `how` takes; see `enum lks_how__`.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_rwlock_write_how(lock: &lks_rwlock, how: u32, argument: u64) -> i32 {
    enter();
    // SAFETY: as the caller says, until this call ends.
    let Some(how) = (unsafe { wait::wait(how, argument) }) else { return -libc::EINVAL };
    wait::code(lock.0.write_lazily(|| how, 0, nowhere()))
}

/// Takes it for writing if that needs no waiting.
#[unsafe(no_mangle)]
extern "C" fn lks_rwlock_trywrite_slow(lock: &lks_rwlock) -> i32 {
    enter();
    i32::from(lock.0.try_write(nowhere()))
}

/// Releases the hold for writing.
///
/// # Safety
/// The calling thread has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_rwlock_unwrite_slow(lock: &lks_rwlock) {
    // SAFETY: as the caller says.
    unsafe { lock.0.unlock_write() };
}

/// Turns the hold for writing into one for reading.
///
/// # Safety
/// The calling thread has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_rwlock_downgrade_slow(lock: &lks_rwlock) {
    // SAFETY: as the caller says.
    unsafe { lock.0.downgrade() };
}

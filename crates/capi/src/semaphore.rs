//! The counting semaphore.

use crate::mutex::nowhere;
use crate::own::enter;
use crate::{names, wait};
use lockstead_core::TunedSemaphore;
use lockstead_linux::Linux;

/// The semaphore of C: the core's tuned one, eight bytes.
#[allow(non_camel_case_types, reason = "the type's name in C")]
#[repr(transparent)]
#[derive(Debug)]
pub struct lks_semaphore(pub(crate) TunedSemaphore<Linux>);

const _: () = assert!(size_of::<lks_semaphore>() == 8 && align_of::<lks_semaphore>() == 8);
const _: () = assert!(TunedSemaphore::<Linux>::MAX_PERMITS == 1_048_575);

impl lks_semaphore {
    /// # Safety
    /// `argument` is what `how` takes; see `enum lks_how__`.
    pub(crate) unsafe fn down_how(&self, how: u32, argument: u64) -> i32 {
        enter();
        // SAFETY: as the caller says, until this call ends.
        let Some(how) = (unsafe { wait::wait(how, argument) }) else { return -libc::EINVAL };
        wait::code(self.0.down_how(&how, nowhere()))
    }

    pub(crate) fn up(&self) -> i32 {
        match self.0.up() {
            Ok(()) => 0,
            Err(_) => -libc::EOVERFLOW,
        }
    }
}

/// Nothing of a semaphore but its name outlives it.
#[unsafe(no_mangle)]
extern "C" fn lks_semaphore_destroy(semaphore: &lks_semaphore) {
    names::forget(semaphore.0.id().0);
}

/// Takes a permit, unless the wait ends before.
///
/// # Safety
/// `argument` is what `how` takes; see `enum lks_how__`.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_semaphore_down_how(
    semaphore: &lks_semaphore,
    how: u32,
    argument: u64,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe { semaphore.down_how(how, argument) }
}

/// Takes a permit if one is free: 0, otherwise 1.
#[unsafe(no_mangle)]
extern "C" fn lks_semaphore_down_trylock_slow(semaphore: &lks_semaphore) -> i32 {
    i32::from(!semaphore.0.try_down(nowhere()))
}

/// Gives a permit back.
#[unsafe(no_mangle)]
extern "C" fn lks_semaphore_up_slow(semaphore: &lks_semaphore) -> i32 {
    semaphore.up()
}

//! The counting semaphore for C.

use crate::export::{also, c_type, destroy};
use crate::mutex::nowhere;
use crate::own::enter;
use crate::wait::{self, TIMEOUT};
use core::mem::MaybeUninit;
use lockstead_core::TunedSemaphore;
use lockstead_linux::Linux;

c_type! {
    /// The semaphore of C: the core's tuned one, eight bytes.
    lks_semaphore(TunedSemaphore<Linux>): 8, 8
}

const _: () = assert!(TunedSemaphore::<Linux>::MAX_PERMITS == 1_048_575);

destroy! { lks_semaphore_destroy(lks_semaphore); }

impl lks_semaphore {
    /// Takes a permit, unless the wait ends before.
    ///
    /// # Safety
    /// CAPI-HOW holds.
    pub(crate) unsafe fn down_how(&self, how: u32, argument: u64) -> i32 {
        enter();
        // SAFETY: CAPI-HOW holds for `how` and `argument`: the caller keeps it.
        unsafe { wait::waiting(how, argument, |how| wait::code(self.0.down_how(how, nowhere()))) }
    }

    pub(crate) fn up(&self) -> i32 {
        match self.0.up() {
            Ok(()) => 0,
            Err(_) => -libc::EOVERFLOW,
        }
    }
}

/// Takes a permit, unless the wait ends before.
///
/// # Safety
/// CAPI-HOW holds.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_semaphore_down_how(
    semaphore: &lks_semaphore,
    how: u32,
    argument: u64,
) -> i32 {
    // SAFETY: CAPI-HOW holds for `how` and `argument`: the caller keeps it.
    unsafe { semaphore.down_how(how, argument) }
}

/// Takes a permit if one is free; returns 0 if it did, else 1.
#[unsafe(no_mangle)]
extern "C" fn lks_semaphore_down_trylock_slow(semaphore: &lks_semaphore) -> i32 {
    i32::from(!semaphore.0.try_down(nowhere()))
}

/// Gives a permit back. Returns `-EOVERFLOW` if there were more than the semaphore can count.
#[unsafe(no_mangle)]
extern "C" fn lks_semaphore_up_slow(semaphore: &lks_semaphore) -> i32 {
    semaphore.up()
}

/// Builds a semaphore with so many permits, as the inline function of `semaphore.h` does;
/// `-EINVAL` if they are too many.
#[unsafe(no_mangle)]
extern "C" fn lks_semaphore_init(semaphore: &mut MaybeUninit<lks_semaphore>, permits: u32) -> i32 {
    match TunedSemaphore::new(permits) {
        Some(fresh) => {
            semaphore.write(lks_semaphore(fresh));
            0
        }
        None => -libc::EINVAL,
    }
}

also! {
    fn lks_semaphore_down(semaphore: &lks_semaphore) {
        enter();
        semaphore.0.down(nowhere());
    }
    fn lks_semaphore_down_trylock(semaphore: &lks_semaphore) -> i32 {
        lks_semaphore_down_trylock_slow(semaphore)
    }
    fn lks_semaphore_down_timeout(semaphore: &lks_semaphore, nanoseconds: u64) -> i32 {
        semaphore.down_how(TIMEOUT, nanoseconds)
    }
    fn lks_semaphore_up(semaphore: &lks_semaphore) -> i32 { semaphore.up() }
}

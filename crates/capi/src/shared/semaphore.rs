//! The counting semaphore between processes, for C.

use super::{errno, had};
use crate::export::c_type;
use crate::wait;
use core::mem::MaybeUninit;
use lockstead::shared::raw::RawSemaphore;
use lockstead::shared::{OnDeath, SharedError};

c_type! {
    /// The semaphore of C of which a dead holder's units are free again, forty bytes.
    lks_shared_semaphore(RawSemaphore): 40, 8
}

type Semaphore<'a> = Option<&'a lks_shared_semaphore>;

/// Returns how many units dead holders had, or a negative errno.
fn taken(outcome: Result<u32, SharedError>) -> i32 {
    match outcome {
        Ok(lost) => i32::try_from(lost).unwrap_or(i32::MAX),
        Err(error) => -errno(error),
    }
}

/// Returns 0 or a negative errno.
fn given(outcome: Result<bool, SharedError>) -> i32 {
    outcome.map_or_else(|error| -errno(error), had)
}

/// Builds a semaphore with so many free units.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_semaphore_init(
    semaphore: &mut MaybeUninit<lks_shared_semaphore>,
    units: u32,
    reports: i32,
) {
    let on_death = if reports == 0 { OnDeath::Return } else { OnDeath::Report };
    semaphore.write(lks_shared_semaphore(RawSemaphore::new(units, on_death)));
}

/// Takes units, unless the wait ends before.
///
/// # Safety
/// CAPI-HOW holds.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_shared_semaphore_acquire_how(
    semaphore: Semaphore<'_>,
    units: u32,
    how: u32,
    argument: u64,
) -> i32 {
    let Some(semaphore) = semaphore else { return taken(Err(SharedError::NotInSegment)) };
    // SAFETY: CAPI-HOW holds for `how` and `argument`: the caller keeps it.
    unsafe { wait::waiting(how, argument, |how| taken(semaphore.0.acquire(units, how))) }
}

/// Takes units if that needs no wait for them.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_semaphore_tryacquire_slow(semaphore: Semaphore<'_>, units: u32) -> i32 {
    let outcome = semaphore.map(|semaphore| semaphore.0.try_acquire(units));
    taken(outcome.unwrap_or(Err(SharedError::NotInSegment)))
}

/// Gives units back that the calling thread has.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_semaphore_release_slow(semaphore: Semaphore<'_>, units: u32) -> i32 {
    given(semaphore.map_or(Ok(false), |semaphore| semaphore.0.release(units)))
}

/// Uses units up that the calling thread has.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_semaphore_consume(semaphore: Semaphore<'_>, units: u32) -> i32 {
    given(semaphore.map_or(Ok(false), |semaphore| semaphore.0.consume(units)))
}

/// Adds units that nobody had.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_semaphore_add_slow(semaphore: Semaphore<'_>, units: u32) -> i32 {
    match semaphore.map_or(Err(SharedError::NotInSegment), |semaphore| semaphore.0.add(units)) {
        Ok(true) => 0,
        Ok(false) => -libc::EOVERFLOW,
        Err(error) => -errno(error),
    }
}

//! The counting semaphore.

use super::{errno, had};
use crate::wait;
use core::mem::MaybeUninit;
use lockstead::shared::raw::RawSemaphore;
use lockstead::shared::{OnDeath, SharedError};

/// The semaphore of C of which a dead holder's units are free again, forty bytes.
#[allow(non_camel_case_types, reason = "the type's name in C")]
#[repr(transparent)]
#[derive(Debug)]
pub struct lks_shared_semaphore(RawSemaphore);

type Semaphore<'a> = Option<&'a lks_shared_semaphore>;

/// How many units the dead had, or a negative errno.
fn taken(outcome: Result<u32, SharedError>) -> i32 {
    match outcome {
        Ok(lost) => i32::try_from(lost).unwrap_or(i32::MAX),
        Err(error) => -errno(error),
    }
}

fn given(outcome: Result<bool, SharedError>) -> i32 {
    outcome.map_or_else(|error| -errno(error), had)
}

/// A semaphore with so many free units.
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
/// `argument` is what `how` takes; see `enum lks_how__`.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_shared_semaphore_acquire_how(
    semaphore: Semaphore<'_>,
    units: u32,
    how: u32,
    argument: u64,
) -> i32 {
    let Some(semaphore) = semaphore else { return taken(Err(SharedError::NotInSegment)) };
    // SAFETY: as the caller says, until this call ends.
    let Some(how) = (unsafe { wait::wait(how, argument) }) else { return -libc::EINVAL };
    taken(semaphore.0.acquire(units, &how))
}

/// Takes units if that needs no wait for them.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_semaphore_tryacquire_slow(semaphore: Semaphore<'_>, units: u32) -> i32 {
    let outcome = semaphore.map(|semaphore| semaphore.0.try_acquire(units));
    taken(outcome.unwrap_or(Err(SharedError::NotInSegment)))
}

/// Gives units back.
#[unsafe(no_mangle)]
extern "C" fn lks_shared_semaphore_release_slow(semaphore: Semaphore<'_>, units: u32) -> i32 {
    given(semaphore.map_or(Ok(false), |semaphore| semaphore.0.release(units)))
}

/// Uses units up.
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

//! What scenarios of shared locks say of themselves.

use crate::U32;
use crate::world::world;
use std::sync::atomic::Ordering;

/// Returns the number of the thread that runs, from 0.
#[must_use]
pub fn thread() -> usize {
    world().me()
}

/// Is for the first checker, which tells states from each other by what threads know.
pub fn forget(_place: u64) {}

/// Is for the first checker, which does not branch at what only the owner of a lock touches.
pub fn guard<T>(_object: *const T, _lock: *const U32) {}

/// Does what a scenario notes for its own checks: no thread can tell that it was done. Notes have an
/// order to each other, so that loom explores all of their orders; and each comes after the step
/// before it, as a step of its own.
pub fn aside<R>(note: impl FnOnce() -> R) -> R {
    let world = world();
    if !world.is_aside() && world.me() < world.threads {
        world.visible(|| world.notes.fetch_add(0, Ordering::Relaxed));
    }
    world.aside(note)
}

//! Classes: all locks that were initialised at one place.

use core::sync::atomic::AtomicU32;

/// How many destroyed locks of one class keep statistics of their own; those
/// after them share a mass grave.
pub const GRAVES: u32 = 64;

/// What is known of a class. Its number is the id of the stack of the
/// initialisation (or of the first acquisition, where there was none).
#[repr(C)]
#[derive(Debug)]
pub struct ClassRecord {
    /// Locks that began a life at this place, if the stack is a place alone.
    pub created: AtomicU32,
    /// The number of graves that were made.
    pub graves: AtomicU32,
    /// The index of the record of the mass grave; 0: there is none.
    pub mass_grave: AtomicU32,
    /// The index of the first [`SemaphoreUsage`](crate::usage::SemaphoreUsage) of its semaphores; 0:
    /// there is none.
    pub usages: AtomicU32,
}

const _: () = assert!(size_of::<ClassRecord>() == 16);

//! The numbers that all parts of a storm agree on.

use std::time::Duration;

/// A wait that is longer is a stall.
pub const STALL: Duration = Duration::from_secs(2);
/// The largest number of processes.
pub const MAX_PROCESSES: usize = 64;
/// The largest number of threads in a process.
pub const MAX_THREADS: usize = 16;
/// The largest number of locks.
pub const MAX_LOCKS: usize = 256;
/// The largest number of kills.
pub const MAX_KILLS: u64 = 10_000_000;
/// So many kills are followed by a quiet phase.
pub const KILLS_A_PHASE: u64 = 24;
/// Units of each semaphore.
pub(super) const UNITS: u32 = 3;
/// A section takes so many at most.
pub(super) const MOST_TAKEN: u32 = 2;

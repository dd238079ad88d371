//! Kinds of threads, by the function that they began with, as data.

use serde::Serialize;

/// Threads that began with one function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadKind {
    /// The function that they began with; null if nobody saw them begin.
    pub start: Option<String>,
    /// How many there were.
    pub threads: u64,
    /// The most of them at the same time.
    pub peak: u64,
    /// How long they lived, added up.
    pub lived_ns: u64,
    /// How long they waited for locks.
    pub waited_ns: u64,
    /// How long they waited for other things.
    pub idled_ns: u64,
    /// How often they acquired a lock.
    pub acquisitions: u64,
    /// Their processor time up to the command's last look at each, some 0.2 s before its end; null
    /// where the command never looked.
    pub ran_ns: Option<u64>,
    /// How long they stood ready without a processor, likewise.
    pub queued_ns: Option<u64>,
}

/// What threads that began with one function did with a lock, or another object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LockRole {
    /// The function that they began with; null if nobody saw them begin, and of the sum of all beyond
    /// the first seven.
    pub start: Option<String>,
    /// Holds that nobody else may have at the same time, an estimate as in `hold`.
    pub holds: u64,
    /// How long those were altogether.
    pub held_ns: u64,
    /// Holds of a reader-writer lock as one reader among others, likewise.
    pub shared_holds: u64,
    /// How long those were altogether.
    pub shared_ns: u64,
    /// How often they waited for it.
    pub waits: u64,
    /// How long they waited altogether.
    pub waited_ns: u64,
    /// How often they signalled a condition or posted a semaphore, since it was first waited for.
    pub gives: u64,
}

/// What the kernel says of a thread, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// Its time on a processor.
    pub ran_ns: u64,
    /// Its time of waiting for one.
    pub queued_ns: u64,
}

//! What an acquisition of a lock between processes ends with.

/// Why a participant did not get a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RobustError {
    /// The deadline passed; or somebody has a lock that the caller only tried.
    TimedOut,
    /// A signal handler ran while the caller slept.
    Interrupted,
    /// Somebody set the caller's cancellation word.
    Cancelled,
    /// The caller holds the lock already.
    Recursive,
    /// An owner died, and the next one released the lock without declaring consistent what
    /// it protects.
    NotRecoverable,
    /// The caller reads under, or has units of, more locks at once than its segment has
    /// claims for.
    TooManyClaims,
    /// The lock is not in the caller's segment.
    Foreign,
    /// The caller is a copy of a participant, made while that waited. It holds nothing, and
    /// the wait is the business of the participant.
    Copied,
}

/// The state in which a participant got a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Got {
    /// The last owner released it in order.
    Clean,
    /// The last owner died, or released it without declaring consistent what a dead one left.
    /// The caller declares it consistent before it releases the lock.
    OwnerDied,
}

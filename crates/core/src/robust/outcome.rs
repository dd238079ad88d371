//! How an acquisition ends.

/// Why a shared lock was not got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SharedError {
    /// The deadline passed; or, of a lock that was only tried, somebody has it.
    TimedOut,
    /// A signal handler ran while the caller slept.
    Interrupted,
    /// The caller's cancellation word was set.
    Cancelled,
    /// The caller holds it already.
    Recursive,
    /// An owner died, and the next one released it without declaring what it
    /// protects consistent.
    NotRecoverable,
    /// The caller shares more locks at once than its segment has claims for.
    TooManyClaims,
    /// It is not in the caller's segment.
    Foreign,
    /// The caller is a copy of a participant, made while that waited: it has nothing, and
    /// what was waited for is that participant's business.
    Copied,
}

/// How a shared lock was got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Got {
    /// As its last owner left it.
    Clean,
    /// Its last owner died, or was not sure of what a dead one left: to be declared
    /// consistent before it is released.
    OwnerDied,
}

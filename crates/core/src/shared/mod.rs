//! Locks in memory that processes share, which survive their holders.
//!
//! # Role
//! A process may be killed between any two instructions. The locks here need no list
//! of what a thread holds: a lock's word names its owner by slot and generation, each
//! participant has one *life word* that the machine marks when it ends, and who waits
//! for a lock watches its owner's life word as well. So taking and releasing a lock
//! costs what it costs without any of this, and there is no limit on how many a
//! participant may hold.
//!
//! `docs/shared-locks.md` gives every word bit by bit, every point at which a
//! participant can end, and what the others see then. Read in this order: [`word`],
//! [`seat`], [`life`], [`robust`] (what the machine promises), [`mutex`], `wait` (sleeping and
//! what wakes), then [`rwlock`], [`semaphore`], [`condvar`].
//!
//! # Trust
//! None: any of the words may hold anything at any time, written by a participant
//! that is broken or hostile. What is read is checked before it is used as an index,
//! and nothing is computed from it that leaves the segment.

pub mod condvar;
pub mod life;
pub mod mutex;
pub mod robust;
pub mod rwlock;
pub mod seat;
pub mod semaphore;
mod wait;
pub mod word;

pub use condvar::SharedCondvar;
pub use life::Life;
pub use mutex::SharedMutex;
pub use robust::{Addend, Robust, Watch, Woken};
pub use rwlock::{ReadHold, SharedRwLock};
pub use seat::{Claim, Domain, Fate, NoSeat, Party, Seat};
pub use semaphore::{SharedSemaphore, Units};
pub use word::Identity;

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

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
//! [`life`], `machine` (what the machine promises), [`slot`], `domain`, `party`, `wait` (sleeping
//! and what wakes), [`mutex`], then [`rwlock`], [`semaphore`], [`condvar`].
//!
//! # Trust
//! None: any of the words may hold anything at any time, written by a participant
//! that is broken or hostile. What is read is checked before it is used as an index,
//! and nothing is computed from it that leaves the segment.

// From the bottom up: a module imports from those above it here, and from no others.
pub mod word;

mod outcome;

pub mod life;

mod machine;

pub mod slot;

mod domain;

mod party;

mod wait;

pub mod mutex;

pub mod rwlock;

pub mod semaphore;

pub mod condvar;

pub use condvar::SharedCondvar;
pub use domain::{Domain, Fate, NoSlot};
pub use life::Life;
pub use machine::{Addend, Robust, Watch, Woken};
pub use mutex::SharedMutex;
pub use outcome::{Got, SharedError};
pub use party::Party;
pub use rwlock::{ReadHold, SharedRwLock};
pub use semaphore::{SharedSemaphore, Units};
pub use slot::{Claim, SlotRecord};
pub use word::Identity;

//! Locks in memory that processes share. They survive the death of their holders.
//!
//! # Role
//! A process may be killed between any two instructions, and nothing of its own runs then.
//! These locks keep no list of what a thread holds. Three words work together:
//!
//! ```text
//!   lock word            owner's life word           waiter
//!   ┌────────────────┐   ┌───────────────────┐
//!   │ slot, gener. ──┼──▶│ generation, alive │◀──── sleeps on both, and on the doorbell
//!   └────────────────┘   └───────────────────┘
//!      the owner writes     the machine marks it
//!      it, takes it back    when the owner ends
//! ```
//!
//! Each participant has one *life word*, which the machine marks when the participant ends. A
//! waiter watches the life word of the owner beside the lock. Taking and releasing a lock cost
//! what they cost without any of this, and a participant may hold any number of locks.
//!
//! `docs/shared-locks.md` gives every word bit by bit, every point at which a participant can
//! end, and what the others see then. Read the modules in the order in which they are declared.
//!
//! # Trust
//! None. Any word may hold anything at any time, written by a broken or hostile participant.
//! The code checks what it reads before it uses that as an index, and computes nothing from it
//! that leaves the segment.

// From the bottom up: a module imports from those above it here, and from no others.
pub mod word;

mod outcome;

pub mod life;

mod awaited;

mod machine;

pub mod slot;

mod domain;

mod party;

mod wait;

pub mod mutex;

pub mod rwlock;

pub mod semaphore;

pub mod condvar;

pub use awaited::{RobustUse, RobustWait};
pub use condvar::RawSharedCondvar;
pub use domain::{Domain, Fate, NoSlot};
pub use life::Life;
pub use machine::{Addend, RobustMachine, WatchedWord, Woken};
pub use mutex::RawSharedMutex;
pub use outcome::{Got, RobustError};
pub use party::Party;
pub use rwlock::{RawSharedRwLock, ReadHold};
pub use semaphore::{RawSharedSemaphore, Units};
pub use slot::{Claim, SlotRecord};
pub use word::Identity;

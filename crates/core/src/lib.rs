//! The lock algorithms of lockstead, written once and generic over the machine
//! they run on.
//!
//! This crate has no dependency, makes no system call, allocates nothing and
//! does not use `std`. Programs use the crate `lockstead`, which shows these
//! types with the Linux platform filled in; this one is for the three worlds:
//! `lockstead-linux`, the model checker and the simulator.
//!
//! Read in this order: [`word`] (the state), [`mutex`] (the fast paths),
//! `osq` (spinning), `slow` (sleeping and handing over), [`platform`]. Then the
//! rest of the family in any order: [`semaphore`], [`condvar`], [`rwlock`],
//! [`once`], [`ww`], [`biased`].

#![no_std]

pub mod biased;
pub mod condvar;
mod giveup;
pub mod hooks;
pub mod mutex;
pub mod once;
mod osq;
pub mod participant;
mod passed;
pub mod platform;
pub mod policy;
pub mod robust;
pub mod rwlock;
pub mod semaphore;
mod slow;
pub mod word;
pub mod ww;

pub use biased::RawBiased;
pub use condvar::RawCondvar;
pub use hooks::{Access, Hooks, LockId, Off, Path, Site};
pub use mutex::RawMutex;
pub use once::{OnceError, OnceState, OnceTurn, RawOnce};
pub use participant::{MAX_SLOTS, Participant, Slot};
pub use platform::{
    Address, Atomic32, Atomic64, Halves, LockError, Nanos, OnCpu, Ordering, Outcome, Plain,
    Platform, Wait,
};
pub use policy::{NoSpin, Policy, Standard};
pub use rwlock::RawRwLock;
pub use semaphore::{ClassicSemaphore, PermitOverflow, TunedSemaphore};
pub use ww::{RawWwMutex, WwError};

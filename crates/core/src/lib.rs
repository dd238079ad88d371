//! The lock algorithms of lockstead, written once and generic over the machine
//! they run on.
//!
//! This crate has no dependency, makes no system call, allocates nothing and
//! does not use `std`. Programs use the crate `lockstead`, which shows these
//! types with the Linux platform filled in; this one is for the three worlds:
//! `lockstead-linux`, the model checker and the simulator.
//!
//! Read in this order: [`word`] (the state), [`mutex`] (the fast paths),
//! `spin`, `sleep` (and the hand-off), [`platform`]. Then the
//! rest of the family in any order: [`semaphore`], [`condvar`], [`rwlock`],
//! [`once`], [`ww`], [`biased`].

#![no_std]

// The modules stand in layers, the lowest first: each imports only from those above it in
// this list (`xtask/tests/project/layers.rs`). Blank lines keep rustfmt from sorting them.

// Where the checker's tests break an algorithm: false in every lock that runs.
#[macro_use]
#[cfg_attr(faults, path = "../../model/core/fault.rs")]
#[doc(hidden)]
pub mod fault;

// Memory, and numbers for threads.
pub mod atomic;
pub mod slot;

// The word of a lock: pure functions.
pub mod word;

// The threads that take part, and what locks attach to each.
pub mod participant;

mod attached;

// The numbers.
pub mod policy;

// The machine, and what watches a lock.
pub mod hooks;
pub mod platform;

// What all slow paths use.
mod awaited;
mod exchange;
mod give_up;

// The slow path: spinning, then sleeping.
mod spin;

mod sleep;

// The mutex.
pub mod mutex;

// The rest of the family.
pub mod biased;
pub mod condvar;
pub mod fifo;
pub mod once;
pub mod rwlock;
pub mod semaphore;
pub mod ww;

// Locks between processes.
pub mod robust;

pub use atomic::{Atomic32, Atomic64, Halves, Ordering, Plain};
pub use biased::RawBiased;
pub use condvar::RawCondvar;
pub use fifo::{Place, RawExactCondvar, RawFifoMutex};
pub use hooks::{Access, Hooks, LockId, Off, Path, Site};
pub use mutex::RawMutex;
pub use once::{OnceError, OnceState, OnceTurn, RawOnce};
pub use platform::{
    Address, Awaited, AwaitedUse, LockError, Nanos, OnCpu, Platform, ShownSleep, TableEntry,
    WaitBounds, WaitOutcome,
};
pub use policy::{Policy, Standard};
pub use rwlock::RawRwLock;
pub use semaphore::{ClassicSemaphore, PermitOverflow, TunedSemaphore};
pub use slot::{MAX_SLOTS, Slot};
pub use ww::{RawWwMutex, WwError};

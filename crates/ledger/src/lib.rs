//! The ledger: the shared-memory area in which a program under `lockstead run`
//! writes what its threads hold and wait for, and from which the command reads.
//!
//! # Role
//! The preload library, inside the program, writes; the command, outside,
//! reads while the program runs and after it has ended. One ledger for each
//! process. This crate has both sides, so that they cannot disagree.
//!
//! # Map
//! [`publish`]: what a thread holds and waits for, the one part that is a
//! protocol between processes; it is generic, so that the model checker runs
//! it. [`thread`], [`lock`], [`shares`], [`class`], [`stacks`], [`module`]: the records.
//! [`order`], [`witness`], [`violation`]: what a run that checks leaves. [`usage`],
//! [`semaphore`]: what semaphores are used for.
//! [`handing`]: which conditions serve as locks.
//! [`table`]: from key to record. [`lives`]: what happens to a lock.
//! [`header`]: where everything lies. [`growth`]: how much of it the program has mapped.
//! [`hello`]: how the command gets it. [`ledger`]: the view of it all.
//!
//! # Invariants
//! - **LEDGER-ZERO** Zero is a valid empty state of everything: the area is a sparse
//!   file, and what is never touched takes no memory. All that changes is an atomic,
//!   for which every bit pattern is valid.
//! - **LEDGER-WRITERS** Writers never wait, for readers or for each other.
//! - **LEDGER-UNTRUSTED** A reader trusts nothing that it finds: it checks an index
//!   where it uses it.
//! - **LEDGER-LOSSES** What finds no room is counted in [`header::Losses`], and the
//!   command says so.

#![no_std]

mod area;
pub mod cells;
pub mod class;
pub mod growth;
pub mod handing;
pub mod header;
pub mod hello;
pub mod histogram;
pub mod known;
pub mod ledger;
pub mod lives;
pub mod lock;
pub mod module;
pub mod order;
pub mod publish;
pub mod semaphore;
pub mod shares;
pub mod stacks;
pub mod table;
pub mod thread;
pub mod usage;
pub mod violation;
pub mod witness;

pub use cells::{Cells, Native};
pub use header::{Header, Layout, SAMPLE};
pub use ledger::{Ledger, NotALedger, Part};
pub use lives::Birth;

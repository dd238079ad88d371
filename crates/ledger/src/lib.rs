//! The ledger: the shared-memory area in which a program under `lockstead run`
//! writes what its threads hold and wait for, and from which the command reads.
//!
//! # Role
//! The preload library, inside the program, writes; the command, outside,
//! reads while the program runs and after it has ended. One ledger for each
//! process. This crate has both sides, so that they cannot disagree.
//!
//! # Map
//! A file imports only those above it in the table or beside it.
//!
//! | | |
//! |---|---|
//! | [`cells`], [`growth`], [`table`] | words that models can replace, how much of a ledger is mapped, from key to record |
//! | [`publish`] | what a thread holds and waits for: the one protocol between processes, generic, so that the model checker runs it |
//! | [`futexes`] | which words a thread has slept on, in the same way |
//! | [`ring`], [`events`] | the rings of a run that is recorded, in the same way, and what is in them |
//! | [`histogram`], [`shares`], [`roles`], [`handing`] | statistics: times, stacks, kinds of threads, whether a condition serves as a lock |
//! | [`thread`], [`known`], [`lock`], [`class`], [`module`] | the records of a run |
//! | [`order`], [`violation`], [`usage`] | the records of a run that checks |
//! | [`header`], `area`, `part` | where everything lies, and how much of it is used |
//! | [`ledger`] | the view of it all, and how room is claimed |
//! | [`stacks`], [`witness`], [`lives`], [`semaphore`] | how stacks, edges, locks and semaphores get their records |
//! | [`attach`] | how the library comes into a process that runs already |
//! | [`hello`] | how the command gets a ledger |
//!
//! # Invariants
//! - **LEDGER-ZERO** Zero is a valid empty state of everything: the area is a sparse
//!   file, and what is never touched takes no memory. All that changes is an atomic,
//!   for which every bit pattern is valid.
//! - **LEDGER-WRITERS** Writers never wait, for readers or for each other.
//! - **LEDGER-UNTRUSTED** A reader trusts nothing that it finds: it checks an index
//!   where it uses it.
//! - **LEDGER-LOSSES** What finds no room is counted in [`header::LedgerLosses`], and the
//!   command says so.

#![no_std]

mod area;
pub mod attach;
pub mod cells;
pub mod class;
pub mod events;
pub mod futexes;
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
mod part;
pub mod publish;
pub mod ring;
pub mod roles;
pub mod semaphore;
pub mod shares;
pub mod stacks;
pub mod table;
pub mod thread;
pub mod usage;
pub mod violation;
pub mod witness;

pub use cells::{Cells, Native};
pub use header::{LARGEST_PAGE, LedgerHeader, LedgerLayout, SAMPLE};
pub use ledger::{Ledger, LedgerPart, NotALedger};
pub use lives::Birth;

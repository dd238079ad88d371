//! Workloads, peers and measurement: what `lockstead bench` runs.
//!
//! # Role
//! A library without output of its own. Each measurement takes its options and
//! a [`Session`] (the stop flag and the progress callback) and returns a report
//! that serialises to the documented JSON. Printing and drawing are the
//! command's.
//!
//! | module | what it measures |
//! |---|---|
//! | [`uncontended`] | a lock + unlock pair that nobody disputes: time and instructions |
//! | [`contended`] | threads × section × think time: throughput, CPU, waits, fairness |
//! | [`vfs`] | the announcement's creat + unlink + close |
//! | [`explain`] | one ingredient of the locks at a time: what each is worth |
//! | [`rt`] | priority inversion, with and without inheritance |
//! | [`ww`] | several locks at a time: wait/wound, an order of the locks, trying |
//! | [`costs`] | the steps that locks are made of: transfers, calls, wake-ups |
//! | [`oncpu`] | whether an owner runs: how well each source knows, what it costs |
//! | [`shared`] | locks between processes, and what is left when those are killed |
//!
//! [`locks`] names the locks, [`published`] holds the tables of the documents
//! that the project follows.
//!
//! # Invariants
//! What the calls of the C library in this crate rely on:
//! - **CALL-NUMBERS** The call takes numbers and touches no memory of this process.
//! - **CALL-LOCALS** Each pointer of the call is to a live local variable of the type that the
//!   call reads or fills in.
//! - **ZEROED-BITS** The structure is a plain one of C, for which all zeros are a value.
//!
//! # Rules of measuring
//! All locks of a comparison are measured in one process, in rounds with the
//! order shuffled, and compared by medians; every measuring loop is compiled
//! for each lock by itself, so that all are inlined alike; every loop also
//! checks that the lock excludes, and a lock that does not is an error, not a
//! fast lock; every run has a deadline, and a lock that hangs is an error too.

mod clock;
pub mod contended;
pub mod costs;
mod error;
pub mod explain;
mod foreign;
mod harness;
mod hogs;
pub mod locks;
pub mod oncpu;
mod options;
pub mod published;
mod quota;
pub mod rt;
mod session;
pub mod shared;
pub mod stats;
pub mod uncontended;
pub mod vfs;
pub mod ww;

pub use error::Error;
pub use hogs::MAX_HOGS;
pub use locks::LockName;
pub use quota::{MAX_QUOTA, MIN_QUOTA};
pub use session::Session;

//! What a run came to: the exit report as data, and the live view of a ledger.
//!
//! # Role
//! Reads ledgers, of processes that have ended or still run, and asks [`Names`]
//! for what their addresses mean. Writes nothing and prints nothing: the
//! command makes text, JSON and HTML from [`RunReport`], and its live view from
//! [`live`].
//!
//! # What the numbers are
//! - Waits are all timed. Of holds, those after a wait, and those that last, are
//!   too, and the others as far as that is cheap; of the rest one in up to
//!   [`SAMPLE`](lockstead_ledger::SAMPLE), which counts for its like.
//! - *Waiting* is waiting for mutexes, rwlocks and spin locks. Waits for
//!   conditions, semaphores, barriers and ends of threads are *idle*: a thread
//!   that has nothing to do spends its time there, and it would hide the locks.
//!   A semaphore that serves as a lock stands there too: it has no owner, so
//!   nobody can tell it from one that counts.
//! - A wait that had not ended with the process counts up to its end.
//! - Quantiles are those of histograms by powers of two.

mod account;
mod collect;
mod detail;
pub mod family;
pub mod finding;
mod futexes;
mod groups;
pub mod holders;
mod kinds;
mod listing;
pub mod live;
pub mod lives;
pub mod model;
pub mod names;
mod one;
mod places;
pub mod python;
mod roles;
mod rows;
pub mod semaphores;
mod site;
mod sites;
pub mod spread;
pub mod sums;
mod symbolized;
mod threads;
pub mod verdict;

pub use collect::{
    LedgerProcess, ProcessFacts, ReportOptions, RunFacts, assemble, describe_process,
};
pub use finding::Finding;
pub use futexes::futex_name;
pub use kinds::{LockRole, ThreadKind, ThreadTimes};
pub use model::{Glimpse, RunReport, Sort};
pub use names::{LockFacts, Names, thread_name};
pub use one::OneLock;
pub use symbolized::end_of;
pub use threads::{is_for_lock, thread_start};

//! A process at one moment: threads, what they wait for, who holds it, and the
//! cycles among them.
//!
//! # Role
//! [`model`] is what a report is made from, and can be filled from anywhere.
//! [`mod@capture`] fills it from `/proc` and the process's memory alone,
//! [`mod@recorded`] from the ledger of a process under `lockstead run`. Nothing is
//! stopped, so what was read first may be gone when the last is read; only a
//! cycle that [`verify`] has proved is called a deadlock.
//!
//! | module | what it knows |
//! |---|---|
//! | [`model`] | the snapshot as data |
//! | [`mod@capture`] | how to take one of a living process |
//! | [`mod@recorded`] | how to take one of a process with a ledger |
//! | `across` | whom a lock means by the number that it has of its owner |
//! | `entries` | what the ledger says of each thread |
//! | `holders` | what was found of those, and what contradicts itself |
//! | `objects` | names and holders of what is waited for |
//! | `interpreter` | who holds the locks of Python |
//! | `naps` | the next sleep of those that look at lockstead's locks from time to time |
//! | `owned` | holders of locks that do not name them |
//! | `parties` | a cycle as threads of a finding |
//! | `python` | what Python's threads wait for, and who has it |
//! | `seen` | holders whom the ledger saw acquire a lock |
//! | [`recognise`] | from a futex wait to the object behind it |
//! | [`verify`] | when a cycle is a deadlock |

mod across;
pub mod capture;
mod confirmed;
mod entries;
mod holders;
mod interpreter;
pub mod model;
mod naps;
mod objects;
mod owned;
mod parties;
mod python;
pub mod recognise;
pub mod recorded;
mod seen;
pub mod verify;

pub use capture::capture;
pub use model::Snapshot;
pub use recorded::recorded;

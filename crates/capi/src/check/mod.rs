//! The checking build: what stands behind `check.h`.
//!
//! # Role
//! Each call of a lock comes by here with its place in the program. The rules are
//! those of the kernel's debugging mutexes; the order graph, the search for deadlocks and the words
//! for both are those of the crate's feature `check` (`lockstead_lockdep::book`), and what a
//! violation is called is in the catalogue (`lockstead_rules`).
//!
//! # State
//! [`table`], beside the locks and by their addresses, since a lock has no room: what is known of
//! each, and what each thread holds.
//!
//! # Invariants
//! - **CAPI-FILE** The texts that a call passes, a name and a file, are null or strings that live:
//!   `check.h` passes literals.
//! - **CAPI-OBJECT** A pointer that is not null points to a live object of its type, or to memory for
//!   one where it begins, and a wait's argument is what `how` takes: the C functions demand it of
//!   their caller, and the rules refuse what can be told to be none.
//! - **CAPI-HELD** A release that the rules let pass is by the thread that holds the lock, as the
//!   table says: it is asked under the table's mutex just before.

mod calls;
mod contexts;
mod ending;
mod lockdep;
mod mutexes;
mod once;
mod report;
mod rt;
mod rules;
mod table;
mod ww;

pub(crate) use ending::leaving;

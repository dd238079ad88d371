//! The order in which locks are taken, and the deadlocks that it allows.
//!
//! # Role
//! Pure data. The caller says which locks there are ([`Graph::declare`]), who
//! asked for which lock while holding which ([`Graph::add`]), and which locks
//! are taken in signal handlers ([`Graph::used`]). Each of these may complete a
//! way round: then an [`Inversion`] says so, with what proves it. Nothing here
//! knows how a lock is named, where its facts come from, or how a finding is
//! printed. The command `lockstead run --check` uses it on facts of other
//! processes, the crate `lockstead` on its own.
//!
//! # What a finding means
//! A deadlock needs a cycle of threads, each of which holds a lock that the one
//! before it wants. An edge of the graph is one thread's part in such a cycle:
//! it held one lock and asked for another. A cycle of edges is a deadlock that
//! could happen if different threads can be at all of its edges at the same
//! time. [`Level::Potential`] is given only where the witnesses of the edges
//! show this; else the cycle is a violation of order, [`Level::Order`], with an
//! [`Excuse`]. Two orders of classes, each of which is a habit, count as shown too: on which
//! evidence says `habits`.
//!
//! # Readers
//! What a request waits behind depends on both sides:
//!
//! | held \ asked for | write | read | recursive read |
//! |---|---|---|---|
//! | write | waits | waits | waits |
//! | read, recursive or not | waits | waits, if a writer waits | passes |
//!
//! So of two edges that meet in a lock the second does not hold up the first if
//! the first asks for a recursive read and the second holds a read. A cycle that
//! has such a place does not count.
//!
//! # Limits
//! What does not fit is left out and counted in [`Graph::losses`].

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod book;
mod causes;
mod classes;
mod components;
mod cycle;
mod cycles;
mod effort;
mod enumerate;
mod graph;
mod habits;
mod handlers;
mod kinds;
mod net;
mod order;
mod search;
mod seen;
mod sets;
mod types;
mod views;
mod worlds;

pub use graph::Graph;
pub use types::{
    ClassId, Excuse, GateLock, GraphLosses, Inversion, InversionKind, InversionStep, Level, Limits,
    LockClass, LockId, Mode, OrderEdge, SignalUse, SignalWorld, SiteId, ThreadId, Witness,
};

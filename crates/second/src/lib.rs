//! A second checker of lockstead's locks: the same scenarios, on [loom](https://docs.rs/loom).
//!
//! The first checker, `lockstead-model`, has a memory model and a search of our own. A mistake in
//! either could hide a mistake in a lock. Loom's were written by others, so an error that both
//! overlook must be made twice.
//!
//! This crate offers the names of the first checker ([`Scenario`], [`Config`], [`Model`], [`Cell`],
//! …) with the same meaning, so that a scenario is one text which both programs of tests compile.
//! It shares no code with the first. What loom cannot express, and what this crate adds to it, is
//! said at each module; `docs/checkers.md` compares the two checkers.
//!
//! Read in this order: `world` (what an execution has besides loom's memory), `atomic`, `futex`
//! (how threads sleep), `watch` and `death` (how participants of shared locks do, and how they end),
//! `section` (releases that are restarted, fences for others), `scenario` (how a search runs).

mod atomic;
mod cell;
mod config;
mod death;
mod futex;
mod needs;
mod notes;
mod participants;
mod place;
mod platform;
mod report;
mod robust;
mod scenario;
mod section;
mod shelf;
mod sleeper;
mod watch;
mod world;

pub use atomic::{U32, U64, freed};
pub use cell::Cell;
pub use config::{AccessKind, Config, Fault, Hint, Membarrier, Orderings};
pub use death::{disembody, embody};
pub use notes::{aside, forget, guard, thread};
pub use report::{Coverage, FailureKind, SearchFailure, Stats};
pub use scenario::Scenario;
pub use std::sync::atomic::Ordering;
pub use world::with_handler;

/// The machine of this checker: a platform for the locks of the core.
#[derive(Clone, Copy, Debug)]
pub struct Model;

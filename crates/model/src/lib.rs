//! A model checker for lockstead's locks.
//!
//! The locks of `lockstead-core` run here unchanged, on a [`Model`] of the
//! machine that tries everything a machine may do: every order of steps, every
//! overwritten value that a weakly ordered load may still see, spurious
//! wake-ups, timers, signals, cancellation, preemption for any length of time.
//! What is found is printed step by step, and can be run again.
//!
//! Read in this order: [`Scenario`] (how a model is written), `engine` (whose
//! turn it is), `memory` (what a load may read), `futex` (how waiting works).
//! `docs/verification.md` says what all this shows, and what not.

mod atom;
mod atomic;
mod cell;
mod choices;
mod config;
mod engine;
mod fence;
mod fingerprint;
mod futex;
mod memory;
mod platform;
mod report;
mod robust;
mod runner;
mod scenario;
mod section;
mod signal;
mod space;
mod strand;
mod watch;

pub use atomic::{U32, U64, fence, freed};
pub use cell::Cell;
pub use config::{AccessKind, Config, Fault, FutexModel, Hint, Membarrier, Orderings, WatchFilter};
pub use engine::{aside, disembody, embody, forget, guard};
pub use futex::thread;
pub use report::{
    Coverage, ExecutionEvent, FailureKind, ModelStep, Schedule, SearchFailure, Stats,
};
pub use scenario::Scenario;
pub use signal::with_handler;
pub use std::sync::atomic::Ordering;

/// The modelled machine: a platform for the locks of the core.
#[derive(Clone, Copy, Debug)]
pub struct Model;

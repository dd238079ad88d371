//! Workloads: what the tasks of a simulation do, and what comes out of it.
//!
//! A *job* is some computing, some time away from the processor, and a number of rounds
//! with acquisitions. The tasks do one job after the other, for ever: a closed system. Where they
//! have different parts, each class of them has jobs of its own, and they wait for each other.

mod act;
mod class;
mod file;
mod model;
mod part;
mod run;
mod tokens;

pub use class::{ClassUse, WorkClass, WorkStep, WorkTokens};
pub use file::BUNDLED;
pub use model::{UseKind, WorkUse, Workload};
pub use run::{RunFigures, run, run_traced};

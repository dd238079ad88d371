//! A simulated machine of many processors.
//!
//! The locks of `lockstead-core` run here unchanged, beside those of the past, on a machine
//! that nobody needs to have: sockets, cores, threads, a directory of cache lines that
//! charges each access by distance, run queues with time slices. Virtual time; the same
//! seed gives the same run, on any machine.
//!
//! Read in this order: [`Machine`], [`Workload`], [`run`]; then `engine`.
//! `docs/simulator.md` says what the numbers are worth.

mod engine;
mod file;
mod futex;
mod locks;
mod machine;
mod many;
mod platform;
pub mod replay;
mod tally;
mod work;

pub use engine::StepKind;
pub use engine::TraceStep;
pub use engine::task::Activity;
pub use engine::words::Sim;
pub use engine::world::RunSettings;
pub use file::FileError;
pub use locks::{INGREDIENTS, LOCKS, SimLockName};
pub use machine::{
    BUNDLED as MACHINES, Kernel, LISTS, Lines, Machine, MachineLayout, NUMBERS, PartError,
    Scheduler, Smt,
};
pub use many::{Stopped, many};
pub use tally::LockFigures;
pub use work::{
    BUNDLED as WORKLOADS, ClassUse, RunFigures, UseKind, WorkClass, WorkStep, WorkTokens, WorkUse,
    Workload, run, run_traced,
};

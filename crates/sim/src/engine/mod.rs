//! The engine: virtual time, tasks, cache lines, processors.
//!
//! ```text
//!   calls, atomics              what tasks can do
//!   run, strand                 the simulation, and what runs a task
//!   access, parking, sched, wait
//!                               what happens: the cost of an access, idle spin loops, which task
//!                               runs where, sleeping and waking
//!   world                       holds all that there is, and says whose turn it is
//!   time, words, event, task, line, cpu, trace
//! ```
//! Each layer uses those below it.

mod access;
mod arena;
mod atomics;
mod balance;
pub(crate) mod calls;
mod cpu;
pub(crate) mod event;
mod line;
mod parking;
mod poll;
mod queue;
mod run;
mod sched;
mod set;
mod strand;
pub(crate) mod task;
#[cfg(test)]
mod tests;
pub(crate) mod time;
mod trace;
mod turn;
mod wait;
pub(crate) mod words;
pub(crate) mod world;

pub use trace::{StepKind, TraceStep};

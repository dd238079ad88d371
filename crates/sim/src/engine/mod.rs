//! The engine: virtual time, tasks, cache lines, processors.
//!
//! From the ground up: what there is are `time`, `words`, `event`, `task`, `line`, `cpu`,
//! `trace`; `world` holds it all, and says whose turn it is. What happens in it: `access` (what
//! an access costs), `parking` (spin loops that are idle), `sched` (who runs where), `wait`
//! (sleeping and waking). On top: `strand` (what runs a task), `run`, and what tasks can do:
//! `calls`, `atomics`.

mod access;
mod arena;
mod atomics;
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

pub use trace::{Step, StepKind};

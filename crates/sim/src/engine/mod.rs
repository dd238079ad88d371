//! The engine: virtual time, tasks, cache lines, processors.
//!
//! Read in this order: `world` (what there is, and whose turn it is), `event` (what happens
//! when), `line` (what an access costs), `queue` (who waits for a line), `sched` (who runs
//! where), `wait` (sleeping and waking), `calls` (what tasks can do), `strand` (what runs a
//! task).

mod arena;
pub(crate) mod atomics;
pub(crate) mod calls;
mod event;
mod line;
mod poll;
mod queue;
mod sched;
mod set;
mod strand;
#[cfg(test)]
mod tests;
mod trace;
mod wait;
pub(crate) mod world;

pub(crate) use trace::Kind;
pub use trace::{Kind as StepKind, Step};

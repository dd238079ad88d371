//! Spinning: what a thread does between a failed fast path and sleep.

mod barging;
mod beside;
mod queue;
mod spinner;

pub(crate) use barging::Barging;
pub(crate) use queue::{alive, spin};
pub(crate) use spinner::Spun;

//! The benchmarks of locks between processes: what they cost, and what they are
//! worth when processes are killed.

pub(crate) mod bench;
pub(crate) mod dead;
mod flags;
pub(crate) mod rivals;
pub(crate) mod steps;
pub(crate) mod storm;

pub(crate) use flags::{DeadFlags, Rivals, SharedFlags, StepsFlags, StormFlags};

//! Checking: what `run --check` is asked for, how its findings read, and what is
//! made of those that a report keeps.

mod flags;
mod judge;
mod tally;
mod text;

pub(crate) use flags::CheckFlags;
pub(crate) use judge::{Judge, Verdict};
pub(crate) use tally::{Checked, summary};
pub(crate) use text::text;

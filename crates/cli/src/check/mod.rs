//! Checking: what `run --check` is asked for, how its findings read, and what is
//! made of those that a report keeps.

mod artifacts;
mod command;
mod flags;
mod judge;
pub(crate) mod recorded;
mod sarif;
mod tally;
mod text;

pub(crate) use command::{CheckCommand, run};
pub(crate) use flags::CheckFlags;
pub(crate) use judge::{FindingVerdict, Judge};
pub(crate) use sarif::write as write_sarif;
pub(crate) use tally::{CheckedTotals, Lost, summary};
pub(crate) use text::text;

//! The report of a run.

use super::{answers, contended, owners, sizes, text};
use crate::uncontended;
use lockstead_render::machine::MachineFacts;
use serde::Serialize;

/// What was measured, as reports write it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExplainReport {
    /// The machine that was measured, and when.
    pub machine: MachineFacts,
    /// The number of rounds of each cell; in each, all locks take their turn in shuffled order.
    pub rounds: usize,
    /// How long a turn is, in milliseconds.
    pub slice_ms: f64,
    /// The pair that nobody disputes.
    pub uncontended: uncontended::UncontendedReport<String>,
    /// The cells with several threads.
    pub cells: Vec<contended::ExplainCell>,
    /// The bytes of code of each lock.
    pub text: text::CodeText,
    /// The bytes of each lock.
    pub sizes: Vec<sizes::Size>,
    /// What was tried that takes an owner.
    pub owners: Vec<owners::Trial>,
    /// The questions, and what the figures above say.
    pub answers: Vec<answers::ExplainAnswer>,
}

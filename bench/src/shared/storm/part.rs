//! What a worker of a storm is told.

use super::tally::Kind;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::shared) struct StormPart {
    pub(super) index: usize,
    pub(super) processes: usize,
    pub(super) threads: usize,
    pub(super) kinds: Vec<Kind>,
    pub(super) locks: usize,
    pub(super) beside: bool,
    pub(super) churn: bool,
    pub(super) other_user: bool,
    pub(super) without_proc: bool,
    /// Of the segment's file, if it is to be opened by that.
    pub(super) path: Option<PathBuf>,
    pub(super) seed: u64,
}

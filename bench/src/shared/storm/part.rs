//! What a worker of a storm is told.

use super::tally::StormLockKind;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What one worker is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::shared) struct StormPart {
    pub(super) index: usize,
    pub(super) processes: usize,
    pub(super) threads: usize,
    pub(super) kinds: Vec<StormLockKind>,
    pub(super) locks: usize,
    pub(super) beside: bool,
    pub(super) churn: bool,
    pub(super) other_user: bool,
    pub(super) without_proc: bool,
    /// The path of the segment's file, if it is to be opened by that.
    pub(super) path: Option<PathBuf>,
    pub(super) seed: u64,
}

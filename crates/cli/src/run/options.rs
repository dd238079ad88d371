//! What the supervisor of a run has to know of the flags.

use super::flags::OnDeadlock;
use super::hang::HangOptions;
use lockstead_inspect::report::ReportOptions;
use std::time::Duration;

/// What the supervisor has to know of the flags.
pub(super) struct SupervisorOptions {
    pub(super) on_deadlock: OnDeadlock,
    pub(super) watch: Option<Duration>,
    /// When the run hangs, and what to do then.
    pub(super) hang: Option<HangOptions>,
    pub(super) wait_all: bool,
    /// Whether there is the library that checks.
    pub(super) check: bool,
    /// Whether the report has the order of locks.
    pub(super) order: bool,
    /// Whether to say what semaphores are used for.
    pub(super) semaphores: bool,
    /// How to report on the processes, if at all.
    pub(super) report: Option<ReportOptions>,
}

//! What the supervisor hears of, and whom it tells.

use super::attached::AttachedRun;
use super::metrics::Metrics;
use super::signals::CommandSignals;
use super::syscalls::Syscalls;
use lockstead_inspect::ledger::Listener;

/// All that the supervisor waits for, but for its clock, and who is told of processes.
pub(super) struct EventSources {
    /// The calls of processes that have the library.
    pub(super) listener: Listener,
    /// The signals of the command.
    pub(super) signals: CommandSignals,
    /// The futex calls of all processes, with `--syscalls`.
    pub(super) syscalls: Option<Syscalls>,
    /// The process that the library has come into, with `lockstead attach`.
    pub(super) attached: Option<AttachedRun>,
    /// What shows the figures of locks meanwhile, with `--metrics`.
    pub(super) metrics: Option<Metrics>,
}

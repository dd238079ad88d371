//! What wakes the supervisor.

use super::attached::AttachedRun;
use super::signals::CommandSignals;
use super::syscalls::Syscalls;
use lockstead_inspect::ledger::Listener;

/// All that the supervisor waits for, but for its clock.
pub(super) struct EventSources {
    /// The calls of processes that have the library.
    pub(super) listener: Listener,
    /// The signals of the command.
    pub(super) signals: CommandSignals,
    /// The futex calls of all processes, with `--syscalls`.
    pub(super) syscalls: Option<Syscalls>,
    /// The process that the library has come into, with `lockstead attach`.
    pub(super) attached: Option<AttachedRun>,
}

//! What a run came to.

use super::accountant::Accounts;
use super::reporter::Reports;
use super::signals::ProgramEnd;
use crate::attach::Remains;
use crate::check::CheckedTotals;
use lockstead_inspect::report::Glimpse;
use std::time::Duration;

/// What a run came to.
pub(super) struct RunOutcome {
    /// How the program that was started ended.
    pub(super) end: ProgramEnd,
    /// What the processes came to whose ledgers came in.
    pub(super) accounts: Accounts,
    /// What was reported in the run.
    pub(super) reports: Reports,
    /// What could not be watched, and why.
    pub(super) losses: Vec<String>,
    /// The number of cycles with time-outs that closed again.
    pub(super) recurrences: u64,
    /// How long the run took.
    pub(super) took: Duration,
    /// The processor time of the program, and of its children that somebody waited for.
    pub(super) cpu_ns: u64,
    /// The processor time that others had meanwhile, if that is known.
    pub(super) others_ns: Option<u64>,
    /// What was checked, with `--check`.
    pub(super) checked: Option<CheckedTotals>,
    /// The waits that no ledger has.
    pub(super) glimpses: Vec<Glimpse>,
    /// The program was ended while nothing moved, and that had been reported.
    pub(super) hung: bool,
    /// How long all threads stood still at most, of a process that was attached to, or what is left in
    /// it.
    pub(super) left: Option<Result<Duration, Remains>>,
    /// What was recorded, or why it could not be written, in words.
    pub(super) recording: Option<Result<String, String>>,
}

/// Returns the processor time of all children that have been waited for, in nanoseconds.
pub(super) fn children_cpu() -> u64 {
    cpu_of(libc::RUSAGE_CHILDREN)
}

/// Returns the processor time that `who` of `getrusage` stands for, in nanoseconds.
pub(super) fn cpu_of(who: libc::c_int) -> u64 {
    // SAFETY: the structure has numbers only, of which all zeroes are a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one `rusage`, which lives in this frame.
    unsafe { libc::getrusage(who, &raw mut usage) };
    let time = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000;
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// Returns the line on processes that are not watched for the same reason.
pub(super) fn lost((why, (first, more)): (String, (String, u64))) -> String {
    match more {
        0 => format!("{first}: {why}"),
        _ => format!("{first} and {more} more: {why}"),
    }
}

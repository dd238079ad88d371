//! The flags of `lockstead run`.

use super::hang::{self, HangOptions, OnHang};
use super::metrics::MetricsFlags;
use super::record::RecordFlags;
use crate::check::CheckFlags;
use crate::report::ReportFlags;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead run -- ./server --port 8080
  lockstead run --on-deadlock abort -- ./tests
  lockstead run --hang-after 5m -- ./tests    a picture of all threads before the job is killed
  lockstead run --watch 500ms --json locks.json --html locks.html -- python3 app.py
  lockstead run --wait-all -- service start   a program that leaves others running
  lockstead run --check -- ./tests            and the order of locks, and the rules
  lockstead run --check --rust -- cargo test  the same for Rust, with std and parking_lot
  lockstead run --semaphores -- ./server      which semaphores could be mutexes
  lockstead run --record events -- ./server   each wait with its times
  lockstead run --metrics 9464 -- ./server    figures of its locks for Prometheus

A deadlock is reported on a line that begins with `lockstead: DEADLOCK`, a wait that
lasts with `lockstead: BLOCKED`, each with the threads, locks, call sites and stacks;
a process in which all threads wait, and nothing will end that, with `lockstead: STUCK`;
a run in which nothing moves, if that is asked for, with `lockstead: HANG`;
with --check also `lockstead: RULE`, a rule was broken, and `lockstead: POTENTIAL`, locks
are taken in an order that can deadlock.

Exit status: that of the program (if a signal ended it, lockstead ends by the same), else
  2    wrong usage
  3    --check found something, or the program was ended by --on-deadlock abort or kill
  4    the program was ended while nothing moved: by --on-hang abort, or, after that was
       reported, by a signal
  125  its locks cannot be watched, the message says why and what to do; or
       the report could not be prepared
  126  it cannot be executed
  127  it was not found")]
pub(crate) struct RunFlags {
    /// What to do with a program that has a deadlock, or whose threads all wait with nothing left
    /// to end that, after the report: `abort` leaves a core
    #[arg(long, value_name = "WHAT", default_value = "continue")]
    pub(crate) on_deadlock: OnDeadlock,
    /// Report a wait for a lock that lasts this long (500ms, 5s, 2m; off), and again each time it
    /// has doubled
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = patience)]
    pub(crate) watch: WatchPatience,
    /// What to do when nothing of the run moves for as long as --hang-after says: print a picture of
    /// all threads and wait on (`report`), the same with all that `lockstead dump --all` shows
    /// (`dump`), end all processes after it (`abort`), or run a command with the shell
    #[arg(long, value_name = "WHAT", value_parser = hang::action)]
    pub(crate) on_hang: Option<OnHang>,
    /// How long nothing has to move (500ms, 5s, 2m); 60s if only --on-hang is given
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) hang_after: Option<Duration>,
    /// Watch programs that take no library along, too (static ones, Go, musl): the kernel tells of
    /// the futex calls of all processes, some 15 us for each
    #[arg(long, conflicts_with = "no_follow")]
    pub(crate) syscalls: bool,
    /// Say at the end which semaphores could be mutexes, and which not and why
    #[arg(long)]
    pub(crate) semaphores: bool,
    /// Leave out the processes that the program starts
    #[arg(long)]
    pub(crate) no_follow: bool,
    /// Stay until the processes that the program leaves behind have ended too (SIGINT or SIGTERM
    /// to lockstead ends the waiting, not them)
    #[arg(long, conflicts_with = "no_follow")]
    pub(crate) wait_all: bool,
    /// See Rust's locks too: has cargo build what it starts with a std and a parking_lot that tell
    /// of their mutexes, reader-writer locks and conditions, in a target folder of its own
    #[arg(long)]
    pub(crate) rust: bool,
    #[command(flatten)]
    pub(crate) record: RecordFlags,
    #[command(flatten)]
    pub(crate) metrics: MetricsFlags,
    #[command(flatten)]
    pub(crate) check: CheckFlags,
    #[command(flatten)]
    pub(crate) report: ReportFlags,
    /// The program and its arguments; one whose name begins with a hyphen needs the `--` before it
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    pub(crate) program: Vec<OsString>,
}

impl RunFlags {
    /// Returns when the run hangs and what to do then, if either option is given.
    pub(super) fn hang(&self) -> Option<HangOptions> {
        (self.on_hang.is_some() || self.hang_after.is_some()).then(|| HangOptions {
            after: self.hang_after.unwrap_or(hang::AFTER),
            action: self.on_hang.clone().unwrap_or_default(),
        })
    }
}

/// What `--on-deadlock` asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnDeadlock {
    /// Let it be: the other threads go on
    #[default]
    Continue,
    /// End the process with SIGABRT
    Abort,
    /// End the process with SIGKILL
    Kill,
}

/// `--watch`: how long a wait may last; not looked at if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WatchPatience(pub(crate) Option<Duration>);

/// The shortest wait that is reported, in seconds: some looks at the waits.
const MIN_PATIENCE: f64 = 0.01;

/// The longest wait that can be waited for, in seconds.
const MAX_PATIENCE: f64 = 86_400.0;

/// The times that an option takes.
const TIMES: &str = "a time from 10ms to 24h with ms, s, m or h";

/// Returns how long a wait may last, with its unit; `off` for ever.
pub(super) fn patience(text: &str) -> Result<WatchPatience, String> {
    if text == "off" {
        return Ok(WatchPatience(None));
    }
    match time(text) {
        Ok(time) => Ok(WatchPatience(Some(time))),
        Err(_) => Err(format!("`{text}` is not possible; allowed: off, or {TIMES}")),
    }
}

/// Returns a time with its unit.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => 0.0,
    };
    match number.parse::<f64>().map(|number| number * unit) {
        Ok(seconds) if (MIN_PATIENCE..=MAX_PATIENCE).contains(&seconds) => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err(format!("`{text}` is not possible; allowed: {TIMES}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_has_a_unit_or_is_off() {
        for (text, ms) in [("10ms", 10), ("5s", 5000), ("0.5s", 500), ("2m", 120_000)] {
            assert_eq!(
                patience(text),
                Ok(WatchPatience(Some(Duration::from_millis(ms)))),
                "{text}"
            );
        }
        assert_eq!(patience("off"), Ok(WatchPatience(None)));
        for text in ["", "5", "0", "0s", "1ms", "-5s", "5 s", "25h", "soon", ".s", "1.2.3s", "inf"]
        {
            assert!(patience(text).expect_err(text).contains("allowed"), "{text}");
            assert!(time(text).expect_err(text).contains("allowed"), "{text}");
        }
        assert_eq!(time("1.5s"), Ok(Duration::from_millis(1500)));
    }
}

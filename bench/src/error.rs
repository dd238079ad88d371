//! What can go wrong with a measurement.

use crate::locks::LockName;
use lockstead_render::failure::Failure;
use std::path::PathBuf;

/// Why there is no report. The text says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An option has a value that makes no sense; nothing was started.
    #[error("{option}: `{given}` is not possible; allowed: {allowed}")]
    Option {
        /// The option as written on the command line, `--tasks` for example.
        option: &'static str,
        /// The value that was given.
        given: String,
        /// What is allowed, in words.
        allowed: String,
    },
    /// A directory cannot be used; nothing was left in it.
    #[error("--dir: cannot create and remove files in {}: {source}; give a writable directory", path.display())]
    Directory {
        /// The directory as given.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A system call of the workload failed in the middle of a measurement.
    #[error("{what} failed while {lock} was measured: {source}")]
    System {
        /// The lock under test.
        lock: &'static str,
        /// The call that failed.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// The lock is not built in, or its library is not here.
    #[error("{lock} is not available: {why}")]
    Unavailable {
        /// The lock asked for.
        lock: LockName,
        /// Why, and what to install.
        why: String,
    },
    /// Two threads were inside the lock at once.
    #[error(
        "{lock} does not exclude: {operations} sections ran, the counter inside shows {counted}"
    )]
    Broken {
        /// The lock under test.
        lock: &'static str,
        /// Sections that the threads counted, each for itself.
        operations: u64,
        /// Sections that the counter inside the lock counted.
        counted: u64,
    },
    /// Threads did not come back in time. They are still there: the process
    /// should end soon.
    #[error(
        "{lock} hangs: {missing} of {threads} threads had not finished {seconds} s after they were told to stop"
    )]
    Stuck {
        /// The lock under test.
        lock: &'static str,
        /// Threads that did not return.
        missing: usize,
        /// Threads that were started.
        threads: usize,
        /// The patience, in seconds.
        seconds: u64,
    },
    /// Nobody came to a turn in a window that has waited for one.
    #[error(
        "{lock}: nobody came to a turn within {seconds} s: perhaps the machine has too much other work; try again on an idle one, or \
         with fewer threads"
    )]
    NoTurn {
        /// The lock under test.
        lock: &'static str,
        /// The patience, in seconds.
        seconds: u64,
    },
    /// A measurement of a process with one thread was asked for in one that has more.
    #[error("the process has {threads} threads; a measurement with one needs a process of its own")]
    NotAlone {
        /// Threads that there are.
        threads: usize,
    },
    /// The machine does not allow that many threads.
    #[error("cannot start {threads} threads: {source}")]
    Threads {
        /// The number of threads asked for.
        threads: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// A process that takes part could not be started, or the memory for it made.
    #[error("{what}: {source}")]
    Process {
        /// The step that was attempted.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// A process that takes part ended before it was told to.
    #[error("a worker process ended by itself: {how}")]
    Worker {
        /// Its exit status, or the signal that ended it.
        how: String,
    },
    /// The machine does not let this user make process namespaces.
    #[error(
        "this machine does not allow namespaces of process ids ({source}); run as root, or allow \
         user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone)"
    )]
    Namespaces {
        /// What the system said.
        source: std::io::Error,
    },
    /// The machine does not let this user have threads with real-time priorities.
    #[error(
        "threads may not have real-time priorities here (SCHED_FIFO up to {highest}: {source}); \
         run as root, or with CAP_SYS_NICE, or with a limit of {highest} or more (`ulimit -r`, \
         RLIMIT_RTPRIO); a container or control group may have to allow it too"
    )]
    Priorities {
        /// The highest priority that is needed.
        highest: i32,
        /// What the system said.
        source: std::io::Error,
    },
    /// The machine does not let this user limit its own processor time.
    #[error(
        "--quota: this process cannot have a processor quota here ({source}); run as root, or in \
         a control group that is yours (`systemd-run --user --scope -p Delegate=yes ...`), or \
         leave --quota out and give the quota from outside (`systemd-run -p CPUQuota=...`)"
    )]
    Quota {
        /// What the system said.
        source: std::io::Error,
    },
    /// A segment could not be made or used.
    #[error("{what}: {why}")]
    Segment {
        /// The step that was attempted.
        what: &'static str,
        /// What is wrong, in words.
        why: String,
    },
    /// Something was asked for that is not to be had here.
    #[error("{option}: not possible here: {why}")]
    NotHere {
        /// The option as written on the command line.
        option: &'static str,
        /// What is in the way, and what to do.
        why: String,
    },
    /// The session's stop flag was set. Everything has been cleaned up.
    #[error("interrupted")]
    Interrupted,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Interrupted => Failure::Interrupted,
            Error::Option { .. } | Error::Directory { .. } | Error::Unavailable { .. } => {
                Failure::Usage(error.to_string())
            }
            Error::System { .. }
            | Error::Broken { .. }
            | Error::Stuck { .. }
            | Error::NoTurn { .. }
            | Error::NotAlone { .. }
            | Error::Threads { .. }
            | Error::Process { .. }
            | Error::Worker { .. }
            | Error::Namespaces { .. }
            | Error::NotHere { .. }
            | Error::Priorities { .. }
            | Error::Quota { .. }
            | Error::Segment { .. } => Failure::Run(error.to_string()),
        }
    }
}

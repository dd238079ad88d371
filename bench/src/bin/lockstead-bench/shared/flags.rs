//! The flags of the benchmarks of locks between processes.

use crate::values::{self, ValueList};
use clap::Args;
use lockstead_bench::shared::storm::{MAX_KILLS, Mix, Namespacing, StormLockKind};
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead bench shared
  lockstead bench shared --pair-only --json > pair.json
  lockstead bench shared --processes 2,16 --section 1us --think 1x --seconds 5")]
pub(crate) struct SharedFlags {
    /// Measure the pair only, and start no process
    #[arg(long, conflicts_with_all = ["processes", "section", "think", "seconds"])]
    pub(crate) pair_only: bool,
    /// Numbers of processes, each 1 to 256
    #[arg(long, default_value = "2,4,16", value_name = "LIST")]
    #[arg(value_parser = values::processes)]
    pub(crate) processes: ValueList<usize>,
    /// Critical sections: 0 or a length with ns, us or ms, at most 100ms
    #[arg(long, default_value = "0,1us,20us", value_name = "LIST")]
    #[arg(value_parser = values::sections)]
    pub(crate) section: ValueList<Duration>,
    /// Time between two sections of a process: 0 or a multiple of the section
    #[arg(long, default_value = "0,1x", value_name = "LIST")]
    #[arg(value_parser = values::thinks)]
    pub(crate) think: ValueList<f64>,
    /// Seconds of counting for each lock in each cell, in five rounds [default: 0.5]
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) seconds: Option<Duration>,
    /// Measure for a moment only
    #[arg(long, conflicts_with = "seconds")]
    pub(crate) quick: bool,
    /// Write the report as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without flags, or with --seconds alone: all combinations that are to be had here, in turns.

Examples:
  lockstead bench storm                                     a minute of everything
  lockstead bench storm --all --kills 1000000               much of everything
  lockstead bench storm --kills 10000
  lockstead bench storm --seconds 20 --lock all --threads 3 --churn --json
  lockstead bench storm --kills 3000 --beside-robust        and pthread's robust mutexes
  sudo lockstead bench storm --seconds 20 --namespaces=several --users --reap --lock all

Exit status:
  0    the locks held
  1    an invariant was torn, a wait took longer than 2 s, a lock told of a death that was
       not, or refused, or a slot was lost; or it could not be done
  2    wrong usage")]
pub(crate) struct StormFlags {
    /// How many workers to kill
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_KILLS))]
    pub(crate) kills: Option<u64>,
    /// How long it lasts, if --kills do not come first [default: 60, unless --kills is given]
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) seconds: Option<Duration>,
    /// Let all combinations happen that are to be had here, in turns
    #[arg(long, conflicts_with = "combination")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) combination: Combination,
    /// Write the report as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead bench steps
  lockstead bench steps --lock mutex --every 10 --json

Exit status:
  0    nobody waited for longer than the limit
  1    somebody did, or for ever, or two had a lock; or processes may not be traced here
  2    wrong usage")]
pub(crate) struct StepsFlags {
    /// Kinds of locks: mutex, rwlock, semaphore, condvar, several of them, or all
    #[arg(long, default_value = "all", value_name = "LIST", value_parser = values::storm_kinds)]
    pub(crate) lock: ValueList<StormLockKind>,
    /// Kill at each Nth instruction, 1 to 1000000
    #[arg(long, default_value_t = 1, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) every: u64,
    /// The longest wait that passes, in seconds
    #[arg(long, default_value = "0.1", value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) limit: Duration,
    /// Write the report as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// What happens in one storm.
#[derive(Debug, Args)]
#[group(id = "combination", multiple = true)]
pub(crate) struct Combination {
    /// Kinds of locks: mutex, rwlock, semaphore, condvar, several of them, or all [default: mutex]
    #[arg(long, value_name = "LIST", value_parser = values::storm_kinds)]
    pub(crate) lock: Option<ValueList<StormLockKind>>,
    /// Workers at the same time, 1 to 64 [default: 4]
    #[arg(long, value_name = "N", value_parser = values::storm_processes)]
    pub(crate) processes: Option<usize>,
    /// Locks of each kind that they share, 1 to 256 [default: 8]
    #[arg(long, value_name = "N", value_parser = values::storm_locks)]
    pub(crate) locks: Option<usize>,
    /// Threads of each worker, 1 to 16 [default: 1]
    #[arg(long, value_name = "N", value_parser = values::storm_threads)]
    pub(crate) threads: Option<usize>,
    /// Make each worker, or every other one (several), process 1 of a namespace of its own, as in
    /// containers: needs root, or user namespaces
    #[arg(long, value_name = "WHICH", value_parser = values::storm_namespaces)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "each")]
    pub(crate) namespaces: Option<Namespacing>,
    /// Have threads give the kernel a list of robust locks of their own, in the segment
    #[arg(long)]
    pub(crate) exclusive: bool,
    /// Have the same threads use robust mutexes of the C library as well, and count both
    #[arg(long, conflicts_with_all = ["exclusive", "namespaces", "reap", "exec"])]
    pub(crate) beside_robust: bool,
    /// Have threads give up their slots after every operation, or end and be replaced
    #[arg(long)]
    pub(crate) churn: bool,
    /// Stop workers for a while, at any moment; then they go on or are killed
    #[arg(long)]
    pub(crate) stop: bool,
    /// Have some workers end by a call of exec, in any thread at any instruction
    #[arg(long)]
    pub(crate) exec: bool,
    /// Take the memory of some that are killed before they end, as the reaper of the
    /// out-of-memory killer does
    #[arg(long)]
    pub(crate) reap: bool,
    /// Have every other worker belong to another user: needs root
    #[arg(long)]
    pub(crate) users: bool,
    /// Leave the workers without /proc: needs root, or user namespaces
    #[arg(long)]
    pub(crate) without_proc: bool,
}

impl Combination {
    /// Returns the combination as the measuring library has it; `None` if nothing was given.
    pub(crate) fn mix(&self) -> Option<Mix> {
        let usual = Mix::default();
        let mix = Mix {
            kinds: self.lock.as_ref().map_or(usual.kinds, |list| list.0.clone()),
            processes: self.processes.unwrap_or(usual.processes),
            locks: self.locks.unwrap_or(usual.locks),
            threads: self.threads.unwrap_or(usual.threads),
            namespaces: self.namespaces.unwrap_or(usual.namespaces),
            exclusive: self.exclusive,
            beside_robust: self.beside_robust,
            churn: self.churn,
            stop: self.stop,
            exec: self.exec,
            reap: self.reap,
            users: self.users,
            without_proc: self.without_proc,
        };
        let numbers = [self.processes, self.locks, self.threads];
        let given = self.lock.is_some() || numbers.iter().any(Option::is_some);
        (given || mix != Mix::default()).then_some(mix)
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead bench dead --locks 1000000
  lockstead bench dead --locks 100000 --json")]
pub(crate) struct DeadFlags {
    /// Locks that the killed process holds, 1 to 1048576
    #[arg(long, default_value = "1000000", value_name = "N", value_parser = values::dead_locks)]
    pub(crate) locks: usize,
    /// Write the report as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead bench rivals
  lockstead bench rivals --json > rivals.json")]
pub(crate) struct Rivals {
    /// Measure for a moment only
    #[arg(long)]
    pub(crate) quick: bool,
    /// Write the report as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

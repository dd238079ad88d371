//! The flags of the benchmarks of locks between processes.

use crate::values::{self, List};
use clap::Args;
use lockstead_bench::shared::storm::{Kind, MAX_KILLS};
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead bench shared
  lockstead bench shared --pair-only --json > pair.json
  lockstead bench shared --processes 2,16 --section 1us --think 1x --seconds 5")]
pub(crate) struct Shared {
    /// Measure the pair only, and start no process
    #[arg(long, conflicts_with_all = ["processes", "section", "think", "seconds"])]
    pub(crate) pair_only: bool,
    /// Numbers of processes, each 1 to 256
    #[arg(long, default_value = "2,4,16", value_name = "LIST")]
    #[arg(value_parser = values::processes)]
    pub(crate) processes: List<usize>,
    /// Critical sections: 0 or a length with ns, us or ms, at most 100ms
    #[arg(long, default_value = "0,1us,20us", value_name = "LIST")]
    #[arg(value_parser = values::sections)]
    pub(crate) section: List<Duration>,
    /// Time between two sections of a process: 0 or a multiple of the section
    #[arg(long, default_value = "0,1x", value_name = "LIST")]
    #[arg(value_parser = values::thinks)]
    pub(crate) think: List<f64>,
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
Examples:
  lockstead bench storm --kills 10000
  lockstead bench storm --kills 10000 --lock all --threads 3 --json
  lockstead bench storm --kills 3000 --beside-robust        and pthread's robust mutexes
  sudo lockstead bench storm --kills 10000 --namespaces     every worker is process 1

Exit status:
  0    the locks held
  1    an invariant was torn, a wait took longer than 3 s, or a lock told of a death that
       was not; or it could not be done
  2    wrong usage")]
pub(crate) struct Storm {
    /// Workers to kill
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_KILLS))]
    pub(crate) kills: u64,
    /// Kinds of locks: mutex, rwlock, semaphore, condvar, several of them, or all
    #[arg(long, default_value = "mutex", value_name = "LIST", value_parser = values::storm_kinds)]
    pub(crate) lock: List<Kind>,
    /// Workers at the same time, 1 to 64
    #[arg(long, default_value = "4", value_name = "N", value_parser = values::storm_processes)]
    pub(crate) processes: usize,
    /// Locks of each kind that they share, 1 to 256
    #[arg(long, default_value = "8", value_name = "N", value_parser = values::storm_locks)]
    pub(crate) locks: usize,
    /// Threads of each worker, 1 to 16
    #[arg(long, default_value = "1", value_name = "N", value_parser = values::storm_threads)]
    pub(crate) threads: usize,
    /// Make every worker process 1 of a namespace of its own, as in containers: needs root, or user
    /// namespaces
    #[arg(long)]
    pub(crate) namespaces: bool,
    /// Have threads give the kernel a list of robust locks of their own, in the segment
    #[arg(long)]
    pub(crate) exclusive: bool,
    /// Have the same threads use robust mutexes of the C library as well, and count both
    #[arg(long, conflicts_with_all = ["exclusive", "namespaces"])]
    pub(crate) beside_robust: bool,
    /// Write the report as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead bench dead --locks 1000000
  lockstead bench dead --locks 100000 --json")]
pub(crate) struct Dead {
    /// Locks that the killed process holds, 1 to 1048576
    #[arg(long, default_value = "1000000", value_name = "N", value_parser = values::dead_locks)]
    pub(crate) locks: usize,
    /// Write the report as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

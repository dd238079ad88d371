//! The subcommands. The flags of each are beside its code.

use crate::bench_flags::{Ablation, Contended, Map};
use crate::check::Check;
use crate::demo::Demo;
use crate::dump::Dump;
use crate::explain::Explain;
use crate::features::FeaturesFlags;
use crate::oncpu::{self, Oncpu};
use crate::run::Run;
use crate::shared::{Dead, Rivals, Shared, Steps, Storm};
use crate::shm::Shm;
use crate::sim::Sim;
use crate::top::Top;
use crate::values::{self, List};
use crate::why::Why;
use clap::{Args, Parser, Subcommand};
use lockstead_bench::{LockName, rt};
use std::path::PathBuf;
use std::time::Duration;

const EXIT: &str = "\
Exit status:
  0    done
  1    something failed on the way
  2    wrong usage: the message names the option and what is allowed
  3    dump, shm: there is a deadlock; run: the program was ended because of one, or --check
       found something; check: there are findings; oncpu status: there is no table
  130  ended by SIGINT or SIGTERM; temporary files are removed, nothing
       half-measured is reported (a second signal ends at once)

Results go to standard output, all else to standard error. NO_COLOR is honoured.";

/// Locks in any program: who holds what, deadlocks, waiting; and locks measured and compared.
#[derive(Debug, Parser)]
#[command(name = "lockstead", version, after_help = EXIT, max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the main things on this machine, in under a minute
    ///
    /// A deadlock under `lockstead run`, a hung program under `lockstead dump` (both built from C on
    /// the spot), the announcement's benchmark of 2005 with five locks beside the published rows,
    /// the uncontended pair, the sizes, and what a lock is worth when its owner, or a waiter in
    /// another container, is killed. Needs no option, and leaves no file behind but the library that
    /// `run` keeps among the temporary files.
    Demo(Demo),
    /// Measure locks against each other
    #[command(subcommand, arg_required_else_help = true, after_help = EXIT)]
    Bench(Bench),
    /// Show where a mutex's advantages come from, one ingredient at a time
    ///
    /// The mutex, and a semaphore with the same slow path, whole and with one ingredient left out:
    /// what each is worth in bytes, throughput and processor time on this machine, and whether a
    /// semaphore can have it too. A minute and a half, some seconds with --quick.
    Explain(Explain),
    /// Show what this kernel, C library and privilege offer, and what is in use
    ///
    /// For what is missing or not in use it says what happens instead.
    Features(FeaturesFlags),
    /// Show who waits for which lock in a running process, who holds it, and deadlocks
    ///
    /// From /proc and the process's memory alone: the process is neither stopped nor traced, and
    /// need not have been started by lockstead. Of one that was, under `lockstead run`, all held
    /// locks are shown, with times and places. Says what cannot be known.
    Dump(Dump),
    /// Run a program and watch its locks: deadlocks as they close, the worst locks at the end
    ///
    /// Any dynamically linked program of glibc 2.34 or newer, with no rebuild. The program behaves
    /// as without lockstead: same output, same status. What is found goes to standard error.
    Run(Run),
    /// Show what a run with `--check` has found, from the report that it kept
    ///
    /// Applies suppressions to it, suggests some, or writes it in SARIF.
    Check(Check),
    /// Show how it came that one lock is taken before another
    ///
    /// From the report of a run with `--check --json FILE`: the shortest chain of threads that
    /// held one lock and asked for the next, with both stacks of each.
    Why(Why),
    /// Show the locks of a program under `lockstead run` as it runs
    ///
    /// The locks by waiting time, the threads that wait and the locks that are held, once a second.
    Top(Top),
    /// Show who takes part in a segment of shared memory, who holds and waits for its locks, who
    /// died
    ///
    /// From the segment's file alone; its programs need not be there. Free locks are counted and not
    /// listed. With --recover it helps those who are stuck.
    Shm(Shm),
    /// Simulate locks on machines that one does not have
    ///
    /// The locks of this project, unchanged, and those of the past, on machines of up to 4096
    /// processors: the published tables replayed, and other programs and machines predicted.
    #[command(subcommand, arg_required_else_help = true, after_help = EXIT)]
    Sim(Sim),
    /// Keep a table of which thread runs on which processor, for locks that spin
    ///
    /// The quickest and most exact answer to whether the owner of a lock runs. Optional: a
    /// privileged eBPF program keeps it for all programs of the machine, none of which needs a
    /// privilege.
    #[command(subcommand, arg_required_else_help = true, after_help = oncpu::HELP)]
    Oncpu(Oncpu),
    /// Draw a report of `lockstead bench ... --json`
    ///
    /// Which of the three benchmarks it is from is known by its content.
    Plot(Plot),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// creat + unlink + close by many tasks, as in the announcement of 2005
    ///
    /// Each task loops creat + unlink + close of its own file in a folder of its own. The lock
    /// under test guards a directory in memory that all tasks share, so that it is the contended
    /// lock and not one of the kernel's. The locks take turns.
    Vfs(Vfs),
    /// A lock + unlock pair that nobody disputes
    ///
    /// One thread takes and releases a lock over and over, in a process with several threads. The
    /// limit is a bare compare-exchange and exchange. The locks take turns; figures are medians.
    Uncontended(Uncontended),
    /// Threads x critical section x think time
    ///
    /// A cell for each combination. In a cell the locks take turns in shuffled rounds; figures
    /// are medians. The whole grid with all locks takes a quarter of an hour, or two minutes with
    /// --quick; up to twice that if other work on the machine spoils rounds.
    Contended(Contended),
    /// Where the mutex is ahead of the best other lock, and where not: threads by section length
    ///
    /// Three panels for each think time: throughput, work per second of processor time and longest
    /// wait, each as a ratio to the best peer of the cell. Some minutes for the whole map, or none
    /// from a report of `bench contended`.
    Map(Map),
    /// What each ingredient of the mutex is worth: threads x critical section x think time
    ///
    /// The mutex whole and without one ingredient at a time, in turn in the same rounds; for each
    /// ingredient the geometric mean and the lowest and highest cell of what it gives. A quarter
    /// of an hour, or some minutes with --quick.
    Ablation(Ablation),
    /// A priority inversion: how long the thread with the highest priority waits for a lock
    ///
    /// Three threads on one processor: low holds a lock, high asks for it, middle wants the processor
    /// for --busy milliseconds. With mutexes whose waiters lend their priority, and with others. Needs
    /// real-time priorities (root, CAP_SYS_NICE or `ulimit -r 30`). Keeps one processor busy, half of
    /// the time.
    Rt(Rt),
    /// Locks between processes: the pair that nobody disputes, and processes x section x think time
    ///
    /// lockstead's shared mutex, which survives its owner, beside the C library's robust mutex and
    /// its plain shared one. All locks lie in shared memory and take turns in shuffled rounds; the
    /// contended part starts processes of its own. Half a minute, some seconds with --quick.
    Shared(Shared),
    /// What people lock with between processes, side by side
    ///
    /// lockstead's mutex and reader-writer lock, the C library's robust mutex and semaphore, locks of
    /// files (flock, fcntl), LMDB and Python's multiprocessing.Lock, where those are installed. What
    /// each costs, and what becomes of it when its holder, a reader or a waiter is killed, a child
    /// unlocks it, or its file is closed. A quarter of a minute, some seconds with --quick.
    Rivals(Rivals),
    /// Kill processes that share locks, again and again, and see whether the locks hold
    ///
    /// Workers take locks at random, each of which protects two counters that a critical section
    /// keeps equal; workers are killed at random moments (SIGKILL) and replaced. Counts the deaths
    /// that the next owner was told of, torn counters of which it was not, and stalls.
    Storm(Storm),
    /// Kill a process at every instruction of an operation on a lock, and see how long others wait
    ///
    /// The operations are lock, unlock, wait and notify of each kind; two threads sleep for what
    /// the process has, or is about to get. It is stepped through by tracing (ptrace). Nine minutes,
    /// or one with --every 10.
    Steps(Steps),
    /// Kill a process that holds very many locks, and see how many tell it
    ///
    /// Also with the C library's robust mutex, which loses all but 2048 of them.
    Dead(Dead),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead bench vfs
  lockstead bench vfs --tasks 4 --seconds 2 --locks lockstead,std,semaphore-classic
  lockstead bench vfs --dir /dev/shm --json > vfs.json
  lockstead bench vfs --memory                the shared directory only, no system calls")]
pub(crate) struct Vfs {
    /// Tasks at the same time, 1 to 1024
    #[arg(long, default_value = "16", value_name = "N", value_parser = values::tasks)]
    pub(crate) tasks: usize,
    /// Seconds of measuring for each lock
    #[arg(long, default_value = "10", value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) seconds: Duration,
    /// Where to create and remove files [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Leave out the system calls: work on the shared directory in memory only
    #[arg(long, conflicts_with = "dir")]
    pub(crate) memory: bool,
    #[command(flatten)]
    pub(crate) locks: Locks,
    /// Write the report as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead bench uncontended
  lockstead bench uncontended --locks lockstead,std --json > pair.json
  lockstead bench uncontended --one-thread --locks lockstead,pthread")]
pub(crate) struct Uncontended {
    #[command(flatten)]
    pub(crate) locks: Locks,
    /// Measure what the pair costs a process that never had a second thread
    #[arg(long)]
    pub(crate) one_thread: bool,
    /// Measure for a moment only
    #[arg(long)]
    pub(crate) quick: bool,
    /// Write the report as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sudo lockstead bench rt
  lockstead bench rt --rounds 200 --busy 5 --json > rt.json

Exit status:
  0    measured
  1    threads may not have real-time priorities here; or something failed on the way
  2    wrong usage")]
pub(crate) struct Rt {
    /// Rounds with each lock, 1 to 10000
    #[arg(long, default_value = "50", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=rt::MAX_ROUNDS.into()))]
    pub(crate) rounds: u32,
    /// Milliseconds of processor time that the middle thread wants in each round, 1 to 100
    #[arg(long, default_value = "20", value_name = "MS")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) busy: u64,
    /// Write the report as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Locks {
    #[arg(long, value_name = "LIST", value_parser = values::locks, help = values::locks_help())]
    pub(crate) locks: Option<List<LockName>>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead bench vfs --json > vfs.json
  lockstead plot vfs.json -o vfs.svg
  lockstead bench uncontended --json | lockstead plot - -o - > pair.svg")]
pub(crate) struct Plot {
    /// A report written with --json, or - for standard input
    #[arg(value_name = "FILE.json")]
    pub(crate) file: PathBuf,
    /// The picture to write, or - for standard output
    #[arg(short, long, value_name = "FILE.svg")]
    pub(crate) output: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_flags_are_consistent() {
        Cli::command().debug_assert();
    }
}

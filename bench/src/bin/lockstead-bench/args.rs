//! The subcommands that measure, simulate and draw. The flags of each are beside its code.

use crate::demo::Demo;
use crate::explain::Explain;
use crate::grid_flags::{Ablation, Contended, FrontierFlags, MapFlags};
use crate::oncpu::OncpuCheck;
use crate::plot::Plot;
use crate::rt::Rt;
use crate::shared::{DeadFlags, Rivals, SharedFlags, StepsFlags, StormFlags};
use crate::sim::{SimCommand, Whatif};
use crate::uncontended::UncontendedFlags;
use crate::vfs::VfsFlags;
use crate::ww::WwFlags;
use clap::{Parser, Subcommand};
use lockstead_render::shell::ColorFlag;
use std::path::PathBuf;

/// Subcommands of `lockstead` that are its own, and unknown here.
#[cfg(test)]
pub(crate) const ELSEWHERE: &[&[&str]] = &[
    &["cluster"],
    &["features"],
    &["dump"],
    &["run"],
    &["attach"],
    &["check"],
    &["why"],
    &["diff"],
    &["export"],
    &["top"],
    &["shm"],
    &["completions"],
    &["man"],
    &["oncpu", "start"],
    &["oncpu", "stop"],
    &["oncpu", "status"],
];

const EXIT: &str = "\
Exit status:
  0    done
  1    something failed on the way
  2    wrong usage: the message names the option and what is allowed
  130  ended by SIGINT or SIGTERM; temporary files are removed, nothing
       half-measured is reported (a second signal ends at once)

Results go to standard output, all else to standard error. NO_COLOR is honoured
where --color says nothing.";

/// Locks measured, compared and simulated: what `lockstead` starts for `bench`, `demo`,
/// `explain`, `oncpu check`, `plot`, `sim` and `whatif`
#[derive(Debug, Parser)]
#[command(name = "lockstead", bin_name = "lockstead")]
#[command(version, after_help = EXIT, max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) color: ColorFlag,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the main things on this machine, in under a minute
    ///
    /// A deadlock under `lockstead run`, a hung program under `lockstead dump` (both built from C
    /// on the spot), the announcement's benchmark of 2005 with five locks beside the published
    /// rows, the uncontended pair, the sizes, and what a lock is worth when its owner, or a waiter
    /// in another container, is killed. Needs no option, and leaves no file behind but the library
    /// that `run` keeps among the temporary files.
    Demo(Demo),
    /// Measure locks against each other
    #[command(subcommand, arg_required_else_help = true, after_help = EXIT)]
    Bench(BenchCommand),
    /// Show where a mutex's advantages come from, one ingredient at a time
    ///
    /// The mutex, and a semaphore with the same slow path, whole and with one ingredient left out:
    /// what each is worth in bytes, throughput and processor time on this machine, and whether a
    /// semaphore can have it too. A minute and a half, some seconds with --quick.
    Explain(Explain),
    /// Simulate locks on machines that one does not have
    ///
    /// The locks of this project, unchanged, and those of the past, on machines of up to 4096
    /// processors: the published tables replayed, and other programs and machines predicted.
    #[command(subcommand, arg_required_else_help = true, after_help = EXIT)]
    Sim(SimCommand),
    /// Predict a recorded program on this machine or another one, and what would help it
    ///
    /// The same as `lockstead sim whatif`. docs/whatif.md has examples.
    Whatif(Whatif),
    /// Draw a report of `lockstead bench ... --json`
    ///
    /// Which of the three benchmarks it is from is known by its content.
    Plot(Plot),
    /// Measure with a table of which thread runs on which processor
    #[command(subcommand, arg_required_else_help = true)]
    Oncpu(OncpuMeasured),
    /// List the locks that can be measured here, and why others cannot, as JSON
    #[command(hide = true)]
    Locks,
    /// Write the manual pages of these subcommands into a folder
    #[command(hide = true)]
    Man {
        /// The folder that gets them
        folder: PathBuf,
    },
}

/// The part of `lockstead oncpu` that measures.
#[derive(Debug, Subcommand)]
pub(crate) enum OncpuMeasured {
    /// Measure how well the other sources know whether an owner runs, and what all of them cost
    ///
    /// The table is the truth. Starts it for so long if nobody keeps it, and measures then what it
    /// adds to a switch. Some seconds.
    Check(OncpuCheck),
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Measure creat + unlink + close by many tasks, as in the announcement of 2005
    ///
    /// Each task loops creat + unlink + close of its own file in a folder of its own. The lock
    /// under test guards a directory in memory that all tasks share, so that it is the contended
    /// lock and not one of the kernel's. The locks take turns.
    Vfs(VfsFlags),
    /// Measure a lock + unlock pair that nobody disputes
    ///
    /// One thread takes and releases a lock over and over, in a process with several threads. The
    /// limit is a bare compare-exchange and exchange. The locks take turns; figures are medians.
    Uncontended(UncontendedFlags),
    /// Measure threads x critical section x think time
    ///
    /// A cell for each combination. In a cell the locks take turns in shuffled rounds; figures
    /// are medians. The whole grid with all locks takes a quarter of an hour, or two minutes with
    /// --quick; up to twice that if other work on the machine spoils rounds.
    Contended(Contended),
    /// Show where the mutex is ahead of the best other lock, and where not: threads by section
    /// length
    ///
    /// Three panels for each think time: throughput, work per second of processor time and longest
    /// wait, each as a ratio to the best peer of the cell. Some minutes for the whole map, or none
    /// from a report of `bench contended`.
    Map(MapFlags),
    /// Show throughput against the longest wait, for each cell of threads x section x think time
    ///
    /// Which locks are beaten in both by another one, and which peers lockstead's mutex or its fair
    /// mutex answers: at least 0.95 of the throughput, at most 1.1 times the longest wait (the median
    /// over the rounds) and Jain's index less 0.02. Half an hour, or no time from a report.
    Frontier(FrontierFlags),
    /// Measure what each ingredient of the mutex is worth: threads x critical section x think time
    ///
    /// The mutex whole and without one ingredient at a time, in turn in the same rounds; for each
    /// ingredient the geometric mean and the lowest and highest cell of what it gives. A quarter
    /// of an hour, or some minutes with --quick.
    Ablation(Ablation),
    /// Measure a priority inversion: how long the thread with the highest priority waits for a lock
    ///
    /// Three threads on one processor: low holds a lock, high asks for it, middle wants the
    /// processor for --busy milliseconds. With mutexes whose waiters lend their priority, and with
    /// others. Needs real-time priorities (root, CAP_SYS_NICE or `ulimit -r 30`). Keeps one
    /// processor busy, half of the time.
    Rt(Rt),
    /// Measure several locks at a time: threads x locks of a turn x locks in all x section
    ///
    /// Wait/wound mutexes by wound-wait and by wait-die beside an order of the locks and the rule
    /// of thumb: to wait for one lock and only try the others. In a turn a thread takes some of
    /// the locks, chosen at random and in random order. Throughput, refusals, switches, the
    /// longest turn, and how many turns overtook it. Four minutes, or one with --quick.
    Ww(WwFlags),
    /// Measure locks between processes: an undisputed pair, and processes x section x think time
    ///
    /// lockstead's shared mutex, which survives its owner, beside the C library's robust mutex and
    /// its plain shared one. All locks lie in shared memory and take turns in shuffled rounds; the
    /// contended part starts processes of its own. Half a minute, some seconds with --quick.
    Shared(SharedFlags),
    /// Compare what people lock with between processes, side by side
    ///
    /// lockstead's mutex and reader-writer lock, the C library's robust mutex and semaphore, locks
    /// of files (flock, fcntl), LMDB and Python's multiprocessing.Lock, where those are installed.
    /// What each costs, and what becomes of it when its holder, a reader or a waiter is killed, a
    /// child unlocks it, or its file is closed. A quarter of a minute, some seconds with --quick.
    Rivals(Rivals),
    /// Kill processes that share locks, again and again, and see whether the locks hold
    ///
    /// Workers take locks at random, each of which protects two counters that a critical section
    /// keeps equal; workers are killed at random moments (SIGKILL) and replaced. Counts the deaths
    /// that the next owner was told of, torn counters of which it was not, and stalls.
    Storm(StormFlags),
    /// Kill a process at every instruction of an operation on a lock, and see how long others wait
    ///
    /// The operations are lock, unlock, wait and notify of each kind; two threads sleep for what
    /// the process has, or is about to get. It is stepped through by tracing (ptrace). Nine
    /// minutes, or one with --every 10.
    Steps(StepsFlags),
    /// Kill a process that holds very many locks, and see how many tell it
    ///
    /// Also with the C library's robust mutex, which loses all but 2048 of them.
    Dead(DeadFlags),
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

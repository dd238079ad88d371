//! The subcommands. The flags of each are beside its code.

use crate::check::CheckCommand;
use crate::diff::DiffFlags;
use crate::dump::Dump;
use crate::export::ExportFlags;
use crate::features::FeaturesFlags;
use crate::installing::{CompletionsFlags, ManFlags};
#[cfg(test)]
pub(crate) use crate::measuring::ELSEWHERE;
use crate::measuring::Measuring;
use crate::oncpu::{self, OncpuCommand};
use crate::run::{AttachFlags, RunFlags};
use crate::shm::Shm;
use crate::top::Top;
use crate::why::WhyFlags;
use clap::{Parser, Subcommand};
use lockstead_render::shell::ColorFlag;

const EXIT: &str = "\
Exit status:
  0    done
  1    something failed on the way
  2    wrong usage: the message names the option and what is allowed
  3    dump, shm: there is a deadlock; run: the program was ended because of one, or --check
       found something; check: there are findings; oncpu status: there is no table
  4    run: the program was ended while nothing moved, see `lockstead run --help`
  130  ended by SIGINT or SIGTERM; temporary files are removed, nothing
       half-measured is reported (a second signal ends at once)

Results go to standard output, all else to standard error. NO_COLOR is honoured
where --color says nothing.";

/// Locks in any program: who holds what, deadlocks, waiting; and locks measured and compared.
#[derive(Debug, Parser)]
#[command(name = "lockstead", version, after_help = EXIT, max_term_width = 100)]
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
    Demo(Measuring),
    /// Measure locks against each other
    Bench(Measuring),
    /// Locks over etcd: for scripts, and who holds and waits for them on which host
    ///
    /// `lock NAME -- COMMAND` with a fencing token, `dump` with deadlocks over all hosts, `ls`, `top`,
    /// `release`, and a demonstration that starts a member of etcd by itself.
    Cluster(Measuring),
    /// Show where a mutex's advantages come from, one ingredient at a time
    ///
    /// The mutex, and a semaphore with the same slow path, whole and with one ingredient left out:
    /// what each is worth in bytes, throughput and processor time on this machine, and whether a
    /// semaphore can have it too. A minute and a half, some seconds with --quick.
    Explain(Measuring),
    /// Make a picture of a recording of `run --record`: for Perfetto, a flame graph, speedscope
    ///
    /// A trace with an arrow from each waker to its waiter, or stacks by the time for which threads
    /// waited, of those who waited or of those who held the lock meanwhile.
    Export(ExportFlags),
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
    Run(RunFlags),
    /// Watch the locks of a process that runs already, and leave it again
    ///
    /// Without a restart: the report is that of `run`. The process loads a library, which is taken
    /// out again at the end.
    Attach(AttachFlags),
    /// Show what got better and worse between runs: waiting by lock and place, run time
    ///
    /// From reports of `lockstead run --json FILE`, one or several before and after a change.
    Diff(DiffFlags),
    /// Show what a run with `--check` has found, from the report that it kept
    ///
    /// Applies suppressions to it, suggests some, or writes it in SARIF.
    Check(CheckCommand),
    /// Show how it came that one lock is taken before another
    ///
    /// From the report of a run with `--check --json FILE`: the shortest chain of threads that
    /// held one lock and asked for the next, with both stacks of each.
    Why(WhyFlags),
    /// Show the locks of a program under `lockstead run` as it runs
    ///
    /// The locks by waiting time, the threads that wait and the locks that are held, once a second.
    Top(Top),
    /// Show who takes part in a segment of shared memory, who holds and waits for its locks, who
    /// died
    ///
    /// From the segment's file alone; its programs need not be there. Free locks are counted and
    /// not listed. With --recover it helps those who are stuck.
    Shm(Shm),
    /// Simulate locks on machines that one does not have
    ///
    /// The locks of this project, unchanged, and those of the past, on machines of up to 4096
    /// processors: the published tables replayed, and other programs and machines predicted.
    Sim(Measuring),
    /// Predict a recorded program on this machine or another one, and what would help it
    ///
    /// The same as `lockstead sim whatif`. docs/whatif.md has examples.
    Whatif(Measuring),
    /// Keep a table of which thread runs on which processor, for locks that spin
    ///
    /// The quickest and most exact answer to whether the owner of a lock runs. Optional: a
    /// privileged eBPF program keeps it for all programs of the machine, none of which needs a
    /// privilege.
    #[command(subcommand, arg_required_else_help = true, after_help = oncpu::HELP)]
    Oncpu(OncpuCommand),
    /// Draw a report of `lockstead bench ... --json`
    ///
    /// Which of the three benchmarks it is from is known by its content.
    Plot(Measuring),
    /// Print the script by which a shell completes the words of this command
    ///
    /// The shell asks the command itself what may come next, so the script stays right when the
    /// command gets a newer version.
    Completions(CompletionsFlags),
    /// Write the manual pages: one for the command, one for each subcommand
    Man(ManFlags),
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

//! The flags of `lockstead sim`.

use super::files::PictureFiles;
use crate::values::{self, ValueList};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// The commands below `lockstead sim`.
#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// Simulate the published tables, and print each figure beside the simulated one
    ///
    /// The median over seeds and over equally good fits, with the range. Rows that served to
    /// calibrate are marked; all others are predictions. So are, with `~`, rows whose seeds or fits
    /// disagree by more than a quarter. docs/simulator.md says what they are worth.
    Replay(Replay),
    /// Search for the numbers that no document gives
    ///
    /// Draws them at random within limits that make physical sense, and judges each draw by the
    /// calibrated rows alone. Prints the best as the file that the simulator is built with.
    Fit(FitFlags),
    /// Change each of those numbers, and print what it does to the figures
    Sensitivity(Sensitivity),
    /// Simulate one workload on one machine
    ///
    /// With several seeds; the figures are those of the one whose throughput is the median.
    Run(RunOne),
    /// Simulate a workload for several locks and numbers of cores
    Sweep(Sweep),
    /// Predict a recorded program on another machine
    ///
    /// From a report of `lockstead run --json`: throughput, processor use and the longest wait for
    /// 1 to all cores, with the C library's mutex, with lockstead's and with any other that is
    /// named; where it stops to scale, and which lock stops it. Figures are medians of several
    /// seeds, with the range; `~` marks those whose seeds disagree by more than a quarter.
    ///
    /// Threads that began with one function are a class. Reader-writer locks are what they are; a
    /// condition or semaphore that one class gives and another waits for is a queue between them; a
    /// barrier is one. Where that does not fit a program it prints `not predictable` instead of a
    /// number, and why; likewise if other programs used more than a fifth of the processors while
    /// the profile was recorded, or if the simulation of the recorded run itself makes something else.
    Whatif(Whatif),
    /// Show what happens to one contended lock, step by step
    ///
    /// With one seed: another one may show another course.
    Trace(TraceFlags),
    /// Compare the simulator with the machine it runs on
    ///
    /// Measures this machine's numbers and `lockstead bench contended`, simulates the same, and
    /// prints the error of each cell. Takes two minutes; other work on the machine spoils it.
    Check(SimCheckFlags),
    /// Measure the machine it runs on, and print it as a machine file
    ///
    /// Transfers between processors, system calls, wake-ups, switches, slices: a few seconds. Other
    /// work on the machine spoils it.
    Measure(MeasureFlags),
    /// List the machines, locks and workloads that are built in
    List(ListAll),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead sim replay --quick
  lockstead sim replay --table high_systime_2013 --json
  lockstead sim replay --html replay.html")]
pub(crate) struct Replay {
    /// Fewer numbers of users, the best fit alone, three seeds
    ///
    /// The calibrated collapse comes or stays away by seed: a row with `~` has seeds that disagree,
    /// and its range says more than its median.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Seeds of each simulation [default: 5; with --quick 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) seeds: Option<u64>,
    /// Simulate only this table
    #[arg(long, value_name = "NAME")]
    pub(crate) table: Option<String>,
    /// Write the rows as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    /// Write them as one HTML page with charts as well
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead sim fit --draws 20 --keep 1
  lockstead sim fit --draws 500 --seed 2 > fits.toml
  lockstead sim fit --boxes --draws 1000 > fits-2005.toml
  lockstead sim fit --fserver > fits-fserver.toml")]
pub(crate) struct FitFlags {
    /// Fit the two boxes of 2005 instead of that of 2013
    #[arg(long)]
    pub(crate) boxes: bool,
    /// Fit the locks of fserver, on the best fit of the box of 2013
    #[arg(long, conflicts_with = "boxes")]
    pub(crate) fserver: bool,
    /// How many sets of numbers are drawn
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) draws: usize,
    /// What chance depends on
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// How many fits are printed
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) keep: usize,
    /// Seeds of the simulations by which the best are judged again
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) seeds: u64,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead sim sensitivity
  lockstead sim sensitivity --number contended --number section --seeds 5 --json")]
pub(crate) struct Sensitivity {
    /// Only this number of the fits; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) number: Vec<String>,
    /// Number of users of high_systime
    #[arg(long, value_name = "N", default_value_t = 1500, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) users: u64,
    /// Seeds of each simulation; figures are medians
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) seeds: u64,
    /// Write the figures as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// The machine that is simulated.
#[derive(Debug, Args)]
pub(crate) struct MachineFlags {
    /// A machine that is built in, or a file
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) machine: String,
    /// Use one thread of each core: no hyper-threads
    #[arg(long)]
    pub(crate) no_threads: bool,
    /// Change a number of the machine: NAME=VALUE, as in its file; several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
}

/// The machine and the workload that are simulated.
#[derive(Debug, Args)]
pub(crate) struct SceneFlags {
    #[command(flatten)]
    pub(crate) machine: MachineFlags,
    /// A workload that is built in, or a file
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) workload: String,
    /// Tasks [default: the workload's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=16384))]
    pub(crate) tasks: Option<u64>,
    /// What chance depends on; of several seeds the first
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead sim run --machine epyc-2x64 --lock lockstead --workload storm --tasks 64
  lockstead sim run --machine westmere-8x10 --nodes 4 --lock spinning-2013 --workload high-systime")]
pub(crate) struct RunOne {
    #[command(flatten)]
    pub(crate) scene: SceneFlags,
    /// Name of the lock to simulate
    #[arg(long, value_name = "NAME")]
    pub(crate) lock: String,
    /// Cores in use [default: all]
    #[arg(long, value_name = "N", conflicts_with = "nodes")]
    pub(crate) cores: Option<usize>,
    /// Memory nodes in use [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) nodes: Option<usize>,
    /// Seeds; the figures are those of the seed with the median throughput, with its range
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) seeds: u64,
    /// Simulate each turn of idle spin loops too: slow, to check the simulator
    #[arg(long)]
    pub(crate) every_poll: bool,
    /// Run tasks on threads of the operating system: very slow, to check the simulator
    #[arg(long)]
    pub(crate) oracle: bool,
    /// Write the figures as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) files: PictureFiles,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead sim sweep --machine mesh-256 --workload storm --locks lockstead,queued-2013
  lockstead sim sweep --machine epyc-2x64 --workload storm --cores 1,8,64,128 --svg sweep.svg
  lockstead sim sweep --machine mesh-1024 --workload storm --ingredients --task-each")]
pub(crate) struct Sweep {
    #[command(flatten)]
    pub(crate) scene: SceneFlags,
    /// Only these locks [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) locks: Vec<String>,
    /// lockstead's mutex, and the same with one ingredient left out each
    #[arg(long, conflicts_with = "locks")]
    pub(crate) ingredients: bool,
    /// Only these numbers of cores [default: doubling]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cores: Vec<usize>,
    /// Run as many tasks as processors
    #[arg(long, conflicts_with = "tasks")]
    pub(crate) task_each: bool,
    /// Seeds; figures are medians
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) seeds: u64,
    /// Write the figures as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) files: PictureFiles,
}

/// What is changed of the machine.
#[derive(Debug, Args)]
pub(crate) struct MachineChanges {
    /// Use one thread of each core: no hyper-threads
    #[arg(long)]
    pub(crate) no_threads: bool,
    /// Change a number of the machine: NAME=VALUE, as in its file; several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
}

/// A number of tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TaskNumber {
    /// The tasks are as many as the program had threads.
    Recorded,
    /// The tasks are so many.
    Number(usize),
}

fn task_number(text: &str) -> Result<TaskNumber, String> {
    if text == "recorded" {
        return Ok(TaskNumber::Recorded);
    }
    let number = text.parse().ok().filter(|number| (1..=16_384).contains(number));
    number.map(TaskNumber::Number).ok_or_else(|| "`recorded`, or a number from 1 to 16384".into())
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead run --json profile.json -- ./server
  lockstead sim whatif profile.json --machine epyc-2x64
  lockstead sim whatif profile.json --also epyc-2x64
  lockstead sim whatif profile.json --machine epyc-2x64 --lock present,lockstead,spin-queue
  lockstead sim whatif profile.json --machine westmere-8x10 --cores 1,16,64 --set switch=3
  lockstead sim whatif profile.json --machine epyc-2x64 --seeds 15 --html whatif.html
  lockstead sim whatif after.json --machine epyc-2x64 --cores 32 --gate before.json --drop 5

Exit status, besides those of all commands:
  1  with --gate: one of the two cannot be predicted
  3  with --gate: the predicted throughput falls by more than --drop allows")]
pub(crate) struct Whatif {
    /// A report of `lockstead run --json`
    #[arg(value_name = "PROFILE.json")]
    pub(crate) profile: PathBuf,
    /// A machine that is built in, or a file [default: this one, measured now]
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) machine: Option<String>,
    /// Another machine, on the whole of which what would help is simulated as well
    #[arg(long, value_name = "NAME|FILE", conflicts_with_all = ["no_advice", "gate"])]
    pub(crate) also: Option<String>,
    #[command(flatten)]
    pub(crate) changes: MachineChanges,
    /// Locks to compare; `present` is the C library's mutex, other names are those of `sim list`
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "present,lockstead")]
    pub(crate) lock: Vec<String>,
    /// Threads of the program there, or `recorded`: as many as it had [default: one for each
    /// processor in use; of several kinds, which then have at least their recorded number, the most
    /// numerous fills up]
    #[arg(long, value_name = "N|recorded", value_parser = task_number)]
    pub(crate) tasks: Option<TaskNumber>,
    /// Only these numbers of cores [default: doubling]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cores: Vec<usize>,
    /// What chance depends on: the first of the seeds
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Seeds of each simulation; figures are medians, with the range
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) seeds: u64,
    /// Leave out what would help: faster
    #[arg(long)]
    pub(crate) no_advice: bool,
    /// Fail if this profile makes less than that one, by more than --drop
    #[arg(long, value_name = "BASE.json")]
    pub(crate) gate: Option<PathBuf>,
    /// How much the predicted throughput may fall, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0, requires = "gate")]
    pub(crate) drop: f64,
    /// How much work each of the two runs did, in requests for example, if their jobs differ
    #[arg(long, value_name = "BASE,PROFILE", value_delimiter = ',', requires = "gate")]
    pub(crate) work: Option<Vec<f64>>,
    /// Write the workload that is simulated to a file, for `sim run --workload`
    #[arg(long, value_name = "FILE")]
    pub(crate) workload: Option<PathBuf>,
    /// Print numbers also where the program cannot be predicted
    #[arg(long)]
    pub(crate) anyway: bool,
    /// Write the figures as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) files: PictureFiles,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead sim trace --machine vm-2 --workload storm --lock lockstead --tasks 3
  lockstead sim trace --machine epyc-2x64 --workload storm --lock queued-2013 --tasks 6 --svg t.svg")]
pub(crate) struct TraceFlags {
    #[command(flatten)]
    pub(crate) scene: SceneFlags,
    /// Name of the lock to simulate
    #[arg(long, value_name = "NAME")]
    pub(crate) lock: String,
    /// Microseconds to show, from the end of the warm-up
    #[arg(long, value_name = "US", default_value_t = 20)]
    pub(crate) length: u64,
    /// Each read and write, too
    #[arg(long)]
    pub(crate) accesses: bool,
    /// Write steps and spans as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) files: PictureFiles,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead sim check
  lockstead sim check --threads 2,8 --section 1us --think 0,1x --json
  lockstead sim measure > here.toml && lockstead sim check --machine here.toml --quick")]
pub(crate) struct SimCheckFlags {
    /// A machine that is built in, or a file [default: measured now]
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) machine: Option<String>,
    /// Numbers of threads, each 2 to 1024
    #[arg(long, value_name = "LIST", default_value = "2,4,16", value_parser = values::threads)]
    pub(crate) threads: ValueList<usize>,
    /// Critical sections: 0 or a length with ns, us or ms, at most 100ms
    #[arg(long, value_name = "LIST", default_value = "0,50ns,1us,20us")]
    #[arg(value_parser = values::sections)]
    pub(crate) section: ValueList<Duration>,
    /// Time between two sections of a thread: 0 or a multiple of the section
    #[arg(long, value_name = "LIST", default_value = "0,1x,10x", value_parser = values::thinks)]
    pub(crate) think: ValueList<f64>,
    /// Seeds of each simulation; figures are medians
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) seeds: u64,
    /// Make each cell short
    #[arg(long)]
    pub(crate) quick: bool,
    /// Write the comparison as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead sim measure > here.toml
  lockstead sim run --machine here.toml --lock lockstead --workload storm")]
pub(crate) struct MeasureFlags {}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead sim list")]
pub(crate) struct ListAll {}

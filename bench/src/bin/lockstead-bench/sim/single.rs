//! `lockstead sim run`: one simulation.

use super::flags::RunOne;
use super::picture::bars;
use super::scene;
use super::simulate::simulate;
use crate::failure::Failure;
use crate::output;
use crate::table::{TextTable, time};
use lockstead_sim::{RunFigures, RunSettings, run as run_simulation};
use serde::Serialize;
use std::fmt::Write;

/// The figures of a simulation as data.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RunSummary {
    /// Jobs in a second of simulated time.
    pub(super) jobs_per_second: f64,
    /// How much of all processors' time was used.
    pub(super) processors_used_percent: f64,
    /// The longest wait for any lock.
    pub(super) longest_wait_ns: u64,
    /// How long was simulated after the warm-up, in seconds.
    pub(super) simulated_seconds: f64,
    /// The number of events of the simulation.
    pub(super) events: u64,
    /// The number of reads and writes of its tasks.
    pub(super) accesses: u64,
    /// What processor time was used for, each time with its share.
    pub(super) time_percent: Vec<(String, f64)>,
    /// One object for each lock.
    pub(super) locks: Vec<LockSummary>,
}

/// The figures of one lock of a simulation.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct LockSummary {
    /// The name of the lock.
    pub(super) name: String,
    /// How often it was acquired.
    pub(super) acquisitions: u64,
    /// The number of acquisitions that waited for more than a microsecond.
    pub(super) waited: u64,
    /// The time of all waits together.
    pub(super) wait_ns: u64,
    /// The longest wait for it.
    pub(super) longest_wait_ns: u64,
    /// The time for which it was held, in all.
    pub(super) held_ns: u64,
}

/// Rounds to a thousandth.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

impl RunSummary {
    pub(super) fn new(figures: &RunFigures) -> Self {
        let lock = |lock: &lockstead_sim::LockFigures| LockSummary {
            name: lock.name.clone(),
            acquisitions: lock.taken,
            waited: lock.waited,
            wait_ns: lock.wait / 1000,
            longest_wait_ns: lock.longest / 1000,
            held_ns: lock.held / 1000,
        };
        RunSummary {
            jobs_per_second: rounded(figures.jobs),
            processors_used_percent: rounded(figures.busy * 100.0),
            longest_wait_ns: figures.locks.iter().map(|lock| lock.longest).max().unwrap_or(0)
                / 1000,
            simulated_seconds: figures.seconds,
            events: figures.events,
            accesses: figures.accesses,
            time_percent: figures
                .shares
                .iter()
                .map(|(place, share)| (format!("{place:?}"), rounded(share * 100.0)))
                .collect(),
            locks: figures.locks.iter().map(lock).collect(),
        }
    }
}

/// Simulates what the flags ask for, and prints the figures.
///
/// # Errors
/// As [`Failure`].
pub(super) fn run(flags: &RunOne) -> Result<(), Failure> {
    flags.files.check()?;
    let (mut machine, workload) = flags.scene.resolve()?;
    if let Some(cores) = flags.cores {
        machine = scene::with_cores(&machine, cores)?;
    }
    if let Some(nodes) = flags.nodes {
        machine = machine
            .with_nodes(nodes)
            .map_err(|error| Failure::option("--nodes <N>", nodes, error))?;
    }
    let lock = scene::lock(&flags.lock)?;
    let tasks = flags.scene.tasks(&workload);
    let how = RunSettings {
        seed: flags.scene.seed,
        every_poll: flags.every_poll,
        oracle: flags.oracle,
        trace: false,
    };
    let figures = simulate(1, |_| run_simulation(&machine, lock, &workload, tasks, how))?;
    let summary = RunSummary::new(&figures[0]);
    let mut text = format!(
        "{}, {} processors; {}, {} tasks; {}\n\n",
        machine.name,
        machine.cpus(),
        workload.name,
        tasks,
        lock.name()
    );
    let _ = writeln!(text, "  {:>12.1} jobs a second", summary.jobs_per_second);
    let _ = writeln!(text, "  {:>11.1} % of the processors used", summary.processors_used_percent);
    for (place, share) in summary.time_percent.iter().filter(|(_, share)| *share >= 0.05) {
        let _ = writeln!(text, "    {share:>9.1} % {place}");
    }
    let mut table =
        TextTable::new(&["lock", "acquisitions", "waited", "mean wait", "longest", "mean hold"]);
    for lock in &summary.locks {
        let mean = |sum: u64| time(sum as f64 / lock.acquisitions.max(1) as f64);
        table.row([
            lock.name.clone(),
            lock.acquisitions.to_string(),
            lock.waited.to_string(),
            mean(lock.wait_ns),
            time(lock.longest_wait_ns as f64),
            mean(lock.held_ns),
        ]);
    }
    let text = format!("{text}\n{}", table.render());
    let title = format!("{} with {tasks} tasks on {}", lock.name(), machine.name);
    let picture = || bars(&format!("{title}: time used, by place"), &summary.time_percent);
    flags.files.write(&title, picture, &text)?;
    if flags.json {
        return output::print_json(&summary);
    }
    output::print(&text)
}

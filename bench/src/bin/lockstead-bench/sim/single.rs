//! `lockstead sim run`: one simulation.

use super::draws::{Draws, LongestWait, notes};
use super::flags::RunOne;
use super::picture::bars;
use super::scene;
use super::simulate::simulate;
use crate::failure::Failure;
use crate::output;
use crate::table::{TextTable, rate, time};
use lockstead_sim::{RunFigures, RunSettings, run as run_simulation};
use serde::Serialize;
use std::fmt::Write;

/// The figures of a simulation as data: of several seeds those of the one whose throughput is the
/// median, unless they say otherwise.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RunSummary {
    /// Jobs in a second of simulated time.
    pub(super) jobs_per_second: f64,
    /// The number of seeds.
    pub(super) seeds: u64,
    /// `jobs_per_second` of the slowest seed.
    pub(super) lowest: f64,
    /// `jobs_per_second` of the fastest seed.
    pub(super) highest: f64,
    /// Whether the two are further apart than a quarter of the median: then the system has more than
    /// one state, or is near a collapse.
    pub(super) seeds_disagree: bool,
    /// How much of all processors' time was used.
    pub(super) processors_used_percent: f64,
    /// The longest wait for any lock, those among them that had not ended when the simulation did.
    pub(super) longest_wait_ns: u64,
    /// Whether that wait had ended.
    pub(super) longest_wait_ended: bool,
    /// The number of tasks that still waited for a lock when the simulation ended.
    pub(super) still_waiting: u64,
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
    /// The number of tasks that still waited for it when the simulation ended, and had for more than
    /// a microsecond. They are not among `acquisitions`.
    pub(super) still_waiting: u64,
    /// The time of all waits together, those that had not ended up to the end of the simulation.
    pub(super) wait_ns: u64,
    /// The longest wait for it, likewise.
    pub(super) longest_wait_ns: u64,
    /// Whether that wait had ended.
    pub(super) longest_wait_ended: bool,
    /// The time for which it was held, in all.
    pub(super) held_ns: u64,
}

/// Rounds to a thousandth.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

impl RunSummary {
    pub(super) fn new(runs: &[RunFigures]) -> Self {
        let draws = Draws::new(runs);
        let figures = draws.median();
        let longest = LongestWait::of(figures);
        let lock = |lock: &lockstead_sim::LockFigures| LockSummary {
            name: lock.name.clone(),
            acquisitions: lock.taken,
            waited: lock.waited,
            still_waiting: lock.waiting,
            wait_ns: lock.wait / 1000,
            longest_wait_ns: lock.longest / 1000,
            longest_wait_ended: lock.longest_ended(),
            held_ns: lock.held / 1000,
        };
        RunSummary {
            jobs_per_second: rounded(figures.jobs),
            seeds: runs.len() as u64,
            lowest: rounded(draws.lowest()),
            highest: rounded(draws.highest()),
            seeds_disagree: draws.disagree(),
            processors_used_percent: rounded(figures.busy * 100.0),
            longest_wait_ns: longest.ns,
            longest_wait_ended: longest.ended,
            still_waiting: figures.waiting(),
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
    let figures = simulate(flags.seeds as usize, |seed| {
        let how = RunSettings {
            seed: flags.scene.seed + seed as u64,
            every_poll: flags.every_poll,
            oracle: flags.oracle,
            trace: false,
        };
        run_simulation(&machine, lock, &workload, tasks, how)
    })?;
    let summary = RunSummary::new(&figures);
    let mut text = format!(
        "{}, {} processors; {}, {} tasks; {}\n\n",
        machine.name,
        machine.cpus(),
        workload.name,
        tasks,
        lock.name()
    );
    let _ =
        writeln!(text, "  {:>12.1} jobs a second: {}", summary.jobs_per_second, range(&summary));
    let _ = writeln!(text, "  {:>11.1} % of the processors used", summary.processors_used_percent);
    for (place, share) in summary.time_percent.iter().filter(|(_, share)| *share >= 0.05) {
        let _ = writeln!(text, "    {share:>9.1} % {place}");
    }
    let mut table = TextTable::new(&[
        "lock",
        "acquisitions",
        "waited",
        "not ended",
        "mean wait",
        "longest",
        "mean hold",
    ]);
    for lock in &summary.locks {
        let mean = |sum: u64, of: u64| time(sum as f64 / of.max(1) as f64);
        let longest = LongestWait { ns: lock.longest_wait_ns, ended: lock.longest_wait_ended };
        table.row([
            lock.name.clone(),
            lock.acquisitions.to_string(),
            lock.waited.to_string(),
            lock.still_waiting.to_string(),
            mean(lock.wait_ns, lock.acquisitions + lock.still_waiting),
            longest.text(),
            mean(lock.held_ns, lock.acquisitions),
        ]);
    }
    let unended = summary.locks.iter().any(|lock| !lock.longest_wait_ended);
    let text = format!("{text}\n{}{}", table.render(), notes(summary.seeds_disagree, unended));
    let title = format!("{} with {tasks} tasks on {}", lock.name(), machine.name);
    let picture = || bars(&format!("{title}: time used, by place"), &summary.time_percent);
    flags.files.write(&title, picture, &text)?;
    if flags.json {
        return output::print_json(&summary);
    }
    output::print(&text)
}

/// Says how much the seeds differ.
fn range(summary: &RunSummary) -> String {
    if summary.seeds == 1 {
        return "one seed alone, which says nothing of others".into();
    }
    let mark = if summary.seeds_disagree { " ~" } else { "" };
    let (low, high) = (rate(summary.lowest), rate(summary.highest));
    format!("the median of {} seeds, {low} to {high}{mark}", summary.seeds)
}

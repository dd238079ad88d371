//! `lockstead sim sweep`: locks over numbers of cores.

use super::draws::{Draws, LongestWait, MARK, notes};
use super::flags::Sweep;
use super::picture::Curve;
use super::scene;
use super::simulate::simulate;
use crate::failure::Failure;
use crate::output;
use crate::table::{TextTable, rate, ratio};
use lockstead_sim::{INGREDIENTS, LOCKS, RunSettings, SimLockName, run as run_simulation};
use serde::Serialize;

/// What `lockstead sim sweep --json` writes.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SweepReport {
    /// The name of the machine.
    machine: String,
    /// The name of the workload.
    workload: String,
    /// One object for each lock and number of cores.
    points: Vec<SweepPoint>,
}

/// One lock on one number of cores.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SweepPoint {
    /// The name of the lock.
    lock: &'static str,
    /// The number of cores.
    cores: usize,
    /// The number of tasks.
    tasks: usize,
    /// Jobs in a second of simulated time: the median over the seeds.
    jobs_per_second: f64,
    /// `jobs_per_second` of the slowest seed.
    lowest: f64,
    /// `jobs_per_second` of the fastest seed.
    highest: f64,
    /// Whether the two are further apart than a quarter of the median.
    seeds_disagree: bool,
    /// How much of all processors' time was used.
    processors_used_percent: f64,
    /// The longest wait in any run, those among them that had not ended when it did.
    longest_wait_ns: u64,
    /// Whether that wait had ended.
    longest_wait_ended: bool,
    /// The most tasks that still waited for a lock at the end of a run.
    still_waiting: u64,
}

impl SweepPoint {
    /// Writes the throughput for people, with a mark if the seeds disagree.
    fn jobs(&self) -> String {
        format!("{}{}", rate(self.jobs_per_second), if self.seeds_disagree { MARK } else { "" })
    }
}

/// Simulates what the flags ask for, prints the figures, and draws them if asked to.
///
/// # Errors
/// As [`Failure`].
pub(super) fn run(flags: &Sweep) -> Result<(), Failure> {
    flags.files.check()?;
    let (machine, workload) = flags.scene.resolve()?;
    let locks: Vec<SimLockName> = if flags.ingredients {
        INGREDIENTS.iter().map(|&(lock, _)| lock).collect()
    } else if flags.locks.is_empty() {
        LOCKS.iter().map(|&(lock, ..)| lock).collect()
    } else {
        flags.locks.iter().map(|name| scene::lock(name)).collect::<Result<_, _>>()?
    };
    let cores =
        if flags.cores.is_empty() { scene::doubling(&machine) } else { flags.cores.clone() };
    let mut parts = Vec::new();
    for &cores in &cores {
        parts.push(scene::with_cores(&machine, cores)?);
    }
    let seeds = flags.seeds as usize;
    let count = |part: usize| {
        if flags.task_each { parts[part].cpus() } else { flags.scene.tasks(&workload) }
    };
    let per_lock = parts.len() * seeds;
    let figures = simulate(locks.len() * per_lock, |job| {
        let (lock, part, seed) = (job / per_lock, job % per_lock / seeds, job % seeds);
        let how = RunSettings { seed: flags.scene.seed + seed as u64, ..RunSettings::default() };
        run_simulation(&parts[part], locks[lock], &workload, count(part), how)
    })?;
    let points: Vec<SweepPoint> = figures
        .chunks(seeds)
        .enumerate()
        .map(|(at, chunk)| {
            let draws = Draws::new(chunk);
            let longest = draws.longest();
            let part = at % parts.len();
            let used = chunk.iter().map(|figures| figures.busy).sum::<f64>() / seeds as f64;
            SweepPoint {
                lock: locks[at / parts.len()].name(),
                cores: cores[part],
                tasks: count(part),
                jobs_per_second: draws.median().jobs.round(),
                lowest: draws.lowest().round(),
                highest: draws.highest().round(),
                seeds_disagree: draws.disagree(),
                processors_used_percent: (used * 1000.0).round() / 10.0,
                longest_wait_ns: longest.ns,
                longest_wait_ended: longest.ended,
                still_waiting: draws.waiting(),
            }
        })
        .collect();
    let head = format!("{} on {}, medians of {} seeds", workload.name, machine.name, seeds);
    let rows: Vec<&[SweepPoint]> = points.chunks(parts.len()).collect();
    let waits = grid("longest wait", &cores, &rows, |_, point| {
        LongestWait { ns: point.longest_wait_ns, ended: point.longest_wait_ended }.text()
    });
    let jobs = if flags.ingredients {
        grid("jobs a second without", &cores, &rows, |at, point| {
            let whole = rows[0][at].jobs_per_second;
            format!("{} {:>5}", point.jobs(), ratio(point.jobs_per_second, whole))
        })
    } else {
        grid("jobs a second", &cores, &rows, |_, point| point.jobs())
    };
    let notes = notes(
        points.iter().any(|point| point.seeds_disagree),
        points.iter().any(|point| !point.longest_wait_ended),
    );
    let text = format!("{head}\n\n{jobs}\n{waits}{notes}");
    let lines: Vec<Curve> = rows
        .iter()
        .map(|chunk| Curve {
            name: chunk[0].lock.to_owned(),
            points: chunk.iter().map(|p| (p.cores as f64, p.jobs_per_second)).collect(),
        })
        .collect();
    flags.files.write_curves((&workload.name, &machine.name), &lines, &text)?;
    if flags.json {
        let report = SweepReport { machine: machine.name, workload: workload.name, points };
        return output::print_json(&report);
    }
    output::print(&text)
}

/// Returns a row for each lock, a column for each number of cores.
fn grid(
    title: &str,
    cores: &[usize],
    rows: &[&[SweepPoint]],
    figure: impl Fn(usize, &SweepPoint) -> String,
) -> String {
    let titles: Vec<String> = std::iter::once(title.to_owned())
        .chain(cores.iter().map(|cores| format!("{cores} cores")))
        .collect();
    let mut table = TextTable::new(&titles.iter().map(String::as_str).collect::<Vec<_>>());
    for row in rows {
        let figures = row.iter().enumerate().map(|(at, point)| figure(at, point));
        table.row(std::iter::once(row[0].lock.to_owned()).chain(figures));
    }
    table.render()
}

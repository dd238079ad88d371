//! `lockstead sim sweep`: locks over numbers of cores.

use super::flags::Sweep;
use super::picture::Curve;
use super::scene;
use super::simulate::simulate;
use crate::failure::Failure;
use crate::output;
use crate::table::{TextTable, rate, ratio, time};
use lockstead_sim::{
    INGREDIENTS, LOCKS, RunFigures, RunSettings, SimLockName, run as run_simulation,
};
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
    /// How much of all processors' time was used.
    processors_used_percent: f64,
    /// The longest wait in any run.
    longest_wait_ns: u64,
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
            let mut jobs: Vec<f64> = chunk.iter().map(|figures| figures.jobs).collect();
            jobs.sort_by(f64::total_cmp);
            let part = at % parts.len();
            let used = chunk.iter().map(|figures| figures.busy).sum::<f64>() / seeds as f64;
            SweepPoint {
                lock: locks[at / parts.len()].name(),
                cores: cores[part],
                tasks: count(part),
                jobs_per_second: jobs[seeds / 2].round(),
                lowest: jobs[0].round(),
                highest: jobs[seeds - 1].round(),
                processors_used_percent: (used * 1000.0).round() / 10.0,
                longest_wait_ns: longest(chunk),
            }
        })
        .collect();
    let head = format!("{} on {}, medians of {} seeds", workload.name, machine.name, seeds);
    let rows: Vec<&[SweepPoint]> = points.chunks(parts.len()).collect();
    let waits = grid("longest wait", &cores, &rows, |_, point| time(point.longest_wait_ns as f64));
    let jobs = if flags.ingredients {
        grid("jobs a second without", &cores, &rows, |at, point| {
            let whole = rows[0][at].jobs_per_second;
            format!("{} {:>5}", rate(point.jobs_per_second), ratio(point.jobs_per_second, whole))
        })
    } else {
        grid("jobs a second", &cores, &rows, |_, point| rate(point.jobs_per_second))
    };
    let text = format!("{head}\n\n{jobs}\n{waits}");
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

/// Returns the longest wait in any of the runs, in nanoseconds.
fn longest(runs: &[RunFigures]) -> u64 {
    runs.iter().map(|run| (run.longest() * 1e9) as u64).max().unwrap_or(0)
}

//! `lockstead sim check`: the simulated machine against the one it runs on.
//!
//! # Role
//! Measures `lockstead bench contended` here, simulates the same on the machine's own
//! numbers, and prints each cell's error. What sections and think times take when nobody
//! disputes the lock is taken from one thread alone, which counts in no error: short pieces
//! of work overlap in a processor, by how much is no business of a lock.

use super::flags::SimCheckFlags;
use super::{measure, scene};
use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::Progress;
use crate::table::{TextTable, cell_title, rate};
use lockstead_bench::contended::{self, ContendedCell, ContendedOptions};
use lockstead_bench::{LockName as Native, Session};
use lockstead_sim::{
    Machine, RunSettings, SimLockName, Stopped, UseKind, WorkUse, Workload, many,
    run as run_simulation,
};
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// Locks that exist in both worlds. The C library's stands for what programs have.
const LOCKS: [(Native, SimLockName); 4] = [
    (Native::Lockstead, SimLockName::Lockstead),
    (Native::SemaphoreClassic, SimLockName::SemaphoreClassic),
    (Native::SemaphoreTuned, SimLockName::SemaphoreTuned),
    (Native::Pthread, SimLockName::Futex),
];

/// What `lockstead sim check --json` writes.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CheckReport {
    /// The machine file that was simulated.
    machine: String,
    /// The median of the sizes of all errors.
    median_error_percent: f64,
    /// The same of each lock alone, after its name.
    median_error_percent_by_lock: Vec<(Native, f64)>,
    /// One object for each lock in each cell.
    cells: Vec<Compared>,
}

/// One lock in one cell, measured and simulated.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Compared {
    /// The number of threads.
    threads: usize,
    /// The length of the critical section.
    section_ns: u64,
    /// The think time, as a multiple of the section.
    think_ratio: f64,
    /// The name of the lock.
    lock: Native,
    /// Critical sections per second as measured: the median of the rounds.
    measured_per_s: f64,
    /// `measured_per_s` of the slowest round.
    measured_lowest: f64,
    /// `measured_per_s` of the fastest round.
    measured_highest: f64,
    /// Critical sections per second as simulated: the median over the seeds.
    simulated_per_s: f64,
    /// `simulated_per_s` of the slowest seed.
    simulated_lowest: f64,
    /// `simulated_per_s` of the fastest seed.
    simulated_highest: f64,
    /// The error of the simulation, more than 0 if it is too fast.
    error_percent: f64,
}

/// Measures, simulates the same, and prints both.
///
/// # Errors
/// As [`Failure`].
pub(super) fn run(flags: &SimCheckFlags) -> Result<(), Failure> {
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let mut progress = Progress::new();
    let machine = match &flags.machine {
        Some(name) => scene::machine(name)?,
        None => measure::here(&interrupt, &mut progress)?,
    };
    let mut threads = vec![1];
    threads.extend(flags.threads.0.iter().filter(|&&threads| threads > 1));
    let options = ContendedOptions {
        locks: LOCKS.map(|(native, _)| native).to_vec(),
        threads,
        sections: flags.section.0.clone(),
        thinks: flags.think.0.clone(),
        rounds: 3,
        slice: Duration::from_millis(if flags.quick { 30 } else { 60 }),
        ..ContendedOptions::default()
    };
    let mut step = |done: u64, total: u64, what: &str| progress.step(done, total, what);
    let mut session = Session::new(interrupt.flag(), &mut step);
    let measured = contended::measure(&options, &mut session).map_err(measure::failed)?;
    let (alone, cells): (Vec<&ContendedCell>, Vec<&ContendedCell>) =
        measured.cells.iter().partition(|cell| cell.threads == 1);
    let jobs: Vec<CheckJob> =
        cells.iter().flat_map(|cell| CheckJob::of(cell, &alone, &machine)).collect();
    let seeds = flags.seeds as usize;
    let simulated = many(
        jobs.len() * seeds,
        interrupt.flag(),
        &mut |done, total, what| progress.step(done, total, what),
        "simulations",
        |index| jobs[index / seeds].simulate(&machine, (index % seeds) as u64 + 1),
    )
    .map_err(|Stopped| Failure::Interrupted)?;
    drop(progress);
    let cells: Vec<Compared> =
        jobs.iter().zip(simulated.chunks(seeds)).map(|(job, rates)| job.compare(rates)).collect();
    let report = CheckReport {
        machine: machine.text(),
        median_error_percent: median(cells.iter().collect()),
        median_error_percent_by_lock: LOCKS
            .iter()
            .map(|&(native, _)| {
                (native, median(cells.iter().filter(|cell| cell.lock == native).collect()))
            })
            .collect(),
        cells,
    };
    if flags.json {
        return output::print_json(&report);
    }
    output::print(&render(&report))
}

/// Returns the median size of the error.
fn median(cells: Vec<&Compared>) -> f64 {
    let mut errors: Vec<f64> = cells.iter().map(|cell| cell.error_percent.abs()).collect();
    errors.sort_by(f64::total_cmp);
    errors.get(errors.len() / 2).copied().unwrap_or(0.0)
}

/// One lock in one cell, to be simulated.
struct CheckJob<'a> {
    cell: &'a ContendedCell,
    native: Native,
    lock: SimLockName,
    workload: Workload,
}

impl<'a> CheckJob<'a> {
    fn of(
        cell: &'a ContendedCell,
        alone: &[&ContendedCell],
        machine: &Machine,
    ) -> Vec<CheckJob<'a>> {
        let same = |other: &&&ContendedCell| {
            other.section_ns == cell.section_ns && other.think_ratio == cell.think_ratio
        };
        let alone = alone.iter().find(same);
        LOCKS
            .iter()
            .filter_map(|&(native, lock)| {
                cell.row(native)?;
                let mut workload = workload(cell, machine);
                if let Some(row) = alone.and_then(|alone| alone.row(native)) {
                    // The fastest round: the others were disturbed.
                    calibrate(&mut workload, machine, lock, 1e9 / row.ops_per_s_max);
                }
                Some(CheckJob { cell, native, lock, workload })
            })
            .collect()
    }

    fn simulate(&self, machine: &Machine, seed: u64) -> f64 {
        let how = RunSettings { seed, ..RunSettings::default() };
        per_second(machine, self.lock, &self.workload, self.cell.threads, how)
    }

    fn compare(&self, rates: &[f64]) -> Compared {
        let row = self.cell.row(self.native).expect("a job has its row");
        let mut rates = rates.to_vec();
        rates.sort_by(f64::total_cmp);
        let simulated = rates[rates.len() / 2];
        Compared {
            threads: self.cell.threads,
            section_ns: self.cell.section_ns,
            think_ratio: self.cell.think_ratio,
            lock: self.native,
            measured_per_s: row.ops_per_s.round(),
            measured_lowest: row.ops_per_s_min.round(),
            measured_highest: row.ops_per_s_max.round(),
            simulated_per_s: simulated.round(),
            simulated_lowest: rates[0].round(),
            simulated_highest: rates[rates.len() - 1].round(),
            error_percent: ((simulated / row.ops_per_s - 1.0) * 1000.0).round() / 10.0,
        }
    }
}

/// Returns what a cell's threads do: think, and a section that counts on one line.
fn workload(cell: &ContendedCell, machine: &Machine) -> Workload {
    let section = cell.section_ns as f64 / 1e3;
    let crowd = cell.threads.saturating_sub(machine.cpus()) as f64;
    let turn = machine.scheduler.slice.max(machine.scheduler.latency) / 1e3;
    Workload {
        name: "cell".into(),
        about: "a cell of `lockstead bench contended`".into(),
        tasks: cell.threads,
        kernel: false,
        compute: section * cell.think_ratio,
        away: 0.0,
        rounds: 1,
        variation: 0.0,
        warm_up: 2.0,
        // Long enough for everybody to have a turn, where there are more than processors.
        length: 15.0 + (crowd * turn / machine.cpus() as f64).min(60.0),
        locks: vec![WorkUse {
            name: "lock".into(),
            kind: UseKind::Mutex,
            many: 1,
            burst: 1.0,
            section,
            gap: 0.0,
            lines: 1,
            writes: 1.0,
            write_section: None,
        }],
        tokens: Vec::new(),
        classes: Vec::new(),
    }
}

/// Scales the work so that one task alone takes `turn` nanoseconds a turn.
fn calibrate(workload: &mut Workload, machine: &Machine, lock: SimLockName, turn: f64) {
    let alone = Workload { warm_up: 0.1, length: 1.0, ..workload.clone() };
    let simulated = 1e9 / per_second(machine, lock, &alone, 1, RunSettings::default());
    let work = (workload.compute + workload.locks[0].section) * 1e3;
    if work <= 0.0 {
        return;
    }
    let factor = ((work + turn - simulated) / work).max(0.0);
    workload.compute *= factor;
    workload.locks[0].section *= factor;
}

fn per_second(
    machine: &Machine,
    lock: SimLockName,
    workload: &Workload,
    tasks: usize,
    how: RunSettings,
) -> f64 {
    let figures = run_simulation(machine, lock, workload, tasks, how);
    figures.locks[0].taken as f64 / figures.seconds
}

fn render(report: &CheckReport) -> String {
    let mut text = String::new();
    let same = |one: &Compared, other: &Compared| {
        one.threads == other.threads
            && one.section_ns == other.section_ns
            && one.think_ratio == other.think_ratio
    };
    for cell in report.cells.chunk_by(same) {
        let first = &cell[0];
        let place = (first.section_ns, first.think_ratio);
        let title = cell_title(first.threads, ("thread", "threads"), place);
        let titles = ["lock", "measured", "from", "to", "simulated", "from", "to", "error"];
        let mut table = TextTable::new(&titles);
        for row in cell {
            table.row([
                row.lock.to_string(),
                rate(row.measured_per_s),
                rate(row.measured_lowest),
                rate(row.measured_highest),
                rate(row.simulated_per_s),
                rate(row.simulated_lowest),
                rate(row.simulated_highest),
                format!("{:+.0} %", row.error_percent),
            ]);
        }
        let _ = writeln!(text, "{title}; sections a second\n{}", table.render());
    }
    let _ = writeln!(
        text,
        "Median error over {} figures: {:.0} %.",
        report.cells.len(),
        report.median_error_percent
    );
    for (lock, error) in &report.median_error_percent_by_lock {
        let _ = writeln!(text, "  {:18} {error:.0} %", lock.to_string());
    }
    text
}

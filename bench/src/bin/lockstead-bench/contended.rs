//! `lockstead bench contended`: threads × critical section × think time.

use crate::compare::best;
use crate::failure::Failure;
use crate::grid_flags::Contended;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::measured;
use crate::scaling;
use crate::summary;
use crate::table::{self, TextTable};
use lockstead_bench::contended::{self, ContendedCell, ContendedReport, ContendedRow, QuotaUsed};
use lockstead_bench::stats::geometric_mean;

/// Measures what the flags ask for, and prints the report.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn run(flags: &Contended) -> Result<(), Failure> {
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let options = flags.options();
    let report = measured(&interrupt, |session| contended::measure(&options, session))?;
    output::warn_about(&report.machine);
    if flags.json {
        return output::print_json(&report);
    }
    let scaling = if flags.scaling { scaling::render(&report) } else { String::new() };
    output::print(&(render(&report) + &scaling))
}

/// Returns the tables, one a cell, and what they come to.
fn render(report: &ContendedReport) -> String {
    let mut text = String::new();
    let around = surroundings(report.foreign_processes, report.quota.as_ref(), report.sleep());
    if !around.is_empty() {
        text += &format!("Measured{}\n\n", around.trim_start_matches(','));
    }
    for cell in &report.cells {
        text += &format!("{}\n{}\n", title(cell), grid(cell));
    }
    text += &summary(report);
    if let Some(summary) = &report.summary {
        text += &format!("\n{}", summary::render(summary));
    }
    text + "\n\
        The ratio behind a figure is to the best peer in that column, of the same interleaved\n\
        run; peers are all locks but lockstead and the two semaphores. ± is half the distance\n\
        of the slowest round from the fastest. Longest waits include waiting for a processor.\n"
}

/// Returns what a measurement had around it, each with a comma before it.
pub(crate) fn surroundings(
    foreign: usize,
    quota: Option<&QuotaUsed>,
    sleep: Option<(u64, u64)>,
) -> String {
    let mut text = String::new();
    match foreign {
        0 => {}
        1 => text += ", beside a busy process",
        n => text += &format!(", beside {n} busy processes"),
    }
    if let Some(quota) = quota {
        text += &format!(", with {}% of a processor", quota.percent);
        if let Some(periods) = quota.throttled_periods {
            let plural = if periods == 1 { "" } else { "s" };
            text += &format!(" (used up in {periods} period{plural} of 100 ms)");
        }
    }
    if let Some((ns, every)) = sleep {
        text += &format!(", with the holder asleep for {}", table::time(ns as f64));
        if every > 1 {
            text += &format!(" in each {every}th section");
        }
    }
    text
}

fn title(cell: &ContendedCell) -> String {
    let place = (cell.section_ns, cell.think_ratio);
    let threads =
        if cell.pinned { ("pinned thread", "pinned threads") } else { ("thread", "threads") };
    table::cell_title(cell.threads, threads, place) + &table::disturbance(&cell.disturbance)
}

/// A percentile of the waits: its name and where it stands.
type WaitPercentile = (&'static str, fn(&ContendedRow) -> u64);

const WAITS: [WaitPercentile; 4] = [
    ("p50", |row| row.wait_p50_ns),
    ("p99", |row| row.wait_p99_ns),
    ("p99.9", |row| row.wait_p999_ns),
    ("longest", |row| row.wait_max_ns),
];

fn grid(cell: &ContendedCell) -> String {
    let speed = highest(cell, |row| row.ops_per_s);
    let work = highest(cell, |row| row.ops_per_cpu_s);
    let shortest = WAITS.map(|(_, wait)| lowest(cell, |row| wait(row) as f64));
    let fairest = highest(cell, |row| row.jain);

    let mut head = vec!["lock", "ops/s", "±", "", "CPU-s\nper s", "ops per\nCPU-s", ""];
    let names = WAITS.map(|(name, _)| format!("wait\n{name}"));
    for name in &names {
        head.extend([name.as_str(), ""]);
    }
    head.extend(["Jain", ""]);
    let mut table = TextTable::new(&head);
    for row in &cell.results {
        let spread = (row.ops_per_s_max - row.ops_per_s_min) / 2.0 / row.ops_per_s;
        let mut cells = vec![
            row.lock.to_string(),
            table::rate(row.ops_per_s),
            if spread.is_finite() { format!("{:.0}%", spread * 100.0) } else { "-".into() },
            table::ratio(row.ops_per_s, speed),
            format!("{:.2}", row.ops_per_s / row.ops_per_cpu_s),
            table::rate(row.ops_per_cpu_s),
            table::ratio(row.ops_per_cpu_s, work),
        ];
        for ((_, wait), shortest) in WAITS.iter().zip(shortest) {
            let wait = wait(row) as f64;
            cells.extend([table::time(wait), table::ratio(wait, shortest)]);
        }
        cells.extend([format!("{:.2}", row.jain), table::ratio(row.jain, fairest)]);
        table.row(cells);
    }
    table.render()
}

/// Returns the best peer's figure where more is better.
fn highest(cell: &ContendedCell, figure: impl Fn(&ContendedRow) -> f64) -> f64 {
    best(cell.results.iter().map(|row| (row.lock.name(), figure(row))))
}

/// Returns the best peer's figure where less is better.
fn lowest(cell: &ContendedCell, figure: impl Fn(&ContendedRow) -> f64) -> f64 {
    -highest(cell, |row| -figure(row))
}

/// Sums up all cells: each lock's ratios to the best peer, in the geometric mean and at worst.
fn summary(report: &ContendedReport) -> String {
    if report.cells.len() < 2 {
        return String::new();
    }
    let mut table = TextTable::new(&[
        "lock",
        "ops/s,\nmean ratio",
        "worst\ncell",
        "ops per CPU-s,\nmean ratio",
        "worst\ncell",
        "longest wait\nof all",
    ]);
    let locks = report.cells[0].results.iter().map(|row| row.lock);
    for lock in locks {
        let ratios = |figure: fn(&ContendedRow) -> f64| -> Vec<f64> {
            report
                .cells
                .iter()
                .filter_map(|cell| Some(figure(cell.row(lock)?) / highest(cell, figure)))
                .collect()
        };
        let mut cells = vec![lock.to_string()];
        for ratios in [ratios(|row| row.ops_per_s), ratios(|row| row.ops_per_cpu_s)] {
            let mean = if ratios.iter().all(|&ratio| ratio > 0.0) {
                geometric_mean(&ratios)
            } else {
                f64::NAN
            };
            let worst = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            cells.extend([table::ratio(mean, 1.0), table::ratio(worst, 1.0)]);
        }
        let longest = report.cells.iter().filter_map(|cell| Some(cell.row(lock)?.wait_max_ns));
        cells.push(table::time(longest.max().unwrap_or(0) as f64));
        table.row(cells);
    }
    format!("All {} cells\n{}", report.cells.len(), table.render())
}

//! The throughput of a contended report by threads, pinned and not.

use crate::table::{self, TextTable};
use lockstead_bench::contended::{ContendedCell, ContendedReport};

/// Returns a table for each section and think time: a row for each lock, a column for each number
/// of threads; the ratio is to the lock's own throughput with the fewest threads.
pub(crate) fn render(report: &ContendedReport) -> String {
    let place = |cell: &ContendedCell| (cell.section_ns, cell.think_ratio);
    let mut places: Vec<(u64, f64)> = Vec::new();
    for cell in &report.cells {
        if !places.contains(&place(cell)) {
            places.push(place(cell));
        }
    }
    places.into_iter().map(|at| scaling(report, |cell| place(cell) == at, at)).collect()
}

fn scaling(
    report: &ContendedReport,
    here: impl Fn(&ContendedCell) -> bool,
    (section, think): (u64, f64),
) -> String {
    let cells: Vec<&ContendedCell> = report.cells.iter().filter(|cell| here(cell)).collect();
    let mut threads: Vec<usize> = cells.iter().map(|cell| cell.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    let heads: Vec<String> =
        threads.iter().map(|&n| format!("{n} thread{}", if n == 1 { "" } else { "s" })).collect();
    let mut head = vec!["ops/s"];
    for threads in &heads {
        head.extend([threads.as_str(), ""]);
    }
    let mut table = TextTable::new(&head);
    let locks = cells.first().map(|cell| &cell.results[..]).unwrap_or_default();
    for lock in locks.iter().map(|row| row.lock) {
        for pinned in [false, true] {
            let rate = |n: usize| {
                let cell = cells.iter().find(|cell| (cell.threads, cell.pinned) == (n, pinned));
                cell.and_then(|cell| cell.row(lock)).map(|row| row.ops_per_s)
            };
            let Some(first) = threads.iter().find_map(|&n| rate(n)) else { continue };
            let mut cells = vec![format!("{lock}{}", if pinned { ", pinned" } else { "" })];
            for &n in &threads {
                let shown =
                    |of: fn(f64, f64) -> String| rate(n).map_or("-".into(), |r| of(r, first));
                cells.extend([shown(|rate, _| table::rate(rate)), shown(table::ratio)]);
            }
            table.row(cells);
        }
    }
    format!(
        "\nBy threads: section {}, think {}\n{}",
        table::section(section),
        table::think(think),
        table.render()
    )
}

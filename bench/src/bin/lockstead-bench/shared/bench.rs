//! `lockstead bench shared`: locks between processes, disputed and not.

use super::flags::SharedFlags;
use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::measured;
use crate::table::{self, TextTable};
use lockstead_bench::shared::contended::{self, SharedCell, SharedRow};
use lockstead_bench::shared::{SharedLock, pair};
use lockstead_bench::uncontended;
use serde::Serialize;
use std::time::Duration;

/// The report of `bench uncontended`, and one thing more.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SharedReport {
    /// The pair that nobody disputes.
    #[serde(flatten)]
    pair: uncontended::UncontendedReport<SharedLock>,
    /// One object for each combination of processes, section and think time; empty with
    /// `--pair-only`.
    contended: Vec<SharedCell>,
}

/// Measures what the flags ask for, and prints the report.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn run(flags: &SharedFlags) -> Result<(), Failure> {
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let (pair, cells) = options(flags);
    let report = measured(&interrupt, |session| {
        let pair = pair::measure(&pair, session)?;
        let contended = cells.map_or(Ok(vec![]), |cells| contended::measure(&cells, session))?;
        Ok::<_, lockstead_bench::Error>(SharedReport { pair, contended })
    })?;
    output::warn_about(&report.pair.machine);
    if flags.json {
        return output::print_json(&report);
    }
    output::print(&render(&report))
}

fn options(flags: &SharedFlags) -> (pair::SharedPairOptions, Option<contended::SharedOptions>) {
    let mut pair = pair::SharedPairOptions::default();
    let mut cells = contended::SharedOptions {
        processes: flags.processes.0.clone(),
        sections: flags.section.0.clone(),
        thinks: flags.think.0.clone(),
        ..contended::SharedOptions::default()
    };
    if flags.quick {
        (pair.rounds, cells.rounds, cells.slice) = (5, 3, Duration::from_millis(20));
    }
    if let Some(seconds) = flags.seconds {
        cells.slice = seconds / u32::try_from(cells.rounds).unwrap_or(1);
    }
    (pair, (!flags.pair_only).then_some(cells))
}

fn render(report: &SharedReport) -> String {
    let peer = SharedLock::GlibcRobust.name();
    let mut text = format!(
        "lock + unlock that nobody disputes, in shared memory\n{}\n",
        crate::uncontended::render(&report.pair, peer)
    );
    for cell in &report.contended {
        text += &format!("{}\n{}\n", title(cell), grid(cell));
    }
    if !report.contended.is_empty() {
        text += "The ratio behind a figure is to glibc-robust in the same interleaved run. ± is half\n\
                 the distance of the slowest round from the fastest. glibc-pshared stays taken for\n\
                 ever when its owner dies.\n";
    }
    text
}

fn title(cell: &SharedCell) -> String {
    let place = (cell.section_ns, cell.think_ratio);
    table::cell_title(cell.processes, ("process", "processes"), place)
        + &table::disturbance(&cell.disturbance)
}

fn grid(cell: &SharedCell) -> String {
    let of_peer = |figure: fn(&SharedRow) -> f64| {
        let peer = cell.results.iter().find(|row| row.lock == SharedLock::GlibcRobust);
        peer.map_or(f64::NAN, figure)
    };
    let (speed, work) = (of_peer(|row| row.ops_per_s), of_peer(|row| row.ops_per_cpu_s));
    let mut table =
        TextTable::new(&["lock", "ops/s", "±", "", "CPU-s\nper s", "ops per\nCPU-s", "", "Jain"]);
    for row in &cell.results {
        let spread = (row.ops_per_s_max - row.ops_per_s_min) / 2.0 / row.ops_per_s;
        table.row([
            row.lock.to_string(),
            table::rate(row.ops_per_s),
            if spread.is_finite() { format!("{:.0}%", spread * 100.0) } else { "-".into() },
            table::ratio(row.ops_per_s, speed),
            format!("{:.2}", row.ops_per_s / row.ops_per_cpu_s),
            table::rate(row.ops_per_cpu_s),
            table::ratio(row.ops_per_cpu_s, work),
            format!("{:.2}", row.jain),
        ]);
    }
    table.render()
}

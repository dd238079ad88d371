//! `lockstead sim replay`.

use super::draws::{DISAGREE, MARK, disagree};
use super::flags::Replay;
use super::page;
use crate::failure::Failure;
use crate::files::{can_write, write};
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::Progress;
use crate::table::TextTable;
use lockstead_sim::Stopped;
use lockstead_sim::replay::{ReplayOptions, ReplayRow, replay, table_names};
use serde::Serialize;

/// What `lockstead sim replay --json` writes.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ReplayReport<'a> {
    /// One object for each figure that was published.
    rows: Vec<ReplayedRow<'a>>,
}

/// A row of a published table, and what the simulation makes of it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ReplayedRow<'a> {
    /// The name of the table.
    table: &'a str,
    /// The row, and the column if there are several.
    row: &'a str,
    /// The figure that was published.
    published: f64,
    /// The median over seeds and fits.
    simulated: f64,
    /// The lowest of them.
    lowest: f64,
    /// The highest of them.
    highest: f64,
    /// Whether seeds and fits disagree: `lowest` and `highest` are further apart than a quarter of
    /// the median, or, in per cent, than 25 points.
    seeds_disagree: bool,
    /// Whether its row served to calibrate.
    calibrated: bool,
    /// The unit of the figures.
    unit: &'a str,
}

/// Simulates, prints, and writes the page that was asked for.
///
/// # Errors
/// As [`Failure`].
pub(super) fn run(flags: &Replay) -> Result<(), Failure> {
    if let Some(table) = &flags.table
        && !table_names().contains(&table.as_str())
    {
        let names = table_names().join(", ");
        return Err(Failure::option("--table <NAME>", table, format!("there are {names}")));
    }
    if let Some(file) = &flags.html {
        can_write(file).map_err(|why| Failure::option("--html <FILE>", file.display(), why))?;
    }
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let mut progress = Progress::new();
    let mut step = |done: u64, total: u64, what: &str| progress.step(done, total, what);
    let seeds = flags.seeds.unwrap_or(if flags.quick { QUICK_SEEDS } else { SEEDS });
    let options = ReplayOptions { quick: flags.quick, seeds, table: flags.table.clone() };
    let rows =
        replay(&options, interrupt.flag(), &mut step).map_err(|Stopped| Failure::Interrupted)?;
    drop(progress);
    if let Some(file) = &flags.html {
        write(file, &page::render(&rows)).map_err(|error| {
            Failure::Run(format!("cannot write the report to {}: {error}", file.display()))
        })?;
    }
    if flags.json {
        return output::print_json(&json(&rows));
    }
    output::print(&format!("{}{}", text(&rows), left_out(flags.quick, seeds)))
}

/// The numbers of seeds: in a quick replay so many that a row which comes out one way or the other
/// by chance is mostly seen to.
const SEEDS: u64 = 5;
const QUICK_SEEDS: u64 = 3;

/// Tells whether what seeds and fits make of a row lies further apart than they should: of shares and
/// changes in points, since there is a change of none.
fn wide(row: &ReplayRow) -> bool {
    let (low, high) = row.range;
    if row.unit == "percent" {
        return high - low > DISAGREE * 100.0;
    }
    disagree(low, row.simulated, high)
}

/// Rounds to three places: what is behind them means nothing, and differs between processors.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

fn json(rows: &[ReplayRow]) -> ReplayReport<'_> {
    ReplayReport { rows: rows.iter().map(json_row).collect() }
}

fn json_row(row: &ReplayRow) -> ReplayedRow<'_> {
    ReplayedRow {
        table: row.table,
        row: &row.row,
        published: rounded(row.published),
        simulated: rounded(row.simulated),
        lowest: rounded(row.range.0),
        highest: rounded(row.range.1),
        seeds_disagree: wide(row),
        calibrated: row.calibrated,
        unit: row.unit,
    }
}

/// Says how far off a row is: percentages in points, else in per cent.
pub(super) fn off(row: &ReplayRow) -> String {
    if row.unit == "percent" {
        return format!("{:+.1}", row.simulated - row.published);
    }
    format!("{:+.1} %", (row.simulated / row.published - 1.0) * 100.0)
}

/// Returns a figure with as many places as it deserves.
pub(super) fn figure(row: &ReplayRow, value: f64) -> String {
    match row.unit {
        "percent" => format!("{value:.1}"),
        "times" => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}

fn text(rows: &[ReplayRow]) -> String {
    let mut text = String::new();
    for name in table_names() {
        let rows: Vec<&ReplayRow> = rows.iter().filter(|row| row.table == name).collect();
        if rows.is_empty() {
            continue;
        }
        let mut table = TextTable::new(&[
            "row",
            "unit",
            "published",
            "simulated",
            "range",
            "off by",
            "calibrated",
        ]);
        for row in rows {
            let (low, high) = row.range;
            table.row([
                row.row.clone(),
                row.unit.to_owned(),
                figure(row, row.published),
                figure(row, row.simulated),
                format!(
                    "{} to {}{}",
                    figure(row, low),
                    figure(row, high),
                    if wide(row) { MARK } else { "" }
                ),
                off(row),
                if row.calibrated { "yes" } else { "" }.to_owned(),
            ]);
        }
        text += &format!("{name}\n{}\n", table.render());
    }
    text += "Rows marked `calibrated` fixed the numbers that no document gives; all others are \
             predictions.\n";
    if rows.iter().any(wide) {
        text += &format!(
            "~: seeds and fits differ by more than {0:.0} % of the median, or {0:.0} points. Near a \
             collapse chance decides: the range is the prediction, not the median.\n",
            DISAGREE * 100.0
        );
    }
    text
}

/// Returns what a quick replay has left out, and how to have it.
fn left_out(quick: bool, seeds: u64) -> String {
    if !quick {
        return String::new();
    }
    let alone = if seeds == 1 { "; the ranges above say nothing of other seeds" } else { "" };
    format!(
        "Quick: left out were all fits but the best, all seeds but {seeds}, and most numbers of \
         users{alone}. `lockstead sim replay` has them all.\n"
    )
}

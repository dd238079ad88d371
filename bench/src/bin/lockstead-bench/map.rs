//! `lockstead bench map`: where the mutex is ahead of the best peer, and where not.

use crate::failure::Failure;
use crate::files::{can_write, write};
use crate::grid_flags::MapFlags as Flags;
use crate::html::escape;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::plot;
use crate::progress::measured;
use crate::summary;
use crate::table;
use crate::values::ValueList;
use anstyle::{AnsiColor, Style};
use lockstead_bench::contended;
use lockstead_bench::contended::grid::Grid;
use lockstead_bench::contended::map::{GridMap, MapCell, Panel};
use lockstead_bench::contended::summary::GridSummary;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// The report that `--json` writes.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct MapReport<'a> {
    /// The machine that was measured; of a report that was given with `--from` what that says, or
    /// null.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<lockstead_render::machine::MachineFacts>")
    )]
    machine: &'a Value,
    /// The map itself, and what it compares.
    #[serde(flatten)]
    map: &'a GridMap,
    /// What the cells come to, as in `bench contended`; null where nothing could be compared, as
    /// without lockstead's mutex or a peer.
    summary: &'a Option<GridSummary>,
}

/// Measures or reads, draws, prints.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    for (option, file) in [("--svg <FILE>", &flags.svg), ("--html <FILE>", &flags.html)] {
        if let Some(file) = file {
            can_write(file).map_err(|why| Failure::option(option, file.display(), why))?;
        }
    }
    let grid = match &flags.from {
        Some(file) => plot::read_grid(file)
            .map_err(|why| Failure::option("--from <FILE>", file.display(), why))?,
        None => measure(flags)?,
    };
    let thinks = flags.think.as_ref().map_or(&[][..], |think| &think.0);
    let map = GridMap::of(&grid, thinks);
    if map.panels.is_empty() {
        return Err(nothing(flags, &grid));
    }
    let summary = GridSummary::of(&grid);
    if flags.svg.is_some() || flags.html.is_some() {
        let svg = plot::draw_map(&map, &grid.machine)?;
        if let Some(file) = &flags.svg {
            store(file, &svg)?;
        }
        if let Some(file) = &flags.html {
            store(file, &page(&svg, summary.as_ref()))?;
        }
    }
    if flags.json {
        return output::print_json(&MapReport {
            machine: &grid.machine,
            map: &map,
            summary: &summary,
        });
    }
    output::print(&render(&map, summary.as_ref()))
}

fn measure(flags: &Flags) -> Result<Grid, Failure> {
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let usual = ValueList(vec![1.0]);
    let think = flags.think.as_ref().unwrap_or(&usual);
    let options =
        flags.conduct.options((&flags.threads, &flags.section, think), Some(&flags.locks));
    let report = measured(&interrupt, |session| contended::measure(&options, session))?;
    output::warn_about(&report.machine);
    Ok(Grid::from(&report))
}

/// Returns why there is no map.
fn nothing(flags: &Flags, grid: &Grid) -> Failure {
    let locks = grid.locks();
    if !locks.contains(&contended::summary::SUBJECT) || grid.rivals().is_empty() {
        let why = "a map compares lockstead with other mutexes: both have to be measured";
        return match &flags.from {
            Some(file) => Failure::option("--from <FILE>", file.display(), why),
            None => Failure::option("--locks <LIST>", locks.join(","), why),
        };
    }
    let mut there: Vec<String> =
        grid.cells.iter().map(|cell| table::think(cell.think_ratio)).collect();
    there.dedup();
    there.sort();
    there.dedup();
    let asked = flags.think.iter().flat_map(|think| &think.0).map(|&think| table::think(think));
    Failure::option(
        "--think <LIST>",
        asked.collect::<Vec<_>>().join(","),
        format!("the report has none of these; it has {}", there.join(", ")),
    )
}

pub(crate) fn store(file: &Path, text: &str) -> Result<(), Failure> {
    write(file, text)
        .map_err(|error| Failure::Run(format!("cannot write {}: {error}", file.display())))?;
    output::note(format_args!("wrote {}", file.display()));
    Ok(())
}

/// Returns the map for a terminal.
fn render(map: &GridMap, summary: Option<&GridSummary>) -> String {
    let mut text = format!(
        "{} over the best peer of each cell; above 1 it is ahead. Rows: threads; columns: section.\n\n",
        map.lock
    );
    for panel in &map.panels {
        text += &format!("{}, think {}\n", panel.measure.title(), table::think(panel.think_ratio));
        text += &rows(panel);
        text += "\n";
    }
    text + &summary.map(summary::render).unwrap_or_default()
}

const COLUMN: usize = 8;

fn rows(panel: &Panel) -> String {
    let head = panel.sections_ns.iter().map(|&section| table::section(section));
    let mut text = format!("{:>COLUMN$}", "");
    text.extend(head.map(|section| format!("{section:>COLUMN$}")));
    text += "\n";
    for &threads in &panel.threads {
        text += &format!("{threads:>COLUMN$}");
        for &section in &panel.sections_ns {
            text += &shown(panel.cell(threads, section));
        }
        text += "\n";
    }
    text
}

/// Writes a cell, coloured where it is clearly ahead or behind.
fn shown(cell: Option<&MapCell>) -> String {
    let Some(cell) = cell else { return format!("{:>COLUMN$}", "-") };
    let style = if cell.ratio < plot::TIE.start {
        AnsiColor::Yellow.on_default().bold()
    } else if cell.ratio > plot::TIE.end {
        AnsiColor::Blue.on_default().bold()
    } else {
        Style::new()
    };
    format!("{style}{:>COLUMN$}{style:#}", plot::short(cell.ratio))
}

/// Returns the picture and the aims as one page that fetches nothing.
fn page(svg: &str, summary: Option<&GridSummary>) -> String {
    let text = summary.map(summary::render).unwrap_or_default();
    let text = anstream::adapter::strip_str(&text).to_string();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <title>lockstead bench map</title><style>body{{font:15px sans-serif;margin:2em;\
         color:#20242a;background:#fff}}svg{{max-width:100%;height:auto}}\
         pre{{overflow-x:auto}}</style></head><body>\n{svg}\n<pre>{}</pre></body></html>\n",
        lines(&text)
    )
}

/// Escapes text for XML, line by line: the lines stay.
fn lines(text: &str) -> String {
    text.lines().map(|line| escape(line) + "\n").collect()
}

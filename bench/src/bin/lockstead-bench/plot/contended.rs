//! The contended grid as a heat map: a row a cell, a column a lock, the figure
//! is the ratio to the best peer of that cell. Twice: throughput, and work per
//! CPU-second.

use super::canvas::{Align, Canvas, FAINT, INK, OURS, Pen, RULE, sheet};
use super::frame::{MARGIN, footer, heading, short};
use crate::compare::{best, ours};
use crate::failure::Failure;
use crate::table;
use lockstead_bench::contended::grid::{Grid, GridFigures, GridPlace};
use plotters::prelude::RGBColor;

const ROW: i32 = 24;
const COLUMN: i32 = 50;
/// Room above the first row for the names of the locks, turned.
const NAMES: i32 = 150;
/// Threads, section and think time.
const LABELS: i32 = 150;
/// The best peer's own figure.
const ABSOLUTE: i32 = 84;
const BETWEEN: i32 = 36;
const GROUP_GAP: i32 = 12;
const TOP: i32 = 92;
const KEY: i32 = 60;

/// One of the two measures.
struct PanelMeasure {
    title: &'static str,
    of: fn(&GridFigures) -> f64,
}

const MEASURES: [PanelMeasure; 2] = [
    PanelMeasure { title: "Throughput", of: |r| r.ops_per_s },
    PanelMeasure { title: "Operations per CPU-second", of: |r| r.ops_per_cpu_s },
];

pub(super) fn draw(grid: &Grid) -> Result<String, Failure> {
    let locks = grid.locks();
    let peers = locks.iter().any(|lock| !ours(lock));
    let panel = ABSOLUTE + COLUMN * pixels(locks.len());
    let width = (2 * MARGIN + LABELS + 2 * panel + BETWEEN).max(760);
    let groups = grid.cells.chunk_by(same_threads).count();
    let rows = pixels(grid.cells.len()) * ROW + pixels(groups) * GROUP_GAP;
    let first = TOP + NAMES;
    let height = first + rows + KEY + 40;
    sheet((width, height), |canvas| {
        let reference = if peers { "the best peer" } else { "the best lock" };
        heading(
            canvas,
            "lockstead bench contended",
            &format!(
                "Each figure is the ratio to {reference} of the same cell; more is better. \
                 Think time is a multiple of the section."
            ),
        )?;
        labels(canvas, &grid.cells, first)?;
        for (number, measure) in MEASURES.iter().enumerate() {
            let left = MARGIN + LABELS + pixels(number) * (panel + BETWEEN);
            let at = (left, first);
            names(canvas, measure.title, &locks, at, reference)?;
            figures(canvas, &grid.cells, &locks, measure, at)?;
        }
        key(canvas, first + rows + 24)?;
        footer(canvas, &grid.machine, height)
    })
}

/// Converts small numbers of things to pixels; `report::parse` bounds them.
fn pixels(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX / 4096)
}

fn same_threads(a: &GridPlace, b: &GridPlace) -> bool {
    (a.threads, a.pinned) == (b.threads, b.pinned)
}

/// Returns the cells with the height of their rows' middles; a gap before each group
/// of threads, of which the first row is marked.
fn rows(cells: &[GridPlace], first: i32) -> impl Iterator<Item = (&GridPlace, i32, bool)> {
    let mut y = first - ROW / 2;
    cells.iter().enumerate().map(move |(number, cell)| {
        let opens = number == 0 || !same_threads(&cells[number - 1], cell);
        y += ROW + if opens && number > 0 { GROUP_GAP } else { 0 };
        (cell, y, opens)
    })
}

fn labels(canvas: &Canvas<'_>, cells: &[GridPlace], first: i32) -> Result<(), Failure> {
    let head = Pen::new(12, FAINT);
    for (title, x) in [("threads", 46), ("section", 98), ("think", 140)] {
        canvas.text(title, (MARGIN + x, first - 14), Align::Right, head)?;
    }
    let pen = Pen::new(12, INK);
    for (cell, y, opens) in rows(cells, first) {
        if opens {
            let pinned = if cell.pinned { "pinned " } else { "" };
            let threads = format!("{pinned}{}", cell.threads);
            canvas.text(&threads, (MARGIN + 46, y), Align::Right, pen.bold())?;
        }
        let section = table::section(cell.section_ns);
        canvas.text(&section, (MARGIN + 98, y), Align::Right, pen)?;
        canvas.text(&table::think(cell.think_ratio), (MARGIN + 140, y), Align::Right, pen)?;
    }
    Ok(())
}

fn names(
    canvas: &Canvas<'_>,
    title: &str,
    locks: &[&str],
    (left, first): (i32, i32),
    reference: &str,
) -> Result<(), Failure> {
    canvas.text(title, (left, TOP - 4), Align::Left, Pen::new(15, INK).bold())?;
    let reference = reference.trim_start_matches("the ");
    canvas.text(
        reference,
        (left + ABSOLUTE - 10, first - 14),
        Align::Right,
        Pen::new(12, FAINT),
    )?;
    for (column, lock) in locks.iter().enumerate() {
        let x = left + ABSOLUTE + pixels(column) * COLUMN + COLUMN / 2;
        let pen = if ours(lock) { Pen::new(12, OURS).bold() } else { Pen::new(12, INK) };
        canvas.text(lock, (x, first - 8), Align::Up, pen)?;
    }
    Ok(())
}

fn figures(
    canvas: &Canvas<'_>,
    cells: &[GridPlace],
    locks: &[&str],
    measure: &PanelMeasure,
    (left, first): (i32, i32),
) -> Result<(), Failure> {
    for (cell, y, _) in rows(cells, first) {
        let best = best(cell.results.iter().map(|r| (r.lock.as_str(), (measure.of)(r))));
        let absolute = format!("{}/s", table::rate(best));
        canvas.text(&absolute, (left + ABSOLUTE - 10, y), Align::Right, Pen::new(12, FAINT))?;
        for (column, lock) in locks.iter().enumerate() {
            let Some(result) = cell.results.iter().find(|r| r.lock == *lock) else {
                continue;
            };
            let ratio = (measure.of)(result) / best;
            let x = left + ABSOLUTE + pixels(column) * COLUMN;
            let (ground, ink) = shade(ratio);
            canvas.rect((x, y - ROW / 2), (x + COLUMN - 1, y + ROW / 2 - 1), ground)?;
            let pen = Pen::new(12, ink);
            canvas.text(&short(ratio), (x + COLUMN / 2, y), Align::Middle, pen)?;
        }
    }
    Ok(())
}

/// Returns the ground for a ratio and an ink that is legible on it: white at 1, more
/// orange below, more blue above, by its logarithm.
fn shade(ratio: f64) -> (RGBColor, RGBColor) {
    const WORSE: RGBColor = RGBColor(196, 78, 24);
    const BETTER: RGBColor = RGBColor(28, 94, 160);
    if !ratio.is_finite() {
        return (RGBColor(240, 240, 240), FAINT);
    }
    let (end, share) = if ratio < 1.0 {
        (WORSE, -ratio.max(1e-3).log2() / 3.0)
    } else {
        (BETTER, ratio.log2() / 2.0)
    };
    let share = share.clamp(0.0, 1.0);
    let mix = |to: u8| (255.0 + (f64::from(to) - 255.0) * share).round() as u8;
    let ink = if share > 0.8 { RGBColor(255, 255, 255) } else { INK };
    (RGBColor(mix(end.0), mix(end.1), mix(end.2)), ink)
}

/// Returns what the colours mean.
fn key(canvas: &Canvas<'_>, y: i32) -> Result<(), Failure> {
    let ratios = [0.125, 0.25, 0.5, 0.71, 0.84, 1.0, 1.19, 1.41, 2.0, 4.0];
    let left = MARGIN + LABELS + ABSOLUTE;
    canvas.text("key", (left - 10, y + ROW / 2), Align::Right, Pen::new(12, FAINT))?;
    for (number, ratio) in ratios.into_iter().enumerate() {
        let x = left + pixels(number) * COLUMN;
        let (ground, ink) = shade(ratio);
        canvas.rect((x, y), (x + COLUMN - 1, y + ROW - 1), ground)?;
        let at = (x + COLUMN / 2, y + ROW / 2);
        canvas.text(&format!("{ratio:.2}"), at, Align::Middle, Pen::new(12, ink))?;
    }
    let right = left + pixels(ratios.len()) * COLUMN - 1;
    canvas.line((left, y + ROW), (right, y + ROW), RULE, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_fit_their_cells() {
        for ratio in [0.0, 1e-9, 0.004, 0.97, 9.996, 99.96, 1234.0, 1e12, f64::NAN] {
            assert!(short(ratio).chars().count() <= 5, "{ratio}");
        }
        assert_eq!(short(0.97), "0.97");
    }

    #[test]
    fn one_is_white_and_the_worse_the_darker() {
        assert_eq!(shade(1.0).0, RGBColor(255, 255, 255));
        let darkness = |ratio| {
            let RGBColor(r, g, b) = shade(ratio).0;
            765 - i32::from(r) - i32::from(g) - i32::from(b)
        };
        assert!(darkness(0.5) > darkness(0.9));
        assert!(darkness(3.0) > darkness(1.1));
    }
}

//! The regime map: threads by section length, a panel for each measure and think time,
//! the ground of a cell its ratio to the best peer, both written in it.

use super::canvas::{Align, Canvas, FAINT, INK, Pen, RULE, sheet};
use super::frame::{MARGIN, footer, heading, short};
use crate::failure::Failure;
use crate::table;
use lockstead_bench::contended::map::{GridMap, MapMeasure, Panel};
use plotters::prelude::RGBColor;
use serde_json::Value;
use std::ops::Range;

/// Ratios that no measurement tells from 1.
pub(crate) const TIE: Range<f64> = 0.95..1.0 / 0.95;

const COLUMN: i32 = 96;
const ROW: i32 = 40;
const LABELS: i32 = 64;
const BETWEEN: i32 = 30;
const TOP: i32 = 84;
/// Title and head of a panel.
const HEAD: i32 = 52;
const KEY: i32 = 56;

/// Draws all panels: those of one think time beside each other.
pub(crate) fn draw(map: &GridMap, machine: &Value) -> Result<String, Failure> {
    let bands: Vec<&[Panel]> = map.panels.chunk_by(|a, b| a.think_ratio == b.think_ratio).collect();
    let columns = |panel: &Panel| pixels(panel.sections_ns.len()) * COLUMN + LABELS;
    let widths = bands.iter().map(|band| band.iter().map(|p| columns(p) + BETWEEN).sum::<i32>());
    let width = (2 * MARGIN + widths.max().unwrap_or(0) - BETWEEN).max(1000);
    let height_of = |band: &[Panel]| {
        HEAD + ROW * band.iter().map(|panel| pixels(panel.threads.len())).max().unwrap_or(0)
    };
    let last = bands.iter().fold(TOP, |y, band| y + height_of(band) + BETWEEN);
    let height = last + KEY + 40;
    sheet((width, height), |canvas| {
        heading(
            canvas,
            &format!("{} over the best peer of each cell", map.lock),
            "Threads by length of the section. Above 1 (blue) it is ahead, below (orange) behind \
             the lock whose name is there; white is a tie.",
        )?;
        let mut y = TOP;
        for band in bands {
            let mut x = MARGIN;
            for panel in band {
                draw_panel(canvas, panel, (x, y))?;
                x += columns(panel) + BETWEEN;
            }
            y += height_of(band) + BETWEEN;
        }
        key(canvas, y)?;
        footer(canvas, machine, height)
    })
}

fn pixels(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX / 4096)
}

fn draw_panel(canvas: &Canvas<'_>, panel: &Panel, (x, y): (i32, i32)) -> Result<(), Failure> {
    let title = format!("{}, think {}", title(panel.measure), table::think(panel.think_ratio));
    canvas.text(&title, (x, y + 10), Align::Left, Pen::new(14, INK).bold())?;
    canvas.text("threads", (x + LABELS - 8, y + HEAD - 12), Align::Right, Pen::new(11, FAINT))?;
    let left = |column: usize| x + LABELS + pixels(column) * COLUMN;
    let top = |row: usize| y + HEAD + pixels(row) * ROW;
    for (column, &section) in panel.sections_ns.iter().enumerate() {
        let at = (left(column) + COLUMN / 2, y + HEAD - 12);
        canvas.text(&table::section(section), at, Align::Middle, Pen::new(12, INK))?;
    }
    for (row, threads) in panel.threads.iter().enumerate() {
        let at = (x + LABELS - 8, top(row) + ROW / 2);
        canvas.text(&threads.to_string(), at, Align::Right, Pen::new(12, INK).bold())?;
    }
    for (row, &threads) in panel.threads.iter().enumerate() {
        for (column, &section) in panel.sections_ns.iter().enumerate() {
            let Some(cell) = panel.cell(threads, section) else { continue };
            let (x, y) = (left(column), top(row));
            let (ground, ink) = shade(cell.ratio);
            canvas.rect((x, y), (x + COLUMN - 2, y + ROW - 2), ground)?;
            let middle = x + COLUMN / 2;
            let pen = Pen::new(14, ink).bold();
            canvas.text(&short(cell.ratio), (middle, y + 13), Align::Middle, pen)?;
            let peer: String = cell.peer.chars().take(16).collect();
            canvas.text(&peer, (middle, y + 29), Align::Middle, Pen::new(10, ink))?;
        }
    }
    let (right, foot) = (left(panel.sections_ns.len()), top(panel.threads.len()));
    canvas.line((x + LABELS, y + HEAD - 1), (right, y + HEAD - 1), RULE, 1)?;
    canvas.line((x + LABELS, foot), (right, foot), RULE, 1)
}

/// Makes it short enough for a panel of one column.
fn title(measure: MapMeasure) -> &'static str {
    match measure {
        MapMeasure::Throughput | MapMeasure::WorkPerCpuS => measure.title(),
        MapMeasure::LongestWait => "Longest wait, times shorter",
    }
}

/// Returns the ground of a ratio and an ink that is legible on it: white for a tie, orange below
/// and blue above, full at half and twice. The two differ for every kind of colour
/// blindness, and in lightness neither is needed: the figure is there.
fn shade(ratio: f64) -> (RGBColor, RGBColor) {
    const BEHIND: RGBColor = RGBColor(208, 98, 24);
    const AHEAD: RGBColor = RGBColor(28, 94, 160);
    if TIE.contains(&ratio) {
        return (RGBColor(250, 250, 250), INK);
    }
    let end = if ratio < 1.0 { BEHIND } else { AHEAD };
    let distance = ratio.max(1e-3).log2().abs().min(1.0);
    // What is no tie is seen to be none.
    let share = 0.12 + 0.88 * distance;
    let mix = |to: u8| (255.0 + (f64::from(to) - 255.0) * share).round() as u8;
    let ink = if share > 0.72 { RGBColor(255, 255, 255) } else { INK };
    (RGBColor(mix(end.0), mix(end.1), mix(end.2)), ink)
}

/// Returns what the colours mean.
fn key(canvas: &Canvas<'_>, y: i32) -> Result<(), Failure> {
    const RATIOS: [f64; 9] = [0.5, 0.63, 0.8, 0.9, 1.0, 1.1, 1.25, 1.6, 2.0];
    let left = MARGIN + LABELS;
    canvas.text("key", (left - 8, y + 12), Align::Right, Pen::new(12, FAINT))?;
    for (number, ratio) in RATIOS.into_iter().enumerate() {
        let x = left + pixels(number) * 60;
        let (ground, ink) = shade(ratio);
        canvas.rect((x, y), (x + 58, y + 24), ground)?;
        canvas.text(&format!("{ratio:.2}"), (x + 29, y + 12), Align::Middle, Pen::new(12, ink))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tie_is_white_and_the_further_from_it_the_darker() {
        assert_eq!(shade(0.96).0, shade(1.04).0);
        let lightness = |ratio| {
            let RGBColor(r, g, b) = shade(ratio).0;
            i32::from(r) + i32::from(g) + i32::from(b)
        };
        for (darker, lighter) in [(0.5, 0.7), (0.7, 0.94), (2.0, 1.4), (1.4, 1.06), (0.94, 1.0)] {
            assert!(lightness(darker) < lightness(lighter), "{darker} {lighter}");
        }
        assert_eq!(shade(0.1), shade(0.5), "the scale ends at half");
    }
}

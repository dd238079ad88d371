//! A panel for each cell: the locks by their longest wait and their throughput.

use super::canvas::{Align, Canvas, FAINT, INK, OURS, Pen, RULE, THEIRS, sheet};
use super::frame::{MARGIN, footer, heading};
use crate::failure::Failure;
use crate::table;
use lockstead_bench::contended::frontier::{Frontier, FrontierCell, FrontierPoint};
use serde_json::Value;

const COLUMNS: usize = 3;
const WIDTH: i32 = 380;
const HEIGHT: i32 = 250;
/// Room for the title of a panel above its field, and for the names of its axes.
const HEAD: i32 = 26;
const LEFT: i32 = 44;
const FOOT: i32 = 26;
/// Room at the right for the names of the locks that stand there.
const RIGHT: i32 = 96;
const TOP: i32 = 84;
/// The least distance of two names, one above the other.
const LINE: i32 = 12;
/// The room of a name, beside which there may be another one.
const NAME: i32 = 90;

/// Draws a panel for each cell.
pub(crate) fn draw(frontier: &Frontier, machine: &Value) -> Result<String, Failure> {
    let rows = pixels(frontier.cells.len().div_ceil(COLUMNS));
    let columns = pixels(frontier.cells.len().min(COLUMNS));
    let size = ((2 * MARGIN + columns * WIDTH).max(860), TOP + rows * HEIGHT + 44);
    sheet(size, |canvas| {
        heading(
            canvas,
            "Throughput against the longest wait",
            "Up is more throughput, left is a shorter longest wait (median over the rounds). Filled: no \
             other lock is better in both.",
        )?;
        for (number, cell) in frontier.cells.iter().enumerate() {
            let (column, row) = (pixels(number % COLUMNS), pixels(number / COLUMNS));
            panel(canvas, cell, (MARGIN + column * WIDTH, TOP + row * HEIGHT))?;
        }
        footer(canvas, machine, size.1)
    })
}

fn pixels(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX / 4096)
}

/// The field of a panel: where figures come to lie in it.
struct Field {
    left: i32,
    top: i32,
    right: i32,
    foot: i32,
    /// The powers of ten of nanoseconds at the left and at the right.
    waits: (f64, f64),
    /// The throughput at the top.
    most: f64,
}

impl Field {
    fn of(cell: &FrontierCell, (x, y): (i32, i32)) -> Self {
        let powers = cell.points.iter().map(|point| point.longest_ns.max(1.0).log10());
        let (least, greatest) =
            powers.fold((f64::MAX, f64::MIN), |(a, b), power| (a.min(power), b.max(power)));
        let most = cell.points.iter().map(|point| point.ops_per_s).fold(0.0, f64::max);
        Field {
            left: x + LEFT,
            top: y + HEAD,
            right: x + WIDTH - RIGHT,
            foot: y + HEIGHT - FOOT - 16,
            waits: (least.floor(), greatest.ceil().max(least.floor() + 1.0)),
            most: most.max(f64::MIN_POSITIVE),
        }
    }

    fn across(&self, ns: f64) -> i32 {
        let share = (ns.max(1.0).log10() - self.waits.0) / (self.waits.1 - self.waits.0);
        self.left + (share * f64::from(self.right - self.left)).round() as i32
    }

    fn up(&self, ops_per_s: f64) -> i32 {
        let share = ops_per_s / (1.05 * self.most);
        self.foot - (share * f64::from(self.foot - self.top)).round() as i32
    }
}

fn panel(canvas: &Canvas<'_>, cell: &FrontierCell, at: (i32, i32)) -> Result<(), Failure> {
    let field = Field::of(cell, at);
    let place = (cell.section_ns, cell.think_ratio);
    let title = table::cell_title(cell.threads, ("thread", "threads"), place);
    canvas.text(&title, (field.left, at.1 + 10), Align::Left, Pen::new(13, INK).bold())?;
    let small = Pen::new(10, FAINT);
    for power in field.waits.0 as i32..=field.waits.1 as i32 {
        let ns = 10f64.powi(power);
        let x = field.across(ns);
        canvas.line((x, field.top), (x, field.foot), RULE, 1)?;
        canvas.text(&table::time(ns), (x, field.foot + 12), Align::Middle, small)?;
    }
    canvas.line((field.left, field.foot), (field.right, field.foot), RULE, 1)?;
    for share in [0.5, 1.0] {
        let y = field.up(share * field.most);
        canvas.line((field.left, y), (field.right, y), RULE, 1)?;
        let rate = table::rate(share * field.most);
        canvas.text(&rate, (field.left - 6, y), Align::Right, small)?;
    }
    names(canvas, cell, &field)?;
    for point in &cell.points {
        let (x, y) = (field.across(point.longest_ns), field.up(point.ops_per_s));
        canvas.dot((x, y), 4, color(point), point.on_frontier)?;
    }
    Ok(())
}

fn color(point: &FrontierPoint) -> plotters::prelude::RGBColor {
    match point.lock.starts_with("lockstead") {
        true => OURS,
        false if point.on_frontier => INK,
        false => THEIRS,
    }
}

/// Writes the names beside the points, from the top down, none over another.
fn names(canvas: &Canvas<'_>, cell: &FrontierCell, field: &Field) -> Result<(), Failure> {
    let mut points: Vec<_> = cell.points.iter().collect();
    points.sort_by(|a, b| b.ops_per_s.total_cmp(&a.ops_per_s));
    let mut written: Vec<(i32, i32)> = Vec::new();
    for point in points {
        let (x, mut y) = (field.across(point.longest_ns), field.up(point.ops_per_s));
        let covers =
            |&(left, top): &(i32, i32), y: i32| (left - x).abs() < NAME && (top - y).abs() < LINE;
        while let Some(&(_, top)) = written.iter().find(|at| covers(at, y)) {
            y = top + LINE;
        }
        written.push((x, y));
        let pen = Pen::new(10, color(point));
        let pen = if color(point) == OURS { pen.bold() } else { pen };
        canvas.text(&point.lock, (x + 8, y), Align::Left, pen)?;
    }
    Ok(())
}

//! Pictures: curves over numbers of cores, and the timeline of a lock.

use super::life::{Doing, Span};
use crate::report::{escape, open};
use std::fmt::Write;

/// A line with a name.
pub(super) struct Curve {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

const WIDTH: u32 = 900;
const HEIGHT: u32 = 480;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 180.0;
const TOP: f64 = 50.0;
const FOOT: f64 = 50.0;
const COLOURS: [&str; 8] =
    ["#8a5a2b", "#c4a470", "#be3c28", "#d98b1f", "#6a4fa3", "#1f66a8", "#4aa3c7", "#9eaab8"];

/// A white picture of this height with its title.
fn begin(height: u32, title: &str) -> String {
    let mut svg = open(WIDTH, height, title);
    let _ = write!(
        svg,
        "<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\
         <text x=\"20\" y=\"28\" font-family=\"sans-serif\" font-size=\"17\">{}</text>",
        escape(title)
    );
    svg
}

/// Curves; cores on a scale of doublings.
pub(super) fn curves(title: &str, curves: &[Curve]) -> String {
    let all = || curves.iter().flat_map(|curve| &curve.points);
    let most = all().map(|&(_, y)| y).fold(1e-9, f64::max);
    let last = all().map(|&(x, _)| x.log2()).fold(1.0, f64::max);
    let across = f64::from(WIDTH) - LEFT - RIGHT;
    let down = f64::from(HEIGHT) - TOP - FOOT;
    let x = |cores: f64| LEFT + cores.log2() / last * across;
    let y = |value: f64| TOP + (1.0 - value / most) * down;
    let mut svg = begin(HEIGHT, title);
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let at = y(most * share);
        let _ = write!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#cdd2d8\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" font-family=\"sans-serif\" \
             font-size=\"12\">{}</text>",
            LEFT + across,
            LEFT - 8.0,
            at + 4.0,
            crate::table::rate(most * share)
        );
    }
    let mut marks: Vec<f64> = all().map(|&(x, _)| x).collect();
    marks.sort_by(f64::total_cmp);
    marks.dedup();
    for cores in marks {
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-family=\"sans-serif\" \
             font-size=\"12\">{cores}</text>",
            x(cores),
            TOP + down + 20.0
        );
    }
    for (at, curve) in curves.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        let path: String = curve
            .points
            .iter()
            .map(|&(cores, v)| format!("{:.1},{:.1} ", x(cores), y(v)))
            .collect();
        let end = curve.points.last().map_or(TOP, |&(_, value)| y(value));
        let _ = write!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\" font-family=\"sans-serif\" \
             font-size=\"12\">{}</text>",
            path.trim_end(),
            LEFT + across + 8.0,
            end + 4.0,
            escape(&curve.name)
        );
    }
    svg + "</svg>\n"
}

/// A bar for each share, in per cent, with its name.
pub(super) fn bars(title: &str, shares: &[(String, f64)]) -> String {
    let height = 60 + 26 * shares.len() as u32;
    let across = f64::from(WIDTH) - 2.0 * LEFT - RIGHT;
    let mut svg = begin(height, title);
    for (row, (name, share)) in shares.iter().enumerate() {
        let top = 44 + 26 * row as u32;
        let _ = write!(
            svg,
            "<text x=\"20\" y=\"{}\" font-family=\"sans-serif\" font-size=\"12\">{}</text>\
             <rect x=\"{:.1}\" y=\"{top}\" width=\"{:.2}\" height=\"18\" fill=\"{}\"/>\
             <text x=\"{:.1}\" y=\"{}\" font-family=\"sans-serif\" font-size=\"12\">{share:.1} %</text>",
            top + 14,
            escape(name),
            2.0 * LEFT,
            share / 100.0 * across,
            COLOURS[row % COLOURS.len()],
            2.0 * LEFT + share / 100.0 * across + 6.0,
            top + 14
        );
    }
    svg + "</svg>\n"
}

/// A row for each task, time from left to right.
pub(super) fn timeline(title: &str, length: f64, spans: &[Span]) -> String {
    let mut tasks: Vec<u32> = spans.iter().map(|span| span.task).collect();
    tasks.sort_unstable();
    tasks.dedup();
    let height = 110 + 26 * tasks.len() as u32;
    let across = f64::from(WIDTH) - LEFT - 30.0;
    let mut svg = begin(height, title);
    for (at, (_, words, colour)) in Doing::ALL.iter().enumerate() {
        let left = 20 + 170 * at as u32;
        let _ = write!(
            svg,
            "<rect x=\"{left}\" y=\"40\" width=\"14\" height=\"14\" fill=\"{}\"/>\
             <text x=\"{}\" y=\"52\" font-family=\"sans-serif\" font-size=\"12\">{words}</text>",
            colour,
            left + 20
        );
    }
    for (row, task) in tasks.iter().enumerate() {
        let top = 70 + 26 * row as u32;
        let _ = write!(
            svg,
            "<text x=\"20\" y=\"{}\" font-family=\"sans-serif\" font-size=\"12\">task {task}</text>",
            top + 14
        );
        for span in spans.iter().filter(|span| span.task == *task) {
            let _ = write!(
                svg,
                "<rect x=\"{:.2}\" y=\"{top}\" width=\"{:.2}\" height=\"18\" fill=\"{}\"/>",
                LEFT + span.from / length * across,
                ((span.to - span.from) / length * across).max(0.3),
                span.what.colour()
            );
        }
    }
    let foot = 70 + 26 * tasks.len() as u32;
    for quarter in 0..=4 {
        let share = f64::from(quarter) / 4.0;
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\" font-family=\"sans-serif\" \
             font-size=\"12\">{} µs</text>",
            LEFT + share * across,
            foot + 18,
            share * length
        );
    }
    svg + "</svg>\n"
}

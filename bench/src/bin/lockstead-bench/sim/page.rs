//! A replay as one HTML page: nothing is fetched, everything is in it.

use super::replay::{figure, off};
use crate::html::{escape, open};
use lockstead_sim::replay::{ReplayRow, table_names};
use std::fmt::Write;

const WIDTH: u32 = 900;
const ROW: u32 = 30;
/// The place where bars begin; names stand left of it.
const NAMES: u32 = 360;
/// Room for the figure behind the longest bar.
const FIGURES: u32 = 190;

const HEAD: &str = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
<title>lockstead sim replay</title><style>\
body{font:15px sans-serif;max-width:940px;margin:2em auto;color:#20242a;background:#fff}\
text{font:12px sans-serif;fill:#20242a}.published{fill:#9eaab8}.simulated{fill:#1f66a8}\
.calibrated{fill:#c4a470}.spread{stroke:#20242a}\
@media(prefers-color-scheme:dark){body{background:#16191d;color:#dde2e8}text{fill:#dde2e8}\
.spread{stroke:#dde2e8}}</style></head><body><h1>Published and simulated</h1>\
<p>Grey: published. Blue: predicted. Brown: simulated too, but the row served to calibrate. \
Lines: the range over seeds and fits. The simulator's documentation says what it is worth.</p>";

/// Renders the whole page.
pub(super) fn render(rows: &[ReplayRow]) -> String {
    let mut page = HEAD.to_owned();
    for name in table_names() {
        let rows: Vec<&ReplayRow> = rows.iter().filter(|row| row.table == name).collect();
        for unit in ["jpm", "per second", "percent", "times"] {
            let rows: Vec<&ReplayRow> =
                rows.iter().copied().filter(|row| row.unit == unit).collect();
            if !rows.is_empty() {
                let _ = write!(page, "<h2>{}, {unit}</h2>{}", escape(name), chart(name, &rows));
            }
        }
    }
    page + "</body></html>\n"
}

fn chart(name: &str, rows: &[&ReplayRow]) -> String {
    let values = rows.iter().flat_map(|row| [row.published, row.range.1, row.range.0]);
    let most = values.map(f64::abs).fold(1e-9, f64::max);
    let height = ROW * rows.len() as u32;
    let mut svg = open(WIDTH, height, name);
    let room = f64::from(WIDTH - NAMES - FIGURES);
    // What is less than nothing is drawn to the right as well, and has its sign behind it.
    let length = |value: f64| value.abs() / most * room;
    for (at, row) in rows.iter().enumerate() {
        let top = ROW * at as u32;
        let (low, high) = (length(row.range.0), length(row.range.1));
        let class = if row.calibrated { "calibrated" } else { "simulated" };
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\
             <rect class=\"published\" x=\"{NAMES}\" y=\"{}\" width=\"{:.1}\" height=\"10\"/>\
             <rect class=\"{class}\" x=\"{NAMES}\" y=\"{}\" width=\"{:.1}\" height=\"10\"/>\
             <line class=\"spread\" x1=\"{:.1}\" y1=\"{y}\" x2=\"{:.1}\" y2=\"{y}\"/>\
             <text x=\"{:.1}\" y=\"{}\">{} | {} ({})</text>",
            NAMES - 8,
            top + 19,
            escape(&row.row),
            top + 4,
            length(row.published),
            top + 15,
            length(row.simulated),
            f64::from(NAMES) + low.min(high),
            f64::from(NAMES) + low.max(high),
            f64::from(NAMES) + length(row.published).max(low).max(high) + 6.0,
            top + 19,
            figure(row, row.published),
            figure(row, row.simulated),
            off(row),
            y = top + 20,
        );
    }
    svg + "</svg>"
}

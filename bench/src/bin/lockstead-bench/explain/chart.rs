//! The charts of the page: bars with the spread of the rounds across their ends.

use crate::html::{escape, open};
use lockstead_bench::explain::RoundsFigure;
use std::fmt::Write;

const WIDTH: u32 = 860;
const ROW: u32 = 26;
/// The width of a character of a name, at most; the names stand left of the bars.
const NAME: u32 = 8;
/// Room for the figure behind the longest bar.
const FIGURES: u32 = 110;

/// The width of a character of a figure.
const LETTER: f64 = 7.0;

/// Returns where a figure of so many characters begins that would begin at `x`: behind the line
/// that would run through it.
fn figure_at(x: f64, characters: usize, line: f64) -> f64 {
    let runs_through = x - 3.0 < line && line < x + characters as f64 * LETTER;
    if runs_through { line + 6.0 } else { x }
}

/// A bar of a chart.
pub(super) struct ChartBar {
    pub(super) name: String,
    pub(super) figure: RoundsFigure,
    /// The text behind the bar.
    pub(super) written: String,
    /// The class of its colour.
    pub(super) class: &'static str,
}

/// Draws bars below each other; with `one`, a line where the value is 1.
pub(super) fn bars(what: &str, bars: &[ChartBar], one: bool) -> String {
    let most = bars.iter().map(|bar| bar.figure.max).fold(0.0, f64::max);
    if most <= 0.0 {
        return String::new();
    }
    let height = ROW * bars.len() as u32;
    let mut svg = open(WIDTH, height, what);
    let longest = bars.iter().map(|bar| bar.name.chars().count() as u32).max().unwrap_or(0);
    let left = (longest * NAME + 8).min(WIDTH / 2);
    let room = f64::from(WIDTH - left - FIGURES);
    let x = |value: f64| f64::from(left) + (value / most).clamp(0.0, 1.0) * room;
    let line = if one { x(1.0) } else { 0.0 };
    for (at, bar) in bars.iter().enumerate() {
        let top = ROW * at as u32;
        let (middle, foot) = (top + ROW / 2, top + ROW / 2 + 4);
        let RoundsFigure { median, min, max, .. } = bar.figure;
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{foot}\" text-anchor=\"end\">{}</text>\
             <rect class=\"{}\" x=\"{left}\" y=\"{}\" width=\"{:.1}\" height=\"{}\"/>\
             <line class=\"mark\" x1=\"{:.1}\" y1=\"{middle}\" x2=\"{:.1}\" y2=\"{middle}\"/>\
             <text class=\"small\" x=\"{:.1}\" y=\"{foot}\">{}</text>",
            left - 8,
            escape(&bar.name),
            bar.class,
            top + 4,
            x(median) - f64::from(left),
            ROW - 8,
            x(min),
            x(max),
            figure_at(x(max) + 6.0, bar.written.chars().count(), line),
            escape(&bar.written),
        );
    }
    if one {
        let _ = write!(
            svg,
            "<line class=\"one\" x1=\"{0:.1}\" y1=\"0\" x2=\"{0:.1}\" y2=\"{height}\"/>",
            x(1.0)
        );
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;
    use roxmltree::Document;

    #[test]
    fn the_line_runs_through_no_figure() {
        assert_eq!(figure_at(100.0, 5, 120.0), 126.0);
        assert_eq!(figure_at(100.0, 5, 136.0), 100.0, "it is beyond");
        assert_eq!(figure_at(130.0, 5, 120.0), 130.0, "it is before");
        let near = |median: f64| ChartBar {
            name: "x".into(),
            figure: RoundsFigure { median, min: median, max: median, low: median, high: median },
            written: "0.98x".into(),
            class: "hold",
        };
        let svg = bars("x", &[near(0.98), near(1.4)], true);
        let document = Document::parse(&svg).expect("XML");
        let number = |node: roxmltree::Node<'_, '_>, name: &str| -> f64 {
            node.attribute(name).expect(name).parse().expect("a number")
        };
        let nodes = || document.descendants();
        let line = nodes().find(|n| n.attribute("class") == Some("one")).expect("a line");
        let figure = nodes().find(|n| n.text() == Some("0.98x")).expect("a figure");
        assert!(number(figure, "x") > number(line, "x1"));
    }

    #[test]
    fn no_name_is_cut_off() {
        let name = "the kernel's semaphore of 2005: always sleeps";
        let figure = RoundsFigure { median: 1.0, min: 1.0, max: 1.0, low: 1.0, high: 1.0 };
        let bar = ChartBar { name: name.into(), figure, written: String::new(), class: "hold" };
        let svg = bars("x", &[bar], false);
        let document = Document::parse(&svg).expect("XML");
        let text = document.descendants().find(|n| n.text() == Some(name)).expect("a name");
        let end: f64 = text.attribute("x").expect("a place").parse().expect("a number");
        assert!(end >= name.len() as f64 * 7.6, "{end}");
    }

    #[test]
    fn a_chart_is_xml_with_a_bar_and_a_spread_each() {
        let bar = |name: &str, median: f64| ChartBar {
            name: name.into(),
            figure: RoundsFigure {
                median,
                min: median / 2.0,
                max: median * 2.0,
                low: median,
                high: median,
            },
            written: format!("{median}x"),
            class: "hold",
        };
        let svg = bars("a <chart>", &[bar("<one>", 1.0), bar("two", 2.0)], true);
        let document = Document::parse(&svg).expect("XML");
        let count =
            |tag| document.descendants().filter(|node| node.tag_name().name() == tag).count();
        assert_eq!((count("rect"), count("line"), count("text")), (2, 3, 4));
        assert_eq!(bars("nothing", &[], true), "");
    }
}

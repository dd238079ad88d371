//! The charts of the page: bars with the spread of the rounds across their ends.

use crate::report::{escape, open};
use lockstead_bench::explain::Figure;
use std::fmt::Write;

const WIDTH: u32 = 860;
const ROW: u32 = 26;
/// Where bars begin; names stand left of it.
const NAMES: u32 = 260;
/// Room for the figure behind the longest bar.
const FIGURES: u32 = 110;

/// A bar.
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) figure: Figure,
    /// Written behind the bar.
    pub(super) written: String,
    /// The class of its colour.
    pub(super) class: &'static str,
}

/// Bars below each other; with `one`, a line where the value is 1.
pub(super) fn bars(what: &str, bars: &[Bar], one: bool) -> String {
    let most = bars.iter().map(|bar| bar.figure.max).fold(0.0, f64::max);
    if most <= 0.0 {
        return String::new();
    }
    let height = ROW * bars.len() as u32;
    let mut svg = open(WIDTH, height, what);
    let room = f64::from(WIDTH - NAMES - FIGURES);
    let x = |value: f64| f64::from(NAMES) + (value / most).clamp(0.0, 1.0) * room;
    for (at, bar) in bars.iter().enumerate() {
        let top = ROW * at as u32;
        let (middle, foot) = (top + ROW / 2, top + ROW / 2 + 4);
        let Figure { median, min, max, .. } = bar.figure;
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{foot}\" text-anchor=\"end\">{}</text>\
             <rect class=\"{}\" x=\"{NAMES}\" y=\"{}\" width=\"{:.1}\" height=\"{}\"/>\
             <line class=\"mark\" x1=\"{:.1}\" y1=\"{middle}\" x2=\"{:.1}\" y2=\"{middle}\"/>\
             <text class=\"small\" x=\"{:.1}\" y=\"{foot}\">{}</text>",
            NAMES - 8,
            escape(&bar.name),
            bar.class,
            top + 4,
            x(median) - f64::from(NAMES),
            ROW - 8,
            x(min),
            x(max),
            x(max) + 6.0,
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
    fn a_chart_is_xml_with_a_bar_and_a_spread_each() {
        let bar = |name: &str, median: f64| Bar {
            name: name.into(),
            figure: Figure {
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

//! Pictures: curves over numbers of cores, and the timeline of a lock.

use super::life::{SimDoing, Span};
use crate::html::{escape, open};
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

/// The distance from one line of text to the next.
const LINE: f64 = 15.0;
/// The width of a character.
const LETTER: f64 = 7.0;

/// Moves heights apart until `least` lies between any two, within these limits: as near to where
/// they were as that can be. More than find room stand closer.
fn apart(wanted: &[f64], least: f64, (low, high): (f64, f64)) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let gaps = wanted.len().saturating_sub(1).max(1) as f64;
    let least = least.min((high - low) / gaps);
    let mut places = wanted.to_vec();
    let mut above = low - least;
    for &at in &order {
        places[at] = places[at].max(above + least);
        above = places[at];
    }
    let mut below = high + least;
    for &at in order.iter().rev() {
        places[at] = places[at].min(below - least);
        below = places[at];
    }
    places
}

/// Returns a white picture of this height with its title.
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

/// Draws curves, with cores on a scale of doublings.
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
    let mut free = 0.0;
    for cores in marks {
        let half = cores.to_string().len() as f64 * LETTER / 2.0 + 2.0;
        if x(cores) - half < free {
            continue;
        }
        free = x(cores) + half;
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-family=\"sans-serif\" \
             font-size=\"12\">{cores}</text>",
            x(cores),
            TOP + down + 20.0
        );
    }
    let end = |curve: &Curve| curve.points.last().map_or(TOP, |&(_, value)| y(value));
    let ends: Vec<f64> = curves.iter().map(end).collect();
    let names = apart(&ends, LINE, (TOP, TOP + down));
    for (at, curve) in curves.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        let path: String = curve
            .points
            .iter()
            .map(|&(cores, v)| format!("{:.1},{:.1} ", x(cores), y(v)))
            .collect();
        let _ = write!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\
             <polyline points=\"{:.1},{:.1} {:.1},{:.1}\" fill=\"none\" stroke=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\" font-family=\"sans-serif\" \
             font-size=\"12\">{}</text>",
            path.trim_end(),
            LEFT + across,
            ends[at],
            LEFT + across + 18.0,
            names[at],
            LEFT + across + 22.0,
            names[at] + 4.0,
            escape(&curve.name)
        );
    }
    svg + "</svg>\n"
}

/// Returns a bar for each share, in per cent, with its name.
pub(super) fn bars(title: &str, shares: &[(String, f64)]) -> String {
    let height = 60 + 26 * shares.len() as u32;
    let longest = shares.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let left = 30.0 + longest as f64 * LETTER;
    // The figure of the longest bar stands behind it.
    let across = f64::from(WIDTH) - left - 80.0;
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
            left,
            share / 100.0 * across,
            COLOURS[row % COLOURS.len()],
            left + share / 100.0 * across + 6.0,
            top + 14
        );
    }
    svg + "</svg>\n"
}

/// Returns a row for each task, time from left to right.
pub(super) fn timeline(title: &str, length: f64, spans: &[Span]) -> String {
    let mut tasks: Vec<u32> = spans.iter().map(|span| span.task).collect();
    tasks.sort_unstable();
    tasks.dedup();
    let height = 110 + 26 * tasks.len() as u32;
    let across = f64::from(WIDTH) - LEFT - 30.0;
    let mut svg = begin(height, title);
    for (at, (_, words, colour)) in SimDoing::ALL.iter().enumerate() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use roxmltree::Document;

    fn heights(svg: &str, names: &[&str]) -> Vec<f64> {
        let document = Document::parse(svg).expect("XML");
        let text = |name: &&str| {
            let found = document.descendants().find(|node| node.text() == Some(name));
            found?.attribute("y")?.parse().ok()
        };
        names.iter().map(|name| text(name).unwrap_or_else(|| panic!("{name}: {svg}"))).collect()
    }

    #[test]
    fn names_of_curves_that_end_together_stand_apart() {
        let names = ["present", "lockstead", "queued", "spinning"];
        for last in [[9.0, 9.0, 9.0, 9.0], [0.0, 0.1, 0.0, 0.2], [9.0, 8.9, 0.0, 0.1]] {
            let lines: Vec<Curve> = names
                .iter()
                .zip(last)
                .map(|(name, end)| Curve {
                    name: (*name).into(),
                    points: vec![(1.0, 10.0), (64.0, end)],
                })
                .collect();
            let mut at = heights(&curves("x", &lines), &names);
            assert!(at.iter().all(|y| (0.0..f64::from(HEIGHT)).contains(y)), "{at:?}");
            at.sort_by(f64::total_cmp);
            assert!(at.windows(2).all(|pair| pair[1] - pair[0] > 14.0), "{last:?}: {at:?}");
        }
    }

    #[test]
    fn what_is_apart_stays_where_it_is() {
        assert_eq!(apart(&[10.0, 90.0, 50.0], 15.0, (0.0, 100.0)), [10.0, 90.0, 50.0]);
        assert_eq!(apart(&[98.0, 99.0], 15.0, (0.0, 100.0)), [85.0, 100.0]);
        assert_eq!(apart(&[5.0; 3], 80.0, (0.0, 100.0)), [0.0, 50.0, 100.0]);
    }

    #[test]
    fn bars_begin_behind_the_longest_name() {
        let svg = bars("x", &[("a name of quite some length, in words".into(), 100.0)]);
        let document = Document::parse(&svg).expect("XML");
        let number = |node: roxmltree::Node<'_, '_>, name: &str| -> f64 {
            node.attribute(name).expect(name).parse().expect("a number")
        };
        let bar = document.descendants().filter(|n| n.tag_name().name() == "rect").nth(1);
        let bar = bar.expect("a bar");
        assert!(number(bar, "x") >= 20.0 + 38.0 * LETTER);
        assert!(number(bar, "x") + number(bar, "width") + 60.0 < f64::from(WIDTH));
    }
}

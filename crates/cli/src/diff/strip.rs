//! The single runs of both sides as dots on one line of time, so that noise can be seen.

use lockstead_render::html::{escape, open};
use lockstead_render::table::time;
use std::fmt::Write;

/// The size of a strip, the room at its sides, and where its lanes and its axis lie.
const SIZE: (u32, u32) = (230, 52);
const SIDE: f64 = 8.0;
const LANES: [f64; 2] = [10.0, 26.0];
const AXIS: f64 = 37.0;

/// A side: the files of its runs, their values, and the value in the middle.
type StripSide<'a> = (&'a [String], &'a [u64], f64);

/// Draws the runs before as rings, those after as discs below them, and of both the middle as a line.
pub(super) fn draw(before: StripSide<'_>, after: StripSide<'_>) -> String {
    let all = || before.1.iter().chain(after.1).map(|&ns| ns as f64);
    let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    if !least.is_finite() {
        return String::new();
    }
    // Where the runs are close together the line does not begin at 0, which its ends say.
    let around = 0.1 * (most - least);
    let (from, to) = if least > most / 2.0 && around > 0.0 {
        (least - around, most + around)
    } else {
        (0.0, most)
    };
    let width = f64::from(SIZE.0) - 2.0 * SIDE;
    let place = |ns: f64| SIDE + if to > from { (ns - from) / (to - from) * width } else { 0.0 };
    let values =
        |runs: &[u64]| runs.iter().map(|&ns| time(ns as f64)).collect::<Vec<_>>().join(", ");
    let label = format!("before: {}; after: {}", values(before.1), values(after.1));
    let mut svg = open(SIZE.0, SIZE.1, &label);
    let _ = write!(
        svg,
        "<line class=\"axis\" x1=\"{SIDE}\" y1=\"{AXIS}\" x2=\"{0}\" y2=\"{AXIS}\"/>\
         <text class=\"small\" x=\"{SIDE}\" y=\"{1}\">{2}</text>\
         <text class=\"small\" x=\"{0}\" y=\"{1}\" text-anchor=\"end\">{3}</text>",
        SIDE + width,
        AXIS + 12.0,
        time(from),
        time(to),
    );
    for ((files, runs, middle), (name, y)) in
        [before, after].into_iter().zip(["before", "after"].into_iter().zip(LANES))
    {
        let _ = write!(
            svg,
            "<line class=\"middle\" x1=\"{0:.1}\" y1=\"{1}\" x2=\"{0:.1}\" y2=\"{2}\"/>",
            place(middle),
            y - 8.0,
            y + 8.0,
        );
        for (at, &ns) in runs.iter().enumerate() {
            let _ = write!(
                svg,
                "<circle class=\"{name}\" cx=\"{:.1}\" cy=\"{y}\" r=\"4\"><title>{name}, {}: {}</title></circle>",
                place(ns as f64),
                files.get(at).map(|file| escape(file)).unwrap_or_default(),
                time(ns as f64),
            );
        }
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;
    use roxmltree::Document;

    fn places(before: &[u64], after: &[u64]) -> Vec<(String, f64)> {
        let files: Vec<String> = (0..9).map(|at| format!("<{at}>&\"\x1b")).collect();
        let svg = draw((&files, before, 1.0), (&files, after, 2.0));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        let document = Document::parse(&svg).unwrap_or_else(|why| panic!("{why}: {svg}"));
        let dots = document.descendants().filter(|node| node.tag_name().name() == "circle");
        dots.map(|dot| {
            let x = dot.attribute("cx").and_then(|x| x.parse().ok()).expect("a number");
            (dot.attribute("class").expect("a side").to_owned(), x)
        })
        .collect()
    }

    #[test]
    fn each_run_is_a_dot_in_its_place() {
        let dots = places(&[0, 50], &[100]);
        let middle = f64::from(SIZE.0) / 2.0;
        let wanted = [("before", SIDE), ("before", middle), ("after", f64::from(SIZE.0) - SIDE)];
        assert_eq!(dots, wanted.map(|(side, x)| (side.to_owned(), x)));
        // What is close together is drawn apart.
        let close = places(&[1000, 1010], &[1020]);
        assert!(close[1].1 - close[0].1 > 60.0, "{close:?}");
    }

    #[test]
    fn odd_runs_are_drawn_too() {
        assert_eq!(draw((&[], &[], 0.0), (&[], &[], 0.0)), "");
        for (before, after) in
            [(&[0][..], &[0][..]), (&[7, 7], &[7]), (&[u64::MAX], &[0]), (&[], &[5]), (&[1], &[2])]
        {
            let dots = places(before, after);
            assert_eq!(dots.len(), before.len() + after.len());
            let inside = |(_, x): &(String, f64)| (0.0..=f64::from(SIZE.0)).contains(x);
            assert!(dots.iter().all(inside), "{dots:?}");
        }
    }
}

//! Where boxes and words lie, and by which way arrows go.
//!
//! The words of an arrow are a box of their own between those that it joins, so that they lie on no
//! other; where it is long, it goes through a point in each row between. What leads up, in a cycle, is
//! laid out as if it led down.

use rust_sugiyama::configure::Config;
use rust_sugiyama::from_vertices_and_edges;

/// The height of a box.
pub(super) const HEIGHT: f64 = 26.0;
/// The space between boxes where arrows have words, and where they need more room since they have
/// none.
const SPACE: f64 = 30.0;
/// The width of a point through which an arrow goes.
const POINT: f64 = 6.0;
/// The most points of a picture; where there would be more, long arrows go straight.
const POINTS: usize = 400;

/// An arrow: the boxes that it joins, and the size of its words, if it has any.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaidArrow {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) words: Option<(f64, f64)>,
}

/// The places of boxes, of words, and of the points through which arrows go.
#[derive(Debug)]
pub(super) struct OrderLayout {
    /// The middle of each box.
    pub(super) boxes: Vec<(f64, f64)>,
    /// The points between its two boxes through which each arrow goes; none of one without words.
    pub(super) routes: Vec<Vec<(f64, f64)>>,
    /// The middle of the words of each arrow, which is one of those points.
    pub(super) words: Vec<Option<(f64, f64)>>,
}

/// Lays out boxes of these widths. Parts that have nothing to do with each other lie side by side.
pub(super) fn lay_out(widths: &[f64], arrows: &[LaidArrow]) -> OrderLayout {
    let (down, ranks) = ranks(widths.len(), arrows);
    let mut sizes: Vec<(f64, f64)> = widths.iter().map(|&width| (width, HEIGHT)).collect();
    let rows_between = |arrow: &LaidArrow| ranks[arrow.from].abs_diff(ranks[arrow.to]) - 1;
    let worded = || arrows.iter().filter(|arrow| arrow.words.is_some() && arrow.from != arrow.to);
    let through = worded().map(rows_between).sum::<usize>() <= POINTS;
    let mut edges: Vec<(u32, u32)> = Vec::new();
    let mut chains: Vec<Vec<usize>> = Vec::new();
    for (arrow, &down) in arrows.iter().zip(&down) {
        let mut chain = Vec::new();
        let (top, foot) = if down { (arrow.from, arrow.to) } else { (arrow.to, arrow.from) };
        if let Some(words) = arrow.words.filter(|_| arrow.from != arrow.to) {
            let rows = if through { rows_between(arrow) } else { 1 };
            for row in 0..rows {
                sizes.push(if row == rows / 2 { words } else { (POINT, 1.0) });
                chain.push(sizes.len() - 1);
            }
            let line: Vec<usize> = [&[top], &chain[..], &[foot]].concat();
            edges.extend(line.windows(2).map(|ends| (ends[0] as u32, ends[1] as u32)));
            if !down {
                chain.reverse();
            }
        } else if top != foot {
            edges.push((top as u32, foot as u32));
        }
        chains.push(chain);
    }
    edges.sort_unstable();
    edges.dedup();
    let (places, any_words) = (places(&sizes, &edges), worded().next().is_some());
    // Arrows without words need room between the rows.
    let stretch = if any_words { 1.0 } else { 1.35 };
    let place = |at: usize| (places[at].0, places[at].1 * stretch);
    let is_words = |at: &&usize| sizes[**at].1 > 1.0;
    OrderLayout {
        boxes: (0..widths.len()).map(place).collect(),
        routes: chains.iter().map(|chain| chain.iter().map(|&at| place(at)).collect()).collect(),
        words: chains
            .iter()
            .map(|chain| chain.iter().find(is_words).map(|&at| place(at)))
            .collect(),
    }
}

/// Returns of each arrow whether it leads down, and of each box its row: so far down that all such
/// arrows do, and that there is a row for the words of each.
fn ranks(boxes: usize, arrows: &[LaidArrow]) -> (Vec<bool>, Vec<usize>) {
    let mut leaving: Vec<Vec<usize>> = vec![Vec::new(); boxes];
    let mut is_first = vec![true; boxes];
    for (at, arrow) in arrows.iter().enumerate().filter(|(_, arrow)| arrow.from != arrow.to) {
        leaving[arrow.from].push(at);
        is_first[arrow.to] = false;
    }
    // Depth first: an arrow to a box that is not done yet closes a cycle.
    let (mut entered, mut done) = (vec![false; boxes], vec![false; boxes]);
    let mut down = vec![true; arrows.len()];
    let mut finished = Vec::new();
    let starts =
        (0..boxes).filter(|&at| is_first[at]).chain((0..boxes).filter(|&at| !is_first[at]));
    for start in starts {
        let mut path = vec![(start, 0)];
        if std::mem::replace(&mut entered[start], true) {
            continue;
        }
        while let Some((at, next)) = path.last_mut() {
            let Some(&arrow) = leaving[*at].get(*next) else {
                done[*at] = true;
                finished.push(*at);
                path.pop();
                continue;
            };
            *next += 1;
            let to = arrows[arrow].to;
            if !std::mem::replace(&mut entered[to], true) {
                path.push((to, 0));
            } else if !done[to] {
                down[arrow] = false;
            }
        }
    }
    let mut below: Vec<Vec<(usize, usize)>> = vec![Vec::new(); boxes];
    for (arrow, &down) in arrows.iter().zip(&down).filter(|(arrow, _)| arrow.from != arrow.to) {
        let (top, foot) = if down { (arrow.from, arrow.to) } else { (arrow.to, arrow.from) };
        below[top].push((foot, if arrow.words.is_some() { 2 } else { 1 }));
    }
    let mut ranks = vec![0; boxes];
    for &top in finished.iter().rev() {
        for &(foot, rows) in &below[top] {
            ranks[foot] = ranks[foot].max(ranks[top] + rows);
        }
    }
    (down, ranks)
}

/// Returns the middle of each of these, the least at 0.
fn places(sizes: &[(f64, f64)], edges: &[(u32, u32)]) -> Vec<(f64, f64)> {
    let boxes: Vec<(u32, (f64, f64))> =
        sizes.iter().enumerate().map(|(at, &size)| (at as u32, size)).collect();
    let config = Config { vertex_spacing: SPACE, ..Config::default() };
    let mut places = vec![(0.0, 0.0); sizes.len()];
    let mut left = 0.0;
    for (part, ..) in from_vertices_and_edges(&boxes, edges, &config) {
        let ends = |side: f64| part.iter().map(move |&(at, (x, _))| x + side * sizes[at].0 / 2.0);
        let least = ends(-1.0).fold(f64::INFINITY, f64::min);
        let most = ends(1.0).fold(f64::NEG_INFINITY, f64::max);
        let top = part.iter().map(|(_, (_, y))| *y).fold(f64::INFINITY, f64::min);
        for &(at, (x, y)) in &part {
            places[at] = (x - least + left, y - top);
        }
        left += most - least + SPACE;
    }
    places
}

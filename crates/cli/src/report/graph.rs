//! The order of locks as a picture: who is before whom, from above to below, and
//! the cycles that were found.

use lockstead_inspect::check::order::RecordedOrder;
use lockstead_inspect::report::Finding;
use lockstead_render::html::{escape, open};
use lockstead_render::words::{clean, fit, plural};
use rust_sugiyama::configure::Config;
use rust_sugiyama::from_vertices_and_edges;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

/// The number of locks up to which each has a box of its own; of more, each class has one.
const LOCKS: usize = 40;
/// The most boxes that are drawn.
const BOXES: usize = 60;
/// The most arrows that are drawn besides those of cycles.
const ARROWS: usize = 300;
/// The most characters of a name.
const NAME: usize = 40;
/// The size of a box, but for its text, and of a character.
const HEIGHT: f64 = 26.0;
const PADDING: f64 = 18.0;
const LETTER: f64 = 7.4;
const SPACE: f64 = 34.0;
const MARGIN: f64 = 30.0;

/// The picture, and what is not in it.
pub(super) struct Drawing {
    /// The picture as SVG.
    pub(super) svg: String,
    /// The words for what was not drawn, if anything was not.
    pub(super) left_out: Option<String>,
}

/// The boxes by name, and arrows between them.
#[derive(Default)]
struct OrderPicture {
    names: Vec<String>,
    /// How many locks a box stands for.
    locks: Vec<BTreeSet<usize>>,
    arrows: BTreeMap<(usize, usize), Arrow>,
}

#[derive(Default)]
struct Arrow {
    in_cycle: bool,
    who: String,
}

/// Draws the order of a process. Returns nothing if there is none.
pub(super) fn draw(order: &RecordedOrder, findings: &[&Finding]) -> Option<Drawing> {
    let mut graph = OrderPicture::of(order, findings);
    if graph.arrows.is_empty() {
        return None;
    }
    let (boxes, arrows) = (graph.names.len(), graph.arrows.len());
    graph.shrink();
    let places = graph.places();
    let mut left_out = Vec::new();
    if graph.names.len() < boxes {
        let count = (boxes - graph.names.len()) as u64;
        left_out.push(plural(count, "further lock or class", "further locks or classes"));
    }
    if graph.arrows.len() < arrows {
        let count = (arrows - graph.arrows.len()) as u64;
        left_out.push(plural(count, "further order", "further orders"));
    }
    if order.left_out != 0 {
        left_out.push(plural(order.left_out, "unrecorded order", "unrecorded orders"));
    }
    let left_out = (!left_out.is_empty())
        .then(|| format!("Not drawn: {}. What is nearest to a cycle is.", left_out.join(", ")));
    Some(Drawing { svg: graph.svg(&places), left_out })
}

impl OrderPicture {
    fn of(order: &RecordedOrder, findings: &[&Finding]) -> OrderPicture {
        let single = order.locks.len() <= LOCKS;
        let name = |lock: &lockstead_inspect::check::model::LockIdentity| {
            if single || lock.class.is_empty() { lock.name.clone() } else { lock.class.clone() }
        };
        let mut graph = OrderPicture::default();
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut add = |graph: &mut OrderPicture, text: String| {
            *known.entry(text).or_insert_with_key(|text| {
                graph.names.push(text.clone());
                graph.locks.push(BTreeSet::new());
                graph.names.len() - 1
            })
        };
        for edge in &order.edges {
            let (Some(from), Some(to)) = (order.locks.get(edge.from), order.locks.get(edge.to))
            else {
                continue;
            };
            let ends = [(from, edge.from), (to, edge.to)].map(|(lock, at)| {
                let place = add(&mut graph, name(lock));
                graph.locks[place].insert(at);
                place
            });
            let arrow = graph.arrows.entry((ends[0], ends[1])).or_default();
            if arrow.who.is_empty() {
                let thread = order.threads.get(edge.thread);
                arrow.who = thread.map_or(String::new(), crate::finding_text::called);
            }
        }
        let cycles = findings.iter().filter_map(|finding| finding.details.order.as_ref());
        for step in cycles.flat_map(|cycle| &cycle.steps) {
            let ends = [&step.holds, &step.asks].map(|lock| add(&mut graph, name(lock)));
            let arrow = graph.arrows.entry((ends[0], ends[1])).or_default();
            arrow.in_cycle = true;
            arrow.who = crate::finding_text::called(&step.thread);
        }
        graph
    }

    /// Keeps what can be read: cycles, what is next to them, and what has most
    /// arrows.
    fn shrink(&mut self) {
        let mut weight = vec![0_usize; self.names.len()];
        for (&(from, to), arrow) in &self.arrows {
            let more = if arrow.in_cycle { 1_000_000 } else { 1 };
            weight[from] += more;
            weight[to] += more;
        }
        let near: BTreeSet<usize> = self
            .arrows
            .keys()
            .flat_map(|&(from, to)| [(from, to), (to, from)])
            .filter(|&(cycle, _)| weight[cycle] >= 1_000_000)
            .map(|(_, beside)| beside)
            .collect();
        for beside in near {
            weight[beside] += 1000;
        }
        let mut kept: Vec<usize> = (0..self.names.len()).collect();
        kept.sort_by_key(|&at| (std::cmp::Reverse(weight[at]), at));
        kept.truncate(BOXES);
        let new: HashMap<usize, usize> =
            kept.iter().enumerate().map(|(new, &old)| (old, new)).collect();
        self.names = kept.iter().map(|&old| std::mem::take(&mut self.names[old])).collect();
        self.locks = kept.iter().map(|&old| std::mem::take(&mut self.locks[old])).collect();
        let mut arrows: Vec<((usize, usize), Arrow)> = std::mem::take(&mut self.arrows)
            .into_iter()
            .filter_map(|((from, to), arrow)| Some(((*new.get(&from)?, *new.get(&to)?), arrow)))
            .collect();
        arrows.sort_by_key(|((from, to), arrow)| {
            (!arrow.in_cycle, std::cmp::Reverse(weight[kept[*from]] + weight[kept[*to]]))
        });
        let cycles = arrows.iter().filter(|(_, arrow)| arrow.in_cycle).count();
        arrows.truncate(ARROWS.max(cycles));
        self.arrows = arrows.into_iter().collect();
    }

    fn label(&self, at: usize) -> String {
        let name = fit(&clean(&self.names[at]), NAME);
        match self.locks[at].len() {
            0 | 1 => name,
            count => format!("{name} ×{count}"),
        }
    }

    fn width(&self, at: usize) -> f64 {
        self.label(at).chars().count() as f64 * LETTER + PADDING
    }

    /// Returns the middle of each box; parts that have nothing to do with each other lie side by
    /// side.
    fn places(&self) -> Vec<(f64, f64)> {
        let boxes: Vec<(u32, (f64, f64))> =
            (0..self.names.len()).map(|at| (at as u32, (self.width(at), HEIGHT))).collect();
        let arrows: Vec<(u32, u32)> = self
            .arrows
            .keys()
            .filter(|(from, to)| from != to)
            // Both ways at once say nothing about what is above.
            .filter(|&&(from, to)| from < to || !self.arrows.contains_key(&(to, from)))
            .map(|&(from, to)| (from as u32, to as u32))
            .collect();
        let config = Config { vertex_spacing: SPACE, ..Config::default() };
        let mut places = vec![(0.0, 0.0); self.names.len()];
        let mut left = 0.0;
        for (part, ..) in from_vertices_and_edges(&boxes, &arrows, &config) {
            let ends =
                |side: f64| part.iter().map(move |&(at, (x, _))| x + side * self.width(at) / 2.0);
            let least = ends(-1.0).fold(f64::INFINITY, f64::min);
            let most = ends(1.0).fold(f64::NEG_INFINITY, f64::max);
            let top = part.iter().map(|(_, (_, y))| *y).fold(f64::INFINITY, f64::min);
            for &(at, (x, y)) in &part {
                // The arrows need room between the rows.
                places[at] = (x - least + left, (y - top) * 1.35);
            }
            left += most - least + SPACE;
        }
        places
    }

    fn svg(&self, places: &[(f64, f64)]) -> String {
        let right = (0..places.len()).map(|at| places[at].0 + self.width(at) / 2.0);
        let width = right.fold(0.0, f64::max) + 2.0 * MARGIN;
        let height = places.iter().map(|place| place.1).fold(0.0, f64::max) + HEIGHT + 2.0 * MARGIN;
        let place = |at: usize| (places[at].0 + MARGIN, places[at].1 + MARGIN + HEIGHT / 2.0);
        let mut svg =
            open(width.ceil() as u32, height.ceil() as u32, "the order in which locks are taken");
        // Those of cycles lie above the others, and the boxes above all.
        for cycle in [false, true] {
            for (&(from, to), arrow) in &self.arrows {
                if arrow.in_cycle == cycle {
                    self.arrow(&mut svg, (from, place(from)), (to, place(to)), arrow);
                }
            }
        }
        let in_cycle: BTreeSet<usize> = self
            .arrows
            .iter()
            .filter(|(_, arrow)| arrow.in_cycle)
            .flat_map(|(&(from, to), _)| [from, to])
            .collect();
        for at in 0..self.names.len() {
            let ((x, y), width) = (place(at), self.width(at));
            let class = if in_cycle.contains(&at) { "lock cycle" } else { "lock" };
            let _ = write!(
                svg,
                "<g><title>{}</title><rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" \
                 width=\"{width:.1}\" height=\"{HEIGHT}\" rx=\"4\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text></g>",
                escape(&self.names[at]),
                x - width / 2.0,
                y - HEIGHT / 2.0,
                y + 4.5,
                escape(&self.label(at)),
            );
        }
        svg + "</svg>"
    }

    /// Draws an arrow that bends to its right, so that two in opposite directions part.
    fn arrow(
        &self,
        svg: &mut String,
        (from, (x1, y1)): (usize, (f64, f64)),
        (to, (x2, y2)): (usize, (f64, f64)),
        arrow: &Arrow,
    ) {
        let class = if arrow.in_cycle { "cycle" } else { "order" };
        let title = format!("{} → {}: {}", self.names[from], self.names[to], arrow.who);
        let (path, tip, back) = if from == to {
            let side = x1 + self.width(from) / 2.0;
            let path = format!(
                "M{:.1} {:.1} C{:.1} {:.1} {:.1} {:.1} {side:.1} {:.1}",
                side - 6.0,
                y1 - HEIGHT / 2.0,
                side + 4.0,
                y1 - HEIGHT - 8.0,
                side + 30.0,
                y1 - 4.0,
                y1
            );
            (path, (side, y1), (side + 16.0, y1 - 5.0))
        } else {
            let (dx, dy) = (x2 - x1, y2 - y1);
            let long = length(dx, dy).max(1.0);
            let bend = (long * 0.12).clamp(12.0, 60.0);
            let middle = ((x1 + x2) / 2.0 - dy / long * bend, (y1 + y2) / 2.0 + dx / long * bend);
            let start = self.border(from, (x1, y1), middle);
            let tip = self.border(to, (x2, y2), middle);
            let path = format!(
                "M{:.1} {:.1} Q{:.1} {:.1} {:.1} {:.1}",
                start.0, start.1, middle.0, middle.1, tip.0, tip.1
            );
            (path, tip, middle)
        };
        let (dx, dy) = (tip.0 - back.0, tip.1 - back.1);
        let long = length(dx, dy).max(0.1);
        let (ux, uy) = (dx / long * 8.0, dy / long * 8.0);
        let _ = write!(
            svg,
            "<g><title>{}</title><path class=\"{class}\" d=\"{path}\"/>\
             <polygon class=\"{class}\" points=\"{:.1},{:.1} {:.1},{:.1} {:.1},{:.1}\"/></g>",
            escape(&title),
            tip.0,
            tip.1,
            tip.0 - ux - uy / 2.2,
            tip.1 - uy + ux / 2.2,
            tip.0 - ux + uy / 2.2,
            tip.1 - uy - ux / 2.2,
        );
    }

    /// Returns where the line from the middle of a box to a point leaves the box.
    fn border(&self, at: usize, (x, y): (f64, f64), to: (f64, f64)) -> (f64, f64) {
        let (dx, dy) = (to.0 - x, to.1 - y);
        let across = self.width(at) / 2.0 / dx.abs().max(0.01);
        let down = HEIGHT / 2.0 / dy.abs().max(0.01);
        let part = across.min(down).min(1.0);
        (x + dx * part, y + dy * part)
    }
}

/// Returns the length of a line. It does not use `hypot`, which would bind the command to glibc
/// 2.35 where that is what it is built with.
fn length(dx: f64, dy: f64) -> f64 {
    (dx * dx + dy * dy).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::{self, NASTY};
    use lockstead_inspect::check::model::LockIdentity;
    use lockstead_inspect::check::order::RecordedEdge;
    use roxmltree::Document;

    fn order(locks: usize, pairs: impl IntoIterator<Item = (usize, usize)>) -> RecordedOrder {
        let lock = |at: usize| LockIdentity {
            name: format!("lock_{at}"),
            class: format!("class_{}", at % 100),
            ..LockIdentity::default()
        };
        let edge = |(from, to)| RecordedEdge { from, to, ..RecordedEdge::default() };
        RecordedOrder {
            locks: (0..locks).map(lock).collect(),
            edges: pairs.into_iter().map(edge).collect(),
            ..RecordedOrder::default()
        }
    }

    fn count(svg: &str, class: &str) -> usize {
        let document = Document::parse(svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
        let nodes = document.descendants();
        nodes.filter(|node| node.attribute("class") == Some(class)).count()
    }

    #[test]
    fn a_cycle_stands_out_and_names_are_harmless() {
        let mut two = order(3, [(0, 1), (1, 0), (1, 2)]);
        two.locks[2].name = NASTY.into();
        let drawing = draw(&two, &[&sample::inversion("lock_0", "lock_1")]).expect("a picture");
        assert_eq!(count(&drawing.svg, "lock cycle"), 2);
        assert_eq!(count(&drawing.svg, "lock"), 1);
        // A line and its tip each.
        assert_eq!((count(&drawing.svg, "cycle"), count(&drawing.svg, "order")), (4, 2));
        assert!(drawing.left_out.is_none() && !drawing.svg.contains("Map<int>"));
        assert!(draw(&order(2, []), &[]).is_none());
    }

    #[test]
    fn boxes_do_not_lie_on_each_other() {
        for pairs in [
            (0..30).map(|at| (at % 7, at % 11)).collect::<Vec<_>>(),
            (0..12).map(|at| (at, (at + 1) % 12)).collect(),
            (1..20).map(|at| (0, at)).collect(),
            vec![(0, 0)],
            vec![(0, 1), (2, 3), (4, 5)],
        ] {
            let graph = OrderPicture::of(&order(30, pairs.clone()), &[]);
            let places = graph.places();
            for one in 0..places.len() {
                for other in 0..one {
                    let apart = (places[one].0 - places[other].0).abs()
                        >= (graph.width(one) + graph.width(other)) / 2.0
                        || (places[one].1 - places[other].1).abs() >= HEIGHT;
                    assert!(apart, "{one} and {other} of {pairs:?}: {places:?}");
                }
            }
        }
    }

    #[test]
    fn of_many_locks_the_cycles_are_left() {
        let pairs = (0..5000).map(|at| (at, (at * 7 + 1) % 5000));
        let many = order(5000, pairs);
        let drawing = draw(&many, &[&sample::inversion("x", "y")]).expect("a picture");
        assert_eq!(count(&drawing.svg, "lock cycle"), 2);
        assert_eq!(count(&drawing.svg, "lock") + 2, BOXES);
        assert!(count(&drawing.svg, "order") <= 2 * ARROWS);
        let left = drawing.left_out.expect("much");
        assert!(left.contains("42 further locks or classes"), "{left}");
    }

    #[test]
    fn any_graph_can_be_drawn() {
        let mut state = 7_u64;
        let mut any = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        for _ in 0..200 {
            let locks = any(25) + 1;
            let pairs: Vec<_> = (0..any(60) + 1).map(|_| (any(locks), any(locks))).collect();
            let drawing = draw(&order(locks, pairs.clone()), &[]).expect("a picture");
            assert!(!drawing.svg.contains("NaN") && !drawing.svg.contains("inf"), "{pairs:?}");
        }
    }
}

//! The order of locks as a picture: who is before whom, from above to below, where each was asked for
//! under the other, and the cycles that were found; and the same as a table.
//!
//! ```text
//! order, cycles ─▶ boxes and arrows ─▶ those that can be read ─▶ layout: places, routes ─▶ drawing
//!                                                             └▶ rows: one for each arrow
//! ```

mod drawing;
mod layout;
mod witness;

use drawing::draw_picture;
use lockstead_inspect::check::model::LockIdentity;
use lockstead_inspect::check::order::RecordedOrder;
use lockstead_inspect::report::Finding;
use lockstead_render::words::{brief, clean, fit, plural};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use witness::OrderWitness;

/// The number of locks up to which each has a box of its own; of more, each class has one.
const LOCKS: usize = 40;
/// The most boxes that are drawn.
const BOXES: usize = 60;
/// The most arrows that are drawn besides those of cycles.
const ARROWS: usize = 300;
/// The number of arrows up to which all have words; of more, only those of cycles, and of these so
/// many.
const WORDED: usize = 14;
const WORDED_OF_CYCLES: usize = 24;
/// The most characters of a name.
const NAME: usize = 40;

/// The picture, its arrows as rows of a table, and what is in neither.
pub(super) struct Drawing {
    /// The picture as SVG.
    pub(super) svg: String,
    /// The arrows, those of cycles first.
    pub(super) rows: Vec<OrderRow>,
    /// Whether the arrows without a number have no words.
    pub(super) bare: bool,
    /// The words for what was not drawn, if anything was not.
    pub(super) left_out: Option<String>,
}

/// An arrow in words.
pub(super) struct OrderRow {
    /// Its number in the picture; empty of one that has none there.
    pub(super) number: String,
    pub(super) in_cycle: bool,
    pub(super) held: String,
    pub(super) asked: String,
    pub(super) witness: OrderWitness,
    /// How many further pairs of locks the arrow stands for, in words.
    pub(super) more: String,
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
    /// The number of an arrow that has words.
    number: Option<usize>,
    /// The thread that was first seen to do so; of a cycle, the one that did it there.
    witness: OrderWitness,
    /// The pairs of locks.
    pairs: BTreeSet<(usize, usize)>,
}

/// Draws the order of a process. Returns nothing if there is none.
pub(super) fn draw(order: &RecordedOrder, findings: &[&Finding]) -> Option<Drawing> {
    let mut graph = OrderPicture::of(order, findings);
    if graph.arrows.is_empty() {
        return None;
    }
    let (boxes, arrows) = (graph.names.len(), graph.arrows.len());
    graph.shrink();
    graph.number();
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
    Some(Drawing {
        svg: draw_picture(&graph),
        bare: graph.arrows.values().any(|arrow| arrow.number.is_none()),
        rows: graph.rows(),
        left_out,
    })
}

impl OrderPicture {
    fn of(order: &RecordedOrder, findings: &[&Finding]) -> OrderPicture {
        let single = order.locks.len() <= LOCKS;
        let name = |lock: &LockIdentity| {
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
            if arrow.pairs.is_empty() {
                arrow.witness = OrderWitness::of_edge(order, edge);
            }
            arrow.pairs.insert((edge.from, edge.to));
        }
        let cycles = findings.iter().filter_map(|finding| finding.details.order.as_ref());
        for step in cycles.flat_map(|cycle| &cycle.steps) {
            let ends = [&step.holds, &step.asks].map(|lock| add(&mut graph, name(lock)));
            let arrow = graph.arrows.entry((ends[0], ends[1])).or_default();
            if !arrow.in_cycle {
                arrow.witness = OrderWitness::of_step(step);
            }
            arrow.in_cycle = true;
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

    /// Gives numbers to the arrows that have words, those of cycles first.
    fn number(&mut self) {
        let all = self.arrows.len() <= WORDED;
        let mut next = 0;
        for cycle in [true, false] {
            for arrow in self.arrows.values_mut().filter(|arrow| arrow.in_cycle == cycle) {
                if all || cycle && next < WORDED_OF_CYCLES {
                    next += 1;
                    arrow.number = Some(next);
                }
            }
        }
    }

    /// Returns the arrows in words.
    fn rows(self) -> Vec<OrderRow> {
        let OrderPicture { names, arrows, .. } = self;
        let row = |((from, to), arrow): ((usize, usize), Arrow)| OrderRow {
            number: arrow.number.map_or_else(String::new, |number| number.to_string()),
            in_cycle: arrow.in_cycle,
            held: brief(&names[from]),
            asked: brief(&names[to]),
            witness: arrow.witness,
            more: match arrow.pairs.len().saturating_sub(1) as u64 {
                0 => String::new(),
                more => plural(more, "further pair of locks", "further pairs of locks"),
            },
        };
        let mut rows: Vec<(Option<usize>, OrderRow)> =
            arrows.into_iter().map(|(ends, arrow)| (arrow.number, row((ends, arrow)))).collect();
        rows.sort_by_key(|(number, row)| (!row.in_cycle, number.unwrap_or(usize::MAX)));
        rows.into_iter().map(|(_, row)| row).collect()
    }

    fn label(&self, at: usize) -> String {
        let name = fit(&clean(&self.names[at]), NAME);
        match self.locks[at].len() {
            0 | 1 => name,
            count => format!("{name} ×{count}"),
        }
    }
}

#[cfg(test)]
mod tests;

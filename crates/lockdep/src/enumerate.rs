//! Looks at cycle after cycle, by length, for one that its witnesses prove.
//!
//! # Role
//! The search for the shortest way knows no more of a way than its last node.
//! That threads are different, that no two hold the same gate, and that no lock
//! comes twice are facts about a whole cycle. If the shortest cycle does not have
//! them, a longer one may: here cycles are built edge by edge and witness by
//! witness, with the distance to the end as a guide, the shortest first.
//!
//! # Progress
//! The number of cycles may be exponential: there is a budget.

use crate::cycle::{Demands, NetFacts, WitnessGroup};
use crate::kinds::{Kinds, asked, held, waits};
use crate::net::{ArcDirection, NONE, Net, state};
use crate::search::{Question, SearchAnswer};
use crate::seen::ArcWitness;
use crate::sets::HeldLock;
use alloc::vec;
use hashbrown::HashSet;

/// How many witnesses are looked at, at most.
const MOST: usize = 1 << 14;

/// The edge that the cycle goes through, with the witness that is given for it.
pub(crate) struct Fixed<'a, L> {
    pub(crate) arc: u32,
    pub(crate) seen: &'a ArcWitness<L>,
}

/// The cycles that are looked for.
pub(crate) struct Aim {
    pub(crate) question: Question,
    /// How many arcs the cycle has beside the fixed one, at least.
    pub(crate) length: usize,
    pub(crate) demands: Demands,
}

/// One edge of the cycle being built.
struct CycleFrame<L> {
    /// The arc that is looked at, and the one after it.
    arc: u32,
    next: u32,
    /// The number of the witness that is next.
    turn: usize,
    /// The witness that was let in.
    chosen: Option<ArcWitness<L>>,
}

/// Looks for the shortest cycle of different locks through the edge that is what is looked for.
/// Returns the other arcs.
pub(crate) fn cycle<L: Copy>(
    net: &mut Net,
    fixed: &Fixed<'_, L>,
    aim: &Aim,
    facts: &NetFacts<'_, L>,
    usable: impl Fn(&Net, u32) -> Kinds,
    lock: impl Fn(u32) -> HeldLock,
) -> SearchAnswer {
    let Aim { question, mut length, demands } = *aim;
    let (distances, others) = net.distances(&question, &usable);
    let holding = |arc: u32, net: &Net| lock(net.arcs[arc as usize].from);
    let mut party = WitnessGroup::default();
    let first = holding(fixed.arc, net);
    if !party.admit(fixed.seen, &first, facts.sets, demands) {
        return SearchAnswer::None;
    }
    let most = MOST.min(net.credit()).min(question.budget);
    let mut budget = most;
    let mut on_cycle: HashSet<u32> = HashSet::new();
    loop {
        // Whether a longer cycle could be another one.
        let mut too_far = false;
        on_cycle.clear();
        on_cycle.insert(question.start);
        let mut frames = vec![frame(net, question.start)];
        while let Some(depth) = frames.len().checked_sub(1) {
            let top = &mut frames[depth];
            if let Some(seen) = top.chosen.take() {
                // Came back: another witness for the same arc, or another arc.
                party.dismiss(&seen, &holding(top.arc, net), facts.sets, demands);
                on_cycle.remove(&net.arcs[top.arc as usize].to);
            }
            if top.arc == NONE {
                frames.pop();
                continue;
            }
            if budget == 0 {
                net.spend(most);
                return SearchAnswer::Cut;
            }
            budget -= 1;
            let arc = top.arc;
            let turn = top.turn;
            let Some(seen) = facts.witnesses.of(arc).nth(turn) else {
                top.arc = top.next;
                top.turn = 0;
                if top.arc != NONE {
                    top.next = net.after(top.arc, ArcDirection::Forth);
                }
                continue;
            };
            top.turn += 1;
            let node = net.arcs[arc as usize].to;
            let ends = node == question.goal;
            if usable(net, arc).is_empty() || on_cycle.contains(&node) {
                top.turn = usize::MAX;
                continue;
            }
            let away = match net.seen(state(node, 0), ArcDirection::Back) {
                NONE if others == u32::MAX => {
                    top.turn = usize::MAX;
                    continue;
                }
                NONE => others,
                slot => distances[slot as usize],
            };
            if depth + 1 + away as usize > length {
                too_far = true;
                top.turn = usize::MAX;
                continue;
            }
            let arrived = match depth.checked_sub(1).and_then(|before| frames[before].chosen) {
                Some(before) => asked(before.asks()),
                None => question.asked,
            };
            let strong = waits(arrived, held(seen.holds()))
                && (!ends || waits(asked(seen.asks()), question.held));
            // A shorter one would have been found before.
            let right = !ends || depth + 1 == length;
            if !strong || !right {
                continue;
            }
            if !party.admit(seen, &holding(arc, net), facts.sets, demands) {
                continue;
            }
            frames[depth].chosen = Some(*seen);
            if ends {
                net.spend(most - budget);
                return SearchAnswer::Way(frames.iter().map(|frame| frame.arc).collect());
            }
            on_cycle.insert(node);
            frames.push(frame(net, node));
        }
        if !too_far {
            net.spend(most - budget);
            return SearchAnswer::None;
        }
        length += 1;
    }
}

/// Returns a frame at the first of the edges out of a node.
fn frame<L>(net: &Net, node: u32) -> CycleFrame<L> {
    let arc = net.first(node, ArcDirection::Forth);
    let next = if arc == NONE { NONE } else { net.after(arc, ArcDirection::Forth) };
    CycleFrame { arc, next, turn: 0, chosen: None }
}

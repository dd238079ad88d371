//! An order of all states, kept up to date, that rules out most cycles at once.
//!
//! # Role
//! Whether a new arc closes a cycle is a question that all but never has the
//! answer yes. Each state has a place, a number; where the arc leads from a
//! lower to a higher place, nothing needs to be searched.
//!
//! # Invariant
//! - **ORDER-UPWARD** No step leads from a state that is awake to one with a lower place.
//!
//! So a way from `b` to `a` stays between the places of the two, and if `a` is
//! below `b` there is none. States on a cycle have the same place. Others may
//! have the same place too: it is then not known which comes first, and a step
//! between them is searched for.
//!
//! # Protocol
//! A new step `a` → `b` that leads down or stays level is searched for a way
//! back: from `b` along the arcs and from `a` against them in turns, both only
//! between the two places, until one side is complete. That is the side that is
//! cheaper to search, and it is moved past the other: what can be reached from
//! `b` is spread out above `a`, or what reaches `a` below `b`, each cycle of it in
//! one place. Places are 2^40 apart at first; where room has become too narrow, a
//! side is laid flat on one place.
//!
//! # Cost
//! Constant where the arc agrees with the order, or where one of its ends has no
//! other arcs. A search that costs more than there is credit for ([`PATIENCE`] steps
//! and what new arcs have saved up, [`SAVED`] each) is given up: all places
//! between the two ends count as one from then on, a *flat* interval, in which
//! nothing is known. When there is credit for it, or when searches have cost many
//! times as much, everything is ordered anew: exactly, without flat intervals, and
//! without the cycles that are gone.
//!
//! # Source
//! Two-way search as in Bender, Fineman, Gilbert, Tarjan, "A new approach to
//! incremental cycle detection and related problems"; the places with gaps, flat
//! ones and cycles that stay are ours.

use crate::kinds::{Kinds, NORMAL, RECURSIVE};
use crate::net::{ArcDirection, NONE, NeighbourWalk, Net, NetNode, WalkStep, node_of, state};
use alloc::vec;
use alloc::vec::Vec;

/// How far apart places are if there is room.
const GAP: i64 = 1 << 40;
/// The bound of places, on both sides of zero.
const FAR: i64 = 1 << 62;

/// How many steps a search may take in any case.
pub(crate) const PATIENCE: usize = 1 << 8;
/// How many it takes at most to tell states in one place apart.
const GLANCE: usize = 1 << 6;
/// How many steps a new arc saves up for searches that take more.
const SAVED: usize = 1 << 8;
/// How many it saves up where an eighth of all is on cycles: the order cannot say much there.
const SAVED_TANGLED: usize = 1 << 5;
/// The steps that are saved up at first.
pub(crate) const FIRST_CREDIT: usize = 1 << 22;

/// One side of a search.
struct OrderSide {
    way: ArcDirection,
    queue: Vec<u32>,
    head: usize,
    walk: NeighbourWalk,
    /// The place beyond which no state is looked at.
    limit: i64,
    /// The nearest place beyond it that was met.
    beyond: Option<i64>,
}

impl Net {
    /// Gives an arc a further kind. Returns `false` if no cycle leads through the arc.
    pub(crate) fn grow(&mut self, arc: u32, kind: Kinds) -> bool {
        let this = &mut self.arcs[arc as usize];
        let (from, to, old) = (this.from, this.to, this.kinds);
        this.kinds = old.with(kind);
        let new = this.kinds;
        for arrived in [NORMAL, RECURSIVE] {
            if arrived == RECURSIVE && !self.nodes[from as usize].recursive {
                continue;
            }
            match new.forth(arrived) {
                Some(there) if old.forth(arrived) != Some(there) => {
                    if there == RECURSIVE {
                        self.wake(to);
                    }
                    self.put_before(state(from, arrived), state(to, there));
                }
                _ => {}
            }
        }
        self.perhaps_order_anew();
        self.level(arc)
    }

    /// Orders all states from scratch if that pays.
    fn perhaps_order_anew(&mut self) {
        let all = self.nodes.len() + self.len();
        // What had to be done again soon will have to be done again.
        let price = all << (2 + self.again);
        let saved = if self.tangled { SAVED_TANGLED } else { SAVED };
        self.credit = (self.credit + saved).min(FIRST_CREDIT.max(2 * price));
        let paid = (self.narrow || !self.flat.is_empty()) && self.credit > price;
        if paid {
            self.credit -= price;
        }
        if paid || self.work > 16 * all + (1 << 16) {
            let soon = all < self.ordered + self.ordered / 4;
            self.again = if soon { (self.again + 1).min(8) } else { 0 };
            self.ordered = all;
            self.order_anew();
        }
    }

    /// Returns whether an arc does not lead upwards: `false` if no cycle leads through it.
    pub(crate) fn level(&self, arc: u32) -> bool {
        self.levels(arc).iter().any(Option::is_some)
    }

    /// Returns the places in which an arc does not lead upwards, by how it is arrived at its
    /// beginning. All of a cycle through it is in one of them.
    pub(crate) fn levels(&self, arc: u32) -> [Option<(i64, i64)>; 2] {
        let arc = &self.arcs[arc as usize];
        let from = &self.nodes[arc.from as usize];
        [NORMAL, RECURSIVE].map(|arrived| {
            if arrived == RECURSIVE && !from.recursive {
                return None;
            }
            let there = arc.kinds.forth(arrived)?;
            let here = self.interval(from.places[arrived as usize]);
            let there = self.interval(self.place(state(arc.to, there)));
            (here.1 >= there.0).then_some((there.0.min(here.0), here.1.max(there.1)))
        })
    }

    /// Returns what cannot be told from a place: itself, or its flat interval.
    fn interval(&self, place: i64) -> (i64, i64) {
        match self.flat.range(..=place).next_back() {
            Some((&low, &high)) if place <= high => (low, high),
            _ => (place, place),
        }
    }

    /// Gives the order of these places up: from now on nothing is known about it.
    fn flatten(&mut self, mut low: i64, mut high: i64) {
        while let Some((&from, &to)) = self.flat.range(..=high).next_back()
            && to >= low
        {
            self.flat.remove(&from);
            (low, high) = (low.min(from), high.max(to));
        }
        self.flat.insert(low, high);
    }

    /// Returns how many steps a search may take.
    pub(crate) fn credit(&self) -> usize {
        self.patience + self.credit
    }

    /// Notes that a search took so many steps.
    pub(crate) fn spend(&mut self, steps: usize) {
        self.work += steps;
        self.spent = self.spent.wrapping_add(steps);
        self.credit = self.credit.saturating_sub(steps.saturating_sub(self.patience));
    }

    /// Notes that a walk arrives at `node` recursively, and from there perhaps at others.
    pub(crate) fn wake(&mut self, node: u32) {
        if self.nodes[node as usize].recursive {
            return;
        }
        self.nodes[node as usize].recursive = true;
        let mut woken = vec![state(node, RECURSIVE)];
        let mut head = 0;
        while head < woken.len() {
            for next in self.all_from(woken[head]) {
                let node = &mut self.nodes[node_of(next) as usize];
                if next % 2 == RECURSIVE && !node.recursive {
                    node.recursive = true;
                    woken.push(next);
                }
            }
            head += 1;
        }
        for &state in woken.iter().rev() {
            let lowest = self.all_from(state).iter().map(|&next| self.place(next)).min();
            let own = self.place(node_of(state) * 2);
            self.set_place(state, lowest.map_or(own, |lowest| lowest - GAP));
        }
        for &state in &woken {
            for next in self.all_from(state) {
                self.put_before(state, next);
            }
        }
    }

    /// Returns the states to which one step leads from a state.
    pub(crate) fn all_from(&self, state: u32) -> Vec<u32> {
        let mut all = Vec::new();
        let mut walk = self.walk(state, ArcDirection::Forth);
        loop {
            match self.step(&mut walk, ArcDirection::Forth) {
                WalkStep::End => return all,
                WalkStep::Blind => {}
                WalkStep::To(next) => all.push(next),
            }
        }
    }

    /// Restores ORDER-UPWARD after a step from `a` to `b` has come.
    fn put_before(&mut self, a: u32, b: u32) {
        let ((from, high), (low, to)) =
            (self.interval(self.place(a)), self.interval(self.place(b)));
        if high < low {
            return;
        }
        if self.first(node_of(b), ArcDirection::Forth) == NONE {
            self.set_place(b, high + GAP);
        } else if self.first(node_of(a), ArcDirection::Back) == NONE {
            self.set_place(a, low - GAP);
        } else if from != low || from == high {
            self.search_both_ways(a, b, (low, high), from == low);
        }
        debug_assert!(from != low || to == high);
        if self.place(a) < -FAR || self.place(b) > FAR {
            self.order_anew();
        }
    }

    /// Searches from both ends of a step that does not lead upwards, and moves the side that is
    /// complete first. `level` if both ends are in one place, where they may well stay: then it is
    /// only tried to tell them apart.
    fn search_both_ways(&mut self, a: u32, b: u32, (low, high): (i64, i64), level: bool) {
        self.begin_search();
        let side = |net: &mut Net, way, start, limit| {
            *net.slot(start, way) = 0;
            let walk = net.walk(start, way);
            OrderSide { way, queue: vec![start], head: 0, walk, limit, beyond: None }
        };
        let mut forth = side(self, ArcDirection::Forth, b, high);
        let mut back = side(self, ArcDirection::Back, a, low);
        // Not all at once: what follows may need it more.
        let most = self.patience + self.credit / 2;
        let credit = if level { GLANCE.min(most) } else { most };
        let mut steps = 0;
        loop {
            let mut met = false;
            if !self.advance(&mut forth, &mut met) {
                self.spread(&forth, a, high);
                break;
            }
            if !self.advance(&mut back, &mut met) {
                self.spread(&back, b, low);
                break;
            }
            steps += 2;
            if met && level {
                break;
            }
            if steps > credit {
                if !level {
                    self.flatten(low, high);
                }
                break;
            }
        }
        self.spend(steps);
    }

    /// Takes one step of one side; returns `false` if the side is complete.
    fn advance(&mut self, side: &mut OrderSide, met: &mut bool) -> bool {
        match self.step(&mut side.walk, side.way) {
            WalkStep::Blind => {}
            WalkStep::End => {
                side.head += 1;
                let Some(&next) = side.queue.get(side.head) else { return false };
                side.walk = self.walk(next, side.way);
            }
            WalkStep::To(next) => {
                let place = self.place(next);
                let (within, nearer, other) = match side.way {
                    ArcDirection::Forth => {
                        let nearer = side.beyond.is_none_or(|beyond| place < beyond);
                        (place <= side.limit, nearer, ArcDirection::Back)
                    }
                    ArcDirection::Back => {
                        let nearer = side.beyond.is_none_or(|beyond| place > beyond);
                        (place >= side.limit, nearer, ArcDirection::Forth)
                    }
                };
                if within {
                    let number = side.queue.len() as u32;
                    let slot = self.slot(next, side.way);
                    if *slot == NONE {
                        *slot = number;
                        side.queue.push(next);
                    }
                    *met |= self.seen(next, other) != NONE;
                } else if nearer {
                    side.beyond = Some(place);
                }
            }
        }
        true
    }

    /// Moves a complete side past `other`, the end of the new arc that it does
    /// not begin with and that is at `base`, into the room that is there before
    /// `beyond`. If it reaches `other`, all that is on a cycle with it goes to its
    /// place.
    fn spread(&mut self, side: &OrderSide, other: u32, base: i64) {
        let (component, mut depths) = self.depths(&side.queue, side.way);
        if self.seen(other, side.way) == NONE {
            for depth in &mut depths {
                *depth += 1;
            }
        }
        let deepest = depths.iter().copied().max().unwrap_or(0);
        let step = match side.beyond {
            None => GAP,
            Some(beyond) => (beyond.abs_diff(base) as i64 / (deepest + 1)).min(GAP),
        };
        self.narrow |= step == 0 && deepest > 0;
        for (&member, &component) in side.queue.iter().zip(&component) {
            let distance = depths[component as usize] * step;
            self.set_place(
                member,
                match side.way {
                    ArcDirection::Forth => base + distance,
                    ArcDirection::Back => base - distance,
                },
            );
        }
    }

    /// Orders all states from scratch.
    pub(crate) fn order_anew(&mut self) {
        self.begin_search();
        let mut all = Vec::new();
        for node in 0..self.nodes.len() as u32 {
            let NetNode { free, recursive, .. } = self.nodes[node as usize];
            for arrived in [NORMAL, RECURSIVE] {
                if !free && (arrived == NORMAL || recursive) {
                    let state = state(node, arrived);
                    *self.slot(state, ArcDirection::Forth) = all.len() as u32;
                    all.push(state);
                }
            }
        }
        let (component, depths) = self.depths(&all, ArcDirection::Forth);
        let deepest = depths.iter().copied().max().unwrap_or(0);
        let step = GAP.min(FAR / 2 / (deepest + 1));
        for (&state, &component) in all.iter().zip(&component) {
            self.set_place(state, depths[component as usize] * step);
        }
        self.tangled = 8 * (all.len() - depths.len()) > all.len();
        self.flat.clear();
        self.narrow = false;
        self.work = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Mode;
    use proptest::prelude::*;

    const NODES: u32 = 8;

    /// Returns all states that can be reached from one.
    fn reach(net: &Net, from: u32) -> Vec<u32> {
        let mut all = net.all_from(from);
        let mut head = 0;
        while head < all.len() {
            for next in net.all_from(all[head]) {
                if !all.contains(&next) {
                    all.push(next);
                }
            }
            head += 1;
        }
        all
    }

    fn check(net: &Net) -> Result<(), TestCaseError> {
        for node in 0..NODES {
            for arrived in [NORMAL, RECURSIVE] {
                if arrived == RECURSIVE && !net.nodes[node as usize].recursive {
                    continue;
                }
                let from = state(node, arrived);
                for to in net.all_from(from) {
                    prop_assert!(to % 2 == NORMAL || net.nodes[node_of(to) as usize].recursive);
                    let (low, high) = (net.interval(net.place(from)), net.interval(net.place(to)));
                    prop_assert!(low.0 <= high.0, "{from} {to} {net:?}");
                    if reach(net, to).contains(&from) {
                        prop_assert_eq!(low, high, "a cycle in one place");
                    }
                }
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

        /// ORDER-UPWARD holds after each arc and each that goes, however soon searches are
        /// given up and however narrow the room is.
        #[test]
        fn no_step_leads_down(
            arcs in proptest::collection::vec((0..NODES, 1..NODES, 0..9_u8), 0..40),
            patience in prop_oneof![Just(0_usize), Just(4), Just(PATIENCE)],
            narrow in any::<bool>(),
        ) {
            let mut net = Net::new();
            (net.patience, net.credit) = (patience, 0);
            for _ in 0..NODES {
                net.add_node();
            }
            let mode = |n| [Mode::Write, Mode::Read, Mode::ReadRecursive][usize::from(n)];
            for (step, &(from, other, modes)) in arcs.iter().enumerate() {
                let to = (from + other) % NODES;
                net.credit = 0;
                let known = net.find(from, to);
                if let Some(arc) = known.filter(|_| modes == 8) {
                    net.remove_arc(arc);
                } else {
                    let arc = known.unwrap_or_else(|| net.add_arc(from, to));
                    net.grow(arc, Kinds::of(mode(modes / 3), mode(modes % 3)));
                }
                if narrow {
                    // As after many have been put between the same two.
                    for state in 0..2 * NODES {
                        let place = net.place(state);
                        net.set_place(state, place >> 14);
                    }
                    let flat = core::mem::take(&mut net.flat);
                    for (low, high) in flat {
                        net.flatten(low >> 14, high >> 14);
                    }
                }
                if step == 30 {
                    net.order_anew();
                    prop_assert!(net.flat.is_empty());
                }
                check(&net)?;
            }
        }
    }
}

//! The shortest way between two nodes.
//!
//! # Role
//! Breadth-first from both ends, always a whole level of the side that has fewer
//! arcs before it. The caller says which kinds of each arc count, so that the
//! same search looks for any cycle or only for one that certain witnesses allow.
//!
//! # Cost
//! At most the [credit](crate::order), and what the question allows.
//!
//! # Why the first meeting is the shortest
//! When the levels up to `f` and `b` are complete and nothing has met, no way of
//! `f + b` arcs exists: its node after `f` arcs would have been seen from both
//! sides, each in a state at least as good as on that way. So a meeting in the
//! next level has `f + b + 1` arcs and nothing is shorter.

use crate::kinds::{Kinds, NORMAL, waits};
use crate::net::{ArcDirection, NONE, Net, node_of, state};
use alloc::vec;
use alloc::vec::Vec;

/// The ends between which a search goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    /// The node it begins at, and how it is arrived at.
    pub(crate) start: u32,
    pub(crate) asked: u32,
    /// The node it ends at, and how that is held.
    pub(crate) goal: u32,
    pub(crate) held: u32,
    /// The places of the nodes that may lie on a way.
    pub(crate) places: (i64, i64),
    /// How many arcs it may look at.
    pub(crate) budget: usize,
}

/// What a search came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SearchAnswer {
    /// The arcs of a shortest way.
    Way(Vec<u32>),
    /// There is no such way.
    None,
    /// The search took too long.
    Cut,
}

/// A state that was seen, and from which entry of the queue by which arc.
#[derive(Clone, Copy)]
pub(crate) struct SearchEntry {
    pub(crate) state: u32,
    pub(crate) before: u32,
    pub(crate) arc: u32,
}

/// A queue and its present level.
struct SearchSide {
    way: ArcDirection,
    queue: Vec<SearchEntry>,
    head: usize,
    /// The number of arcs that the present level has before it.
    ahead: usize,
}

impl Net {
    /// Returns whether a node may lie on a way between these places.
    pub(crate) fn lies(&self, node: u32, (low, high): (i64, i64)) -> bool {
        let node = &self.nodes[node as usize];
        let within = |place: i64| low <= place && place <= high;
        within(node.places[0]) || (node.recursive && within(node.places[1]))
    }

    /// Looks for the shortest way over arcs with `usable` kinds. Start and goal
    /// are different nodes.
    pub(crate) fn shortest(
        &mut self,
        question: &Question,
        usable: impl Fn(&Net, u32) -> Kinds,
    ) -> SearchAnswer {
        let credit = self.credit().min(question.budget);
        let mut budget = credit;
        let answer = self.meet(question, &usable, &mut budget);
        self.spend(credit - budget);
        answer
    }

    fn meet(
        &mut self,
        question: &Question,
        usable: &impl Fn(&Net, u32) -> Kinds,
        budget: &mut usize,
    ) -> SearchAnswer {
        self.begin_search();
        let mut side = |way: ArcDirection, node: u32, how: u32| {
            let state = state(node, how);
            *self.slot(state, way) = 0;
            let ahead = self.nodes[node as usize].degrees[way as usize] as usize;
            SearchSide {
                way,
                queue: vec![SearchEntry { state, before: NONE, arc: NONE }],
                head: 0,
                ahead,
            }
        };
        let mut forth = side(ArcDirection::Forth, question.start, question.asked);
        let mut back = side(ArcDirection::Back, question.goal, question.held);
        loop {
            if forth.head == forth.queue.len() || back.head == back.queue.len() {
                return SearchAnswer::None;
            }
            let met = if forth.ahead <= back.ahead {
                self.level_of(&mut forth, question, usable, budget)
            } else {
                self.level_of(&mut back, question, usable, budget)
            };
            if let Some((there, here)) = met {
                let mut way = trace(&forth.queue, there);
                way.reverse();
                way.extend(trace(&back.queue, here));
                return SearchAnswer::Way(way);
            }
            if *budget == 0 {
                return SearchAnswer::Cut;
            }
        }
    }

    /// Searches a whole level of one side. Gives the places in both queues where
    /// the sides met.
    fn level_of(
        &mut self,
        side: &mut SearchSide,
        question: &Question,
        usable: &impl Fn(&Net, u32) -> Kinds,
        budget: &mut usize,
    ) -> Option<(u32, u32)> {
        side.ahead = 0;
        for before in side.head..side.queue.len() {
            let from = side.queue[before].state;
            let mut next = self.first(node_of(from), side.way);
            while next != NONE {
                if *budget == 0 {
                    return None;
                }
                *budget -= 1;
                let arc = next;
                next = self.after(arc, side.way);
                let ends = &self.arcs[arc as usize];
                let node = if side.way == ArcDirection::Forth { ends.to } else { ends.from };
                if !self.lies(node, question.places) {
                    continue;
                }
                let kinds = usable(self, arc);
                let how = match side.way {
                    ArcDirection::Forth => kinds.forth(from % 2),
                    ArcDirection::Back => kinds.back(from % 2),
                };
                let Some(how) = how else { continue };
                let there = state(node, how);
                if self.seen(there, side.way) != NONE
                    || self.seen(state(node, NORMAL), side.way) != NONE
                {
                    // Seen as well or better.
                    continue;
                }
                let number = side.queue.len() as u32;
                *self.slot(there, side.way) = number;
                side.queue.push(SearchEntry { state: there, before: before as u32, arc });
                let (other, meets): (ArcDirection, fn(u32, u32) -> bool) = match side.way {
                    ArcDirection::Forth => (ArcDirection::Back, |asked, held| waits(asked, held)),
                    ArcDirection::Back => (ArcDirection::Forth, |held, asked| waits(asked, held)),
                };
                for opposite in [0, 1] {
                    let seen = self.seen(state(node, opposite), other);
                    if seen != NONE && meets(how, opposite) {
                        return Some(match side.way {
                            ArcDirection::Forth => (number, seen),
                            ArcDirection::Back => (seen, number),
                        });
                    }
                }
                side.ahead += self.nodes[node as usize].degrees[side.way as usize] as usize;
            }
            side.head = before + 1;
        }
        None
    }

    /// Tells how far each node is from `goal`, against the arcs: a lower bound that takes no
    /// account of how nodes are arrived at. Returns the nodes that were seen, with their distances,
    /// and the distance that all others have at least.
    pub(crate) fn distances(
        &mut self,
        question: &Question,
        usable: impl Fn(&Net, u32) -> Kinds,
    ) -> (Vec<u32>, u32) {
        self.begin_search();
        let credit = self.credit().min(question.budget);
        let mut budget = credit;
        let mut queue = vec![question.goal];
        let mut distances = vec![0];
        *self.slot(state(question.goal, 0), ArcDirection::Back) = 0;
        let mut head = 0;
        while head < queue.len() {
            let mut next = self.first(queue[head], ArcDirection::Back);
            while next != NONE {
                if budget == 0 {
                    let bound = distances[head];
                    self.spend(credit);
                    return (distances, bound + 1);
                }
                budget -= 1;
                let arc = next;
                next = self.after(arc, ArcDirection::Back);
                let node = self.arcs[arc as usize].from;
                if self.lies(node, question.places)
                    && self.seen(state(node, 0), ArcDirection::Back) == NONE
                    && !usable(self, arc).is_empty()
                {
                    *self.slot(state(node, 0), ArcDirection::Back) = queue.len() as u32;
                    distances.push(distances[head] + 1);
                    queue.push(node);
                }
            }
            head += 1;
        }
        self.spend(credit - budget);
        (distances, u32::MAX)
    }
}

/// Returns the arcs from an entry to the beginning of its queue.
fn trace(queue: &[SearchEntry], from: u32) -> Vec<u32> {
    let mut arcs = Vec::new();
    let mut entry = queue[from as usize];
    while entry.before != NONE {
        arcs.push(entry.arc);
        entry = queue[entry.before as usize];
    }
    arcs
}

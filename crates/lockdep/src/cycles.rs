//! The cycles that a new edge or witness completes.
//!
//! # Role
//! Two searches. [`CycleFinder::proven`] looks for a cycle of which the new witness is
//! a part and that others can complete while it is there: whatever was provable
//! without it was found before. [`CycleFinder::any`] looks for any cycle through a new
//! edge.

use crate::cycle::{Demands, NetFacts, RowEnds, assign};
use crate::enumerate::{self, Aim, Fixed};
use crate::kinds::{Kinds, asked, held, waits};
use crate::net::Net;
use crate::search::{Question, SearchAnswer};
use crate::seen::ArcWitness;
use crate::sets::{self, HeldLock};
use crate::types::GraphLosses;
use alloc::vec::Vec;
use hashbrown::HashSet;

/// What is new: a witness of an arc.
#[derive(Clone, Copy)]
pub(crate) struct Query<'a, L> {
    pub(crate) arc: u32,
    pub(crate) seen: &'a ArcWitness<L>,
    /// How many steps a search may take.
    pub(crate) budget: usize,
}

/// A net with what is known about it.
pub(crate) struct CycleFinder<'a, L, F> {
    pub(crate) net: &'a mut Net,
    pub(crate) facts: NetFacts<'a, L>,
    /// The lock that a node is.
    pub(crate) lock: F,
    pub(crate) losses: &'a mut GraphLosses,
}

impl<L: Copy, F: Fn(u32) -> HeldLock> CycleFinder<'_, L, F> {
    /// Returns the shortest cycle through the arc whose other witnesses can be there together with
    /// this one, and all of its witnesses.
    pub(crate) fn proven(
        &mut self,
        query: &Query<'_, L>,
    ) -> Option<(Vec<u32>, Vec<ArcWitness<L>>)> {
        let Query { arc, seen, .. } = *query;
        let question = self.question(query)?;
        if seen.alone() {
            return None;
        }
        let CycleFinder { net, facts, lock, losses } = self;
        let (facts, lock) = (&*facts, &*lock);
        let (witnesses, sets) = (facts.witnesses, facts.sets);
        let of = |node: u32, seen: &ArcWitness<L>| HeldLock {
            shared: seen.holds().is_shared(),
            ..lock(node)
        };
        let mine = [of(question.goal, seen)];
        // Which of an arc's witnesses could be there at the same time.
        let usable = |net: &Net, arc: u32| {
            let ends = &net.arcs[arc as usize];
            if ends.to == question.start || ends.from == question.goal {
                return Kinds::default();
            }
            let mut kinds = Kinds::default();
            for other in witnesses.of(arc) {
                if other.alone() || other.thread == seen.thread {
                    continue;
                }
                let theirs = [of(ends.from, other)];
                if sets::conflict(seen.all(&mine, sets), other.all(&theirs, sets)).is_none() {
                    kinds = kinds.with(other.kinds());
                }
            }
            kinds
        };
        // Most cycles are of two.
        if let Some(back) = net.find(question.start, question.goal)
            && let Some(found) = all_there(net, facts, lock, query, Vec::from([back]))
        {
            return Some(found);
        }
        let way = match net.shortest(&question, usable) {
            SearchAnswer::None => return None,
            SearchAnswer::Cut => {
                losses.searches += 1;
                return None;
            }
            SearchAnswer::Way(way) => way,
        };
        let length = way.len();
        if let Some(found) = all_there(net, facts, lock, query, way) {
            return Some(found);
        }
        let fixed = Fixed { arc, seen };
        let aim = Aim { question, length, demands: Demands::ALL };
        match enumerate::cycle(net, &fixed, &aim, facts, usable, lock) {
            SearchAnswer::None => None,
            SearchAnswer::Cut => {
                losses.searches += 1;
                None
            }
            SearchAnswer::Way(way) => all_there(net, facts, lock, query, way),
        }
    }

    /// Returns the shortest cycle through the arc, whoever was seen where.
    pub(crate) fn any(&mut self, query: &Query<'_, L>) -> Option<Vec<u32>> {
        let Query { arc, seen, .. } = *query;
        let question = self.question(query)?;
        let usable = |net: &Net, arc: u32| {
            let ends = &net.arcs[arc as usize];
            if ends.to == question.start || ends.from == question.goal {
                return Kinds::default();
            }
            ends.kinds
        };
        if let Some(back) = self.net.find(question.start, question.goal)
            && let Some(there) = self.net.arcs[back as usize].kinds.forth(question.asked)
            && waits(there, question.held)
        {
            return Some(Vec::from([arc, back]));
        }
        let mut answer = self.net.shortest(&question, usable);
        if let SearchAnswer::Way(way) = &answer {
            let length = way.len();
            if !is_simple(self.net, way) {
                let CycleFinder { facts, lock, net, .. } = self;
                let fixed = Fixed { arc, seen };
                let aim = Aim { question, length, demands: Demands::NONE };
                answer = enumerate::cycle(net, &fixed, &aim, facts, usable, &*lock);
            }
        }
        match answer {
            SearchAnswer::None => None,
            SearchAnswer::Cut => {
                self.losses.searches += 1;
                None
            }
            SearchAnswer::Way(mut way) => {
                way.insert(0, arc);
                Some(way)
            }
        }
    }

    /// Returns the arcs with the locks that they hold.
    pub(crate) fn edges(&self, arcs: &[u32]) -> Vec<(u32, HeldLock)> {
        edges(self.net, &self.lock, arcs)
    }

    fn question(&self, query: &Query<'_, L>) -> Option<Question> {
        let mut places: Option<(i64, i64)> = None;
        for (from, to) in self.net.levels(query.arc).into_iter().flatten() {
            let (low, high) = places.unwrap_or((from, to));
            places = Some((low.min(from), high.max(to)));
        }
        let arc = &self.net.arcs[query.arc as usize];
        Some(Question {
            start: arc.to,
            asked: asked(query.seen.asks()),
            goal: arc.from,
            held: held(query.seen.holds()),
            places: places?,
            budget: query.budget,
        })
    }
}

/// Returns the witnesses that prove the cycle of an arc and a way back.
fn all_there<L: Copy>(
    net: &Net,
    facts: &NetFacts<'_, L>,
    lock: &impl Fn(u32) -> HeldLock,
    query: &Query<'_, L>,
    mut way: Vec<u32>,
) -> Option<(Vec<u32>, Vec<ArcWitness<L>>)> {
    way.insert(0, query.arc);
    if !is_simple(net, &way) {
        return None;
    }
    let edges = edges(net, lock, &way);
    let budget = effort(&way);
    let all = assign(&edges, Some(query.seen), RowEnds::Cycle, Demands::ALL, facts, budget);
    all.ok().map(|all| (way, all))
}

/// Returns the arcs with the locks that they hold.
fn edges(net: &Net, lock: &impl Fn(u32) -> HeldLock, arcs: &[u32]) -> Vec<(u32, HeldLock)> {
    arcs.iter().map(|&arc| (arc, lock(net.arcs[arc as usize].from))).collect()
}

/// Returns whether no lock comes twice. Only a way on which a lock is arrived at in both manners is
/// not simple.
fn is_simple(net: &Net, arcs: &[u32]) -> bool {
    let mut nodes = HashSet::with_capacity(arcs.len());
    arcs.iter().all(|&arc| nodes.insert(net.arcs[arc as usize].from))
}

/// Returns how many witnesses to try on a cycle.
pub(crate) fn effort(arcs: &[u32]) -> usize {
    8 * arcs.len() + (1 << 12)
}

#[cfg(test)]
mod tests {
    use crate::{
        ClassId, Graph, Inversion, InversionKind, Limits, LockId, Mode, OrderEdge, SiteId, ThreadId,
    };
    use alloc::vec::Vec;

    /// Adds an edge as after millions of edges that all cost much: a search has this many steps.
    fn add_within(steps: usize, graph: &mut Graph, from: u32, to: u32) -> Vec<Inversion> {
        let edge = OrderEdge {
            from: LockId(from),
            to: LockId(to),
            from_mode: Mode::Write,
            to_mode: Mode::Write,
            from_site: SiteId(0),
            to_site: SiteId(0),
            thread: ThreadId(from),
            gates: &[],
            alone: false,
            tried_from: false,
            timed_to: false,
        };
        (graph.net.patience, graph.net.credit) = (steps, 0);
        let mut findings = Vec::new();
        graph.add(&edge, &mut findings);
        findings
    }

    fn add(graph: &mut Graph, from: u32, to: u32) -> Vec<Inversion> {
        add_within(0, graph, from, to)
    }

    /// Makes a graph of locks of one class, each before its successor.
    fn row(locks: u32) -> Graph {
        let mut graph = Graph::new(Limits::default());
        for lock in 0..locks {
            graph.declare(LockId(lock), ClassId(0), 0);
        }
        // Against the order in which places are given, and with two ends each.
        for lock in (0..locks - 1).step_by(2).chain((1..locks - 1).step_by(2).rev()) {
            assert_eq!(add(&mut graph, lock, lock + 1), []);
        }
        graph
    }

    #[test]
    fn a_search_that_is_given_up_is_counted() {
        let mut graph = row(1000);
        let given_up = graph.losses().searches;
        assert_eq!(add(&mut graph, 999, 0), []);
        assert_eq!(graph.losses().searches, given_up + 2, "for a proof and for any cycle");
    }

    #[test]
    fn two_opposite_edges_are_found_without_a_search() {
        let mut graph = row(1000);
        add(&mut graph, 999, 0);
        let found = add(&mut graph, 501, 500);
        assert_eq!(
            found.iter().map(|f| (f.kind, f.steps.len())).collect::<Vec<_>>(),
            [(InversionKind::Cycle, 2)]
        );
    }

    #[test]
    fn who_has_more_steps_finds_what_was_given_up() {
        let mut graph = row(1000);
        add(&mut graph, 999, 0);
        let given_up = graph.losses().searches;
        let found = add_within(10_000, &mut graph, 999, 1);
        assert_eq!(found.iter().map(|found| found.steps.len()).collect::<Vec<_>>(), [999]);
        assert_eq!(graph.losses().searches, given_up);
    }
}

//! The order of classes.
//!
//! # Role
//! Where one lock of a class was held while one of another class was asked for,
//! that order is taken to be meant for all locks of the two. What breaks it is
//! found though no two threads ever had the same locks, and though the locks are
//! long dead.
//!
//! # Nesting within a class
//! Locks of one class that are taken while another one of it is held say nothing
//! here, in whichever order: trees, lists and tables do this by rules of their
//! own, by address or by index, which classes cannot see. Where the same two
//! locks are taken in both orders, the graph of locks sees it. Who nests by plan
//! says so with subclasses; they are different classes here, and taking 0 while
//! holding 1 breaks the order of who takes 1 while holding 0.

use crate::cycle::{Demands, NetFacts, RowEnds, assign};
use crate::cycles::{CycleFinder, Query, effort};
use crate::net::{NONE, Net};
use crate::seen::{ArcWitness, Witnesses};
use crate::sets::{HeldLock, Sets};
use crate::types::{GraphLosses, Limits, LockClass, LockId, OrderEdge};
use alloc::vec::Vec;
use hashbrown::HashMap;

/// The locks that stand for an arc.
pub(crate) type ArcLocks = (LockId, LockId);

#[derive(Debug)]
pub(crate) struct Classes {
    numbers: HashMap<LockClass, u32>,
    names: Vec<LockClass>,
    /// The nodes are the first classes.
    pub(crate) net: Net,
    pub(crate) witnesses: Witnesses<ArcLocks>,
}

impl Classes {
    pub(crate) fn new() -> Classes {
        Classes {
            numbers: HashMap::new(),
            names: Vec::new(),
            net: Net::new(),
            witnesses: Witnesses::default(),
        }
    }

    /// Returns the number of a class. Beyond the limit, it has one but no node.
    pub(crate) fn number(
        &mut self,
        class: LockClass,
        limits: &Limits,
        losses: &mut GraphLosses,
    ) -> u32 {
        if let Some(&number) = self.numbers.get(&class) {
            return number;
        }
        let number = self.names.len() as u32;
        self.numbers.insert(class, number);
        self.names.push(class);
        if number < limits.classes {
            self.net.add_node();
        } else {
            losses.classes += 1;
        }
        number
    }

    pub(crate) fn find(&self, class: LockClass) -> Option<u32> {
        self.numbers.get(&class).copied().filter(|&number| self.has_node(number))
    }

    pub(crate) fn name(&self, number: u32) -> LockClass {
        self.names[number as usize]
    }

    pub(crate) fn has_node(&self, number: u32) -> bool {
        (number as usize) < self.net.nodes.len()
    }

    /// Adds an edge between locks of two classes, whose locks were held as `set`. Returns the arc,
    /// if none said as much before.
    pub(crate) fn add(
        &mut self,
        (from, to): (u32, u32),
        edge: &OrderEdge<'_>,
        set: u32,
        sets: &mut Sets,
        limits: &Limits,
        losses: &mut GraphLosses,
    ) -> Option<u32> {
        if from == to || !self.has_node(from) || !self.has_node(to) {
            return None;
        }
        let seen = ArcWitness::of(edge, set, (edge.from, edge.to));
        let kind = seen.kinds();
        let arc = match self.net.find(from, to) {
            Some(arc) if self.net.arcs[arc as usize].kinds.covers(kind) => return None,
            Some(arc) => {
                sets.keep(set);
                self.witnesses.offer(arc, seen, sets);
                arc
            }
            None if self.net.len() >= limits.edges as usize => {
                losses.edges += 1;
                return None;
            }
            None => {
                sets.keep(set);
                let arc = self.net.add_arc(from, to);
                self.witnesses.begin(arc, seen);
                arc
            }
        };
        self.net.grow(arc, kind);
        Some(arc)
    }

    /// Returns the shortest cycle that an edge closes, whose arc has just learnt of it, and locks
    /// that stand for each of its classes.
    pub(crate) fn cycle(
        &mut self,
        arc: u32,
        edge: &OrderEdge<'_>,
        sets: &Sets,
        losses: &mut GraphLosses,
    ) -> Option<(Vec<u32>, Vec<ArcWitness<ArcLocks>>)> {
        let seen = ArcWitness::of(edge, NONE, (edge.from, edge.to));
        let facts = NetFacts { witnesses: &self.witnesses, sets };
        let lock = |class| HeldLock { life: 0, lock: LockId(class), shared: false };
        let mut cycles = CycleFinder { net: &mut self.net, facts, lock, losses };
        let arcs = cycles.any(&Query { arc, seen: &seen, budget: usize::MAX })?;
        let edges = cycles.edges(&arcs);
        let chosen =
            assign(&edges, None, RowEnds::Cycle, Demands::NONE, &cycles.facts, effort(&arcs))
                .ok()?;
        Some((arcs, chosen))
    }
}

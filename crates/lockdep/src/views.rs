//! The graph as it is shown: edges, ways, and the steps of findings.

use crate::classes::ArcLocks;
use crate::graph::Graph;
use crate::net::{ArcDirection, NONE, Net};
use crate::seen::ArcWitness;
use crate::sets::HeldLock;
use crate::types::{GateLock, InversionStep, LockClass, LockId, Witness};
use alloc::vec::Vec;
use hashbrown::HashMap;

impl Graph {
    /// Returns the shortest way by which `from` comes before `to`; readers wait for everything
    /// here.
    #[must_use]
    pub fn path(&self, from: LockId, to: LockId) -> Option<Vec<InversionStep>> {
        let arcs = way(&self.net, self.node(from)?, self.node(to)?)?;
        Some(arcs.into_iter().map(|arc| self.step(arc, self.witnesses.first(arc))).collect())
    }

    /// Returns the shortest way by which a lock of the class `from` comes before one of the class
    /// `to`. Its locks may be dead by now.
    #[must_use]
    pub fn class_path(&self, from: LockClass, to: LockClass) -> Option<Vec<InversionStep>> {
        let classes = &self.classes;
        let arcs = way(&classes.net, classes.find(from)?, classes.find(to)?)?;
        let step = |arc| self.class_step(arc, classes.witnesses.first(arc));
        Some(arcs.into_iter().map(step).collect())
    }

    /// Returns all edges, each with one of its witnesses.
    pub fn edges(&self) -> impl Iterator<Item = InversionStep> + '_ {
        self.net.all().map(|arc| self.step(arc, self.witnesses.first(arc)))
    }

    /// Returns all edges between classes, each with a witness of one of its edges.
    pub fn class_edges(&self) -> impl Iterator<Item = InversionStep> + '_ {
        let classes = &self.classes;
        classes.net.all().map(|arc| self.class_step(arc, classes.witnesses.first(arc)))
    }

    pub(crate) fn step(&self, arc: u32, seen: &ArcWitness) -> InversionStep {
        let ends = &self.net.arcs[arc as usize];
        let [from, to] = [ends.from, ends.to].map(|node| self.locks[node as usize]);
        InversionStep {
            from: from.id,
            to: to.id,
            from_class: self.classes.name(from.class),
            to_class: self.classes.name(to.class),
            witness: self.witness(seen, from.id),
        }
    }

    pub(crate) fn class_step(&self, arc: u32, seen: &ArcWitness<ArcLocks>) -> InversionStep {
        let ends = &self.classes.net.arcs[arc as usize];
        let (from, to) = seen.locks;
        InversionStep {
            from,
            to,
            from_class: self.classes.name(ends.from),
            to_class: self.classes.name(ends.to),
            witness: self.witness(seen, from),
        }
    }

    fn witness<L>(&self, seen: &ArcWitness<L>, from: LockId) -> Witness {
        let all = if seen.held == NONE { &[] } else { self.sets.locks(seen.held) };
        // A dead lock's number may be another one's by now.
        let lives = |held: &&HeldLock| {
            held.life == self.node(held.lock).map_or(0, |node| self.locks[node as usize].life)
        };
        let others = all.iter().filter(|held| held.lock != from).filter(lives);
        Witness {
            thread: seen.thread,
            from_site: seen.from_site,
            to_site: seen.to_site,
            from_mode: seen.holds(),
            to_mode: seen.asks(),
            gates: others.map(|held| GateLock { lock: held.lock, shared: held.shared }).collect(),
            alone: seen.alone(),
            tried_from: seen.tried(),
            timed_to: seen.timed(),
        }
    }
}

/// Returns the arcs of the shortest way from one node to another one. It leaves no mark in the net.
fn way(net: &Net, from: u32, to: u32) -> Option<Vec<u32>> {
    let mut arrived: HashMap<u32, u32> = HashMap::new();
    let mut queue = Vec::from([from]);
    let mut head = 0;
    while let Some(&node) = queue.get(head) {
        head += 1;
        let mut next = net.first(node, ArcDirection::Forth);
        while next != NONE {
            let arc = next;
            next = net.after(arc, ArcDirection::Forth);
            let there = net.arcs[arc as usize].to;
            if there == from || arrived.contains_key(&there) {
                continue;
            }
            arrived.insert(there, arc);
            if there == to {
                let mut arcs = Vec::new();
                let mut node = to;
                while node != from {
                    let arc = *arrived.get(&node)?;
                    arcs.push(arc);
                    node = net.arcs[arc as usize].from;
                }
                arcs.reverse();
                return Some(arcs);
            }
            queue.push(there);
        }
    }
    None
}

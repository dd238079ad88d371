//! The graph as its callers see it.
//!
//! # Role
//! Knows locks and classes by the caller's numbers, passes what is new to the
//! searches, and makes findings of what they find.

use crate::causes::Causes;
use crate::classes::{ArcLocks, Classes};
use crate::cycle::{NetFacts, RowEnds, judge};
use crate::cycles::{CycleFinder, Query, effort};
use crate::effort::Efforts;
use crate::habits::{self, Habits};
use crate::net::{Arc, ArcDirection, NONE, Net, node_of};
use crate::seen::{ArcWitness, Offer, Witnesses};
use crate::sets::{HeldLock, Sets, normalise};
use crate::types::{
    ClassId, Excuse, GateLock, GraphLosses, Inversion, InversionKind, Level, Limits, LockClass,
    LockId, OrderEdge,
};
use crate::worlds::Worlds;
use alloc::vec::Vec;
use hashbrown::HashMap;

/// A lock that lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LockNode {
    pub(crate) id: LockId,
    /// The number of its class.
    pub(crate) class: u32,
    /// The number of its life.
    pub(crate) life: u32,
}

impl LockNode {
    /// Returns the lock as one thread holds it exclusively.
    pub(crate) fn held(&self) -> HeldLock {
        HeldLock { life: self.life, lock: self.id, shared: false }
    }
}

/// The order of locks, as far as it was seen.
#[derive(Debug)]
pub struct Graph {
    pub(crate) limits: Limits,
    pub(crate) losses: GraphLosses,
    /// The nodes of locks.
    nodes: HashMap<LockId, u32>,
    /// The lock that each node stands for.
    pub(crate) locks: Vec<LockNode>,
    lives: u32,
    pub(crate) net: Net,
    pub(crate) witnesses: Witnesses,
    pub(crate) sets: Sets,
    pub(crate) classes: Classes,
    habits: Habits,
    pub(crate) causes: Causes,
    efforts: Efforts,
    pub(crate) worlds: Worlds,
    /// The ways between worlds that have an excuse: signal and last state.
    pub(crate) pending: Vec<(u8, u32)>,
    pub(crate) class_worlds: Worlds,
    scratch: Vec<HeldLock>,
}

impl Graph {
    /// Creates a graph in which nothing was seen yet.
    #[must_use]
    pub fn new(limits: Limits) -> Graph {
        Graph {
            limits,
            losses: GraphLosses::default(),
            nodes: HashMap::new(),
            locks: Vec::new(),
            lives: 0,
            net: Net::new(),
            witnesses: Witnesses::default(),
            sets: Sets::default(),
            classes: Classes::new(),
            habits: Habits::default(),
            causes: Causes::default(),
            efforts: Efforts::default(),
            worlds: Worlds::default(),
            pending: Vec::new(),
            class_worlds: Worlds::default(),
            scratch: Vec::new(),
        }
    }

    /// Declares a lock that begins to live, or is first seen. It keeps the class that it is
    /// declared with until it is forgotten. Returns `false` if there is no room for it: then its
    /// edges are lost.
    pub fn declare(&mut self, lock: LockId, class: ClassId, subclass: u8) -> bool {
        if self.nodes.contains_key(&lock) {
            return true;
        }
        if self.nodes.len() >= self.limits.locks as usize {
            self.losses.locks += 1;
            return false;
        }
        let class = LockClass { id: class, subclass };
        let class = self.classes.number(class, &self.limits, &mut self.losses);
        // Number 0 stays free for lives that are not known.
        self.lives = self.lives.wrapping_add(1).max(1);
        let node = self.net.add_node();
        let lock_at_node = LockNode { id: lock, class, life: self.lives };
        if node as usize == self.locks.len() {
            self.locks.push(lock_at_node);
        } else {
            self.locks[node as usize] = lock_at_node;
        }
        self.nodes.insert(lock, node);
        true
    }

    /// Forgets a lock whose life has ended: its edges go, and no cycle leads through it any more.
    /// What is known of the order of its class stays.
    pub fn forget(&mut self, lock: LockId) {
        let Some(node) = self.nodes.remove(&lock) else { return };
        let leads = self.net.first(node, ArcDirection::Forth) != NONE;
        for way in [ArcDirection::Forth, ArcDirection::Back] {
            loop {
                let arc = self.net.first(node, way);
                if arc == NONE {
                    break;
                }
                self.witnesses.end(arc, &mut self.sets);
                self.net.remove_arc(arc);
            }
        }
        self.net.remove_node(node);
        self.worlds.forget(node, leads);
        self.pending.retain(|&(_, state)| node_of(state) != node);
    }

    /// Adds that a thread that holds a lock asks for another one. What this completes is added to
    /// `findings`: at most one cycle of locks at each level and one of classes, and ways between
    /// the worlds of signals. A cause (the classes of the cycle) that was found at this level or a
    /// higher one is not found again.
    pub fn add(&mut self, edge: &OrderEdge<'_>, findings: &mut Vec<Inversion>) {
        let (Some(&from), Some(&to)) = (self.nodes.get(&edge.from), self.nodes.get(&edge.to))
        else {
            self.losses.undeclared += 1;
            return;
        };
        if from == to {
            // No order between a lock and itself.
            return;
        }
        let set = self.held(edge, from);
        let seen = ArcWitness::of(edge, set, ());
        let arc = self.net.find(from, to);
        let (arc, grows) = match arc {
            Some(arc) => {
                let grows = !self.net.arcs[arc as usize].kinds.covers(seen.kinds());
                match self.witnesses.offer(arc, seen, &mut self.sets) {
                    Offer::Known => return,
                    Offer::Kept => {}
                    Offer::Displaced => self.losses.witnesses += 1,
                    Offer::Refused => {
                        self.losses.witnesses += 1;
                        return;
                    }
                }
                (arc, grows)
            }
            None if self.net.len() >= self.limits.edges as usize => {
                self.losses.edges += 1;
                self.sets.release(set);
                return;
            }
            None => {
                let arc = self.net.add_arc(from, to);
                self.witnesses.begin(arc, seen);
                (arc, true)
            }
        };
        if grows {
            self.worlds.prepare(&mut self.net, from);
            self.net.grow(arc, seen.kinds());
        }
        self.cycle_of_locks(arc, &seen, grows, findings);
        self.ways_of_locks(arc, findings);
        if grows {
            self.cycle_of_classes(from, to, edge, set, findings);
        }
    }

    /// Returns the number of the set of all that the edge's thread held, if that was more than one
    /// lock. The set gets a user more.
    fn held(&mut self, edge: &OrderEdge<'_>, from: u32) -> u32 {
        if edge.gates.is_empty() {
            return NONE;
        }
        let life = |lock: LockId| match self.nodes.get(&lock) {
            Some(&node) => self.locks[node as usize].life,
            None => 0,
        };
        self.scratch.clear();
        let held = |gate: &GateLock| HeldLock {
            life: life(gate.lock),
            lock: gate.lock,
            shared: gate.shared,
        };
        self.scratch.extend(edge.gates.iter().map(held));
        let LockNode { id: lock, life, .. } = self.locks[from as usize];
        self.scratch.push(HeldLock { life, lock, shared: edge.from_mode.is_shared() });
        normalise(&mut self.scratch);
        self.sets.intern(&self.scratch)
    }

    fn cycle_of_locks(
        &mut self,
        arc: u32,
        seen: &ArcWitness,
        grows: bool,
        findings: &mut Vec<Inversion>,
    ) {
        if !self.net.level(arc) {
            return;
        }
        let Arc { from, to, .. } = self.net.arcs[arc as usize];
        let [from, to] = [from, to].map(|node| self.locks[node as usize].class);
        // Whatever was proven without a new witness was found before it came.
        for proven in if grows { &[true, false][..] } else { &[true] } {
            let purpose = (from, to, *proven);
            let before = self.net.spent;
            let query = Query { arc, seen, budget: self.efforts.allowed(purpose) };
            let mut new = false;
            if let Some((arcs, seen, excuse)) = self.look(&query, *proven) {
                let level = if excuse.is_none() { Level::Potential } else { Level::Order };
                let (locks, arcs_of) = (&self.locks, &self.net.arcs);
                let class = |&arc: &u32| locks[arcs_of[arc as usize].from as usize].class;
                new = self.causes.news(arcs.iter().map(class), None, level);
                if new {
                    let steps = arcs.iter().zip(&seen).map(|(&arc, seen)| self.step(arc, seen));
                    let steps = steps.collect();
                    findings.push(Inversion { level, kind: InversionKind::Cycle, steps, excuse });
                }
            }
            self.efforts.note(purpose, self.net.spent.wrapping_sub(before), new);
        }
    }

    /// Returns a cycle of locks, its witnesses, and what stands against a deadlock.
    fn look(
        &mut self,
        query: &Query<'_, ()>,
        proven: bool,
    ) -> Option<(Vec<u32>, Vec<ArcWitness>, Option<Excuse>)> {
        let locks = &self.locks;
        let lock = |node: u32| locks[node as usize].held();
        let facts = NetFacts { witnesses: &self.witnesses, sets: &self.sets };
        let mut cycles = CycleFinder { net: &mut self.net, facts, lock, losses: &mut self.losses };
        if proven {
            let (arcs, seen) = cycles.proven(query)?;
            return Some((arcs, seen, None));
        }
        let arcs = cycles.any(query)?;
        let edges = cycles.edges(&arcs);
        let (seen, excuse) = judge(&edges, RowEnds::Cycle, &cycles.facts, effort(&arcs))?;
        Some((arcs, seen, excuse))
    }

    fn cycle_of_classes(
        &mut self,
        from: u32,
        to: u32,
        edge: &OrderEdge<'_>,
        set: u32,
        findings: &mut Vec<Inversion>,
    ) {
        let classes = (self.class_of(from), self.class_of(to));
        let Graph { sets, limits, losses, .. } = self;
        let Some(arc) = self.classes.add(classes, edge, set, sets, limits, losses) else {
            return self.habit(classes, edge, set, findings);
        };
        let cycle = self.classes.cycle(arc, edge, sets, losses);
        self.ways_of_classes(arc, findings);
        if let Some((arcs, seen)) = cycle {
            self.found_of_classes(&arcs, &seen, Level::Order, findings);
        }
        self.habit(classes, edge, set, findings);
    }

    /// Notes an edge between locks of two classes, whose arc is there by now, and finds out whether
    /// both orders of the two are habits now.
    fn habit(
        &mut self,
        classes: (u32, u32),
        edge: &OrderEdge<'_>,
        set: u32,
        findings: &mut Vec<Inversion>,
    ) {
        let (from, to) = classes;
        if from == to || !self.classes.has_node(from) || !self.classes.has_node(to) {
            return;
        }
        let Some(arc) = self.classes.net.find(from, to) else { return };
        let seen = ArcWitness::of(edge, set, (edge.from, edge.to));
        if self.habits.note(arc, &self.classes, seen) {
            self.sets.keep(set);
        }
        let Some(back) = self.classes.net.find(to, from) else { return };
        let Graph { net, sets, nodes, locks, .. } = self;
        let world = habits::LockQuestions {
            net,
            sets,
            node: &|lock| nodes.get(&lock).copied(),
            class: &|node| locks[node as usize].class,
        };
        self.habits.edge(seen.locks, &world);
        if let Some(met) = self.habits.meet((arc, back), &self.classes, &world) {
            self.found_of_classes(&[arc, back], &met, Level::Potential, findings);
        }
    }

    fn found_of_classes(
        &mut self,
        arcs: &[u32],
        seen: &[ArcWitness<ArcLocks>],
        level: Level,
        findings: &mut Vec<Inversion>,
    ) {
        let class = |&arc: &u32| self.classes.net.arcs[arc as usize].from;
        if self.causes.news(arcs.iter().map(class), None, level) {
            let steps = arcs.iter().zip(seen).map(|(&arc, seen)| self.class_step(arc, seen));
            findings.push(Inversion {
                level,
                kind: InversionKind::Classes,
                steps: steps.collect(),
                excuse: (level == Level::Order).then_some(Excuse::OtherInstances),
            });
        }
    }

    /// Returns what did not fit.
    #[must_use]
    pub fn losses(&self) -> GraphLosses {
        self.losses
    }

    /// Returns the class of a lock, by their numbers.
    pub(crate) fn class_of(&self, node: u32) -> u32 {
        self.locks[node as usize].class
    }

    pub(crate) fn node(&self, lock: LockId) -> Option<u32> {
        self.nodes.get(&lock).copied()
    }
}

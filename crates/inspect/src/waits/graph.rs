//! The cycles of a waits-for graph.
//!
//! # Role
//! Pure data: who waits for what, who holds what, and from that the cycles.
//! Where the facts come from, and whether they still hold, is the caller's
//! affair; so is what a cycle with a timed wait is called.
//!
//! # The graph
//! A thread waits for one thing at most. A wait for a lock is over when *all*
//! that stand in its way have gone, so each way round the graph is a deadlock:
//! - an exclusive wait stands behind every holder;
//! - a shared wait stands behind the exclusive holders; where there are none,
//!   it can only be there because an exclusive waiter is let in first, and
//!   stands behind all of those, or behind the one that has closed the lock: that
//!   one alone can be where somebody reads upgradably;
//! - a wait to read upgradably stands behind the exclusive and the upgradable
//!   holder; where there are none, behind the waiter that has closed the lock;
//! - a waiter that has closed the lock stands behind those who read;
//! - a join stands behind the joined thread.
//!
//! # What is found
//! Locks with one holder and joins alone make a graph in which cycles share no
//! member, and each is found. With several holders there may be more ways round
//! than can be listed: then each thread and lock that is on any cycle is on one
//! of those found, each as short as one through it can be. No cycle is found
//! twice, and nothing that is on no cycle is in one.
//!
//! # Cost
//! Linear in waits and holds; no recursion, so a cycle may be of any length.
//! Only where locks with several holders are part of a cycle, a breadth-first
//! search for each of its threads.

use super::modes::{HoldMode, WaitMode};
use std::collections::{BTreeSet, HashMap, VecDeque};

/// A thread, by the kernel's number.
pub type GraphThread = u32;
/// A lock, by its address or any other number of its own.
pub type GraphLock = u64;

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Wants {
    /// It wants to hold the lock alone.
    Exclusive(GraphLock),
    /// It wants to hold the lock with others.
    Shared(GraphLock),
    /// It wants to read with others, and to have the right to become the writer.
    Upgradable(GraphLock),
    /// It has closed the lock, and waits until those who read have gone.
    Closing(GraphLock),
    /// It waits for the end of a thread.
    Join(GraphThread),
}

impl Wants {
    /// Returns a wait for a lock in this way.
    #[must_use]
    pub fn of(mode: WaitMode, lock: GraphLock) -> Wants {
        match mode {
            WaitMode::Alone => Wants::Exclusive(lock),
            WaitMode::Upgradable => Wants::Upgradable(lock),
            WaitMode::Shared => Wants::Shared(lock),
            WaitMode::Closing => Wants::Closing(lock),
        }
    }

    /// Returns the lock, if it is one.
    #[must_use]
    pub fn lock(self) -> Option<GraphLock> {
        match self {
            Wants::Exclusive(lock)
            | Wants::Shared(lock)
            | Wants::Upgradable(lock)
            | Wants::Closing(lock) => Some(lock),
            Wants::Join(_) => None,
        }
    }
}

/// One thread that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphWait {
    /// The thread that waits.
    pub thread: GraphThread,
    /// What the thread waits for.
    pub wants: Wants,
    /// The wait ends by itself at some time.
    pub timed: bool,
}

/// One thread that holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphHold {
    /// The threads that have a part in it.
    pub thread: GraphThread,
    /// The facts of the finding.
    pub lock: GraphLock,
    /// How it holds the lock.
    pub mode: HoldMode,
}

/// Threads that wait for each other in a cycle: each waits for the next one, the
/// last for the first. The smallest thread id stands first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// Members in the order of waiting.
    pub members: Vec<GraphWait>,
}

impl Cycle {
    /// Returns whether one of the waits ends by itself, so that this is no deadlock.
    #[must_use]
    pub fn timed(&self) -> bool {
        self.members.iter().any(|wait| wait.timed)
    }
}

/// Returns all cycles, as the file's head says; by their first threads.
///
/// Of several waits of one thread, the last counts.
#[must_use]
pub fn cycles(waits: &[GraphWait], holds: &[GraphHold]) -> Vec<Cycle> {
    let graph = WaitsForGraph::new(waits, holds);
    let mut found = BTreeSet::new();
    for component in graph.components() {
        graph.cover(&component, &mut found);
    }
    found
        .into_iter()
        .map(|nodes| Cycle {
            members: nodes.iter().filter_map(|&node| graph.waits.get(node).copied()).collect(),
        })
        .collect()
}

/// Nodes are numbers: first the waits, in the order of their threads, then the
/// two sides of each lock that somebody waits for.
struct WaitsForGraph {
    waits: Vec<GraphWait>,
    next: Vec<Vec<usize>>,
}

impl WaitsForGraph {
    fn new(waits: &[GraphWait], holds: &[GraphHold]) -> WaitsForGraph {
        let of_thread: HashMap<GraphThread, GraphWait> =
            waits.iter().map(|wait| (wait.thread, *wait)).collect();
        let mut waits: Vec<GraphWait> = of_thread.into_values().collect();
        waits.sort_unstable_by_key(|wait| wait.thread);
        let node: HashMap<GraphThread, usize> =
            waits.iter().enumerate().map(|(at, wait)| (wait.thread, at)).collect();

        let mut next = vec![Vec::new(); waits.len()];
        let mut sides: HashMap<Wants, usize> = HashMap::new();
        for (at, wait) in waits.iter().enumerate() {
            if let Wants::Join(target) = wait.wants {
                next[at].extend(node.get(&target));
                continue;
            }
            let side = *sides.entry(wait.wants).or_insert_with(|| {
                next.push(Vec::new());
                next.len() - 1
            });
            next[at].push(side);
        }
        for hold in holds {
            // A holder that waits for nothing is on no cycle.
            let Some(&holder) = node.get(&hold.thread) else { continue };
            for wanted in WaitMode::ALL.into_iter().filter(|&wanted| hold.mode.bars(wanted)) {
                if let Some(&side) = sides.get(&Wants::of(wanted, hold.lock)) {
                    next[side].push(holder);
                }
            }
        }
        let held = |mode| {
            let holds = holds.iter().filter(move |hold| hold.mode == mode);
            holds.map(|hold| hold.lock).collect::<BTreeSet<GraphLock>>()
        };
        let (alone, upgradable) = (held(HoldMode::Alone), held(HoldMode::Upgradable));
        for (at, wait) in waits.iter().enumerate() {
            let (lock, has_closed) = match wait.wants {
                Wants::Exclusive(lock) => (lock, false),
                Wants::Closing(lock) => (lock, true),
                _ => continue,
            };
            // Behind an upgradable reader nobody has closed the lock.
            let is_open = sides.contains_key(&Wants::Closing(lock)) || upgradable.contains(&lock);
            let goes_first = has_closed || !is_open;
            let shared = (!alone.contains(&lock) && goes_first).then_some(Wants::Shared(lock));
            let right = has_closed && !alone.contains(&lock) && !upgradable.contains(&lock);
            for wants in shared.into_iter().chain(right.then_some(Wants::Upgradable(lock))) {
                if let Some(&side) = sides.get(&wants) {
                    next[side].push(at);
                }
            }
        }
        for targets in &mut next {
            targets.sort_unstable();
            targets.dedup();
        }
        WaitsForGraph { waits, next }
    }

    /// Sets of nodes that reach each other, those of one node only if it leads
    /// to itself. Tarjan's algorithm with a stack of its own.
    fn components(&self) -> Vec<Vec<usize>> {
        const UNSEEN: usize = usize::MAX;
        let count = self.next.len();
        let (mut order, mut low) = (vec![UNSEEN; count], vec![UNSEEN; count]);
        let mut open = vec![false; count];
        let (mut path, mut walk) = (Vec::new(), Vec::new());
        let (mut seen, mut found) = (0, Vec::new());
        for root in 0..count {
            if order[root] != UNSEEN {
                continue;
            }
            walk.push((root, 0));
            while let Some((node, edge)) = walk.pop() {
                if edge == 0 {
                    (order[node], low[node]) = (seen, seen);
                    seen += 1;
                    path.push(node);
                    open[node] = true;
                } else {
                    let child = self.next[node][edge - 1];
                    if open[child] {
                        low[node] = low[node].min(low[child]);
                    }
                }
                if let Some(&child) = self.next[node].get(edge) {
                    walk.push((node, edge + 1));
                    if order[child] == UNSEEN {
                        walk.push((child, 0));
                    }
                    continue;
                }
                if low[node] != order[node] {
                    continue;
                }
                let from = path.iter().rposition(|&member| member == node).unwrap_or(0);
                let component = path.split_off(from);
                component.iter().for_each(|&member| open[member] = false);
                if component.len() > 1 || self.next[node].contains(&node) {
                    found.push(component);
                }
            }
        }
        found
    }

    /// Adds cycles until each node of the component is on one.
    fn cover(&self, component: &[usize], found: &mut BTreeSet<Vec<usize>>) {
        let members: BTreeSet<usize> = component.iter().copied().collect();
        let mut covered = BTreeSet::new();
        for &node in &members {
            if !covered.contains(&node)
                && let Some(cycle) = self.shortest(node, &members)
            {
                covered.extend(cycle.iter().copied());
                found.insert(cycle);
            }
        }
    }

    /// Returns the shortest way from `start` back to it, its smallest node first.
    fn shortest(&self, start: usize, members: &BTreeSet<usize>) -> Option<Vec<usize>> {
        let mut from: HashMap<usize, usize> = HashMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            for &child in self.next[node].iter().filter(|&child| members.contains(child)) {
                if child == start {
                    let mut cycle = vec![node];
                    while let Some(&before) = from.get(&cycle[cycle.len() - 1]) {
                        cycle.push(before);
                    }
                    cycle.reverse();
                    let first = cycle.iter().enumerate().min_by_key(|(_, node)| **node)?.0;
                    cycle.rotate_left(first);
                    return Some(cycle);
                }
                if let std::collections::hash_map::Entry::Vacant(entry) = from.entry(child) {
                    entry.insert(node);
                    queue.push_back(child);
                }
            }
        }
        None
    }
}

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;

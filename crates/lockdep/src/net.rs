//! Nodes and arcs, and how to go along them.
//!
//! # Role
//! The bare graph, without witnesses: of locks, and once more of classes. Arcs
//! know both of their neighbours in the lists of both of their ends, so that a
//! node can leave with all its arcs.
//!
//! # States
//! A search is at a node *in a state*: how it arrived there
//! ([`kinds`](crate::kinds)). States are numbered, two for each node. Nobody
//! arrives recursively at most nodes: their second state is asleep until the
//! first recursive request, and searches pass over it.

use crate::kinds::{Kinds, NORMAL, RECURSIVE};
use crate::order::{FIRST_CREDIT, PATIENCE};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::hash::BuildHasher;
use hashbrown::{DefaultHashBuilder, HashTable};

/// The number that stands for no node or no arc.
pub(crate) const NONE: u32 = u32::MAX;

/// Returns the state in which `node` is arrived at as `arrived`.
pub(crate) const fn state(node: u32, arrived: u32) -> u32 {
    2 * node + arrived
}

/// Returns the node of a state.
pub(crate) const fn node_of(state: u32) -> u32 {
    state / 2
}

#[derive(Debug)]
pub(crate) struct NetNode {
    /// The first arc out of it; the next free node while it is free.
    pub(crate) out: u32,
    /// The first arc into it.
    pub(crate) into: u32,
    /// The places of its states in the order; see [`order`](crate::order).
    pub(crate) places: [i64; 2],
    /// How many arcs lead out of it and into it.
    pub(crate) degrees: [u32; 2],
    /// Its second state is awake.
    pub(crate) recursive: bool,
    /// It is no node at present.
    pub(crate) free: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Arc {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Neighbours among the arcs out of `from`; the next free arc while free.
    out_next: u32,
    out_prev: u32,
    /// Neighbours among the arcs into `to`.
    into_next: u32,
    into_prev: u32,
    pub(crate) kinds: Kinds,
}

/// What a search remembers of a node: places in its queues, for each state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NodeMark {
    pub(crate) search: u32,
    pub(crate) forth: [u32; 2],
    pub(crate) back: [u32; 2],
}

/// The direction: along the arcs or against them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ArcDirection {
    Forth,
    Back,
}

/// The state of a walk over the neighbours of a state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NeighbourWalk {
    state: u32,
    arc: u32,
    /// Against the arcs: the state of the arc's beginning that is next.
    arrived: u32,
}

#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) nodes: Vec<NetNode>,
    pub(crate) arcs: Vec<Arc>,
    free_node: u32,
    free_arc: u32,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    marks: Vec<NodeMark>,
    search: u32,
    /// The number of steps that searches took since the order was last made from scratch.
    pub(crate) work: usize,
    /// The number of steps that searches took, ever.
    pub(crate) spent: usize,
    /// How many steps a search may take in any case.
    pub(crate) patience: usize,
    /// The steps that have been saved up for searches; see [`order`](crate::order).
    pub(crate) credit: usize,
    /// How much there was to order when it was last ordered anew, and how often
    /// that has come soon after the time before.
    pub(crate) ordered: usize,
    pub(crate) again: u32,
    /// Much of it was on cycles then.
    pub(crate) tangled: bool,
    /// Somewhere there was no room between two places.
    pub(crate) narrow: bool,
    /// The intervals of places that count as one, by where they begin.
    pub(crate) flat: BTreeMap<i64, i64>,
}

impl Net {
    pub(crate) fn new() -> Net {
        Net {
            nodes: Vec::new(),
            arcs: Vec::new(),
            free_node: NONE,
            free_arc: NONE,
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            marks: Vec::new(),
            search: 0,
            work: 0,
            spent: 0,
            patience: PATIENCE,
            credit: FIRST_CREDIT,
            ordered: 0,
            again: 0,
            tangled: false,
            narrow: false,
            flat: BTreeMap::new(),
        }
    }

    /// Returns how many arcs there are.
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    pub(crate) fn add_node(&mut self) -> u32 {
        let new = NetNode {
            out: NONE,
            into: NONE,
            places: [0; 2],
            degrees: [0; 2],
            recursive: false,
            free: false,
        };
        if self.free_node == NONE {
            self.nodes.push(new);
            return self.nodes.len() as u32 - 1;
        }
        let node = self.free_node;
        let place = &mut self.nodes[node as usize];
        self.free_node = place.out;
        *place = new;
        node
    }

    /// Takes a node out that has no arcs.
    pub(crate) fn remove_node(&mut self, node: u32) {
        let place = &mut self.nodes[node as usize];
        debug_assert!(place.out == NONE && place.into == NONE);
        place.out = self.free_node;
        place.free = true;
        self.free_node = node;
    }

    pub(crate) fn find(&self, from: u32, to: u32) -> Option<u32> {
        let hash = self.hasher.hash_one((from, to));
        let same = |&arc: &u32| {
            let arc = &self.arcs[arc as usize];
            (arc.from, arc.to) == (from, to)
        };
        self.index.find(hash, same).copied()
    }

    /// Adds an arc of no kind yet, which is not there.
    pub(crate) fn add_arc(&mut self, from: u32, to: u32) -> u32 {
        let (out_next, into_next) = (self.nodes[from as usize].out, self.nodes[to as usize].into);
        let new = Arc {
            from,
            to,
            out_next,
            out_prev: NONE,
            into_next,
            into_prev: NONE,
            kinds: Kinds::default(),
        };
        let arc = self.free_arc;
        let arc = if arc == NONE {
            self.arcs.push(new);
            self.arcs.len() as u32 - 1
        } else {
            self.free_arc = self.arcs[arc as usize].out_next;
            self.arcs[arc as usize] = new;
            arc
        };
        if out_next != NONE {
            self.arcs[out_next as usize].out_prev = arc;
        }
        if into_next != NONE {
            self.arcs[into_next as usize].into_prev = arc;
        }
        self.nodes[from as usize].out = arc;
        self.nodes[from as usize].degrees[ArcDirection::Forth as usize] += 1;
        self.nodes[to as usize].into = arc;
        self.nodes[to as usize].degrees[ArcDirection::Back as usize] += 1;
        let (arcs, hasher) = (&self.arcs, &self.hasher);
        let hash = |&arc: &u32| {
            let arc = &arcs[arc as usize];
            hasher.hash_one((arc.from, arc.to))
        };
        self.index.insert_unique(hash(&arc), arc, hash);
        arc
    }

    pub(crate) fn remove_arc(&mut self, arc: u32) {
        let Arc { from, to, out_next, out_prev, into_next, into_prev, .. } =
            self.arcs[arc as usize];
        let hash = self.hasher.hash_one((from, to));
        if let Ok(entry) = self.index.find_entry(hash, |&other| other == arc) {
            entry.remove();
        }
        self.nodes[from as usize].degrees[ArcDirection::Forth as usize] -= 1;
        self.nodes[to as usize].degrees[ArcDirection::Back as usize] -= 1;
        match out_prev {
            NONE => self.nodes[from as usize].out = out_next,
            prev => self.arcs[prev as usize].out_next = out_next,
        }
        if out_next != NONE {
            self.arcs[out_next as usize].out_prev = out_prev;
        }
        match into_prev {
            NONE => self.nodes[to as usize].into = into_next,
            prev => self.arcs[prev as usize].into_next = into_next,
        }
        if into_next != NONE {
            self.arcs[into_next as usize].into_prev = into_prev;
        }
        let place = &mut self.arcs[arc as usize];
        place.from = NONE;
        place.out_next = self.free_arc;
        self.free_arc = arc;
    }

    /// Returns the numbers of all arcs.
    pub(crate) fn all(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.arcs.len() as u32).filter(|&arc| self.arcs[arc as usize].from != NONE)
    }

    /// Returns the first arc of `node` in the direction.
    pub(crate) fn first(&self, node: u32, way: ArcDirection) -> u32 {
        let node = &self.nodes[node as usize];
        match way {
            ArcDirection::Forth => node.out,
            ArcDirection::Back => node.into,
        }
    }

    /// Returns the arc after `arc` in the list of the same node.
    pub(crate) fn after(&self, arc: u32, way: ArcDirection) -> u32 {
        let arc = &self.arcs[arc as usize];
        match way {
            ArcDirection::Forth => arc.out_next,
            ArcDirection::Back => arc.into_next,
        }
    }

    /// Begins a walk over the neighbours of a state that is awake.
    pub(crate) fn walk(&self, state: u32, way: ArcDirection) -> NeighbourWalk {
        NeighbourWalk { state, arc: self.first(node_of(state), way), arrived: NORMAL }
    }

    /// Takes a step of constant time to the next neighbour; it may find none.
    pub(crate) fn step(&self, walk: &mut NeighbourWalk, way: ArcDirection) -> WalkStep {
        if walk.arc == NONE {
            return WalkStep::End;
        }
        let arc = &self.arcs[walk.arc as usize];
        let arrived = walk.state % 2;
        match way {
            ArcDirection::Forth => {
                walk.arc = arc.out_next;
                match arc.kinds.forth(arrived) {
                    Some(there) => WalkStep::To(state(arc.to, there)),
                    None => WalkStep::Blind,
                }
            }
            ArcDirection::Back => {
                let there = walk.arrived;
                if there == NORMAL && self.nodes[arc.from as usize].recursive {
                    walk.arrived = RECURSIVE;
                } else {
                    walk.arrived = NORMAL;
                    walk.arc = arc.into_next;
                }
                match arc.kinds.forth(there) {
                    Some(here) if here == arrived => WalkStep::To(state(arc.from, there)),
                    _ => WalkStep::Blind,
                }
            }
        }
    }

    pub(crate) fn place(&self, state: u32) -> i64 {
        self.nodes[node_of(state) as usize].places[(state % 2) as usize]
    }

    pub(crate) fn set_place(&mut self, state: u32, place: i64) {
        self.nodes[node_of(state) as usize].places[(state % 2) as usize] = place;
    }

    /// Begins a search: no node carries a mark.
    pub(crate) fn begin_search(&mut self) {
        self.marks.resize(self.nodes.len(), NodeMark::default());
        self.search = self.search.wrapping_add(1);
        if self.search == 0 {
            self.marks.fill(NodeMark::default());
            self.search = 1;
        }
    }

    /// Returns the mark of a node in the search that was begun last.
    pub(crate) fn mark(&mut self, node: u32) -> &mut NodeMark {
        let mark = &mut self.marks[node as usize];
        if mark.search != self.search {
            *mark = NodeMark { search: self.search, forth: [NONE; 2], back: [NONE; 2] };
        }
        mark
    }

    /// Returns where a state stands in the queue of the search; [`NONE`] if it does not.
    pub(crate) fn seen(&self, state: u32, way: ArcDirection) -> u32 {
        let mark = &self.marks[node_of(state) as usize];
        if mark.search != self.search {
            return NONE;
        }
        match way {
            ArcDirection::Forth => mark.forth[(state % 2) as usize],
            ArcDirection::Back => mark.back[(state % 2) as usize],
        }
    }

    /// Returns the place of a state in the queue of the search, to be set.
    pub(crate) fn slot(&mut self, state: u32, way: ArcDirection) -> &mut u32 {
        let mark = self.mark(node_of(state));
        match way {
            ArcDirection::Forth => &mut mark.forth[(state % 2) as usize],
            ArcDirection::Back => &mut mark.back[(state % 2) as usize],
        }
    }
}

/// The outcome of a step of a [`NeighbourWalk`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WalkStep {
    To(u32),
    Blind,
    End,
}

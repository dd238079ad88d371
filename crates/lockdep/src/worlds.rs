//! The two worlds of each signal: its handlers, and where they may interrupt.
//!
//! # Role
//! A lock that a handler takes must not be held where the handler may run; nor
//! may a lock that is held there be asked for, at whatever distance, by who holds
//! a lock that the handler takes. Both are ways from a lock of the one world to a
//! lock of the other along strong arcs, the first of no arcs. Like the rest of the
//! order they are found though the signal never came at the wrong moment.
//!
//! # Protocol
//! Each state carries the signals from whose handlers it can be reached, its
//! *taint*. A new arc or use passes it on; where it grows at a node that is open
//! to the signal, that is a hit, and a search against the arcs finds the nearest
//! handler. No handlers, no taint, no cost.
//!
//! # Invariant
//! - **WORLDS-CARRY** What a state carries, all that is one step from it carries too.
//!
//! A node that leaves may leave behind taint whose origin is gone. It is made
//! anew before it could hide a hit, which is when more would be passed on.

use crate::kinds::{NORMAL, RECURSIVE, asked, held};
use crate::net::{ArcDirection, NONE, Net, WalkStep, node_of, state};
use crate::types::{LockId, Mode, SignalUse, SignalWorld, SiteId, ThreadId};
use alloc::vec;
use alloc::vec::Vec;
use hashbrown::HashMap;

/// How many hits of one event are followed up.
const MOST: usize = 64;

/// A use of a lock in one of the worlds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorldUse {
    pub(crate) lock: LockId,
    pub(crate) mode: Mode,
    pub(crate) site: SiteId,
    pub(crate) thread: ThreadId,
}

/// A way from a handler of the signal to a state that is open to it.
#[derive(Clone, Debug)]
pub(crate) struct HandlerPassage {
    /// Its arcs, from the handler's lock.
    pub(crate) arcs: Vec<u32>,
    pub(crate) handler: WorldUse,
    /// One or two threads that hold the last lock.
    pub(crate) open: Vec<WorldUse>,
}

/// What a node has to do with signals, one bit each.
#[derive(Clone, Copy, Default, Debug)]
struct NodeSignals {
    /// The signals from whose handlers the node is reached, by how it is arrived at.
    taint: [u64; 2],
    /// The signals in whose handlers it is taken, by how it is asked for.
    handled: [u64; 2],
    /// The signals that may interrupt where it is held, exclusively and shared.
    open: [u64; 2],
    /// It is in the list of those with taint.
    listed: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Worlds {
    nodes: Vec<NodeSignals>,
    /// The uses of each node, signal, world and way of holding: at most two, by different threads.
    uses: HashMap<(u32, u8, SignalWorld, u32), Vec<WorldUse>>,
    /// The nodes with taint, and perhaps some that have none any more.
    tainted: Vec<u32>,
    /// Nodes have left whose taint may still be around.
    stale: bool,
}

fn bit(signal: u8) -> u64 {
    1 << (signal - 1)
}

fn signals(mut bits: u64) -> impl Iterator<Item = u8> {
    core::iter::from_fn(move || {
        let signal = (bits != 0).then(|| bits.trailing_zeros() as u8 + 1)?;
        bits &= bits - 1;
        Some(signal)
    })
}

impl Worlds {
    fn at(&mut self, node: u32) -> &mut NodeSignals {
        if self.nodes.len() <= node as usize {
            self.nodes.resize(node as usize + 1, NodeSignals::default());
        }
        &mut self.nodes[node as usize]
    }

    fn get(&self, node: u32) -> NodeSignals {
        self.nodes.get(node as usize).copied().unwrap_or_default()
    }

    /// Returns how many uses there are.
    pub(crate) fn len(&self) -> usize {
        self.uses.len()
    }

    /// Returns the signals from whose handlers a node can be reached.
    pub(crate) fn taint(&self, node: u32) -> u64 {
        let taint = self.get(node).taint;
        taint[0] | taint[1]
    }

    /// Notes a use; `false` if it says nothing new.
    pub(crate) fn note(&mut self, net: &Net, node: u32, lock: LockId, usage: &SignalUse) -> bool {
        if usage.world == SignalWorld::Handler {
            // As long as the new one is not among those that are passed on here.
            self.refresh(net);
        }
        let how = match usage.world {
            SignalWorld::Handler => asked(usage.mode),
            SignalWorld::Open => held(usage.mode),
        };
        let SignalUse { signal, world, mode, site, thread } = *usage;
        let uses = self.uses.entry((node, signal, world, how)).or_default();
        if uses.len() > 1 || uses.iter().any(|used| used.thread == thread) {
            return false;
        }
        uses.push(WorldUse { lock, mode, site, thread });
        let signals = self.at(node);
        let mask = match world {
            SignalWorld::Handler => &mut signals.handled[how as usize],
            SignalWorld::Open => &mut signals.open[how as usize],
        };
        *mask |= bit(signal);
        true
    }

    /// Follows up a use that was noted.
    pub(crate) fn follow(&mut self, net: &mut Net, node: u32, usage: &SignalUse) -> Hits {
        match usage.world {
            SignalWorld::Handler => {
                let from = state(node, asked(usage.mode));
                if from % 2 == RECURSIVE {
                    net.wake(node);
                }
                self.pass_on(net, from, bit(usage.signal))
            }
            SignalWorld::Open => {
                let mut hits = Hits::default();
                for arrived in [NORMAL, RECURSIVE] {
                    hits.look(self.get(node), state(node, arrived), bit(usage.signal));
                }
                hits
            }
        }
    }

    /// Renews stale taint before an arc out of `from` gets a further kind and passes it on.
    pub(crate) fn prepare(&mut self, net: &mut Net, from: u32) {
        if self.stale && self.taint(from) != 0 {
            self.refresh(net);
        }
    }

    /// Passes taint on along an arc that has got a further kind.
    pub(crate) fn extend(&mut self, net: &Net, arc: u32) -> Hits {
        let mut hits = Hits::default();
        if self.tainted.is_empty() {
            return hits;
        }
        let arc = &net.arcs[arc as usize];
        for arrived in [NORMAL, RECURSIVE] {
            let taint = self.get(arc.from).taint[arrived as usize];
            if let Some(there) = arc.kinds.forth(arrived).filter(|_| taint != 0) {
                hits.add(self.pass_on(net, state(arc.to, there), taint));
            }
        }
        hits
    }

    /// Taints a state and all that can be reached from it.
    fn pass_on(&mut self, net: &Net, from: u32, taint: u64) -> Hits {
        let mut hits = Hits::default();
        let mut queue = vec![(from, taint)];
        let mut head = 0;
        while let Some(&(here, taint)) = queue.get(head) {
            head += 1;
            let node = node_of(here);
            let signals = self.at(node);
            let mine = &mut signals.taint[(here % 2) as usize];
            let new = taint & !*mine;
            if new == 0 {
                continue;
            }
            *mine |= new;
            let open = *signals;
            if !core::mem::replace(&mut signals.listed, true) {
                self.tainted.push(node);
            }
            hits.look(open, here, new);
            queue.extend(net.all_from(here).into_iter().map(|next| (next, new)));
        }
        hits
    }

    /// Makes all taint anew if some of it may be there without an origin.
    fn refresh(&mut self, net: &Net) {
        if !core::mem::take(&mut self.stale) {
            return;
        }
        let tainted = core::mem::take(&mut self.tainted);
        for &node in &tainted {
            let signals = &mut self.nodes[node as usize];
            (signals.taint, signals.listed) = ([0; 2], false);
        }
        // Where it begins is among them.
        for node in tainted {
            for arrived in [NORMAL, RECURSIVE] {
                let handled = self.nodes[node as usize].handled[arrived as usize];
                self.pass_on(net, state(node, arrived), handled);
            }
        }
    }

    /// Forgets a node that leaves with its arcs; `leads` if there were some out of it.
    pub(crate) fn forget(&mut self, node: u32, leads: bool) {
        let Some(signals_here) = self.nodes.get_mut(node as usize) else { return };
        let gone = core::mem::take(signals_here);
        signals_here.listed = gone.listed;
        self.stale |= gone.taint != [0; 2] && leads;
        for (world, masks) in [(SignalWorld::Handler, gone.handled), (SignalWorld::Open, gone.open)]
        {
            for how in [0, 1] {
                for signal in signals(masks[how as usize]) {
                    self.uses.remove(&(node, signal, world, how));
                }
            }
        }
    }

    /// Returns the shortest way to a hit, if the taint is true. `Err` if the search is given up.
    pub(crate) fn passage(
        &self,
        net: &mut Net,
        signal: u8,
        end: u32,
    ) -> Result<Option<HandlerPassage>, ()> {
        let open = self.get(node_of(end)).open;
        let mut holders = Vec::new();
        for how in [0, 1] {
            let counts = end % 2 == NORMAL || how == 0;
            if counts && open[how as usize] & bit(signal) != 0 {
                let key = (node_of(end), signal, SignalWorld::Open, how);
                holders.extend(self.uses.get(&key).into_iter().flatten().copied());
            }
        }
        let credit = net.credit();
        let mut queue = vec![(end, NONE)];
        let mut came: HashMap<u32, ()> = HashMap::from([(end, ())]);
        let mut steps = 0;
        let mut head = 0;
        while let Some(&(here, _)) = queue.get(head) {
            let key = (node_of(here), signal, SignalWorld::Handler, here % 2);
            if let Some(handler) = self.uses.get(&key).and_then(|uses| uses.first()) {
                net.spend(steps);
                let mut arcs = Vec::new();
                let mut at = head;
                while queue[at].1 != NONE {
                    let next = queue[at].1 as usize;
                    arcs.extend(net.find(node_of(queue[at].0), node_of(queue[next].0)));
                    at = next;
                }
                let handler = *handler;
                let passage = HandlerPassage { arcs, handler, open: holders };
                return Ok(Some(passage).filter(|passage| !passage.open.is_empty()));
            }
            let mut walk = net.walk(here, ArcDirection::Back);
            loop {
                steps += 1;
                match net.step(&mut walk, ArcDirection::Back) {
                    WalkStep::End => break,
                    WalkStep::Blind => {}
                    WalkStep::To(before) => {
                        let taint = self.get(node_of(before)).taint[(before % 2) as usize];
                        if taint & bit(signal) != 0 && came.insert(before, ()).is_none() {
                            queue.push((before, head as u32));
                        }
                    }
                }
            }
            if steps > credit {
                net.spend(steps);
                return Err(());
            }
            head += 1;
        }
        net.spend(steps);
        Ok(None)
    }
}

/// The states that are open to a signal and can be reached from its handlers.
#[derive(Default, Debug)]
pub(crate) struct Hits {
    pub(crate) all: Vec<(u8, u32)>,
    /// The number of further ones.
    pub(crate) more: usize,
}

impl Hits {
    fn push(&mut self, signal: u8, state: u32) {
        if self.all.len() < MOST {
            self.all.push((signal, state));
        } else {
            self.more += 1;
        }
    }

    /// Adds what of the signals is a hit in a state.
    fn look(&mut self, node: NodeSignals, state: u32, bits: u64) {
        let arrived = (state % 2) as usize;
        let open = node.open[0] | if arrived as u32 == NORMAL { node.open[1] } else { 0 };
        for signal in signals(node.taint[arrived] & open & bits) {
            self.push(signal, state);
        }
    }

    fn add(&mut self, other: Hits) {
        for (signal, state) in other.all {
            self.push(signal, state);
        }
        self.more += other.more;
    }
}

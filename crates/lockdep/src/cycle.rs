//! Which threads could be at all edges of a cycle at the same time.
//!
//! # Role
//! Given the arcs of a cycle, or of a way between the worlds of a signal, finds a
//! witness for each such that together they prove a deadlock, or says what
//! stands against it.

use crate::kinds::{asked, held, waits};
use crate::seen::{ArcWitness, Witnesses};
use crate::sets::{HeldLock, Sets};
use crate::types::{Excuse, LockId, ThreadId};
use alloc::vec::Vec;
use hashbrown::{HashMap, HashSet};

/// What is asked of witnesses that stand together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Demands {
    pub(crate) threads: bool,
    pub(crate) gates: bool,
    pub(crate) alone: bool,
}

impl Demands {
    /// All demands: a potential deadlock meets them.
    pub(crate) const ALL: Demands = Demands { threads: true, gates: true, alone: true };
    /// No demand but that each request waits behind the next hold.
    pub(crate) const NONE: Demands = Demands { threads: false, gates: false, alone: false };
}

/// The witnesses of a net, and what they held.
pub(crate) struct NetFacts<'a, L = ()> {
    pub(crate) witnesses: &'a Witnesses<L>,
    pub(crate) sets: &'a Sets,
}

/// Witnesses that can stand together.
#[derive(Debug, Default)]
pub(crate) struct WitnessGroup {
    threads: HashSet<ThreadId>,
    /// The locks of the threads that were let in: how many hold each exclusively, how many share
    /// it.
    locks: HashMap<(u32, LockId), (u32, u32)>,
    /// A lock that kept somebody out.
    pub(crate) gate: Option<LockId>,
}

impl WitnessGroup {
    /// Keeps a thread out that takes part in another way.
    pub(crate) fn without(thread: Option<ThreadId>) -> WitnessGroup {
        let mut party = WitnessGroup::default();
        party.threads.extend(thread);
        party
    }

    /// Lets a witness of an edge from `from` in if it can be there too.
    pub(crate) fn admit<L>(
        &mut self,
        seen: &ArcWitness<L>,
        from: &HeldLock,
        sets: &Sets,
        demands: Demands,
    ) -> bool {
        if demands.alone && seen.alone() || demands.threads && self.threads.contains(&seen.thread) {
            return false;
        }
        let from = [HeldLock { shared: seen.holds().is_shared(), ..*from }];
        let all = seen.all(&from, sets);
        if demands.gates {
            for held in all {
                if let Some(&(exclusive, shared)) = self.locks.get(&(held.life, held.lock))
                    && (exclusive > 0 || shared > 0 && !held.shared)
                {
                    self.gate = Some(held.lock);
                    return false;
                }
            }
            for held in all {
                let (exclusive, shared) = self.locks.entry((held.life, held.lock)).or_default();
                *(if held.shared { shared } else { exclusive }) += 1;
            }
        }
        if demands.threads {
            self.threads.insert(seen.thread);
        }
        true
    }

    /// Takes back what [`admit`](WitnessGroup::admit) did.
    pub(crate) fn dismiss<L>(
        &mut self,
        seen: &ArcWitness<L>,
        from: &HeldLock,
        sets: &Sets,
        demands: Demands,
    ) {
        if demands.gates {
            let from = [HeldLock { shared: seen.holds().is_shared(), ..*from }];
            for held in seen.all(&from, sets) {
                if let Some((exclusive, shared)) = self.locks.get_mut(&(held.life, held.lock)) {
                    *(if held.shared { shared } else { exclusive }) -= 1;
                }
            }
        }
        if demands.threads {
            self.threads.remove(&seen.thread);
        }
    }
}

/// What stands at both ends of a row of edges.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowEnds {
    /// The last one's request waits behind the first one's hold.
    Cycle,
    /// A handler's request, of the first kind, waits behind the first hold; the
    /// last request waits behind a hold of the second kind, by this thread, which
    /// the handler interrupts.
    Handler { asked: u32, held: u32, thread: ThreadId },
}

/// Finds a witness for each edge, given by its arc and the lock it holds. The first edge has only
/// the witness `fixed`, if given. At most `budget` witnesses are tried. Returns `None` if none
/// stand together.
pub(crate) fn assign<L: Copy>(
    edges: &[(u32, HeldLock)],
    fixed: Option<&ArcWitness<L>>,
    ends: RowEnds,
    demands: Demands,
    facts: &NetFacts<'_, L>,
    mut budget: usize,
) -> Result<Vec<ArcWitness<L>>, Option<LockId>> {
    let mut party = match ends {
        RowEnds::Handler { thread, .. } if demands.threads => WitnessGroup::without(Some(thread)),
        _ => WitnessGroup::default(),
    };
    let mut chosen: Vec<ArcWitness<L>> = Vec::with_capacity(edges.len());
    // Which witness of each edge is next.
    let mut next: Vec<usize> = Vec::with_capacity(edges.len());
    next.push(0);
    while let Some(turn) = next.last_mut() {
        let place = chosen.len();
        if place == edges.len() {
            return Ok(chosen);
        }
        let (arc, from) = &edges[place];
        let seen = match fixed {
            Some(fixed) if place == 0 => Some(fixed).filter(|_| *turn == 0),
            _ => facts.witnesses.of(*arc).nth(*turn),
        };
        *turn += 1;
        let Some(seen) = seen.filter(|_| budget > 0) else {
            // Another one for the edge before.
            next.pop();
            if let (Some(last), Some(edge)) = (chosen.pop(), edges.get(place.wrapping_sub(1))) {
                party.dismiss(&last, &edge.1, facts.sets, demands);
            }
            continue;
        };
        budget -= 1;
        let before = match (chosen.last(), ends) {
            (Some(last), _) => waits(asked(last.asks()), held(seen.holds())),
            (None, RowEnds::Handler { asked, .. }) => waits(asked, held(seen.holds())),
            (None, RowEnds::Cycle) => true,
        };
        let after = place + 1 < edges.len()
            || match ends {
                RowEnds::Handler { held, .. } => waits(asked(seen.asks()), held),
                RowEnds::Cycle => {
                    let first = chosen.first().unwrap_or(seen);
                    waits(asked(seen.asks()), held(first.holds()))
                }
            };
        if before && after && party.admit(seen, from, facts.sets, demands) {
            chosen.push(*seen);
            next.push(0);
        }
    }
    Err(party.gate)
}

/// Returns the best that can be said of a row of edges: witnesses, and what stands against a
/// deadlock. `None` if not even the requests wait for each other.
pub(crate) fn judge<L: Copy>(
    edges: &[(u32, HeldLock)],
    ends: RowEnds,
    facts: &NetFacts<'_, L>,
    budget: usize,
) -> Option<(Vec<ArcWitness<L>>, Option<Excuse>)> {
    let attempt = |demands| assign(edges, None, ends, demands, facts, budget);
    let gate = match attempt(Demands::ALL) {
        Ok(seen) => return Some((seen, None)),
        Err(gate) => gate,
    };
    let gate = match attempt(Demands { alone: false, ..Demands::ALL }) {
        Ok(seen) => return Some((seen, Some(Excuse::Alone))),
        Err(other) => gate.or(other),
    };
    let threads = Demands { threads: true, ..Demands::NONE };
    for demands in [Demands { alone: true, ..threads }, threads] {
        if let Ok(seen) = attempt(demands) {
            let excuse = gate.map_or(Excuse::OneThread, Excuse::Gate);
            return Some((seen, Some(excuse)));
        }
    }
    attempt(Demands::NONE).ok().map(|seen| (seen, Some(Excuse::OneThread)))
}

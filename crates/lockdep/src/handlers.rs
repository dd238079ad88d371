//! Findings about signal handlers.

use crate::cycle::{Demands, NetFacts, RowEnds, assign, judge};
use crate::cycles::effort;
use crate::graph::Graph;
use crate::kinds::{asked, held};
use crate::net::node_of;
use crate::sets::HeldLock;
use crate::types::{
    Excuse, Inversion, InversionKind, InversionStep, Level, LockClass, LockId, SignalUse, Witness,
};
use crate::worlds::{HandlerPassage, Hits, WorldUse};
use alloc::vec::Vec;

/// How many ways that are no potential deadlock yet are kept in mind.
const PENDING: usize = 256;

impl Graph {
    /// Notes that a lock is taken in one of the worlds of a signal: to be told once for each lock,
    /// signal, world and mode, and once more for another thread. What this completes is added to
    /// `findings`.
    ///
    /// Of several ways between the worlds the shortest is judged: a longer one
    /// may be a potential deadlock where it is not.
    pub fn used(&mut self, lock: LockId, usage: SignalUse, findings: &mut Vec<Inversion>) {
        let Some(node) = self.node(lock).filter(|_| (1..=64).contains(&usage.signal)) else {
            self.losses.undeclared += 1;
            return;
        };
        if self.worlds.len() + self.class_worlds.len() >= self.limits.edges as usize {
            self.losses.uses += 1;
            return;
        }
        if self.worlds.note(&self.net, node, lock, &usage) {
            let hits = self.worlds.follow(&mut self.net, node, &usage);
            self.hits_of_locks(hits, findings);
        }
        let class = self.locks[node as usize].class;
        if self.classes.has_node(class)
            && self.class_worlds.note(&self.classes.net, class, lock, &usage)
        {
            let hits = self.class_worlds.follow(&mut self.classes.net, class, &usage);
            self.hits_of_classes(hits, findings);
        }
    }

    /// Looks for ways from handlers after an arc between locks has got a further kind or witness.
    pub(crate) fn ways_of_locks(&mut self, arc: u32, findings: &mut Vec<Inversion>) {
        let hits = self.worlds.extend(&self.net, arc);
        self.hits_of_locks(hits, findings);
        let taint = self.worlds.taint(self.net.arcs[arc as usize].from);
        if taint != 0 {
            // What was excused may be no more.
            let pending = core::mem::take(&mut self.pending);
            let (again, rest) =
                pending.into_iter().partition(|&(signal, _)| taint & 1 << (signal - 1) != 0);
            self.pending = rest;
            self.hits_of_locks(Hits { all: again, more: 0 }, findings);
        }
    }

    /// Looks for ways from handlers after an arc between classes has got a further kind or witness.
    pub(crate) fn ways_of_classes(&mut self, arc: u32, findings: &mut Vec<Inversion>) {
        let hits = self.class_worlds.extend(&self.classes.net, arc);
        self.hits_of_classes(hits, findings);
    }

    fn hits_of_locks(&mut self, hits: Hits, findings: &mut Vec<Inversion>) {
        self.losses.searches += hits.more as u64;
        for (signal, end) in hits.all {
            let passage = match self.worlds.passage(&mut self.net, signal, end) {
                Ok(None) => continue,
                Ok(Some(passage)) => passage,
                Err(()) => {
                    self.losses.searches += 1;
                    continue;
                }
            };
            let HandlerPassage { arcs, handler, open, .. } = &passage;
            let facts = NetFacts { witnesses: &self.witnesses, sets: &self.sets };
            let edge =
                |&arc: &u32| (arc, self.locks[self.net.arcs[arc as usize].from as usize].held());
            let edges: Vec<(u32, HeldLock)> = arcs.iter().map(edge).collect();
            let judged = open.iter().filter_map(|open| {
                let ends = RowEnds::Handler {
                    asked: asked(handler.mode),
                    held: held(open.mode),
                    thread: open.thread,
                };
                let (seen, excuse) = judge(&edges, ends, &facts, effort(arcs))?;
                Some((open, seen, excuse))
            });
            // The first is the best but where another one is without an excuse.
            let judged = judged.reduce(|a, b| if b.2.is_none() && a.2.is_some() { b } else { a });
            let Some((open, seen, excuse)) = judged else { continue };
            let level = if excuse.is_none() { Level::Potential } else { Level::Order };
            if level == Level::Order && self.pending.len() < PENDING {
                self.pending.push((signal, end));
            }
            let last = self.class_of(node_of(end));
            let (locks, arcs_of) = (&self.locks, &self.net.arcs);
            let class = |&arc: &u32| locks[arcs_of[arc as usize].from as usize].class;
            let classes = arcs.iter().map(class).chain([last]);
            if !self.causes.news(classes, Some(signal), level) {
                continue;
            }
            let first = arcs.first().map_or(node_of(end), |&arc| self.net.arcs[arc as usize].from);
            let first = self.classes.name(self.class_of(first));
            let steps = arcs.iter().zip(&seen).map(|(&arc, seen)| self.step(arc, seen));
            let by_handler = interruption(open, handler, self.classes.name(last), first);
            let steps = steps.chain([by_handler]).collect();
            findings.push(Inversion {
                level,
                kind: InversionKind::Handler { signal, thread: handler.thread },
                steps,
                excuse,
            });
        }
    }

    fn hits_of_classes(&mut self, hits: Hits, findings: &mut Vec<Inversion>) {
        self.losses.searches += hits.more as u64;
        for (signal, end) in hits.all {
            let passage = match self.class_worlds.passage(&mut self.classes.net, signal, end) {
                Ok(None) => continue,
                Ok(Some(passage)) => passage,
                Err(()) => {
                    self.losses.searches += 1;
                    continue;
                }
            };
            let HandlerPassage { arcs, handler, open, .. } = &passage;
            let facts = NetFacts { witnesses: &self.classes.witnesses, sets: &self.sets };
            let of = |arc: u32| self.classes.net.arcs[arc as usize].from;
            let edge =
                |&arc: &u32| (arc, HeldLock { life: 0, lock: LockId(of(arc)), shared: false });
            let edges: Vec<(u32, HeldLock)> = arcs.iter().map(edge).collect();
            let attempt = |open: &WorldUse| {
                let ends = RowEnds::Handler {
                    asked: asked(handler.mode),
                    held: held(open.mode),
                    thread: open.thread,
                };
                assign(&edges, None, ends, Demands::NONE, &facts, effort(arcs)).ok()
            };
            let Some((open, seen)) =
                open.iter().find_map(|open| attempt(open).map(|seen| (open, seen)))
            else {
                continue;
            };
            let last = node_of(end);
            let classes = arcs.iter().map(|&arc| of(arc)).chain([last]);
            if !self.causes.news(classes, Some(signal), Level::Order) {
                continue;
            }
            let first = self.classes.name(arcs.first().map_or(last, |&arc| of(arc)));
            let steps = arcs.iter().zip(&seen).map(|(&arc, seen)| self.class_step(arc, seen));
            let by_handler = interruption(open, handler, self.classes.name(last), first);
            findings.push(Inversion {
                level: Level::Order,
                kind: InversionKind::Handler { signal, thread: handler.thread },
                steps: steps.chain([by_handler]).collect(),
                excuse: Some(Excuse::OtherInstances),
            });
        }
    }
}

/// Returns the step of a handler: it runs while `open` is held.
fn interruption(
    open: &WorldUse,
    handler: &WorldUse,
    from_class: LockClass,
    to_class: LockClass,
) -> InversionStep {
    InversionStep {
        from: open.lock,
        to: handler.lock,
        from_class,
        to_class,
        witness: Witness {
            thread: open.thread,
            from_site: open.site,
            to_site: handler.site,
            from_mode: open.mode,
            to_mode: handler.mode,
            gates: Vec::new(),
            alone: false,
            tried_from: false,
            timed_to: false,
        },
    }
}

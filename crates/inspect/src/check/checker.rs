//! Reads the edges and violations of one ledger as they come.

use super::facts::{CheckFacts, ExcuseFacts, OrderFacts, StepFacts, ThreadFacts, ViolationFacts};
use super::lives::{LifeKnowledge, Lives, LockLife};
use lockstead_ledger::order::{EdgeMode, SeenEdge};
use lockstead_ledger::violation::{Rule, SeenViolation};
use lockstead_ledger::{Ledger, LedgerPart};
use lockstead_lockdep as graph;
use lockstead_lockdep::{
    GateLock, Graph, Limits, LockId, SignalUse, SignalWorld, SiteId, ThreadId,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::Ordering::Relaxed;

/// Looks that a record which is not complete is waited for: its writer may have
/// been ended in the middle.
const PATIENCE: u32 = 8;
/// Records that were passed over and are looked at again.
const HOLES: usize = 1024;
/// Threads that are remembered.
const THREADS: usize = 1 << 20;

/// What was read, and what could not be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckCounts {
    /// Locks that took part in the order.
    pub locks: u64,
    /// The number of records of edges.
    pub edges: u64,
    /// The number of records of violations.
    pub violations: u64,
    /// What was left out by the graph, and why.
    pub graph: graph::GraphLosses,
    /// Lives beyond what is remembered.
    pub lives: u64,
}

/// The place where the reading of a part stands.
#[derive(Debug, Default)]
struct Cursor {
    next: usize,
    /// Looks for which the next one has not been complete.
    waited: u32,
    /// Records that were passed over, to be looked at again.
    holes: Vec<usize>,
}

impl Cursor {
    /// Hands out complete records, at most `most`; says whether there are more.
    fn read<T>(
        &mut self,
        most: usize,
        last: bool,
        at: impl Fn(usize) -> Option<Option<T>>,
        mut take: impl FnMut(usize, T),
    ) -> bool {
        self.holes.retain(|&hole| match at(hole) {
            Some(Some(record)) => {
                take(hole, record);
                false
            }
            _ => true,
        });
        for _ in 0..most {
            match at(self.next) {
                None => return false,
                Some(Some(record)) => {
                    take(self.next, record);
                    self.waited = 0;
                }
                Some(None) if !last && self.waited < PATIENCE => {
                    self.waited += 1;
                    return false;
                }
                Some(None) => {
                    if self.holes.len() < HOLES {
                        self.holes.push(self.next);
                    }
                    self.waited = 0;
                }
            }
            self.next += 1;
        }
        true
    }
}

/// Checks what one process has written down.
#[derive(Debug)]
pub struct Checker {
    graph: Graph,
    lives: Lives,
    edges: Cursor,
    violations: Cursor,
    threads: HashMap<u32, u32>,
    counts: CheckCounts,
    /// Locks that handlers were the first to take, by their ids: how.
    handled: BTreeMap<u32, SeenViolation>,
    /// The locks that were taken outside of handlers since.
    outside: HashSet<u32>,
    gates: Vec<GateLock>,
    found: Vec<graph::Inversion>,
}

impl Default for Checker {
    fn default() -> Self {
        Checker::new(Limits::default())
    }
}

impl Checker {
    /// Makes a checker with an order graph of this size.
    #[must_use]
    pub fn new(limits: Limits) -> Checker {
        Checker {
            graph: Graph::new(limits),
            lives: Lives::default(),
            edges: Cursor::default(),
            violations: Cursor::default(),
            threads: HashMap::new(),
            counts: CheckCounts::default(),
            handled: BTreeMap::new(),
            outside: HashSet::new(),
            gates: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Reads what has come since, at most `most` records of each kind, and says
    /// whether there are more. `last`: the process has ended, nothing that is
    /// not complete will ever be.
    pub fn look(
        &mut self,
        ledger: &Ledger<'_>,
        most: usize,
        last: bool,
        news: &mut Vec<CheckFacts>,
    ) -> bool {
        let mut violations = std::mem::take(&mut self.violations);
        let read = |at| ledger.violation(at).map(|record| record.read());
        let mut more = violations.read(most, last, read, |_, violation| {
            if violation.rule == Rule::InHandler && violation.other_stack == 0 {
                return self.used(ledger, &violation, news);
            }
            self.counts.violations += 1;
            let lock = self.life(ledger, violation.lock, violation.generation, violation.stack);
            let other = self.now(ledger, violation.other_lock, violation.other_stack);
            news.push(CheckFacts::Violation(ViolationFacts { violation, lock, other }));
        });
        self.violations = violations;
        let mut edges = std::mem::take(&mut self.edges);
        more |= edges.read(
            most,
            last,
            |at| ledger.edge(at),
            |_, edge| {
                self.edge(ledger, &edge, news);
            },
        );
        self.edges = edges;
        if last && !more {
            self.handlers_only(ledger, news);
        }
        more
    }

    /// Reports the locks that nothing but handlers took until the process ended. They are in
    /// nobody's way, and yet no handler may use a lock.
    fn handlers_only(&mut self, ledger: &Ledger<'_>, news: &mut Vec<CheckFacts>) {
        for (id, mut violation) in std::mem::take(&mut self.handled) {
            if self.outside.contains(&id) {
                continue;
            }
            self.counts.violations += 1;
            // The mode of a use stands where a violation has the other thread.
            violation.other_tid = 0;
            let lock = self.life(ledger, violation.lock, violation.generation, violation.stack);
            news.push(CheckFacts::Violation(ViolationFacts { violation, lock, other: None }));
        }
    }

    /// Returns what was read so far.
    #[must_use]
    pub fn counts(&self) -> CheckCounts {
        CheckCounts {
            locks: self.lives.len() as u64,
            graph: self.graph.losses(),
            lives: self.lives.lost,
            ..self.counts
        }
    }

    /// Returns the locks that it met.
    #[must_use]
    pub fn into_lives(self) -> Lives {
        self.lives
    }

    fn edge(&mut self, ledger: &Ledger<'_>, edge: &SeenEdge, news: &mut Vec<CheckFacts>) {
        if edge.from == edge.to {
            if let Some(id) = self.lives.end(edge.from, edge.from_generation) {
                self.graph.forget(LockId(id));
            }
            return;
        }
        self.counts.edges += 1;
        let serves_as_lock = |index| !is_signal(ledger, index);
        if !serves_as_lock(edge.from) || !serves_as_lock(edge.to) {
            return;
        }
        let from = self.meet(ledger, edge.from, edge.from_generation, edge.from_stack);
        let to = self.meet(ledger, edge.to, edge.to_generation, edge.to_stack);
        let (Some(from), Some(to)) = (from, to) else { return };
        if self.threads.len() < THREADS {
            self.threads.insert(edge.thread, edge.tid);
        }
        let mut gates = std::mem::take(&mut self.gates);
        gates.clear();
        gates.extend(ledger.lock_list(edge.gates).filter_map(|(index, shared)| {
            let lock = LockId(self.lives.latest(index)?);
            Some(GateLock { lock, shared })
        }));
        let mut found = std::mem::take(&mut self.found);
        self.graph.add(
            &graph::OrderEdge {
                from: LockId(from),
                to: LockId(to),
                from_mode: mode(edge.from_mode),
                to_mode: mode(edge.to_mode),
                from_site: SiteId(edge.from_stack),
                to_site: SiteId(edge.to_stack),
                thread: ThreadId(edge.thread),
                gates: &gates,
                alone: edge.alone,
                tried_from: edge.from_tried,
                timed_to: edge.to_timed,
            },
            &mut found,
        );
        news.extend(found.drain(..).filter_map(|finding| self.facts(ledger, finding)));
        self.gates = gates;
        self.found = found;
    }

    /// Meets a record that a lock is taken in a handler (other lock 0), or with some
    /// signals open (their mask): no violation by itself.
    fn used(&mut self, ledger: &Ledger<'_>, record: &SeenViolation, news: &mut Vec<CheckFacts>) {
        let Some(id) = self.meet(ledger, record.lock, record.generation, record.stack) else {
            return;
        };
        if self.threads.len() < THREADS {
            self.threads.insert(record.thread, record.tid);
        }
        if record.weak && record.other_lock != 0 {
            self.outside.insert(id);
        } else if record.weak {
            self.handled.entry(id).or_insert(*record);
        }
        let (world, signals) = match record.other_lock {
            0 => (SignalWorld::Handler, 1_u64.checked_shl((record.number as u32).wrapping_sub(1))),
            _ => (SignalWorld::Open, Some(record.number)),
        };
        let signals = signals.unwrap_or(0);
        let mut found = std::mem::take(&mut self.found);
        for signal in (1..=64_u8).filter(|signal| signals >> (signal - 1) & 1 != 0) {
            let usage = SignalUse {
                signal,
                world,
                mode: match record.other_tid {
                    0 => graph::Mode::Write,
                    1 => graph::Mode::Read,
                    _ => graph::Mode::ReadRecursive,
                },
                site: SiteId(record.stack),
                thread: ThreadId(record.thread),
            };
            self.graph.used(LockId(id), usage, &mut found);
        }
        news.extend(found.drain(..).filter_map(|finding| self.facts(ledger, finding)));
        self.found = found;
    }

    /// Returns the id of a life that a record speaks of, in the graph as in the list.
    fn meet(&mut self, ledger: &Ledger<'_>, index: u32, generation: u32, seen: u32) -> Option<u32> {
        match self.lives.meet(ledger, index, generation, seen) {
            LifeKnowledge::Id(id) => Some(id),
            LifeKnowledge::Begins { id, ended } => {
                if let Some(ended) = ended {
                    self.graph.forget(LockId(ended));
                }
                self.graph.declare(LockId(id), self.lives.class(id), 0);
                Some(id)
            }
            LifeKnowledge::Not => None,
        }
    }

    /// Returns what is known of a lock that a violation names, which may be over by now.
    fn life(
        &self,
        ledger: &Ledger<'_>,
        index: u32,
        generation: u32,
        seen: u32,
    ) -> Option<LockLife> {
        let known = self.lives.latest(index).and_then(|id| self.lives.get(id));
        known
            .filter(|life| life.generation == generation)
            .or_else(|| LockLife::of(ledger, index, generation, seen))
    }

    /// Returns the lock with this index as it is now.
    fn now(&self, ledger: &Ledger<'_>, index: u32, seen: u32) -> Option<LockLife> {
        let generation = ledger.lock(index)?.generation.load(Relaxed);
        LockLife::of(ledger, index, generation, seen)
    }

    /// Returns a finding by what it is about; `None` if it leads over a lock that has
    /// turned out to be a signal.
    fn facts(&self, ledger: &Ledger<'_>, mut finding: graph::Inversion) -> Option<CheckFacts> {
        // Of one lock in both worlds there is a violation, which says more.
        if let (graph::InversionKind::Handler { .. }, [step]) = (finding.kind, &finding.steps[..])
            && step.from == step.to
        {
            return None;
        }
        let life = |lock: LockId| self.lives.get(lock.0);
        let thread = |thread: ThreadId| {
            let tid = self.threads.get(&thread.0).copied().unwrap_or(0);
            ThreadFacts { serial: thread.0, tid }
        };
        let step = |step: &graph::InversionStep| {
            let witness = &step.witness;
            Some(StepFacts {
                from: life(step.from).filter(|life| !is_signal(ledger, life.index))?,
                to: life(step.to).filter(|life| !is_signal(ledger, life.index))?,
                thread: thread(witness.thread),
                from_stack: witness.from_site.0,
                to_stack: witness.to_site.0,
                from_mode: witness.from_mode,
                to_mode: witness.to_mode,
                gates: witness.gates.iter().filter_map(|gate| life(gate.lock)).collect(),
                alone: witness.alone,
                tried: witness.tried_from,
                timed: witness.timed_to,
            })
        };
        // What takes two locks by their addresses has both orders, from wherever it is called.
        let is_guess = matches!(finding.kind, graph::InversionKind::Classes)
            && finding.level == graph::Level::Potential
            && is_one_code(ledger, &finding.steps);
        if is_guess {
            finding.level = graph::Level::Order;
            finding.excuse = Some(graph::Excuse::OtherInstances);
        }
        Some(CheckFacts::Order(OrderFacts {
            level: finding.level,
            kind: finding.kind,
            handler: match finding.kind {
                graph::InversionKind::Handler { thread: who, .. } => Some(thread(who)),
                graph::InversionKind::Cycle | graph::InversionKind::Classes => None,
            },
            steps: finding.steps.iter().map(step).collect::<Option<_>>()?,
            excuse: match finding.excuse {
                None => None,
                Some(graph::Excuse::OneThread) => Some(ExcuseFacts::OneThread),
                Some(graph::Excuse::Gate(lock)) => Some(ExcuseFacts::Gate(life(lock)?)),
                Some(graph::Excuse::Alone) => Some(ExcuseFacts::Alone),
                Some(graph::Excuse::OtherInstances) => Some(ExcuseFacts::OtherInstances),
            },
        }))
    }
}

/// Tells whether all steps come from the same two calls: the callers that both of them have in
/// common aside, their stacks are the same.
fn is_one_code(ledger: &Ledger<'_>, steps: &[graph::InversionStep]) -> bool {
    let calls = |step: &graph::InversionStep| {
        let [mut held, mut asked] = [step.witness.from_site, step.witness.to_site]
            .map(|site| ledger.stack(site.0).map_or(Vec::new(), |stack| stack.returns().collect()));
        while held.len() > 1 && asked.len() > 1 && held.last() == asked.last() {
            held.pop();
            asked.pop();
        }
        (held, asked)
    };
    steps.windows(2).all(|two| calls(&two[0]) == calls(&two[1]))
}

/// Tells whether a lock was ever released by a thread that did not hold it: then it is
/// no lock but a signal, and its order means nothing.
fn is_signal(ledger: &Ledger<'_>, index: u32) -> bool {
    let used = ledger.used(LedgerPart::Locks);
    let record = ledger.lock(index).filter(|_| (index as usize) < used);
    record.is_some_and(|record| record.handed_on.load(Relaxed) != 0)
}

pub(super) fn mode(mode: EdgeMode) -> graph::Mode {
    match mode {
        EdgeMode::Write => graph::Mode::Write,
        EdgeMode::Read => graph::Mode::Read,
        EdgeMode::ReadRecursive => graph::Mode::ReadRecursive,
    }
}

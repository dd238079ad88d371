//! The whole order of a process, as a report keeps it.

use super::describe::Describer;
use super::facts::ThreadFacts;
use super::lives::Lives;
use super::model::{HoldMode, LockIdentity, ThreadIdentity};
use crate::stack::Stack;
use lockstead_ledger::LedgerPart;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Pairs of locks that a report keeps.
pub const MOST: usize = 20_000;

/// Which lock came before which, and who was first seen to take them so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordedOrder {
    /// All that are part of it.
    pub locks: Vec<LockIdentity>,
    /// The threads that took them.
    pub threads: Vec<ThreadIdentity>,
    /// The stacks that the edges refer to.
    pub stacks: Vec<Stack>,
    /// Each pair once, in the order in which they were first seen.
    pub edges: Vec<RecordedEdge>,
    /// Pairs that were left out, being too many.
    pub left_out: u64,
}

/// One pair of locks: the other fields of a [`RecordedOrder`] by their places.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordedEdge {
    /// The lock that was held.
    pub from: usize,
    /// How it was held.
    pub from_how: HoldMode,
    /// It was taken by trylock.
    pub tried: bool,
    /// The index of the stack of its acquisition.
    pub acquired: Option<usize>,
    /// The lock that was asked for.
    pub to: usize,
    /// How it was asked for.
    pub to_how: HoldMode,
    /// The request had a deadline.
    #[serde(default)]
    pub timed: bool,
    /// The index of the stack of the request.
    pub asked: Option<usize>,
    /// The index of the thread that did it.
    pub thread: usize,
    /// All other locks that were held.
    pub gates: Vec<usize>,
    /// The process had one thread.
    pub alone: bool,
}

/// A list in which each thing stands once, by a number that stands for it.
struct Numbered<K, T> {
    places: HashMap<K, usize>,
    all: Vec<T>,
}

impl<K: std::hash::Hash + Eq, T> Numbered<K, T> {
    fn new() -> Self {
        Numbered { places: HashMap::new(), all: Vec::new() }
    }

    fn place(&mut self, key: K, make: impl FnOnce() -> T) -> usize {
        match self.places.entry(key) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => {
                self.all.push(make());
                *free.insert(self.all.len() - 1)
            }
        }
    }
}

/// Returns the order that a ledger holds, of the locks that its checker met.
pub fn record(lives: &Lives, with: &mut Describer<'_>) -> RecordedOrder {
    let ledger = with.ledger;
    let ids: HashMap<(u32, u32), usize> = lives
        .all()
        .iter()
        .enumerate()
        .map(|(id, life)| ((life.index, life.generation), id))
        .collect();
    let mut known: HashMap<(usize, usize), ()> = HashMap::new();
    let mut locks: Numbered<usize, LockIdentity> = Numbered::new();
    let mut threads: Numbered<u32, ThreadIdentity> = Numbered::new();
    let mut stacks: Numbered<u32, Option<Stack>> = Numbered::new();
    let mut recorded = RecordedOrder::default();
    for at in 0..ledger.used(LedgerPart::Edges) {
        let Some(Some(edge)) = ledger.edge(at) else { continue };
        let id = |index, generation| ids.get(&(index, generation)).copied();
        let from = id(edge.from, edge.from_generation);
        let to = id(edge.to, edge.to_generation);
        let (Some(from), Some(to)) = (from, to) else { continue };
        if from == to || known.insert((from, to), ()).is_some() {
            continue;
        }
        if recorded.edges.len() >= MOST {
            recorded.left_out += 1;
            continue;
        }
        let mut lock =
            |id: usize, with: &mut Describer<'_>| locks.place(id, || with.lock(&lives.all()[id]));
        let mut stack = |id: u32, with: &mut Describer<'_>| {
            (id != 0).then(|| stacks.place(id, || with.stack(id)))
        };
        let who = ThreadFacts { serial: edge.thread, tid: edge.tid };
        let gates = ledger.lock_list(edge.gates);
        let gates: Vec<usize> = gates
            .filter_map(|(index, _)| lives.latest(index))
            .map(|id| lock(id as usize, with))
            .collect();
        recorded.edges.push(RecordedEdge {
            from: lock(from, with),
            from_how: super::checker::mode(edge.from_mode).into(),
            tried: edge.from_tried,
            acquired: stack(edge.from_stack, with),
            to: lock(to, with),
            to_how: super::checker::mode(edge.to_mode).into(),
            timed: edge.to_timed,
            asked: stack(edge.to_stack, with),
            thread: threads.place(edge.thread, || with.thread(who)),
            gates,
            alone: edge.alone,
        });
    }
    recorded.locks = locks.all;
    recorded.threads = threads.all;
    let nothing = || Stack { frames: Vec::new(), end: crate::stack::StackEnd::Bottom };
    recorded.stacks = stacks.all.into_iter().map(|stack| stack.unwrap_or_else(nothing)).collect();
    recorded
}

//! Which threads, with which other locks held, have taken two locks in an order:
//! what is worth a record.
//!
//! # Role
//! An edge is an order of two lives of locks, each held or asked for in a mode. A
//! record of it is a *witness*. A further one is left only if it may prove more
//! than those that are there: another thread (up to [`THREADS`] different ones),
//! fewer other locks held, or the first that was not alone or had no deadline.
//!
//! # Protocol
//! The first witness of an edge is found by the edge table; further ones hang on
//! it in a list, newest first, which only grows.
//!
//! # Invariants
//! - **WITNESS-COMPLETE** A record is complete before it is in the table (LEDGER-TABLE-COMPLETE) or
//!   in a list (release), so a thread that finds it (acquire) sees it.
//! - **WITNESS-DOUBLE** Threads that see an edge first at one instant each leave a record; all
//!   but one of them find another in the table and hang theirs on that. In the
//!   rare case of LEDGER-TABLE-DOUBLE there are two lists. Likewise two threads may both leave a
//!   further witness though one would do. A reader takes each record for what it
//!   is, one true observation, so that too many of them cost room only.
//!
//! # Progress
//! Lock-free: a failed exchange means that another thread has added a witness,
//! and an edge has [`MOST`] of them, and one for each thread that came at the same
//! time.

use crate::ledger::{Ledger, LedgerPart};
use crate::order::{EdgeRecord, SeenEdge, gate};
use crate::table::{Inserted, spread};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The number of different threads that witness an edge. A proof needs no two edges by the
/// same one, and a cycle of more locks than this that the same few threads close is rare.
pub const THREADS: usize = 4;

/// The number of witnesses of one edge. Beyond them there were as many sets of other locks,
/// none contained in another.
pub const MOST: usize = 64;

/// The [`StoredStack::end`](crate::stacks::StoredStack::end) of a list of locks, which is no
/// unwinder's.
const LIST: u32 = u32::MAX;

/// What is known of an edge after [`Ledger::witness`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EdgeKnowledge {
    /// The same thread will add nothing if it does the same again.
    ToThis,
    /// No thread will add anything if it does the same.
    ToAll,
}

/// Returns the hash of what makes an edge the same edge.
fn hash_of(edge: &SeenEdge) -> u64 {
    let ends = u64::from(edge.from) | u64::from(edge.to) << 32;
    let lives = u64::from(edge.from_generation) << 2 | u64::from(edge.to_generation) << 34;
    spread(spread(ends) ^ lives ^ edge.from_mode as u64 ^ (edge.to_mode as u64) << 62)
}

impl EdgeRecord {
    fn is_of(&self, edge: &SeenEdge) -> bool {
        self.read().is_some_and(|other| {
            (other.from, other.from_generation, other.from_mode)
                == (edge.from, edge.from_generation, edge.from_mode)
                && (other.to, other.to_generation, other.to_mode)
                    == (edge.to, edge.to_generation, edge.to_mode)
        })
    }
}

impl Ledger<'_> {
    /// Notes that a thread that holds `edge.from` and `gates` ([`gate`]s, in ascending order)
    /// asks for `edge.to`, and leaves a record if that is worth one. Fills in `edge.gates`.
    pub fn witness(&self, mut edge: SeenEdge, gates: &[u64]) -> EdgeKnowledge {
        let hash = hash_of(&edge);
        let record = |index: u32| self.edges().get(index as usize);
        let same = |index: u32| record(index).is_some_and(|it| it.is_of(&edge));
        let table = self.edge_table();
        let first = table.find(hash, same);
        if let Some(known) = first.and_then(|first| self.known_of(first, &edge, gates)) {
            return known;
        }
        edge.gates = self.intern_lock_list(gates);
        // Without its gates the edge would prove too much.
        let complete = edge.gates != 0 || gates.is_empty();
        let Some(index) = complete.then(|| self.claim(LedgerPart::Edges, 1)).flatten() else {
            self.header().losses.edges.fetch_add(1, Relaxed);
            return EdgeKnowledge::ToAll;
        };
        for end in [edge.from, edge.to] {
            if let Some(lock) = self.lock(end) {
                lock.ordered.store(1, Relaxed);
            }
        }
        self.edges()[index].write(&edge);
        let same = |index: u32| record(index).is_some_and(|it| it.is_of(&edge));
        let first = first.or_else(|| match table.insert(hash, index as u32, same) {
            Inserted::New => None,
            Inserted::Found(first) => Some(first),
            Inserted::Full => {
                // The record can be read, but not found: another one will be left.
                self.header().losses.edges.fetch_add(1, Relaxed);
                None
            }
        });
        if let Some(first) = first.and_then(record) {
            self.hang(index, first);
        }
        EdgeKnowledge::ToThis
    }

    /// Puts a record into the list of the first one.
    fn hang(&self, index: usize, first: &EdgeRecord) {
        let mut next = first.further.load(Relaxed);
        loop {
            self.edges()[index].further.store(next, Relaxed);
            // ord: LED-8 (release): the record and what comes after it (WITNESS-COMPLETE).
            match first.further.compare_exchange(next, index as u32 + 1, Release, Relaxed) {
                Ok(_) => return,
                Err(found) => next = found,
            }
        }
    }

    /// Tells whether the witnesses of an edge make one more needless, and to which threads.
    fn known_of(&self, first: u32, edge: &SeenEdge, gates: &[u64]) -> Option<EdgeKnowledge> {
        let mut threads = [0; THREADS];
        let (mut different, mut own) = (0, false);
        let mut next = first as usize + 1;
        for _ in 0..MOST {
            let Some(record) = next.checked_sub(1).and_then(|at| self.edges().get(at)) else {
                return own.then_some(EdgeKnowledge::ToThis);
            };
            if let Some(other) = record.read()
                && self.proves(&other, edge, gates)
            {
                own |= other.thread == edge.thread;
                if !threads[..different].contains(&other.thread) {
                    threads[different] = other.thread;
                    different += 1;
                }
                if different == THREADS {
                    return Some(EdgeKnowledge::ToAll);
                }
            }
            // ord: LED-8 (acquire): the record (WITNESS-COMPLETE).
            next = record.further.load(Acquire) as usize;
        }
        Some(EdgeKnowledge::ToAll)
    }

    /// Tells whether `other` proves all that `edge` would with these gates, but for the
    /// thread.
    fn proves(&self, other: &SeenEdge, edge: &SeenEdge, gates: &[u64]) -> bool {
        (edge.alone || !other.alone)
            && (edge.to_timed || !other.to_timed)
            && other.in_handler == edge.in_handler
            && self
                .lock_list(other.gates)
                .all(|(lock, shared)| gates.binary_search(&gate(lock, shared)).is_ok())
    }
}

impl<'a> Ledger<'a> {
    /// Leaves an edge. Counts a loss when there is no room.
    pub fn add_edge(&self, edge: &SeenEdge) {
        match self.claim(LedgerPart::Edges, 1) {
            Some(index) => self.edges()[index].write(edge),
            None => {
                self.header().losses.edges.fetch_add(1, Relaxed);
            }
        }
    }

    /// Returns the edge with this number: `None` beyond the last one, `Some(None)` if it is
    /// not complete yet.
    #[must_use]
    pub fn edge(&self, index: usize) -> Option<Option<SeenEdge>> {
        let record = self.edges().get(index).filter(|_| index < self.used(LedgerPart::Edges))?;
        Some(record.read())
    }

    /// Returns the id of a list of locks, each a [`gate`], stored once. Returns 0 for an
    /// empty list, and, counting the loss, when there is no room. Keeps the first
    /// [`DEEPEST`](crate::stacks::DEEPEST) locks at most.
    pub fn intern_lock_list(&self, locks: &[u64]) -> u32 {
        if locks.is_empty() { 0 } else { self.intern_stack(locks, LIST) }
    }

    /// Returns the locks of a list, by index, and whether each was held with other readers.
    pub fn lock_list(&self, id: u32) -> impl Iterator<Item = (u32, bool)> + 'a {
        let list = self.stack(id).filter(|list| list.end == LIST);
        let words = list.map_or(&[][..], |list| list.words());
        words.iter().map(|word| word.load(Relaxed)).map(|word| (word as u32, word >> 32 & 1 != 0))
    }
}

//! In which order locks are taken, in the library that checks.
//!
//! # Role
//! A thread that holds locks and gets another one, or is about to wait for it,
//! leaves an edge from each of those it holds, unless that is known. What it
//! holds is in the ledger; the numbers that stand for it, one for each entry of
//! the held stack, lie in the thread's part of the ledger too, and
//! [`chains`] knows which of them need no look.
//!
//! # Protocol
//! `keys[n]` stands for the first n entries of the held stack; of more than
//! [`KEYS`](lockstead_ledger::thread::KEYS) they are computed when they are wanted.
//! A push computes the next one, a release in order nothing. A release out of order computes again
//! what changed. What others revoke from a thread's entries stays in its keys;
//! such a key is that of a chain with a lock more, of which all edges were left
//! that are due now. Whoever does not find a key in the cache computes all of them
//! anew before concluding anything.
//!
//! `keys[0]` says whether the process has one thread. It changes when that thread
//! makes another one, and when it has joined all others: it is written by the
//! thread whose it is, which is the only one at that moment.
//!
//! # Invariants
//! - **ORDER-OWN-KEYS** Only its own thread reads or writes a key, and not in a signal handler
//!   while the library works for it (`busy`).

pub mod chains;
pub mod lives;
pub mod places;
pub mod stack;

use crate::call::CallPlace;
use crate::me::{Me, enter};
use crate::state::STATE;
use chains::{ALONE, ChainStep, KeyMode};
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::Birth;
use lockstead_ledger::ledger::LedgerPart;
use lockstead_ledger::lock::{RecordLife, attribute};
use lockstead_ledger::order::{EdgeMode, SeenEdge, gate};
use lockstead_ledger::publish::{Flags, Holding};
use lockstead_ledger::stacks::DEEPEST;
use lockstead_ledger::witness::EdgeKnowledge;

/// Returns the want of a lock that is held or asked for with these flags.
#[inline]
fn want(flags: Flags) -> KeyMode {
    if flags.has(Flags::READ) { KeyMode::Read } else { KeyMode::Write }
}

/// Returns the want of a lock that is asked for so, with a deadline or without.
fn asked(mode: Flags, timed: bool) -> KeyMode {
    match (want(mode), timed) {
        (KeyMode::Read, _) if mode.has(Flags::RECURSIVE) => KeyMode::ReadRecursive,
        (KeyMode::Write, true) => KeyMode::WriteTimed,
        (KeyMode::Read, true) => KeyMode::ReadTimed,
        (want, _) => want,
    }
}

/// A lock that a thread asks for.
struct AskedLock {
    address: u64,
    place: CallPlace,
    want: KeyMode,
}

impl AskedLock {
    /// Returns the index of the lock's record, its address, and the stack that asks.
    fn end(&self) -> (u32, u64, u32) {
        (self.place.lock, self.address, self.place.stack)
    }
}

/// Tells whether the calling thread is the only one, as far as is known.
fn is_alone() -> bool {
    STATE.others.load(Relaxed) == 0
}

/// Notes that the caller is about to create a thread.
pub fn one_thread_more() {
    if STATE.others.fetch_add(1, Relaxed) == 0 {
        alone_or_not();
    }
}

/// Notes that a thread that was to be created was not, or that one was joined. A thread that can be
/// joined was created by a function that has told us.
pub fn one_thread_less() {
    let less = |others: u32| others.checked_sub(1);
    if STATE.others.fetch_update(Relaxed, Relaxed, less) == Ok(1) {
        alone_or_not();
    }
}

fn alone_or_not() {
    if let Some(me) = enter() {
        me.compute_keys();
    }
}

impl Me {
    /// Computes all keys from what is held.
    pub fn compute_keys(&self) {
        let mut key = if is_alone() { ALONE } else { 0 };
        let entries = (0..self.thread.stack().depth()).map(Some).chain([None]);
        for (kept, entry) in self.thread.keys.iter().zip(entries) {
            kept.store(key, Relaxed);
            key = entry.map_or(key, |entry| self.key_with(key, entry));
        }
    }

    /// Returns the key of what `key` says and the entry.
    fn key_with(&self, key: u64, entry: usize) -> u64 {
        self.thread
            .stack()
            .entry(entry)
            .read()
            .map_or(key, |holding| chains::with(key, holding.address, want(holding.flags)))
    }

    /// Returns the key of the first entries of the held stack.
    fn key(&self, entries: usize) -> u64 {
        let kept = entries.min(self.thread.keys.len() - 1);
        let key = self.thread.keys[kept].load(Relaxed);
        (kept..entries).fold(key, |key, entry| self.key_with(key, entry))
    }

    /// Computes the key of the entry with this index, which was pushed.
    pub fn pushed(&self, index: usize) {
        let depth = self.thread.stack().depth();
        // A child that a handler has forked just now finds nothing held.
        if depth == 0 {
            return;
        }
        if index + 1 != depth {
            // There was room among the others only.
            self.compute_keys();
        } else if let Some(kept) = self.thread.keys.get(depth) {
            kept.store(self.key_with(self.key(depth - 1), depth - 1), Relaxed);
        }
    }

    /// Leaves the edges from what the thread holds to a lock that it asks for, or has just got and
    /// would have waited for. `timed`: it would give up at a deadline.
    pub fn asks(&self, address: u64, place: CallPlace, mode: Flags, timed: bool) {
        self.ask(&AskedLock { address, place, want: asked(mode, timed) });
    }

    /// Leaves the edges to a mutex that the thread is going to take back from a condition variable.
    pub fn asks_back(&self, mutex: u64, stack: u32) {
        if let Some((_, holding)) = self.thread.stack().find(mutex)
            && holding.flags.has(Flags::LENT)
        {
            let place = CallPlace { lock: holding.lock, stack };
            self.ask(&AskedLock { address: mutex, place, want: KeyMode::Back });
        }
    }

    #[inline]
    fn ask(&self, asked: &AskedLock) {
        let depth = self.thread.stack().depth();
        let mark = self.record().mark.load(Relaxed);
        let step = || ChainStep::new(self.key(depth), asked.address, asked.want);
        // Where threads share marks, who is here anyway does not rely on its own.
        let shares = self.ledger.used(LedgerPart::Threads) > u32::BITS as usize;
        let is_known = |step: ChainStep| {
            if shares { step.is_known_to_all() } else { step.is_known(mark) }
        };
        // A handler's chains are those of what it has interrupted.
        let in_handler = self.record().context.load(Relaxed) != 0;
        if depth == 0 || !in_handler && is_known(step()) {
            return;
        }
        self.compute_keys();
        if in_handler {
            self.begins_lives(asked);
            self.leave_edges(asked);
        } else if !is_known(step()) {
            if !step().is_known(mark) {
                self.begins_lives(asked);
            }
            let known = self.leave_edges(asked);
            step().learn(mark, known);
        }
    }

    /// Ends the lives of locks that have become others unseen. To be called before edges are left.
    fn begins_lives(&self, asked: &AskedLock) {
        let stack = self.thread.stack();
        let held = (0..stack.depth()).filter_map(|index| stack.entry(index).read());
        let held = held.map(|holding| (holding.lock, holding.address, holding.stack));
        for (index, address, stack) in held.chain([asked.end()]) {
            if let Some(lock) = self.ledger.lock(index)
                && self.is_readable(address, lock)
            {
                let (kind, _, attributes) = lock.shape();
                // SAFETY: the thread holds the lock, or asks for it, and it is there.
                unsafe { self.ends_unseen(address, stack, (kind, attributes)) };
            }
        }
    }

    #[cold]
    fn leave_edges(&self, asked: &AskedLock) -> EdgeKnowledge {
        let stack = self.thread.stack();
        let held = || (0..stack.depth()).filter_map(|index| stack.entry(index).read());
        // What is lent is not held.
        let held = || held().filter(|holding| !holding.flags.has(Flags::LENT));
        // A lock that one has already is taken without waiting, or is never got.
        if held().any(|holding| holding.address == asked.address) {
            return EdgeKnowledge::ToAll;
        }
        let (index, address, stack) = asked.end();
        let Some(to) = self.end_of_edge(index, address, stack, asked.want) else {
            return EdgeKnowledge::ToAll;
        };
        let record = self.record();
        let gates = Gates::of(held());
        let mut known = EdgeKnowledge::ToAll;
        for holding in held() {
            let from =
                self.end_of_edge(holding.lock, holding.address, holding.stack, want(holding.flags));
            let Some(from) = from else { continue };
            let edge = SeenEdge {
                from: holding.lock,
                from_generation: from.generation,
                from_mode: from.mode,
                from_tried: holding.flags.has(Flags::TRIED),
                from_stack: holding.stack,
                to: asked.place.lock,
                to_generation: to.generation,
                to_mode: to.mode,
                to_timed: matches!(asked.want, KeyMode::WriteTimed | KeyMode::ReadTimed),
                to_stack: asked.place.stack,
                thread: record.serial.load(Relaxed),
                tid: record.tid.load(Relaxed),
                gates: 0,
                alone: is_alone(),
                in_handler: record.context.load(Relaxed) != 0,
            };
            let mut others = [0; DEEPEST];
            let others = gates.without(holding.lock, &mut others);
            if self.ledger.witness(edge, others) == EdgeKnowledge::ToThis {
                known = EdgeKnowledge::ToThis;
            }
        }
        known
    }

    /// Returns one end of an edge; `None` if it has no record, or is handed from thread to thread
    /// on purpose.
    fn end_of_edge(&self, index: u32, address: u64, stack: u32, want: KeyMode) -> Option<EdgeEnd> {
        let lock = self.ledger.lock(index)?;
        let (kind, life, attributes) = lock.shape();
        if !matches!(life, RecordLife::Live) {
            // Another lock than the one that ended here, not initialised by a call.
            self.ledger.use_lock(&Birth {
                address,
                kind,
                attributes,
                init_stack: 0,
                first_stack: stack,
                module: lock.module.load(Relaxed),
            });
            places::note(address);
        }
        if attributes & attribute::HAND_OFF != 0 {
            return None;
        }
        let mode = match want {
            KeyMode::Write | KeyMode::WriteTimed | KeyMode::Back => EdgeMode::Write,
            KeyMode::Read | KeyMode::ReadTimed if attributes & attribute::WRITERS_FIRST != 0 => {
                EdgeMode::Read
            }
            KeyMode::Read | KeyMode::ReadTimed | KeyMode::ReadRecursive => EdgeMode::ReadRecursive,
        };
        Some(EdgeEnd { generation: lock.generation.load(Relaxed), mode })
    }
}

/// What an edge says of one of its ends.
struct EdgeEnd {
    generation: u32,
    mode: EdgeMode,
}

/// The locks that a thread holds, as gates: in ascending order, each once. Of more
/// than [`DEEPEST`] and one those that were taken first.
struct Gates {
    words: [u64; DEEPEST + 1],
    count: usize,
}

impl Gates {
    fn of(held: impl Iterator<Item = Holding>) -> Gates {
        let mut gates = Gates { words: [0; DEEPEST + 1], count: 0 };
        for holding in held.filter(|holding| holding.lock != 0) {
            let word = gate(holding.lock, holding.flags.has(Flags::READ));
            let words = &gates.words[..gates.count];
            let at = words.partition_point(|&other| other < word);
            if words.get(at) == Some(&word) {
                continue;
            }
            if gates.count == gates.words.len() {
                break;
            }
            gates.words.copy_within(at..gates.count, at + 1);
            gates.words[at] = word;
            gates.count += 1;
        }
        gates
    }

    /// Returns all but one, the last if that one is not among them.
    fn without<'a>(&self, lock: u32, to: &'a mut [u64; DEEPEST]) -> &'a [u64] {
        let others = self.words[..self.count].iter().filter(|&&word| word as u32 != lock);
        let mut count = 0;
        for (place, word) in to.iter_mut().zip(others) {
            *place = *word;
            count += 1;
        }
        &to[..count]
    }
}

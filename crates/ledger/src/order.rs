//! In which order locks were taken: written by the library that checks.
//!
//! # Role
//! A thread that holds locks and asks for another one leaves an edge from each
//! of them. It leaves a further record of the same edge, a *witness*, if another
//! thread was the first or other locks are held; [`witness`](crate::witness)
//! decides. When a lock that has edges ends its life, an edge from the lock to
//! itself says so. The command reads the edges in the order of their numbers
//! and looks for cycles.
//!
//! # Protocol
//! The thread claims a record of [`LedgerPart::Edges`](crate::LedgerPart::Edges), fills it and
//! stores `ready` last. A reader that finds a record not ready comes again; if the process
//! has ended, it passes over the record.

use core::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

/// How a lock is held, or asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum EdgeMode {
    /// Alone, without any other holder.
    Write = 0,
    /// The thread shares the lock with other readers; a reader waits behind a waiting writer.
    Read = 1,
    /// The thread shares the lock with other readers, past waiting writers: one thread may do so
    /// twice.
    ReadRecursive = 2,
}

impl EdgeMode {
    const fn from_bits(bits: u32) -> EdgeMode {
        match bits & 3 {
            0 => EdgeMode::Write,
            1 => EdgeMode::Read,
            _ => EdgeMode::ReadRecursive,
        }
    }
}

/// One edge, as a thread saw it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeenEdge {
    /// The index of the lock that was held.
    pub from: u32,
    /// The [generation](crate::lock::LockRecord::generation) of the lock that was held.
    pub from_generation: u32,
    /// The way in which the first lock was held.
    pub from_mode: EdgeMode,
    /// Whether it was taken by trylock.
    pub from_tried: bool,
    /// The stack of its acquisition.
    pub from_stack: u32,
    /// The index of the lock that was asked for.
    pub to: u32,
    /// The generation of the lock that was asked for.
    pub to_generation: u32,
    /// The way in which the second lock was asked for.
    pub to_mode: EdgeMode,
    /// Whether the request had a deadline.
    pub to_timed: bool,
    /// The stack of the call that asked for it.
    pub to_stack: u32,
    /// The [serial number](crate::thread::ThreadRecord::serial) of the thread that asked.
    pub thread: u32,
    /// The kernel's number of that thread.
    pub tid: u32,
    /// The id of the [list](crate::Ledger::lock_list) of all other locks that the thread
    /// held.
    pub gates: u32,
    /// Whether the process had one thread then.
    pub alone: bool,
    /// Whether the thread was in a signal handler.
    pub in_handler: bool,
}

impl SeenEdge {
    /// Returns the edge that says that the life of a lock that has edges is over.
    #[must_use]
    pub fn end_of(lock: u32, generation: u32) -> SeenEdge {
        SeenEdge {
            from: lock,
            from_generation: generation,
            from_mode: EdgeMode::Write,
            from_tried: false,
            from_stack: 0,
            to: lock,
            to_generation: generation,
            to_mode: EdgeMode::Write,
            to_timed: false,
            to_stack: 0,
            thread: 0,
            tid: 0,
            gates: 0,
            alone: false,
            in_handler: false,
        }
    }
}

/// The bits of a record's `how` above the modes.
mod how {
    pub(super) const TO_SHIFT: u32 = 2;
    pub(super) const TRIED: u32 = 1 << 4;
    pub(super) const ALONE: u32 = 1 << 5;
    pub(super) const IN_HANDLER: u32 = 1 << 6;
    pub(super) const TIMED: u32 = 1 << 7;
}

/// A [`SeenEdge`] in the ledger: a cache line.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct EdgeRecord {
    ready: AtomicU32,
    from: AtomicU32,
    from_generation: AtomicU32,
    from_stack: AtomicU32,
    to: AtomicU32,
    to_generation: AtomicU32,
    to_stack: AtomicU32,
    thread: AtomicU32,
    tid: AtomicU32,
    gates: AtomicU32,
    how: AtomicU32,
    /// The number plus one of a further witness of the same edge; 0: there is none.
    pub(crate) further: AtomicU32,
}

const _: () = assert!(size_of::<EdgeRecord>() == 64);

impl EdgeRecord {
    /// Fills the record. Only the thread that claimed it calls this.
    pub(crate) fn write(&self, edge: &SeenEdge) {
        let bit = |is: bool, bit: u32| if is { bit } else { 0 };
        let how = edge.from_mode as u32
            | (edge.to_mode as u32) << how::TO_SHIFT
            | bit(edge.from_tried, how::TRIED)
            | bit(edge.alone, how::ALONE)
            | bit(edge.in_handler, how::IN_HANDLER)
            | bit(edge.to_timed, how::TIMED);
        for (word, value) in [
            (&self.from, edge.from),
            (&self.from_generation, edge.from_generation),
            (&self.from_stack, edge.from_stack),
            (&self.to, edge.to),
            (&self.to_generation, edge.to_generation),
            (&self.to_stack, edge.to_stack),
            (&self.thread, edge.thread),
            (&self.tid, edge.tid),
            (&self.gates, edge.gates),
            (&self.how, how),
        ] {
            word.store(value, Relaxed);
        }
        // ord: LED-9 (release): publishes the record.
        self.ready.store(1, Release);
    }

    /// Returns what the record says; `None` if it is not complete yet.
    #[must_use]
    pub fn read(&self) -> Option<SeenEdge> {
        // ord: LED-9 (acquire): what was stored before is seen.
        if self.ready.load(Acquire) == 0 {
            return None;
        }
        let how = self.how.load(Relaxed);
        Some(SeenEdge {
            from: self.from.load(Relaxed),
            from_generation: self.from_generation.load(Relaxed),
            from_mode: EdgeMode::from_bits(how),
            from_tried: how & how::TRIED != 0,
            from_stack: self.from_stack.load(Relaxed),
            to: self.to.load(Relaxed),
            to_generation: self.to_generation.load(Relaxed),
            to_mode: EdgeMode::from_bits(how >> how::TO_SHIFT),
            to_timed: how & how::TIMED != 0,
            to_stack: self.to_stack.load(Relaxed),
            thread: self.thread.load(Relaxed),
            tid: self.tid.load(Relaxed),
            gates: self.gates.load(Relaxed),
            alone: how & how::ALONE != 0,
            in_handler: how & how::IN_HANDLER != 0,
        })
    }
}

/// Returns a lock as it stands in a list: its index, and whether it was held with other
/// readers.
#[must_use]
pub const fn gate(lock: u32, shared: bool) -> u64 {
    lock as u64 | (shared as u64) << 32
}

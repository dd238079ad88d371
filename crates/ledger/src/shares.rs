//! The parts of call stacks in the waiting for a lock, or in its holding.
//!
//! # Role
//! A thread that waited for a lock, or held it, adds to the [`StackShare`] of the stack that
//! led to its call. A return address would not do as the key: where the program calls
//! locks through a function of its own, all callers have that function's. The command,
//! which knows names, chooses the frame of a stack that is the place a reader wants; for
//! that it needs a stack by which such a hold ended.
//!
//! # State
//! The first stacks of a lock have their shares beside its statistics, the others in
//! [`ShareChunk`]s that are linked to these, up to [`STACKS`]. What is beyond, or found
//! no room in the ledger, or has no stack, is counted together in `others`.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The number of shares beside the statistics.
pub const FIRST: usize = 4;
/// The number of shares in a chunk.
pub const CHUNK: usize = 21;
/// The most chunks of one lock on one side.
const CHUNKS: usize = 12;
/// The most stacks that have shares of their own, of one lock on one side.
pub const STACKS: usize = FIRST + CHUNKS * CHUNK;

/// The part of one stack.
#[repr(C)]
#[derive(Debug)]
pub struct StackShare {
    /// Id of the stack; 0: the share is not in use.
    pub stack: AtomicU32,
    /// Id of a stack by which a hold that began here was ended; 0: none is known.
    pub released: AtomicU32,
    /// How often the stack led to a wait or a hold.
    pub count: AtomicU64,
    /// The sum of these times, in nanoseconds.
    pub total: AtomicU64,
}

impl StackShare {
    fn claim(&self, stack: u32) -> bool {
        let found = self.stack.load(Relaxed);
        found == stack
            || found == 0
                && match self.stack.compare_exchange(0, stack, Relaxed, Relaxed) {
                    Ok(_) => true,
                    Err(other) => other == stack,
                }
    }

    pub(crate) fn add(&self, count: u64, total: u64) {
        self.count.fetch_add(count, Relaxed);
        self.total.fetch_add(total, Relaxed);
    }

    /// Returns the stack, a stack that ended a hold, how often, and how long in nanoseconds.
    #[must_use]
    pub fn read(&self) -> (u32, u32, u64, u64) {
        let [stack, released] = [&self.stack, &self.released].map(|word| word.load(Relaxed));
        let [count, total] = [&self.count, &self.total].map(|word| word.load(Relaxed));
        (stack, released, count, total)
    }
}

/// Further shares of one lock.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct ShareChunk {
    shares: [StackShare; CHUNK],
    /// The index of the next chunk; 0: there is none.
    next: AtomicU32,
}

const _: () = assert!(size_of::<ShareChunk>() == 512);

/// The shares of all stacks of one lock on one side.
#[repr(C)]
#[derive(Debug)]
pub struct Shares {
    first: [StackShare; FIRST],
    /// The share of all stacks without one of their own: its `stack` stays 0.
    others: StackShare,
    /// The index of the first chunk; 0: there is none.
    more: AtomicU32,
    spare: AtomicU32,
}

impl Shares {
    /// Returns the share of `stack`, made if there is none, or else that of all others.
    /// `chunk` finds a chunk by its index, `more` claims one.
    pub(crate) fn of<'a>(
        &'a self,
        stack: u32,
        chunk: impl Fn(u32) -> Option<&'a ShareChunk>,
        more: impl Fn() -> Option<u32>,
    ) -> &'a StackShare {
        let own = || {
            let found = |all: &'a [StackShare]| all.iter().find(|share| share.claim(stack));
            let mut link = &self.more;
            let mut share = found(&self.first);
            for _ in 0..CHUNKS {
                if share.is_some() {
                    break;
                }
                let mut index = link.load(Relaxed);
                if index == 0 {
                    let made = more()?;
                    // Relaxed: a chunk is all zero, which is empty. Where another thread
                    // was first, this one is wasted.
                    let linked = link.compare_exchange(0, made, Relaxed, Relaxed);
                    index = linked.map_or_else(|other| other, |_| made);
                }
                let chunk = chunk(index)?;
                share = found(&chunk.shares);
                link = &chunk.next;
            }
            share
        };
        if stack == 0 { &self.others } else { own().unwrap_or(&self.others) }
    }

    /// Returns all shares in use; that of all other stacks comes last. `chunk` finds a
    /// chunk by its index.
    pub(crate) fn all<'a>(
        &'a self,
        chunk: impl Fn(u32) -> Option<&'a ShareChunk>,
    ) -> impl Iterator<Item = &'a StackShare> {
        let linked = move |link: &AtomicU32| match link.load(Relaxed) {
            0 => None,
            index => chunk(index),
        };
        // Stops at the most chunks there can be, however damaged the links are.
        let further =
            core::iter::successors(linked(&self.more), move |last| linked(&last.next)).take(CHUNKS);
        let own = self.first.iter().chain(further.flat_map(|chunk| &chunk.shares));
        let others = core::iter::once(&self.others);
        own.filter(|share| share.stack.load(Relaxed) != 0)
            .chain(others.filter(|others| others.count.load(Relaxed) != 0))
    }
}

//! The data that locks attach to a slot: the place in a queue of spinners, and the records of
//! wait/wound contexts.
//!
//! # Role
//! This module has data only. `spin/queue.rs` and `ww/context.rs` have the protocols and stand
//! above the platform; the table below the platform has to hold what they need.

use crate::atomic::{Atomic32, Atomic64, Ordering};
use crate::participant::Attachment;

/// The number of contexts that one thread can have at a time, of whatever classes.
pub const CONTEXTS_PER_THREAD: usize = 4;

/// The data that the locks of this crate attach to a slot.
pub struct Attached<U32, U64> {
    /// The thread's place in at most one queue of spinners.
    pub(crate) node: Node<U32, U64>,
    /// The records by which other threads reach the contexts of this one.
    pub(crate) records: [SlotContext<U32, U64>; CONTEXTS_PER_THREAD],
    /// The time, in nanoseconds, at which the thread last had a processor again that it had given up,
    /// or was woken to look at a lock (`sleep/batch.rs`). The thread alone uses it.
    pub(crate) batch: U64,
    /// How many wait/wound mutexes the thread holds without a context. The thread alone uses it.
    pub(crate) alone: U32,
}

impl<U32: Atomic32, U64: Atomic64> Attachment for Attached<U32, U64> {
    const UNUSED: Self = Self {
        node: Node::IDLE,
        records: [const { SlotContext::VACANT }; CONTEXTS_PER_THREAD],
        batch: U64::ZERO,
        alone: U32::ZERO,
    };

    fn is_unlinked(&self) -> bool {
        self.node.idle()
    }

    /// Tells whether the thread holds a wait/wound mutex without a context, which names the thread,
    /// or has a context that has not ended: that may hold some, which name both.
    fn outlives(&self) -> bool {
        self.alone.load(Ordering::Relaxed) != 0
            || self.records.iter().any(|record| record.ticket.load(Ordering::Relaxed) != 0)
    }
}

/// The [`Node::state`] of a node to which no queue refers.
pub(crate) const IDLE: u32 = 0;

/// A participant's place in at most one queue (`spin/queue.rs`).
pub(crate) struct Node<U32, U64> {
    pub(crate) state: U32,
    /// The slot of the successor, 0, or `CLOSED`.
    pub(crate) next: U32,
    /// The time at which the thread was last seen to run, in nanoseconds.
    pub(crate) beat: U64,
    /// The word that is not zero while the owner spins. The owner alone uses it; it is an atomic
    /// because a signal handler of the same thread reads it (QUEUE-HANDLER).
    pub(crate) busy: U32,
}

impl<U32: Atomic32, U64: Atomic64> Node<U32, U64> {
    const IDLE: Self = Node { state: U32::ZERO, next: U32::ZERO, beat: U64::ZERO, busy: U32::ZERO };

    /// Tells whether no queue refers to this node (QUEUE-IDLE).
    pub(crate) fn idle(&self) -> bool {
        // ord: OSQ-1 acquire, pairs with OSQ-2: reuse comes after the unlinking.
        self.state.load(Ordering::Acquire) == IDLE
    }

    /// Takes the node out of its queue. Called by its owner, or by the walk for a node whose
    /// owner left or was passed over (QUEUE-WRITER).
    pub(crate) fn unlink(&self) {
        self.next.store(0, Ordering::Relaxed);
        // ord: OSQ-2 release, pairs with OSQ-1: `next` is cleared, and the
        // walk's last look at the node is behind it.
        self.state.store(IDLE, Ordering::Release);
    }
}

/// The part of a context that other threads reach (`ww/context.rs`). It is attached to the
/// slot of its thread, whose memory lives for ever (PLATFORM-FOREVER).
pub(crate) struct SlotContext<U32, U64> {
    /// The context's ticket, with *wounded* if it is; zero if there is no context.
    pub(crate) ticket: U64,
    /// The word that is not zero if the context must look again. The thread's sleeps end when this
    /// is set.
    pub(crate) told: U32,
}

impl<U32: Atomic32, U64: Atomic64> SlotContext<U32, U64> {
    const VACANT: Self = SlotContext { ticket: U64::ZERO, told: U32::ZERO };

    /// Forgets the context, because it has ended.
    pub(crate) fn clear(&self) {
        self.ticket.store(0, Ordering::Relaxed);
    }
}

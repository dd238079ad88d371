//! Threads that have joined, and the table they sit in.
//!
//! # Role
//! A lock word names threads by slot, a small number that indexes a table of
//! [`Participant`]s, not by pointer and not by thread id. One idea serves
//! spin-queue nodes (found without dereferencing anything a dead thread might
//! have freed), owner look-up, hand-over and reports.
//!
//! # Invariants
//! - **T1** A participant's memory lives for ever (platform invariant P2).
//! - **T2** A slot is given to a new thread only while its spin node is unlinked
//!   (`Node::idle`): a queue never finds a stranger behind a slot it knows.
//! - **T3** `Lost` is final: the slot of a thread that did not survive `fork`
//!   is never reused, for locks may still name it.

use crate::osq::Node;
use crate::platform::{Atomic32, Ordering, Platform};
use crate::ww::{CONTEXTS_PER_THREAD, Record};
use core::num::NonZeroU32;

/// Bits of a slot number.
pub const SLOT_BITS: u32 = 20;

/// The largest number of participants of a domain: 1,048,575.
pub const MAX_SLOTS: u32 = (1 << SLOT_BITS) - 1;

/// The number of a participant, from 1 to [`MAX_SLOTS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Slot(NonZeroU32);

impl Slot {
    /// The slot with this number; `None` for 0 and for numbers too large.
    #[inline(always)]
    #[must_use]
    pub const fn new(number: u32) -> Option<Self> {
        if number > MAX_SLOTS {
            return None;
        }
        match NonZeroU32::new(number) {
            Some(n) => Some(Slot(n)),
            None => None,
        }
    }

    /// The number.
    #[inline(always)]
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

/// Nobody sits here.
const VACANT: u32 = 0;
/// A live thread sits here.
const JOINED: u32 = 1;
/// Its thread was left behind by `fork`.
const LOST: u32 = 2;

/// One thread's seat. Two cache lines natively, so that a spinner's heartbeat
/// never disturbs a neighbour (the adjacent-line prefetcher pairs lines).
#[repr(align(128))]
pub struct Participant<P: Platform> {
    /// The thread's place in at most one queue of spinners.
    pub(crate) node: Node<P>,
    /// Sequence number rung to tell this thread that its lock has room for it.
    pub(crate) bell: P::U32,
    standing: P::U32,
    tid: P::U32,
    /// Where others reach the contexts that the thread acquires locks in.
    pub(crate) records: [Record<P>; CONTEXTS_PER_THREAD],
    /// For the platform's own use; no lock looks at it. The Linux platform
    /// keeps here where the thread was last seen to run.
    pub note: P::U32,
}

impl<P: Platform> Participant<P> {
    /// Where in a seat the number of its thread stands; 0: nobody sits here. For
    /// those who read the table from outside.
    pub const TID: usize = core::mem::offset_of!(Self, tid);
    /// Where in a seat its standing stands: 0 vacant, 1 taken, 2 left behind by
    /// `fork`.
    pub const STANDING: usize = core::mem::offset_of!(Self, standing);

    /// An empty seat; usable in constants, for tables that grow by zeroed
    /// memory natively: an empty seat is all zeros.
    pub const VACANT: Self = Self {
        node: Node::IDLE,
        bell: P::U32::ZERO,
        standing: P::U32::ZERO,
        tid: P::U32::ZERO,
        records: [Record::VACANT; CONTEXTS_PER_THREAD],
        note: P::U32::ZERO,
    };

    /// Sits a thread down: true when the seat was vacant and is now the
    /// caller's.
    pub fn claim(&self, tid: u32) -> bool {
        if self.standing.load(Ordering::Relaxed) != VACANT || !self.node.idle() {
            return false;
        }
        // ord: SEAT-1 acquire, pairs with SEAT-2: the previous thread's last
        // writes to the node come before our first.
        if self
            .standing
            .compare_exchange(VACANT, JOINED, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            return false;
        }
        if !self.node.idle() {
            // The seat changed hands between the two looks and its second
            // owner left its node in a queue (T2).
            self.vacate();
            return false;
        }
        self.tid.store(tid, Ordering::Relaxed);
        self.records.iter().for_each(Record::clear);
        true
    }

    /// The thread leaves. Its node may still be linked in a queue; the seat is
    /// not given away until it is not (T2).
    pub fn vacate(&self) {
        self.tid.store(0, Ordering::Relaxed);
        // ord: SEAT-2 release, pairs with SEAT-1.
        self.standing.store(VACANT, Ordering::Release);
    }

    /// In the child of a `fork`: the thread of this seat does not exist here.
    /// Does nothing to a vacant seat.
    pub fn lose(&self) {
        if self.standing.load(Ordering::Relaxed) == JOINED {
            self.standing.store(LOST, Ordering::Relaxed);
        }
    }

    /// In the child of a `fork`: the calling thread keeps its seat under its
    /// new thread id.
    pub fn rename(&self, tid: u32) {
        self.tid.store(tid, Ordering::Relaxed);
    }

    /// Whether the thread was left behind by `fork`.
    #[must_use]
    pub fn lost(&self) -> bool {
        self.standing.load(Ordering::Relaxed) == LOST
    }

    /// The kernel's id of the thread; `None` if nobody sits here.
    #[must_use]
    pub fn tid(&self) -> Option<u32> {
        match self.tid.load(Ordering::Relaxed) {
            0 => None,
            tid => Some(tid),
        }
    }

    /// Tells the thread to look at the lock that it waits for, and wakes it.
    /// May reach a thread that waits for something else, or a stranger: to that
    /// one it is a spurious wake-up.
    pub(crate) fn ring(&self) {
        let address = P::address32(&self.bell);
        // ord: BELL-1 release, pairs with RW-3: the thread that sees the new
        // number sees the lock word as the caller left it.
        self.bell.fetch_add(1, Ordering::Release);
        P::wake(address, 1);
    }
}

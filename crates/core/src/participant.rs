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
//!   ([`Attachment::is_unlinked`]): a queue never finds a stranger behind a slot it knows.
//! - **T3** `Lost` is final: the slot of a thread that did not survive `fork`
//!   is never reused, for locks may still name it.

use crate::atomic::{Atomic32, Ordering};

/// What locks hang on a slot. All zeros natively when nothing uses it.
pub trait Attachment {
    /// As on a slot that was never used.
    const UNUSED: Self;
    /// Whether no lock refers to it from elsewhere: the slot may change hands.
    fn is_unlinked(&self) -> bool;
    /// Forgets what the thread before has left, for the next one.
    fn forget(&self);
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
pub struct Participant<U32, T> {
    /// What locks hang on the slot.
    pub(crate) attached: T,
    /// Sequence number rung to tell this thread that its lock has room for it.
    pub(crate) bell: U32,
    standing: U32,
    tid: U32,
    /// For the platform's own use; no lock looks at it. The Linux platform
    /// keeps here where the thread was last seen to run.
    pub note: U32,
}

impl<U32: Atomic32, T: Attachment> Participant<U32, T> {
    /// Where in a seat the number of its thread stands; 0: nobody sits here. For
    /// those who read the table from outside.
    pub const TID: usize = core::mem::offset_of!(Self, tid);
    /// Where in a seat its standing stands: 0 vacant, 1 taken, 2 left behind by
    /// `fork`.
    pub const STANDING: usize = core::mem::offset_of!(Self, standing);

    /// An empty seat; usable in constants, for tables that grow by zeroed
    /// memory natively: an empty seat is all zeros.
    pub const VACANT: Self = Self {
        attached: T::UNUSED,
        bell: U32::ZERO,
        standing: U32::ZERO,
        tid: U32::ZERO,
        note: U32::ZERO,
    };

    /// Sits a thread down: true when the seat was vacant and is now the
    /// caller's.
    pub fn claim(&self, tid: u32) -> bool {
        if self.standing.load(Ordering::Relaxed) != VACANT || !self.attached.is_unlinked() {
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
        if !self.attached.is_unlinked() {
            // The seat changed hands between the two looks and its second
            // owner left its node in a queue (T2).
            self.vacate();
            return false;
        }
        self.tid.store(tid, Ordering::Relaxed);
        self.attached.forget();
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
}

//! One entry of the table of participants: the threads that have joined.
//!
//! # Role
//! A lock word names threads by slot, a small number that indexes a table of
//! [`Participant`]s, not by pointer and not by thread id. One idea serves the nodes of the
//! queue of spinners (found without dereferencing what a dead thread might have freed), the
//! look-up of an owner, the hand-off, and reports. What the locks keep for each slot is a type
//! parameter: this module knows no lock.
//!
//! # State
//! ```text
//!            claim               vacate
//!   VACANT ─────────▶ JOINED ─────────────▶ VACANT
//!                       │ fork, in the child; vacate, where locks may still name the thread
//!                       ▼
//!                     LOST   for ever
//! ```
//!
//! # Invariants
//! - **SLOT-REUSE** A slot is given to a new thread only while nothing refers to what locks have
//!   attached to it ([`Attachment::is_unlinked`]): a queue never finds a stranger behind a slot
//!   that it knows.
//! - **SLOT-LOST** `LOST` is final: the slot of a thread that did not survive `fork`, or that ended
//!   with what locks have attached to it in use ([`Attachment::outlives`]), is never reused, because
//!   locks may still name it.
//! - PLATFORM-FOREVER, which the platform keeps, and by which a slot may be looked at for ever.

use crate::atomic::{Atomic32, Ordering};

/// The data that locks attach to a slot. All zeros natively while nothing uses it.
pub trait Attachment {
    /// The attachment of a slot that was never used.
    const UNUSED: Self;
    /// Tells whether no lock refers to it, so that the slot may change hands (SLOT-REUSE).
    fn is_unlinked(&self) -> bool;
    /// Tells whether locks may still name the thread when it has ended (SLOT-LOST). Where they may not,
    /// the next thread of the slot finds nothing of it there.
    fn outlives(&self) -> bool;
}

/// No thread has this slot.
const VACANT: u32 = 0;
/// A live thread has this slot.
const JOINED: u32 = 1;
/// The thread of this slot was left behind by `fork`, or has ended and locks may still name it.
const LOST: u32 = 2;

/// One slot of the table. Two cache lines natively, so that a spinner's heartbeat never
/// disturbs a neighbour (the adjacent-line prefetcher pairs lines).
#[repr(align(128))]
pub struct Participant<U32, T> {
    /// The data that locks attach to the slot.
    pub(crate) attached: T,
    /// The wake sequence: a number that goes up each time another thread calls this one to look
    /// at the lock that it waits for. The thread sleeps until it changes.
    pub(crate) wake_sequence: U32,
    status: U32,
    tid: U32,
    /// A word for the platform's own use, at which no lock looks. The Linux platform keeps here
    /// where the thread was last seen to run.
    pub note: U32,
}

impl<U32: Atomic32, T: Attachment> Participant<U32, T> {
    /// The offset of the thread's id, 0 if no thread has the slot. For readers of the table
    /// in another process.
    pub const TID: usize = core::mem::offset_of!(Self, tid);
    /// The offset of the slot's status: 0 vacant, 1 taken, 2 lost: left behind by `fork`, or ended
    /// while locks may name it.
    pub const STATUS: usize = core::mem::offset_of!(Self, status);

    /// A vacant slot, usable in constants. Natively it is all zeros, so that a table may grow by
    /// zeroed memory.
    pub const VACANT: Self = Self {
        attached: T::UNUSED,
        wake_sequence: U32::ZERO,
        status: U32::ZERO,
        tid: U32::ZERO,
        note: U32::ZERO,
    };

    /// Takes the slot for the thread with this id. Returns true if it was vacant and is now the
    /// caller's.
    pub fn claim(&self, tid: u32) -> bool {
        if self.status.load(Ordering::Relaxed) != VACANT || !self.attached.is_unlinked() {
            return false;
        }
        // ord: SLOT-1 acquire, pairs with SLOT-2: the previous thread's last
        // writes to the node come before our first.
        if self
            .status
            .compare_exchange(VACANT, JOINED, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            return false;
        }
        if !self.attached.is_unlinked() {
            // The slot changed hands between the two looks, and its second owner left its
            // node in a queue (SLOT-REUSE). It has no context: its slot was vacant.
            let _ = self.vacate();
            return false;
        }
        self.tid.store(tid, Ordering::Relaxed);
        true
    }

    /// Gives the slot up. Its node may still be linked in a queue; the slot goes to no other
    /// thread until it is not (SLOT-REUSE). Returns true if it goes to none, for locks may still name
    /// its thread (SLOT-LOST): then whoever waits for one of those must look again.
    #[must_use]
    pub fn vacate(&self) -> bool {
        self.tid.store(0, Ordering::Relaxed);
        let is_lost = self.attached.outlives();
        // ord: SLOT-2 release, pairs with SLOT-1.
        self.status.store(if is_lost { LOST } else { VACANT }, Ordering::Release);
        is_lost
    }

    /// Marks the slot, in the child of a `fork`, as one whose thread does not exist there. Does
    /// nothing to a vacant slot.
    pub fn lose(&self) {
        if self.status.load(Ordering::Relaxed) == JOINED {
            self.status.store(LOST, Ordering::Relaxed);
        }
    }

    /// Gives the calling thread, in the child of a `fork`, its new id. It keeps its slot.
    pub fn rename(&self, tid: u32) {
        self.tid.store(tid, Ordering::Relaxed);
    }

    /// Tells whether the thread was left behind by `fork`, or has ended and locks may still name it.
    #[must_use]
    pub fn lost(&self) -> bool {
        self.status.load(Ordering::Relaxed) == LOST
    }

    /// Returns the kernel's id of the thread; `None` if the slot is vacant.
    #[must_use]
    pub fn tid(&self) -> Option<u32> {
        match self.tid.load(Ordering::Relaxed) {
            0 => None,
            tid => Some(tid),
        }
    }
}

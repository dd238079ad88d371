//! Participants of a segment: what each of them has there.
//!
//! # State
//! A [`SlotRecord`] is a participant's place in the table of its segment. Its life word says who
//! sits there: see [`life`](super::life).
//!
//! A [`Claim`] says that a participant shares a lock: reads under a reader-writer
//! lock, or has units of a semaphore. It lies with the participant and not with the
//! lock, so that a dead participant's claims are void without anybody's doing
//! anything.
//!
//! # Invariants
//! - **G3** Only the participant writes its claims, but for the mark that somebody
//!   waits for one.

use super::life::Life;
use super::machine::Robust;
use crate::platform::{Atomic32, Atomic64, Ordering};

/// A participant's place.
#[repr(C, align(128))]
pub struct SlotRecord<P: Robust> {
    /// Who sits here: see [`life`](super::life).
    pub life: P::U64,
    /// For reports: process and thread as they call themselves; the namespace of
    /// those numbers; when it came, in nanoseconds since 1970.
    pub process: P::U32,
    /// See `process`.
    pub thread: P::U32,
    /// The machine's, from offset 16 to 48: how it knows the life word.
    pub link: [P::U64; 4],
    /// When it last asked about somebody for whom it had not waited for long, in 2^20
    /// nanoseconds.
    pub asked: P::U32,
    /// What it waits for: the offset of the lock in the segment, divided by 8.
    pub waits_for: P::U32,
    /// See `process`.
    pub namespace: P::U64,
    /// See `process`.
    pub since: P::U64,
    /// How many of its claims were ever used. Of slot 0, in which nobody sits: the
    /// highest slot whose claims were.
    pub claims: P::U32,
    /// The platform's own.
    pub note: P::U32,
    /// Whom it last asked about: a slot. See `asked`.
    pub asked_about: P::U32,
    /// The machine's: which start of the system and which file it came to, and which process it
    /// is of, by numbers that are nobody else's; 0: not certain.
    pub origin: [P::U64; 2],
}

impl<P: Robust> SlotRecord<P> {
    /// What the life word says now.
    #[must_use]
    pub fn current(&self) -> Life {
        // ord: SHR-3 (acquire): what a dead participant wrote is to be seen, and what one
        // that left has released.
        Life(self.life.load(Ordering::Acquire))
    }

    /// Replaces the life word, if it is this one.
    pub fn change(&self, from: Life, to: Life) -> bool {
        // ord: SHR-9 (acq_rel): acquire: the slot as its last tenant has left it; release:
        // what the caller did there, or has released, to who finds it left.
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        self.life.compare_exchange(from.0, to.0, success, failure).is_ok()
    }

    /// The tenant leaves: it holds nothing, and the machine does not know it by this slot
    /// any more. Nothing happens if it was declared dead.
    pub fn vacate(&self, tenant: Life) {
        self.replace(tenant, tenant.free());
    }

    /// Replaces the life word of a tenant, or of who prepares the slot, whether or not somebody
    /// doubts that it lives: doubts come and go while this is tried. False if it was declared
    /// dead.
    pub fn replace(&self, tenant: Life, to: Life) -> bool {
        while !self.change(tenant, to) && !self.change(tenant.doubted(), to) {
            if self.current().trusted() != tenant {
                return false;
            }
        }
        true
    }

    /// Ends the name of the tenants of a slot that was found free (G2). False if somebody
    /// has come since.
    pub(super) fn retire(&self, free: Life) -> bool {
        self.change(free, free.dead())
    }
}

/// One claim of a participant.
#[repr(C, align(8))]
pub struct Claim<P: Robust> {
    /// On which lock: its offset in the segment, divided by 8; 0: none. With
    /// [`AWAITED`], somebody sleeps until it is given back.
    pub what: P::U32,
    /// Of a semaphore, how many units.
    pub units: P::U32,
}

/// Somebody sleeps on this claim.
pub const AWAITED: u32 = 1 << 31;

impl<P: Robust> Claim<P> {
    /// The caller, whose it is, claims a share of the lock at this offset.
    pub(super) fn make(&self, what: u32) {
        // ord: SHR-6 (seq_cst): before the look at the lock.
        self.what.swap(what, Ordering::SeqCst);
    }

    /// The caller, whose it is, gives the share back. Nothing of the lock is read.
    pub(super) fn give_back(&self) {
        // ord: SHR-7 (release): what was read under the lock, before who owns it next
        // writes.
        if self.what.swap(0, Ordering::Release) & AWAITED != 0 {
            P::wake_shared(&raw const self.what, u32::MAX);
        }
    }
}

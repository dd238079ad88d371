//! What a participant of a segment has there: a slot's record, and its claims.
//!
//! # State
//! The record of a slot says which participant has it, by its [life word](super::life), and
//! what reports want to know of that.
//!
//! A [`Claim`] says that a participant reads under a reader-writer lock, or has units of a
//! semaphore. It lies with the participant and not with the lock, so a participant's death
//! voids its claims without anybody's doing anything.
//!
//! # Invariants
//! - **CLAIM-ONE-WRITER** Only the participant writes its claims, except for the mark
//!   [`AWAITED`].

use super::life::Life;
use super::machine::RobustMachine;
use crate::atomic::{Atomic32, Atomic64, Ordering};

/// The record of one slot in the table of a segment.
#[repr(C, align(128))]
pub struct SlotRecord<P: RobustMachine> {
    /// Which participant has the slot: see [`life`](super::life).
    pub life: P::U64,
    /// The participant's process as it calls itself, for reports.
    pub process: P::U32,
    /// The participant's thread as it calls itself, for reports.
    pub thread: P::U32,
    /// The machine's own, from offset 16 to 48: how it finds the life word.
    pub link: [P::U64; 4],
    /// The time at which the participant last asked whether another one lives, for which it had not
    /// waited for long; in 2^20 nanoseconds.
    pub asked: P::U32,
    /// The lock that the participant waits for: its offset in the segment, divided by 8.
    pub waits_for: P::U32,
    /// The namespace of the numbers of process and thread, for reports.
    pub namespace: P::U64,
    /// The time at which the participant came, in nanoseconds since 1970, for reports.
    pub since: P::U64,
    /// How many of the slot's claims were ever used. In slot 0, which nobody has: the highest
    /// slot whose claims were.
    pub claims: P::U32,
    /// A word of the platform's own.
    pub note: P::U32,
    /// The slot about which the participant last asked. See `asked`.
    pub asked_about: P::U32,
    /// The machine's own: the start of the system and the file that the participant came to, and
    /// its process, by numbers that are nobody else's; 0: not certain.
    pub origin: [P::U64; 2],
}

impl<P: RobustMachine> SlotRecord<P> {
    /// Reads the life word.
    #[must_use]
    pub fn current(&self) -> Life {
        // ord: SHR-3 (acquire): what a dead participant wrote is to be seen, and what one
        // that left has released.
        Life(self.life.load(Ordering::Acquire))
    }

    /// Replaces the life word `from` by `to`. Returns false if it is another one.
    pub fn change(&self, from: Life, to: Life) -> bool {
        // ord: SHR-9 (seq_cst): acquire: the slot as its last tenant has left it; release:
        // what the caller did there, or has released, to who finds it left. All of it: that
        // who comes is alive before its claims (SHR-8).
        let (success, failure) = (Ordering::SeqCst, Ordering::Relaxed);
        self.life.compare_exchange(from.0, to.0, success, failure).is_ok()
    }

    /// Frees the slot of a tenant that leaves: it holds nothing, and the machine does not know
    /// it by this slot any more. Does nothing if somebody has declared it dead.
    pub fn vacate(&self, tenant: Life) {
        self.replace(tenant, tenant.free());
    }

    /// Replaces the life word of a tenant, or of a process that prepares the slot, whether or not
    /// somebody doubts that it lives: doubts come and go meanwhile. Returns false if somebody has
    /// declared it dead.
    pub fn replace(&self, tenant: Life, to: Life) -> bool {
        while !self.change(tenant, to) && !self.change(tenant.doubted(), to) {
            let current = self.current();
            let is_lost = if fault!(shared_leaver_overlooks_a_doubt) {
                current != tenant.doubted()
            } else {
                current.trusted() != tenant
            };
            if is_lost {
                return false;
            }
        }
        true
    }

    /// Ends the name of the tenants of a slot that was found free (LIFE-FREE-NAME). Returns false
    /// if somebody has come since.
    pub(super) fn retire(&self, free: Life) -> bool {
        self.change(free, free.dead())
    }
}

/// One claim of a participant on a lock.
#[repr(C, align(8))]
pub struct Claim<P: RobustMachine> {
    /// The claimed lock: its offset in the segment, divided by 8; 0: none. With [`AWAITED`],
    /// somebody sleeps until the claim is given back.
    pub what: P::U32,
    /// The number of units, of a semaphore.
    pub units: P::U32,
}

/// The mark of a claim on which somebody sleeps.
pub const AWAITED: u32 = 1 << 31;

impl<P: RobustMachine> Claim<P> {
    /// Claims the lock at this offset for the caller, whose claim this is.
    pub(super) fn make(&self, what: u32) {
        // ord: SHR-6 (seq_cst): before the look at the lock.
        self.what.swap(what, Ordering::SeqCst);
    }

    /// Gives the claim back, which is the caller's. Reads nothing of the lock.
    pub(super) fn give_back(&self) {
        // ord: SHR-7 (release): what was read under the lock, before who owns it next
        // writes.
        if self.what.swap(0, Ordering::Release) & AWAITED != 0
            && !fault!(shared_reader_wakes_no_writer)
        {
            P::wake_shared(&raw const self.what, u32::MAX);
        }
    }
}

//! A participant as its own thread sees it: its claims, its sleeps, and whom it asks about.

use super::domain::Domain;
use super::life::Life;
use super::machine::{Robust, Watch, Woken};
use super::outcome::SharedError;
use super::slot::{Claim, SlotRecord};
use super::word::Identity;
use crate::platform::{Atomic32, Ordering, Wait};

/// A participant of a segment, as the thread sees itself whose it is.
pub struct Party<'a, P: Robust> {
    /// The segment.
    pub domain: Domain<'a, P>,
    /// Itself.
    pub me: Identity,
}

impl<P: Robust> Clone for Party<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Robust> Copy for Party<'_, P> {}

impl<'a, P: Robust> Party<'a, P> {
    /// One of its claims, and how it names this lock there.
    pub(super) fn claim<L>(
        &self,
        number: usize,
        lock: &L,
    ) -> Result<(&'a Claim<P>, u32), SharedError> {
        let what = self.domain.offset(core::ptr::from_ref(lock).addr());
        let what = what.ok_or(SharedError::Foreign)?;
        let claim = self.domain.claims_of(self.me.slot()).get(number);
        let claim = claim.ok_or(SharedError::TooManyClaims)?;
        if let Some(record) = self.record() {
            let used = record.claims.load(Ordering::Relaxed);
            if used <= number as u32 {
                // ord: SHR-8 (relaxed): both before the claim, which is seq_cst. The first
                // one first: its being there already is concluded from the second.
                self.domain.look_up_to(self.me.slot());
                record.claims.store(number as u32 + 1, Ordering::Relaxed);
            }
        }
        Ok((claim, what))
    }

    /// Sleeps on words of which some tell the end of these participants, whose life words
    /// were these. Asks the platform's other source about them now and then.
    pub(super) fn sleep(
        &self,
        watches: &[Watch<'_, P>],
        how: &Wait<'_, P>,
        watched: &[(u32, Life)],
    ) -> Woken {
        let Some(trust) = P::TRUST else {
            return P::wait_any(watches, how);
        };
        let now = P::now();
        let until = now.after(trust);
        let deadline = how.deadline.filter(|&deadline| deadline <= until);
        let slice = Wait { deadline: Some(deadline.unwrap_or(until)), ..*how };
        let ended = P::wait_any(watches, &slice);
        if ended == Woken::Copied {
            return ended;
        }
        // However this sleep has ended: each may be short, and all of them together long, as where
        // the doorbell rings for others, a signal comes at intervals, or the machine cannot sleep
        // on several words and looks again and again.
        let (patient, over) = (deadline.is_none_or(|deadline| deadline > now), Woken::TimedOut);
        let asks = ended == over && patient
            || watched.first().is_some_and(|&(slot, _)| self.asks_about(slot));
        let mut dead = false;
        for &(slot, life) in watched.iter().filter(|_| asks) {
            dead |= self.suspect(slot, life);
        }
        let looks_again = ended == over && (deadline.is_none() || dead && !patient);
        if looks_again { Woken::Unsure } else { ended }
    }

    /// The caller tries to get a lock from this participant, and cannot: whether that has
    /// died unnoticed, in which case it is so no longer. Asks now and then only.
    pub(super) fn suspects(&self, slot: u32, life: Life) -> bool {
        self.asks_about(slot) && self.suspect(slot, life)
    }

    /// Whether this participant has ended, by the platform's other source; then all know.
    pub(super) fn suspect(&self, slot: u32, life: Life) -> bool {
        let ended = P::has_ended(self.domain.segment, slot, life);
        if ended {
            self.domain.declare_dead(slot, life);
        }
        ended
    }

    /// Whether it is so long ago that the caller has asked about this participant while it had
    /// not waited for it for long, or has asked about another one since: then it is to ask now.
    /// So who tries for several locks in turn asks about the owners of all.
    pub(super) fn asks_about(&self, slot: u32) -> bool {
        /// So many times as often about another one than about the same.
        const OTHERS: u64 = 32;
        let (Some(trust), Some(record)) = (P::TRUST, self.record()) else { return false };
        let now = (P::now().0 >> 20) as u32 | 1;
        let asked = record.asked.load(Ordering::Relaxed);
        let other = record.asked_about.load(Ordering::Relaxed) != slot;
        let enough = if other { trust / OTHERS } else { trust };
        let due = asked == 0 || u64::from(now.wrapping_sub(asked)) << 20 >= enough;
        if due {
            record.asked.store(now, Ordering::Relaxed);
            record.asked_about.store(slot, Ordering::Relaxed);
        }
        due
    }

    /// The caller has just taken its slot. Nothing is claimed there, since who leaves holds
    /// nothing, and what a dead one had claimed is erased before; or a peer has written it there,
    /// and it was taken for the caller's until now.
    pub fn arrive(&self) {
        if self.domain.erase_claims(self.me.slot()) {
            self.domain.wake_everybody();
        }
    }

    /// Its own slot, if it has one.
    #[must_use]
    pub fn record(&self) -> Option<&'a SlotRecord<P>> {
        self.domain.record(self.me.slot())
    }
}

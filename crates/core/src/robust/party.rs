//! A participant as its own thread sees itself: its claims, its sleeps, whose lives it doubts.

use super::domain::Domain;
use super::life::Life;
use super::machine::{RobustMachine, WatchedWord, Woken};
use super::outcome::RobustError;
use super::slot::{Claim, SlotRecord};
use super::word::Identity;
use crate::atomic::{Atomic32, Ordering};
use crate::platform::WaitBounds;

/// A participant of a segment, as its own thread sees it.
pub struct Party<'a, P: RobustMachine> {
    /// The segment as everybody sees it.
    pub domain: Domain<'a, P>,
    /// The name of the participant itself.
    pub me: Identity,
}

impl<P: RobustMachine> Clone for Party<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: RobustMachine> Copy for Party<'_, P> {}

impl<'a, P: RobustMachine> Party<'a, P> {
    /// Returns one of the participant's claims, and the number by which that names the lock.
    pub(super) fn claim<L>(
        &self,
        number: usize,
        lock: &L,
    ) -> Result<(&'a Claim<P>, u32), RobustError> {
        let what = self.domain.offset(core::ptr::from_ref(lock).addr());
        let what = what.ok_or(RobustError::Foreign)?;
        let claim = self.domain.claims_of(self.me.slot()).get(number);
        let claim = claim.ok_or(RobustError::TooManyClaims)?;
        if let Some(record) = self.record() {
            let used = record.claims.load(Ordering::Relaxed);
            if used <= number as u32 {
                // First, for its having been done already is concluded from the second.
                self.domain.look_up_to(self.me.slot());
                // ord: SHR-8 (seq_cst): before the claim.
                record.claims.store(number as u32 + 1, Ordering::SeqCst);
            }
        }
        Ok((claim, what))
    }

    /// Sleeps on words, some of which tell the end of the participants in `watched`, which had
    /// these life words. Asks the platform's other source about those now and then.
    pub(super) fn sleep(
        &self,
        watches: &[WatchedWord<'_, P>],
        how: &WaitBounds<'_, P>,
        watched: &[(u32, Life)],
    ) -> Woken {
        let Some(trust) = P::trust() else {
            return P::wait_any(watches, how);
        };
        let now = P::now();
        let until = now.after(trust);
        let deadline = how.deadline.filter(|&deadline| deadline <= until);
        let until = (!fault!(unmarked_sleepers_trust_for_ever)).then_some(until);
        let slice = WaitBounds { deadline: deadline.or(until), ..*how };
        let ended = P::wait_any(watches, &slice);
        if ended == Woken::Copied {
            return ended;
        }
        // Asks however this sleep has ended: each may be short, and all of them together long, as
        // where somebody wakes everybody again and again, signals come at intervals, or the
        // machine cannot sleep on several words and looks repeatedly.
        let over = ended == Woken::TimedOut;
        let asks = over && deadline.is_none_or(|deadline| deadline > now)
            || watched.first().is_some_and(|&(slot, _)| self.asks_about(slot));
        for &(slot, life) in watched.iter().filter(|_| asks) {
            self.suspect(slot, life);
        }
        if over && deadline.is_none() { Woken::Unsure } else { ended }
    }

    /// Tells whether the participant from which the caller tries in vain to get a lock has died
    /// unnoticed, and then declares it dead. Asks now and then only.
    pub(super) fn suspects(&self, slot: u32, life: Life) -> bool {
        self.asks_about(slot) && self.suspect(slot, life)
    }

    /// Tells whether this participant has ended, by the platform's other source, and then
    /// declares it dead.
    pub(super) fn suspect(&self, slot: u32, life: Life) -> bool {
        let ended = !fault!(unmarked_nobody_is_asked_about)
            && P::has_ended(self.domain.segment, slot, life);
        if ended {
            self.domain.declare_dead(slot, life);
        }
        ended
    }

    /// Tells whether the caller is to ask now whether this participant lives, for which it has
    /// not waited for long: it asked long ago, or about another one since. So a caller that tries
    /// for several locks in turn asks about the owners of all.
    pub(super) fn asks_about(&self, slot: u32) -> bool {
        /// How many times as often it asks about another participant as about the same.
        const OTHERS: u64 = 32;
        let (Some(trust), Some(record)) = (P::trust(), self.record()) else { return false };
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

    /// Begins the caller's life in the slot that it has just taken. Nothing is claimed there: a
    /// tenant that leaves holds nothing, and a newcomer erases what a dead one had claimed. Or a
    /// peer has written a claim there, which counted as the caller's until now.
    pub fn arrive(&self) {
        if self.domain.erase_claims(self.me.slot()) {
            self.domain.wake_everybody();
        }
    }

    /// Returns the record of the participant's own slot; `None` if the segment has no such slot.
    #[must_use]
    pub fn record(&self) -> Option<&'a SlotRecord<P>> {
        self.domain.record(self.me.slot())
    }
}

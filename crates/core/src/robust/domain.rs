//! A segment as all its participants see it: slots, claims, and which participants are dead.
//!
//! Everybody wakes everybody by the *doorbell*, one word for the whole segment. A death or a
//! newcomer may concern any lock there, and whoever notices it need not know which.

use super::life::{LIFE_NUMBER, Life};
use super::machine::{Addend, RobustMachine};
use super::slot::{AWAITED, Claim, SlotRecord};
use super::word::{Identity, LAST_SLOT};
use crate::atomic::{Atomic32, Atomic64, Ordering};
use core::ptr::NonNull;

/// What all participants of a segment see of that.
pub struct Domain<'a, P: RobustMachine> {
    /// The word on which everybody sleeps who waits for a lock of the segment. Its lower 30 bits
    /// are zero (DEATH-NAMED-WORD).
    pub doorbell: &'a P::U32,
    /// The records of all slots; number 0 is nobody's.
    pub records: &'a [SlotRecord<P>],
    /// The claims of all slots, one slot's after another's.
    pub claims: &'a [Claim<P>],
    /// The number of claims that each slot has.
    pub claims_each: usize,
    /// What the platform knows of the segment.
    pub segment: &'a P::Segment,
    /// The address at which the segment begins.
    pub base: usize,
}

impl<P: RobustMachine> Clone for Domain<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: RobustMachine> Copy for Domain<'_, P> {}

impl<'a, P: RobustMachine> Domain<'a, P> {
    /// Returns the record of a slot; `None` if the segment does not have it.
    #[must_use]
    pub fn record(&self, slot: u32) -> Option<&'a SlotRecord<P>> {
        if slot == 0 || slot > LAST_SLOT { None } else { self.records.get(slot as usize) }
    }

    /// Returns the claims of a slot; none if the segment does not have it.
    #[must_use]
    pub fn claims_of(&self, slot: u32) -> &'a [Claim<P>] {
        let first = slot as usize * self.claims_each;
        self.claims.get(first..).and_then(|from| from.get(..self.claims_each)).unwrap_or(&[])
    }

    /// Visits every living participant that may have claims: slot, record, life word, claims.
    pub(super) fn all_living(
        &self,
    ) -> impl Iterator<Item = (u32, &'a SlotRecord<P>, Life, &'a [Claim<P>])> + use<'a, P> {
        let domain = *self;
        // ord: SHR-8 (seq_cst): all three after the caller has put itself into the lock's
        // word.
        let last = self.records.first().map_or(0, |record| record.claims.load(Ordering::SeqCst));
        let last = self.records.len().saturating_sub(1).min(last as usize) as u32;
        (1..=last).filter_map(move |slot| {
            let record = domain.record(slot)?;
            // ord: SHR-8 (seq_cst).
            let life = Life(record.life.load(Ordering::SeqCst));
            let claims = domain.claims_of(slot);
            // ord: SHR-8 (seq_cst).
            let used = record.claims.load(Ordering::SeqCst) as usize;
            let claims = &claims[..used.min(claims.len())];
            life.is_alive().then_some((slot, record, life, claims))
        })
    }

    /// Has everybody who looks for claims look at this slot too, from now on.
    pub(super) fn look_up_to(&self, slot: u32) {
        let Some(first) = self.records.first() else { return };
        let mut highest = first.claims.load(Ordering::Relaxed);
        loop {
            // ord: SHR-8 (seq_cst): before the claim. Also where another participant has done it:
            // whoever looks for claims after this looks at the slot.
            let (success, failure) = (Ordering::SeqCst, Ordering::Relaxed);
            match first.claims.compare_exchange(highest, highest.max(slot), success, failure) {
                Ok(_) => return,
                Err(found) => highest = found,
            }
        }
    }

    /// Tells what has become of the participant with this name.
    #[must_use]
    pub fn fate(&self, who: Identity) -> Fate<'a, P> {
        let Some(record) = self.record(who.slot()) else { return Fate::Died };
        let life = record.current();
        if life.generation() != who.generation() && !fault!(shared_owner_is_known_by_its_slot) {
            Fate::Died
        } else if life.is_alive() {
            Fate::Lives(record, life)
        } else if life.is_free() && !fault!(shared_clean_leave_passes_for_a_death) {
            Fate::Left(record, life)
        } else {
            Fate::Died
        }
    }

    /// Takes the first slot that can be had for a participant of this process, with this number
    /// as the machine knows it. Returns the slot and its life word from then on. It is the first
    /// one because whoever looks for claims looks at all slots up to the highest that made one.
    ///
    /// # Errors
    /// [`NoSlot`] says why there is none.
    pub fn take_slot(&self, process: u32, number: u32) -> Result<(u32, Life), NoSlot> {
        let (mut worn_out, mut scrubbed) = (false, false);
        for (slot, record) in (0..).zip(self.records).skip(1).take(LAST_SLOT as usize) {
            if let Some(taken) = self.occupy(slot, process, number) {
                return Ok((slot, taken));
            }
            let found = record.current();
            worn_out |= found.is_worn_out();
            scrubbed |= found.is_scrubbed();
        }
        Err(match (worn_out, scrubbed) {
            (true, _) => NoSlot::WornOut,
            (false, true) => NoSlot::Scrubbed,
            (false, false) => NoSlot::Full,
        })
    }

    /// Takes this slot for the caller. Returns the life word from then on; `None` if somebody
    /// has the slot, or it is worn out.
    pub fn occupy(&self, slot: u32, process: u32, number: u32) -> Option<Life> {
        let record = self.record(slot)?;
        loop {
            let found = record.current();
            let taken = found.taken_by(process, number)?;
            if found.is_free() {
                if record.change(found, taken) {
                    return Some(taken);
                }
            } else if let prepared = found.prepared(process)
                && record.change(found, prepared)
            {
                if !fault!(shared_newcomer_has_what_a_dead_one_claimed) {
                    self.erase_claims(slot);
                }
                let done = if fault!(shared_newcomer_overlooks_a_doubt) {
                    record.change(prepared, taken)
                } else {
                    record.replace(prepared, taken)
                };
                if done {
                    return Some(taken);
                }
            }
        }
    }

    /// Ends a name that stands in a lock, if nobody has its slot and a newcomer could bear it;
    /// tells whether it did. For a caller that finds nobody living in the segment: no tenant has
    /// put such a name there and kept it, but the words may be of different moments, as after a
    /// crash of the system, or in a copy that was made meanwhile.
    pub fn end_name(&self, who: Identity) -> bool {
        let Some(record) = self.record(who.slot()) else { return false };
        let life = record.current();
        let is_next = life.generation() < who.generation()
            || life.is_free() && life.generation() == who.generation();
        // Fails if somebody has come.
        !life.is_taken() && is_next && record.change(life, Life::ended(who.generation()))
    }

    /// Erases the claims of the last tenant of a slot that the caller has taken or prepared;
    /// tells whether there were any.
    ///
    /// If there were, it wakes everybody first. A waiter may be about to sleep that has seen the
    /// dead tenant's claim while that lived, and compares the lower half of the life word only,
    /// in which the next tenant may have the same number. Should the caller end before it has
    /// erased the claim, the next newcomer wakes everybody.
    pub fn erase_claims(&self, slot: u32) -> bool {
        let claims = self.claims_of(slot);
        let stood = claims.iter().any(|claim| claim.what.load(Ordering::Relaxed) != 0);
        if stood && !fault!(shared_newcomer_wakes_nobody) {
            self.wake_everybody();
        }
        for claim in claims {
            claim.give_back();
            if !fault!(shared_newcomer_keeps_units) {
                claim.units.store(0, Ordering::Relaxed);
            }
        }
        stood
    }

    /// Has everybody who sleeps in this segment look again: adds to the doorbell and wakes all
    /// sleepers there.
    pub fn wake_everybody(&self) {
        P::add_and_wake(self.doorbell, Addend::Doorbell, u32::MAX);
    }

    /// Names the doorbell (DEATH-NAMED-WORD): should the caller end, the machine wakes one that
    /// sleeps there, and that one wakes everybody. Returns what was named before.
    pub(super) fn name_doorbell(&self) -> Option<NonNull<P::U32>> {
        P::at_death_wake(Some(NonNull::from(self.doorbell)))
    }

    /// Reads the value to compare the doorbell with.
    pub(super) fn doorbell_value(&self) -> u32 {
        // ord: SHR-4 (acquire): the lock is looked at after the doorbell.
        let doorbell = self.doorbell.load(Ordering::Acquire);
        if doorbell << 2 != 0 {
            // Somebody has written over the lower bits; the machine would not wake there
            // (DEATH-NAMED-WORD).
            let _ = self.doorbell.compare_exchange(
                doorbell,
                doorbell & !LIFE_NUMBER,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
        doorbell & !LIFE_NUMBER
    }

    /// Does what the machine should have done when a participant ended (DEATH-MARK), and wakes
    /// everybody. Returns false if the life word has changed since.
    pub fn declare_dead(&self, slot: u32, life: Life) -> bool {
        // As if the machine had done it.
        let done = life.is_taken()
            && self.record(slot).is_some_and(|record| {
                let blind = fault!(unmarked_whoever_sits_there_is_declared_dead);
                let life = if blind { record.current() } else { life };
                record.change(life, life.dead())
            });
        if done {
            self.wake_everybody();
        }
        done
    }

    /// Wakes everybody if it was the machine that woke the caller, at the watch with this index:
    /// 1 is the doorbell, and those above are life words.
    pub(super) fn after_wake(&self, index: usize, doorbell: u32) {
        let silent = fault!(shared_woken_by_a_death_wakes_nobody)
            || fault!(shared_woken_by_the_doorbell_wakes_nobody) && index == 1;
        if (index > 1 || index == 1 && self.doorbell_value() == doorbell) && !silent {
            self.wake_everybody();
        }
    }

    /// Returns the offset of the lock at this address in the segment, divided by 8, as claims
    /// name it; `None` if it lies outside of what they can name.
    #[must_use]
    pub fn offset(&self, lock: usize) -> Option<u32> {
        let eighths = lock.checked_sub(self.base)? / 8;
        u32::try_from(eighths).ok().filter(|&at| at != 0 && at & AWAITED == 0)
    }
}

/// What has become of the participant that a word names.
pub enum Fate<'a, P: RobustMachine> {
    /// It lives; with the record of its slot, and the life word.
    Lives(&'a SlotRecord<P>, Life),
    /// It is dead, and nobody will bear its name again (LIFE-DEAD-NAME).
    Died,
    /// It has left, if it ever was there; the next newcomer will bear its name (LIFE-FREE-NAME).
    Left(&'a SlotRecord<P>, Life),
}

/// Why a newcomer cannot take a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoSlot {
    /// Living participants have all slots.
    Full,
    /// Deaths have worn out the slots that no living participant has.
    WornOut,
    /// Somebody is about to make worn-out slots usable again: it is worth while to look again.
    Scrubbed,
}

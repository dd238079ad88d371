//! Participants of a segment: what each of them has there.
//!
//! # State
//! A [`Seat`] is a participant's place in the table of its segment. Its life word says who
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

use super::SharedError;
use super::life::{LIFE_NUMBER, Life};
use super::mutex::SharedMutex;
use super::robust::{Robust, Watch, Woken};
use super::word::{Identity, LAST_SLOT};
use crate::platform::{Atomic32, Atomic64, Ordering, Wait};
use core::ptr::NonNull;

/// A participant's place.
#[repr(C, align(128))]
pub struct Seat<P: Robust> {
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
    /// How many of its claims were ever used. Of seat 0, in which nobody sits: the
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

/// What all participants of a segment see of it.
pub struct Domain<'a, P: Robust> {
    /// Its lower 30 bits are zero. Adding to the others and waking all that sleep
    /// there has everybody look again.
    pub doorbell: &'a P::U32,
    /// The seats; number 0 is not used.
    pub seats: &'a [Seat<P>],
    /// The claims of all seats.
    pub claims: &'a [Claim<P>],
    /// So many for each.
    pub claims_each: usize,
    /// What else the platform knows.
    pub segment: &'a P::Segment,
    /// Where the segment begins.
    pub base: usize,
}

impl<P: Robust> Clone for Domain<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Robust> Copy for Domain<'_, P> {}

impl<'a, P: Robust> Domain<'a, P> {
    /// The seat of a slot, if the segment has it.
    #[must_use]
    pub fn seat(&self, slot: u32) -> Option<&'a Seat<P>> {
        if slot == 0 || slot > LAST_SLOT { None } else { self.seats.get(slot as usize) }
    }

    /// The claims of a slot.
    #[must_use]
    pub fn claims_of(&self, slot: u32) -> &'a [Claim<P>] {
        let first = slot as usize * self.claims_each;
        self.claims.get(first..).and_then(|from| from.get(..self.claims_each)).unwrap_or(&[])
    }

    /// Every seat in which somebody lives that may have claims, and those.
    pub(super) fn all_living(
        &self,
    ) -> impl Iterator<Item = (u32, &'a Seat<P>, Life, &'a [Claim<P>])> + use<'a, P> {
        let domain = *self;
        // ord: SHR-8 (seq_cst): all three after the caller has put itself into the lock's
        // word.
        let last = self.seats.first().map_or(0, |seat| seat.claims.load(Ordering::SeqCst));
        let last = self.seats.len().saturating_sub(1).min(last as usize) as u32;
        (1..=last).filter_map(move |slot| {
            let seat = domain.seat(slot)?;
            // ord: SHR-8 (seq_cst).
            let life = Life(seat.life.load(Ordering::SeqCst));
            let claims = domain.claims_of(slot);
            // ord: SHR-8 (seq_cst).
            let used = seat.claims.load(Ordering::SeqCst) as usize;
            let claims = &claims[..used.min(claims.len())];
            life.is_alive().then_some((slot, seat, life, claims))
        })
    }

    /// From now on, who looks for claims looks at this slot too.
    fn look_up_to(&self, slot: u32) {
        let Some(first) = self.seats.first() else { return };
        let mut highest = first.claims.load(Ordering::Relaxed);
        while highest < slot {
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            match first.claims.compare_exchange(highest, slot, success, failure) {
                Ok(_) => return,
                Err(found) => highest = found,
            }
        }
    }

    /// What has become of who is named like this.
    #[must_use]
    pub fn fate(&self, who: Identity) -> Fate<'a, P> {
        let Some(seat) = self.seat(who.slot()) else { return Fate::Died };
        let life = seat.now();
        if life.generation() != who.generation() {
            Fate::Died
        } else if life.is_alive() {
            Fate::Lives(seat, life)
        } else if life.is_free() {
            Fate::Left(seat, life)
        } else {
            Fate::Died
        }
    }

    /// The first seat that the caller could take, for itself, a participant of this process
    /// with this number as the machine knows it: its slot, and its life word from then on.
    /// The first one, since who looks for claims looks at all seats up to the highest that
    /// made one.
    ///
    /// # Errors
    /// Why there is none.
    pub fn take_seat(&self, process: u32, number: u32) -> Result<(u32, Life), NoSeat> {
        let (mut worn_out, mut scrubbed) = (false, false);
        for (slot, seat) in (0..).zip(self.seats).skip(1).take(LAST_SLOT as usize) {
            if let Some(taken) = self.sit_down(slot, process, number) {
                return Ok((slot, taken));
            }
            let found = seat.now();
            worn_out |= found.is_worn_out();
            scrubbed |= found.is_scrubbed();
        }
        Err(match (worn_out, scrubbed) {
            (true, _) => NoSeat::WornOut,
            (false, true) => NoSeat::Scrubbed,
            (false, false) => NoSeat::Full,
        })
    }

    /// The caller takes this seat, if nobody sits there: its life word from then on.
    pub fn sit_down(&self, slot: u32, process: u32, number: u32) -> Option<Life> {
        let seat = self.seat(slot)?;
        loop {
            let found = seat.now();
            let taken = found.taken_by(process, number)?;
            if found.is_free() {
                if seat.change(found, taken) {
                    return Some(taken);
                }
            } else if let prepared = found.prepared(process)
                && seat.change(found, prepared)
            {
                self.erase_claims(slot);
                if seat.replace(prepared, taken) {
                    return Some(taken);
                }
            }
        }
    }

    /// Ends a name that stands in a lock, if nobody sits in its seat and somebody who comes could
    /// bear it; whether it did. For who finds nobody living in the segment: no tenant has put
    /// such a name there and kept it, but the words may be of different moments, as after a
    /// crash of the system, or in a copy that was made meanwhile.
    pub fn end_name(&self, who: Identity) -> bool {
        let Some(seat) = self.seat(who.slot()) else { return false };
        let life = seat.now();
        let is_next = life.generation() < who.generation()
            || life.is_free() && life.generation() == who.generation();
        // Fails if somebody has come.
        !life.is_taken() && is_next && seat.change(life, Life::ended(who.generation()))
    }

    /// Erases what was claimed by who sat in a seat that the caller has taken or prepared;
    /// whether there was anything.
    ///
    /// If there was, it rings first: one may be about to sleep that has seen the dead one's claim
    /// while that lived, and compares the lower half of the life word only, in which the next
    /// tenant may have the same number. Should the caller end before it has erased the claim,
    /// the next one rings.
    pub fn erase_claims(&self, slot: u32) -> bool {
        let claims = self.claims_of(slot);
        let stood = claims.iter().any(|claim| claim.what.load(Ordering::Relaxed) != 0);
        if stood {
            self.ring();
        }
        for claim in claims {
            claim.give_back();
            claim.units.store(0, Ordering::Relaxed);
        }
        stood
    }

    /// Has everybody who sleeps in this segment look again.
    pub fn ring(&self) {
        P::add_and_wake(self.doorbell, super::Addend::Ring, u32::MAX);
    }

    /// Should the caller end, one that sleeps on the doorbell is woken, and rings it.
    /// Returns what was named before.
    pub(super) fn name_doorbell(&self) -> Option<NonNull<P::U32>> {
        P::at_death_wake(Some(NonNull::from(self.doorbell)))
    }

    /// What to compare the doorbell with.
    pub(super) fn bell(&self) -> u32 {
        // ord: SHR-4 (acquire): the lock is looked at after the doorbell.
        let bell = self.doorbell.load(Ordering::Acquire);
        if bell << 2 != 0 {
            // Somebody has written over it; the machine would not wake there (D2).
            let _ = self.doorbell.compare_exchange(
                bell,
                bell & !LIFE_NUMBER,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
        bell & !LIFE_NUMBER
    }

    /// Does what the machine should have done when a participant ended (D1), and has
    /// everybody look. False if its life word has changed since.
    pub fn declare_dead(&self, slot: u32, life: Life) -> bool {
        // As if the machine had done it.
        let done =
            life.is_taken() && self.seat(slot).is_some_and(|seat| seat.change(life, life.dead()));
        if done {
            self.ring();
        }
        done
    }

    /// After a wake-up at the watch with this index, of which 1 is the doorbell and
    /// those above are lives: rings if the machine has woken the caller.
    pub(super) fn after_wake(&self, index: usize, bell: u32) {
        if index > 1 || index == 1 && self.bell() == bell {
            self.ring();
        }
    }

    /// The offset of a lock in the segment, divided by 8, as claims name it; `None`
    /// if it lies outside of what they can name.
    #[must_use]
    pub fn offset(&self, lock: usize) -> Option<u32> {
        let eighths = lock.checked_sub(self.base)? / 8;
        u32::try_from(eighths).ok().filter(|&at| at != 0 && at & AWAITED == 0)
    }
}

/// What has become of a participant that a word names.
pub enum Fate<'a, P: Robust> {
    /// It lives: its seat, and the life word.
    Lives(&'a Seat<P>, Life),
    /// It is dead, and nobody will be called so again (G1).
    Died,
    /// It has left, if it ever was; the next one that comes will be called so (G2).
    Left(&'a Seat<P>, Life),
}

/// Why nobody can take a seat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoSeat {
    /// Somebody who lives sits in each.
    Full,
    /// The others are worn out by deaths.
    WornOut,
    /// Somebody is about to make others usable again: it is worth while to look again.
    Scrubbed,
}

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
    pub(super) fn claim(
        &self,
        number: usize,
        lock: &SharedMutex<P>,
    ) -> Result<(&'a Claim<P>, u32), SharedError> {
        let what = self.domain.offset(core::ptr::from_ref(lock).addr());
        let what = what.ok_or(SharedError::Foreign)?;
        let claim = self.domain.claims_of(self.me.slot()).get(number);
        let claim = claim.ok_or(SharedError::TooManyClaims)?;
        if let Some(seat) = self.seat() {
            let used = seat.claims.load(Ordering::Relaxed);
            if used <= number as u32 {
                // ord: SHR-8 (relaxed): both before the claim, which is seq_cst. The first
                // one first: its being there already is concluded from the second.
                self.domain.look_up_to(self.me.slot());
                seat.claims.store(number as u32 + 1, Ordering::Relaxed);
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
        let (Some(trust), Some(seat)) = (P::TRUST, self.seat()) else { return false };
        let now = (P::now().0 >> 20) as u32 | 1;
        let asked = seat.asked.load(Ordering::Relaxed);
        let other = seat.asked_about.load(Ordering::Relaxed) != slot;
        let enough = if other { trust / OTHERS } else { trust };
        let due = asked == 0 || u64::from(now.wrapping_sub(asked)) << 20 >= enough;
        if due {
            seat.asked.store(now, Ordering::Relaxed);
            seat.asked_about.store(slot, Ordering::Relaxed);
        }
        due
    }

    /// The caller has just taken its seat. Nothing is claimed there, since who leaves holds
    /// nothing, and what a dead one had claimed is erased before; or a peer has written it there,
    /// and it was taken for the caller's until now.
    pub fn arrive(&self) {
        if self.domain.erase_claims(self.me.slot()) {
            self.domain.ring();
        }
    }

    /// Its own seat, if it has one.
    #[must_use]
    pub fn seat(&self) -> Option<&'a Seat<P>> {
        self.domain.seat(self.me.slot())
    }
}

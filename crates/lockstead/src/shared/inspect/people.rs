//! The participants of a segment, as its slots and claims describe them.

use super::SegmentHeader;
use core::ops::Range;
use lockstead_core::robust::life::{LIFE_DEAD, LIFE_NUMBER};
use lockstead_core::robust::slot::AWAITED;
use lockstead_core::robust::{Identity, Life};
use lockstead_linux::shared::{origin_of_file, process_has_ended};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// A participant that is there, or was.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ParticipantView {
    /// The number of the participant's slot.
    pub slot: u32,
    /// The number of participants that died there before.
    pub generation: u32,
    /// The life word's low half: 0 for a slot that was left; else bit 31 and a thread
    /// number, or `0xc0000000`.
    pub life: u32,
    /// It lives, as far as the segment knows.
    pub alive: bool,
    /// It has died, and nobody has taken the slot yet.
    pub dead: bool,
    /// Nobody can take the slot any more; see
    /// [`Segment::scrub`](crate::shared::Segment::scrub).
    pub worn_out: bool,
    /// Its process and thread as it calls itself, in its own namespace.
    pub process: u32,
    /// The participant's thread as it calls itself.
    pub thread: u32,
    /// The inode of its PID namespace; 0: unknown.
    pub namespace: u64,
    /// The time at which it came, in nanoseconds since 1970.
    pub since: u64,
    /// The lock it sleeps for, by its offset in the segment.
    pub waits_for: Option<u64>,
    /// Its process, by the number that this has in the segment; 0 once it has left.
    pub process_number: u32,
    /// It lives as far as the segment knows, but it ended unnoticed: nobody has the record lock
    /// any more by which its process was known, or it came in another start of the system, or to
    /// another file, of which this one is a copy.
    pub unnoticed: bool,
    /// The locks that it reads under, or has units of.
    pub claims: Vec<Claimed>,
}

/// A share of a lock, or units of a semaphore.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Claimed {
    /// The slot of the participant whose claim it is.
    pub slot: u32,
    /// The offset of the claimed lock in the segment.
    pub lock: u64,
    /// The number of units, of a semaphore.
    pub units: u32,
    /// Somebody sleeps until it is given back.
    pub awaited: bool,
}

/// All participants of a segment.
#[derive(Clone, Debug, Default)]
pub struct People {
    all: Vec<ParticipantView>,
    /// The claims of living participants, sorted by lock.
    claims: Vec<Claimed>,
}

const SLOT_BYTES: usize = 128;

impl People {
    /// Reads the participants from the bytes of all slots and all claims, and from the locks on the
    /// file.
    pub(super) fn new(
        file: &File,
        header: &SegmentHeader,
        records: &[u8],
        claims: &[u8],
    ) -> People {
        let each = header.claims_each as usize * 8;
        let mut people = People::default();
        let asker =
            Asker { file, slots_at: header.slots_at, origin: origin_of_file(file.as_raw_fd()) };
        for (slot, record) in records.chunks_exact(SLOT_BYTES).enumerate().skip(1) {
            let claims = claims.get(slot * each..(slot + 1) * each).unwrap_or(&[]);
            people.all.extend(ParticipantView::new(&asker, slot as u32, record, claims));
        }
        let living = people.all.iter().filter(|participant| participant.alive);
        people.claims = living.flat_map(|participant| participant.claims.clone()).collect();
        people.claims.sort_by_key(|claim| (claim.lock, claim.slot));
        people
    }

    /// Returns everybody who is there or was, by the number of the slot.
    #[must_use]
    pub fn all(&self) -> &[ParticipantView] {
        &self.all
    }

    /// Returns the participant that has a slot, or had it last.
    #[must_use]
    pub fn in_slot(&self, slot: u32) -> Option<&ParticipantView> {
        let at = self.all.binary_search_by_key(&slot, |participant| participant.slot).ok()?;
        self.all.get(at)
    }

    /// Returns a participant that a word names, if it lives.
    #[must_use]
    pub fn living(&self, who: Identity) -> Option<&ParticipantView> {
        self.in_slot(who.slot())
            .filter(|participant| participant.alive && participant.generation == who.generation())
    }

    /// Returns what living participants claim of the lock at this offset in the segment.
    #[must_use]
    pub fn claims_on(&self, lock: u64) -> &[Claimed] {
        let first = self.claims.partition_point(|claim| claim.lock < lock);
        let count = self.claims[first..].partition_point(|claim| claim.lock == lock);
        &self.claims[first..first + count]
    }

    /// Returns the participants that sleep for the lock at this offset in the segment.
    pub fn waiting_for(&self, lock: u64) -> impl Iterator<Item = &ParticipantView> {
        self.all
            .iter()
            .filter(move |participant| participant.alive && participant.waits_for == Some(lock))
    }
}

impl ParticipantView {
    /// Reads one participant; `None` of a slot that nobody has ever had.
    fn new(asker: &Asker<'_>, slot: u32, record: &[u8], claims: &[u8]) -> Option<ParticipantView> {
        let life = Life(long(record, 0));
        if life.0 == 0 && long(record, 8) == 0 {
            return None;
        }
        let waits_for = short(record, 52);
        let used = (short(record, 72) as usize).saturating_mul(8);
        let claims = claims.get(..used).unwrap_or(claims);
        let claims = claims.chunks_exact(8).filter_map(|claim| {
            let what = short(claim, 0);
            let lock = u64::from(what & !AWAITED) * 8;
            let (units, awaited) = (short(claim, 4), what & AWAITED != 0);
            (lock != 0).then_some(Claimed { slot, lock, units, awaited })
        });
        let alive = life.is_alive();
        Some(ParticipantView {
            slot,
            generation: life.generation(),
            life: life.life(),
            alive,
            dead: !alive && !life.is_free(),
            worn_out: life.is_worn_out() || life.is_scrubbed(),
            process: short(record, 8),
            thread: short(record, 12),
            namespace: long(record, 56),
            since: long(record, 64),
            waits_for: (waits_for != 0).then_some(u64::from(waits_for) * 8),
            process_number: life.process(),
            unnoticed: alive && asker.has_ended(slot, record),
            claims: claims.collect(),
        })
    }

    /// Returns the name by which the locks' words know it.
    #[must_use]
    pub fn identity(&self) -> Option<Identity> {
        Identity::new(self.slot, self.generation)
    }

    /// Returns the number by which the kernel knows it in its namespace, as the life word has it.
    #[must_use]
    pub fn number(&self) -> Option<u32> {
        (self.life != LIFE_DEAD && self.alive).then_some(self.life & LIFE_NUMBER)
    }
}

/// Asks whether those have ended who live as far as the segment knows.
struct Asker<'a> {
    file: &'a File,
    slots_at: u64,
    /// The start of the system and the file that this is; 0: not certain.
    origin: u64,
}

impl Asker<'_> {
    fn has_ended(&self, slot: u32, record: &[u8]) -> bool {
        let life = Life(long(record, 0));
        let ended = process_has_ended(self.file.as_raw_fd(), life) == Some(true)
            || self.came_elsewhere(record, life);
        // Who has left since the slot was read may have ended in order.
        ended && self.life(slot) == Some(life)
    }

    fn came_elsewhere(&self, record: &[u8], life: Life) -> bool {
        let (noted, there) = (short(record, 76), long(record, 88));
        noted == life.high() && self.origin != 0 && there != 0 && self.origin != there
    }

    /// Reads the life word as it is now.
    fn life(&self, slot: u32) -> Option<Life> {
        let mut word = [0; 8];
        let at = self.slots_at + u64::from(slot) * SLOT_BYTES as u64;
        self.file.read_exact_at(&mut word, at).ok()?;
        Some(Life(u64::from_ne_bytes(word)))
    }
}

/// Returns a word of the machine at this place.
pub(super) fn short(bytes: &[u8], at: usize) -> u32 {
    let taken: Option<[u8; 4]> = bytes.get(range(at, 4)).and_then(|four| four.try_into().ok());
    taken.map_or(0, u32::from_ne_bytes)
}

fn long(bytes: &[u8], at: usize) -> u64 {
    let taken: Option<[u8; 8]> = bytes.get(range(at, 8)).and_then(|eight| eight.try_into().ok());
    taken.map_or(0, u64::from_ne_bytes)
}

fn range(at: usize, length: usize) -> Range<usize> {
    at..at + length
}

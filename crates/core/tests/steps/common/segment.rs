//! A segment with five slots and two claims each, and one lock of each kind.

use super::shared::{Answers, Call, at};
use super::{Alone, U32, U64};
use lockstead_core::robust::{
    Addend, Claim, Domain, Identity, Life, Party, RawSharedCondvar, RawSharedMutex,
    RawSharedRwLock, RawSharedSemaphore, SlotRecord,
};
use lockstead_core::{Atomic32, Atomic64};

/// The slots that participants can have.
pub(crate) const SLOTS: usize = 5;
/// The claims of each slot.
pub(crate) const EACH: usize = 2;

/// A segment. Nobody sits in slot 5.
#[repr(C)]
pub(crate) struct Segment {
    /// Offset 0 names nothing.
    pub(crate) doorbell: U32,
    pub(crate) records: [SlotRecord<Alone>; SLOTS + 1],
    pub(crate) claims: [Claim<Alone>; (SLOTS + 1) * EACH],
    pub(crate) mutex: RawSharedMutex<Alone>,
    pub(crate) rwlock: RawSharedRwLock<Alone>,
    pub(crate) semaphore: RawSharedSemaphore<Alone>,
    pub(crate) condvar: RawSharedCondvar<Alone>,
}

/// Returns a record of a slot that nobody has had.
pub(crate) fn vacant() -> SlotRecord<Alone> {
    SlotRecord {
        life: U64::ZERO,
        process: U32::ZERO,
        thread: U32::ZERO,
        link: [const { U64::ZERO }; 4],
        asked: U32::ZERO,
        waits_for: U32::ZERO,
        namespace: U64::ZERO,
        since: U64::ZERO,
        claims: U32::ZERO,
        note: U32::ZERO,
        asked_about: U32::ZERO,
        origin: [const { U64::ZERO }; 2],
    }
}

/// The generation of all that sit in a fresh segment.
pub(crate) const GENERATION: u32 = 6;

/// Returns the name of the first participant that sits in this slot.
pub(crate) fn name(slot: u32) -> Identity {
    Identity::new(slot, GENERATION).expect("a slot")
}

/// Returns the life word of the same.
pub(crate) fn life(slot: u32) -> Life {
    Life::alive(GENERATION, 100 + slot, 200 + slot)
}

/// Makes a segment that lives for ever, in which participants sit in the slots from 1 to 4.
pub(crate) fn segment() -> &'static Segment {
    let segment: &Segment = Box::leak(Box::new(Segment {
        doorbell: U32::ZERO,
        records: [(); SLOTS + 1].map(|()| vacant()),
        claims: [(); (SLOTS + 1) * EACH].map(|()| Claim { what: U32::ZERO, units: U32::ZERO }),
        mutex: RawSharedMutex::new(),
        rwlock: RawSharedRwLock::new(),
        semaphore: RawSharedSemaphore::new(),
        condvar: RawSharedCondvar::new(),
    }));
    for slot in 1..5 {
        segment.lives(slot, life(slot));
    }
    super::set(|machine| machine.tick = 0);
    super::shared::answer(|answers| *answers = Answers::FRESH);
    super::shared::calls();
    segment
}

impl Segment {
    pub(crate) fn domain(&'static self) -> Domain<'static, Alone> {
        Domain {
            doorbell: &self.doorbell,
            records: &self.records,
            claims: &self.claims,
            claims_each: EACH,
            segment: &(),
            base: std::ptr::from_ref(self).addr(),
        }
    }

    /// Returns the participant that sits in this slot.
    pub(crate) fn party(&'static self, slot: u32) -> Party<'static, Alone> {
        Party { domain: self.domain(), me: name(slot) }
    }

    pub(crate) fn record(&'static self, slot: u32) -> &'static SlotRecord<Alone> {
        &self.records[slot as usize]
    }

    /// Writes a life word.
    pub(crate) fn lives(&self, slot: u32, life: Life) {
        self.records[slot as usize].life.write(life.0);
    }

    /// Marks the participant in a slot as dead, as the machine does.
    pub(crate) fn dies(&self, slot: u32) {
        let record = &self.records[slot as usize];
        self.lives(slot, Life(record.life.silently()).dead());
    }

    /// Returns a claim of this slot.
    pub(crate) fn claim(&'static self, slot: u32, number: usize) -> &'static Claim<Alone> {
        &self.claims[slot as usize * EACH + number]
    }

    /// Writes a claim of this slot on the lock of this number, as its participant would.
    pub(crate) fn claims(&'static self, slot: u32, number: usize, what: u32, units: u32) {
        let (claim, record) = (self.claim(slot, number), self.record(slot));
        set(&claim.what, what);
        set(&claim.units, units);
        set(&record.claims, record.claims.silently().max(number as u32 + 1));
        set(&self.records[0].claims, self.records[0].claims.silently().max(slot));
    }

    /// Returns the number by which claims name this lock.
    pub(crate) fn offset<L>(&'static self, lock: &L) -> u32 {
        ((std::ptr::from_ref(lock).addr() - std::ptr::from_ref(self).addr()) / 8) as u32
    }
}

/// Returns the words of a lock, the first `N` of them.
pub(crate) fn words<L, const N: usize>(lock: &L) -> &[U32; N] {
    assert!(size_of::<L>() >= N * 4);
    // SAFETY: the locks consist of such atomics (`repr(C)`), at least so many, and `lock` borrows them.
    unsafe { &*std::ptr::from_ref(lock).cast() }
}

/// Writes a word without a step that a test could meet.
pub(crate) fn set(word: &U32, value: u32) {
    word.write(value);
}

/// Reads a word without a step that a test could meet.
pub(crate) fn get(word: &U32) -> u32 {
    word.silently()
}

/// Returns every flag of a word beside every other.
pub(crate) fn flags() -> impl Iterator<Item = u32> {
    (0..16u32).map(|all| all << 28)
}

/// Somebody whom a word can name, as participant 1 sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Whom {
    Nobody,
    Caller,
    Lives,
    Dead,
    Left,
}

/// The bits of names in a segment where one has died and one has left.
pub(crate) const NAMES: [(u32, Whom); 8] = [
    (0, Whom::Nobody),
    (GENERATION << 14 | 1, Whom::Caller),
    (GENERATION << 14 | 2, Whom::Lives),
    (GENERATION << 14 | 3, Whom::Dead),
    (GENERATION << 14 | 4, Whom::Left),
    ((GENERATION - 1) << 14 | 2, Whom::Dead),
    (GENERATION << 14 | 9, Whom::Dead),
    (1 << 14, Whom::Dead),
];

/// Makes a segment in which participant 3 has died and participant 4 has left.
pub(crate) fn population() -> &'static Segment {
    let segment = segment();
    segment.dies(3);
    segment.lives(4, life(4).free());
    segment
}

/// Returns the call by which somebody wakes everybody.
pub(crate) fn rings(segment: &Segment) -> Call {
    Call::AddAndWake(at(&segment.doorbell), Addend::Doorbell, u32::MAX)
}

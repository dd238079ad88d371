//! A segment with its participants, for the models of the shared locks.

pub(super) mod all;
pub(super) mod condition;
pub(super) mod mixed;
pub(super) mod mutexes;
pub(super) mod readers;
pub(super) mod units;

use lockstead_core::robust::{
    Claim, Domain, Got, Identity, Life, Party, RobustError, RobustMachine, SlotRecord,
};
use lockstead_core::{Nanos, Ordering, WaitBounds};
use lockstead_model::{Model, U32, U64, aside, disembody, embody, forget, thread};

/// The most participants of a model.
const MOST: usize = 4;

/// The parts that every segment has, with one claim for each participant.
#[repr(C)]
pub(crate) struct Common {
    doorbell: U32,
    records: [SlotRecord<Model>; MOST + 1],
    claims: [Claim<Model>; MOST + 1],
    /// The slot in which each thread sits, as the model notes it; 0: in none.
    sits_in: [U32; MOST],
}

fn vacant_record() -> SlotRecord<Model> {
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

impl Common {
    fn new() -> Self {
        Common {
            doorbell: U32::ZERO,
            records: [(); MOST + 1].map(|()| vacant_record()),
            claims: [(); MOST + 1].map(|()| Claim { what: U32::ZERO, units: U32::ZERO }),
            sits_in: [const { U32::ZERO }; MOST],
        }
    }

    fn domain(&self) -> Domain<'_, Model> {
        Domain {
            doorbell: &self.doorbell,
            records: &self.records,
            claims: &self.claims,
            claims_each: 1,
            segment: &(),
            base: core::ptr::from_ref(self).addr(),
        }
    }

    /// Returns the calling thread as the participant that has its slot from the beginning. Called
    /// first of all.
    fn party(&self) -> Party<'_, Model> {
        self.sits(true)
    }

    /// Returns the same participant, which may be killed or not.
    fn sits(&self, mortal: bool) -> Party<'_, Model> {
        let slot = thread() as u32 + 1;
        if mortal {
            embody(&self.records[slot as usize].life);
        }
        let me = Identity::new(slot, 1).expect("a slot");
        Party { domain: self.domain(), me }
    }

    /// Prepares a segment before there are threads: so many participants sit there, each with
    /// its slot as its number and its process's.
    fn populate(&self, lives: usize) {
        for slot in 1..=lives {
            let life = Life::alive(1, slot as u32, slot as u32);
            self.records[slot].life.store(life.0, Ordering::Relaxed);
            self.sits_in[slot - 1].store(slot as u32, Ordering::Relaxed);
        }
    }

    /// Takes, for the calling thread, the slot of the dead participant that had its place, with the
    /// same number.
    fn takes_over(&self) -> Party<'_, Model> {
        let slot = thread() as u32 + 1;
        let domain = self.domain();
        let taken = domain.occupy(slot, slot, slot).expect("it is dead, and nobody else comes");
        embody(&self.records[slot as usize].life);
        let me = taken.identity(slot).expect("it lives");
        let party = Party { domain, me };
        party.arrive();
        party
    }

    /// Leaves the slot of the calling thread, which holds nothing. The thread may be killed before
    /// the slot says so: the machine knows it by that no more.
    fn leaves(&self, party: &Party<'_, Model>) {
        let slot = party.me.slot() as usize;
        let number = thread() as u32 + 1;
        let life = Life::alive(party.me.generation(), number, number);
        aside(|| self.sits_in[thread()].store(0, Ordering::Relaxed));
        disembody();
        self.records[slot].vacate(life);
    }

    /// Takes, for the calling thread, which has no slot, the first one that it can.
    fn comes(&self) -> Party<'_, Model> {
        let number = thread() as u32 + 1;
        let domain = self.domain();
        let (slot, life) = domain.take_slot(number, number).expect("there are more than threads");
        embody(&self.records[slot as usize].life);
        aside(|| self.sits_in[thread()].store(slot, Ordering::Relaxed));
        let me = life.identity(slot).expect("it lives");
        let party = Party { domain, me };
        party.arrive();
        party
    }

    /// Returns what names this participant in words, or 0 if nobody lives that bears this name.
    fn living(&self, bits: u32) -> u32 {
        let lives = Identity::from_bits(bits).is_some_and(|who| {
            let life = self.records[who.slot() as usize].current();
            life.is_alive() && life.generation() == who.generation()
        });
        if lives { bits } else { 0 }
    }

    /// Returns the slot of this thread, which has just died, and how words name it; `None` if it
    /// had none.
    fn dead(&self, dead: usize) -> Option<(usize, u32)> {
        let slot = self.sits_in[dead].load(Ordering::Relaxed);
        let record = self.records.get(slot as usize).filter(|_| slot != 0)?;
        let generation = Life(record.life.load(Ordering::Relaxed)).generation();
        Some((slot as usize, Identity::new(slot, generation).expect("a slot").bits()))
    }
}

/// Returns a wait with a time limit, which the model decides when to reach.
fn limited() -> WaitBounds<'static, Model> {
    WaitBounds { deadline: Some(Nanos(1000)), ..WaitBounds::FOREVER }
}

/// Returns a wait until this word is set.
fn cancelled_by(word: &U32) -> WaitBounds<'_, Model> {
    WaitBounds { cancel: Some(word), ..WaitBounds::FOREVER }
}

/// Sets the cancellation word.
fn cancel(word: &U32) {
    word.store(1, Ordering::Relaxed);
    Model::wake_shared(word, u32::MAX);
}

//! The lives of locks that looks have met while the program ran, and the rows they are in at its end.
//!
//! # Role
//! A lock is known by its record and the number of its life. A life that has ended lies in a grave,
//! which has that number, or in the mass grave of its class.

use super::account::canonical;
use lockstead_ledger::lock::RecordLife;
use lockstead_ledger::{Ledger, LedgerPart};
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

/// One life of a lock that is waited for, as a ledger knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WaitedLife {
    /// The index of the record.
    pub record: u32,
    /// The number of the life among those of the record.
    pub generation: u32,
    /// The number of its class.
    pub class: u32,
}

impl WaitedLife {
    /// Returns the life that the lock with this record is in.
    #[must_use]
    pub fn now(ledger: &Ledger<'_>, record: u32) -> Option<WaitedLife> {
        let lock = ledger.lock(record)?;
        let init = lock.init_stack.load(Relaxed);
        let class = if init != 0 { init } else { lock.first_stack.load(Relaxed) };
        Some(WaitedLife { record, generation: lock.generation.load(Relaxed), class })
    }
}

/// Finds the records that have the statistics of lives.
pub(super) struct LifeRecords<'a> {
    ledger: Ledger<'a>,
    /// The graves of single lives, by address and number.
    graves: HashMap<(u64, u32), u32>,
}

impl<'a> LifeRecords<'a> {
    pub(super) fn of(ledger: &Ledger<'a>) -> Self {
        let all = (1..ledger.used(LedgerPart::Locks) as u32).filter_map(|index| {
            let lock = ledger.lock(index)?;
            let of = (lock.address.load(Relaxed), lock.generation.load(Relaxed));
            (lock.shape().1 == RecordLife::Grave).then_some((of, index))
        });
        LifeRecords { ledger: *ledger, graves: all.collect() }
    }

    /// Returns the record that has the statistics of a life.
    pub(super) fn find(&self, life: &WaitedLife) -> Option<u32> {
        let lock = self.ledger.lock(life.record)?;
        if lock.generation.load(Relaxed) == life.generation {
            return Some(canonical(&self.ledger, life.record));
        }
        let grave = self.graves.get(&(lock.address.load(Relaxed), life.generation));
        grave.copied().or_else(|| {
            let class = self.ledger.classes().get(life.class as usize)?;
            Some(class.mass_grave.load(Relaxed)).filter(|&index| index != 0)
        })
    }
}

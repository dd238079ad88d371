//! Which lock an event is about, of those that have lain at one address.
//!
//! # Role
//! An event names a lock by its record and by the low bits of its generation. The record is that of
//! the address: when the command meets the event, another lock may lie there. What the earlier one
//! was is in its grave, if it has one of its own.

use lockstead_inspect::report::LockFacts;
use lockstead_ledger::Ledger;
use lockstead_ledger::LedgerPart;
use lockstead_ledger::events::Event;
use lockstead_ledger::lock::{LockRecord, RecordLife};
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

/// A lock of which events tell.
#[derive(Clone, Debug)]
pub(super) struct SeenLock {
    pub(super) facts: LockFacts,
    /// The facts are those of a later lock at the same address, as far as is known.
    pub(super) may_be_later: bool,
}

impl SeenLock {
    /// Notes the lock of this record in the life with this generation.
    pub(super) fn met(ledger: &Ledger<'_>, record: &LockRecord, generation: u8) -> SeenLock {
        let facts = LockFacts::of(ledger, record);
        // A life ends by one step, which leaves what the record says, and the next one begins by
        // another.
        let now = record.generation.load(Relaxed);
        let later = now.wrapping_sub(generation.into()) % Event::GENERATIONS;
        SeenLock { facts, may_be_later: later > 1 }
    }
}

/// Looks at all locks again: their programs may have given them names meanwhile, and those of which
/// a later one was met may have graves.
pub(super) fn look_again(ledger: &Ledger<'_>, locks: &mut HashMap<(u32, u8), SeenLock>) {
    let graves = match locks.values().any(|seen| seen.may_be_later) {
        true => graves(ledger),
        false => HashMap::new(),
    };
    for (&(lock, generation), seen) in locks {
        let Some(record) = ledger.lock(lock) else { continue };
        let grave = graves.get(&(seen.facts.address, generation));
        if let Some(grave) = grave.filter(|_| seen.may_be_later) {
            *seen = SeenLock { facts: LockFacts::of(ledger, grave), may_be_later: false };
        } else if Event::life(record.generation.load(Relaxed)) == generation {
            seen.facts = LockFacts::of(ledger, record);
        }
    }
}

/// Returns the graves of single locks, by the address and the generation of each.
fn graves<'l>(ledger: &Ledger<'l>) -> HashMap<(u64, u8), &'l LockRecord> {
    let locks = ledger.locks().iter().take(ledger.used(LedgerPart::Locks));
    let graves = locks.filter(|record| record.shape().1 == RecordLife::Grave);
    let by_life = graves.map(|grave| {
        let life = Event::life(grave.generation.load(Relaxed));
        ((grave.address.load(Relaxed), life), grave)
    });
    by_life.collect()
}

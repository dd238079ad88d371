//! Futex words in a report: what each is, by the stacks that led to its waits.
//!
//! # Role
//! The ledger has a record for each word, or for the lock that was found beside one. Here they get
//! their names; the words of one lock become one row, and so do the words of which no lock is
//! known, if the same place waited for the same kind of thing there: each thread has one to park
//! on. What is an event goes to the idle waits.

use super::names::{LockFacts, Names};
use super::rows::ReportRow;
use crate::futexes::{FutexRole, of_stack};
use crate::stack::{Frame, Stack};
use crate::symbols::site;
use lockstead_ledger::Ledger;
use lockstead_ledger::lock::{LockRecord, ObjectKind, attribute};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::Ordering::Relaxed;

/// What a row of futex words is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FutexRow {
    /// What it is called: `Rust std::sync::Mutex`.
    pub(super) noun: &'static str,
    /// The address of the lock, where it is known.
    pub(super) address: Option<u64>,
    /// Where it was waited for, if there is no address.
    place: Option<String>,
    is_lock: bool,
}

impl FutexRow {
    /// Returns its name; `facts` are those of one of its records.
    pub(super) fn name(&self, names: &mut dyn Names, facts: &mut LockFacts) -> String {
        match (self.address, &self.place) {
            (Some(address), _) => {
                (facts.address, facts.noun, facts.late) = (address, Some(self.noun), true);
                names.lock(facts)
            }
            (None, Some(place)) => format!("{} in {place}", self.noun),
            (None, None) => self.noun.into(),
        }
    }
}

/// Returns the rows with those of futex words named and joined.
pub(super) fn gather(
    ledger: &Ledger<'_>,
    names: &mut dyn Names,
    rows: Vec<ReportRow>,
) -> Vec<ReportRow> {
    let mut gathered: Vec<ReportRow> = Vec::new();
    let mut known: HashMap<FutexRow, usize> = HashMap::new();
    for mut row in rows {
        let first = ledger.lock(row.members.all()[0]);
        let record = first.filter(|lock| lock.shape().0 == ObjectKind::Futex);
        let Some(record) = record else {
            gathered.push(row);
            continue;
        };
        let futex = recognise(ledger, names, record);
        row.idle = !futex.is_lock;
        row.futex = Some(futex.clone());
        match known.entry(futex) {
            Entry::Occupied(at) => {
                let to = &mut gathered[*at.get()];
                to.absorb(&row);
                // Words of one lock.
                to.totals.locks = to.totals.locks.min(1).max(u64::from(row.totals.locks != 0));
            }
            Entry::Vacant(free) => {
                free.insert(gathered.len());
                gathered.push(row);
            }
        }
    }
    gathered
}

/// Returns the name of a futex word, or of the lock of which it is a part.
#[must_use]
pub fn futex_name(ledger: &Ledger<'_>, names: &mut dyn Names, record: &LockRecord) -> String {
    let futex = recognise(ledger, names, record);
    futex.name(names, &mut LockFacts::of(ledger, record))
}

/// Tells whether the waits for a futex word look like waits for a lock, as far as that is known
/// without names.
pub(super) fn seems_a_lock(ledger: &Ledger<'_>, record: &LockRecord) -> bool {
    let (kind, _, attributes) = record.shape();
    let counted = || {
        let statistics = ledger.existing_extension(record);
        statistics.is_some_and(|statistics| statistics.handing.counted.load(Relaxed) != 0)
    };
    kind == ObjectKind::Futex && (attributes & attribute::BESIDE != 0 || counted())
}

/// Returns what a record is about.
fn recognise(ledger: &Ledger<'_>, names: &mut dyn Names, record: &LockRecord) -> FutexRow {
    let stack = main_stack(ledger, names, record);
    let found = stack.as_ref().and_then(of_stack);
    let attributes = record.shape().2;
    let beside = attributes & attribute::BESIDE != 0;
    let is_mutex = attributes & attribute::C_LIBRARY != 0;
    let address = record.address.load(Relaxed);
    let own = Some(address).filter(|_| !record.is_of_many_words());
    // Nothing on the stack has a name, and each wait looked like one for this mutex.
    let as_mutex = ledger.existing_extension(record).is_some_and(|statistics| {
        let counted = statistics.handing.counted.load(Relaxed);
        counted != 0 && counted >= statistics.wait.total()
    });
    let (noun, role, address) = match found {
        Some(known) => {
            let key = || own.and_then(|own| known.key_recorded(own, beside));
            (known.name, known.role, if is_mutex { own } else { key() })
        }
        None if is_mutex => ("pthread mutex", FutexRole::Exclusive, own),
        None if as_mutex => ("futex lock, as Rust std::sync::Mutex", FutexRole::Exclusive, own),
        None if beside => ("futex word, as of parking_lot", FutexRole::Unknown, own),
        None => ("futex", FutexRole::Unknown, own),
    };
    let place = match address {
        Some(_) => None,
        None => stack.as_ref().and_then(site).map(Frame::site),
    };
    FutexRow { noun, address, place, is_lock: role.is_lock() }
}

/// Returns the stack that led to the largest part of the waiting.
fn main_stack(ledger: &Ledger<'_>, names: &mut dyn Names, record: &LockRecord) -> Option<Stack> {
    let shares = ledger.existing_extension(record).map(|statistics| &statistics.waited_at);
    let shares = shares.into_iter().flat_map(|shares| ledger.shares(shares));
    let most = shares.map(|share| share.read()).filter(|share| share.0 != 0);
    let most = most.max_by_key(|share| share.3).map(|share| share.0);
    let id = most.unwrap_or_else(|| record.first_stack.load(Relaxed));
    let stored = ledger.stack(id)?;
    let returns: Vec<u64> = stored.returns().collect();
    Some(names.stack(&returns, stored.end))
}

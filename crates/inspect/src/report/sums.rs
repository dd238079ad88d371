//! The sums of the locks of a process up to a moment, for who counts on: the same figures that the
//! report has at the end.

use super::account::{Account, is_running};
use super::futexes;
use super::model::Sort;
use super::names::{LockFacts, Names, type_name};
use super::rows::{self, ReportRow, rank};
use lockstead_ledger::Ledger;
use lockstead_ledger::lock::ObjectKind;
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

/// The sums of one lock, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockSums {
    /// How often it was acquired.
    pub acquisitions: u64,
    /// The number of those that found it taken.
    pub contended: u64,
    /// The nanoseconds for which threads waited for it, up to the moment.
    pub waited_ns: u64,
    /// The nanoseconds for which it was held, as far as that is measured.
    pub held_ns: u64,
}

/// The index of a lock's record and the number of this life of the record, which tell it from others.
pub type LockId = (u32, u32);

/// A lock and its sums.
#[derive(Clone, Debug)]
pub struct SummedLock {
    /// What tells it from others.
    pub id: LockId,
    /// What it is called.
    pub name: String,
    /// What it is: `recursive mutex`.
    pub kind: String,
    /// The sums of the lock.
    pub sums: LockSums,
    /// The threads that wait for it now.
    pub waiting: u64,
    /// The longest wait up to now, in nanoseconds.
    pub longest_ns: u64,
}

/// The locks of a process at a moment.
#[derive(Clone, Debug, Default)]
pub struct ProcessSums {
    /// The number of threads that run.
    pub threads: u64,
    /// The worst locks by the time that threads waited for them, the worst first.
    pub worst: Vec<SummedLock>,
    /// The sums of each lock that lives, by its id.
    pub each: HashMap<LockId, LockSums>,
    /// The sums of all locks, of those too that are gone.
    pub all: LockSums,
    /// The threads that wait for any lock now.
    pub waiting: u64,
    /// The number of locks that were used and are not among the worst.
    pub others: u64,
}

/// The names of locks that were looked up.
#[derive(Debug, Default)]
pub struct KnownNames(HashMap<LockId, (String, String)>);

impl ProcessSums {
    /// Reads a ledger, whose process is taken to end at `end`, and names at most `top` locks.
    pub fn take(
        ledger: &Ledger<'_>,
        names: &mut dyn Names,
        known: &mut KnownNames,
        (end, top): (u64, usize),
    ) -> ProcessSums {
        let account = Account::of(ledger, end);
        let rows = futexes::gather(ledger, names, rows::all(ledger, &account, false));
        let mut rows: Vec<ReportRow> = rows.into_iter().filter(|row| !row.idle).collect();
        rows.sort_by_cached_key(|row| rank(row, Sort::Wait));
        let mut sums = ProcessSums {
            threads: ledger.threads().filter(is_running).count() as u64,
            ..ProcessSums::default()
        };
        let mut seen = HashMap::new();
        for row in &rows {
            let of = of_row(row);
            sums.all.add(&of);
            sums.waiting += row.totals.still_waiting;
            let index = row.members.all()[0];
            let record = ledger.lock(index).filter(|lock| !rows::is_over(lock));
            let id = record.map(|record| (index, record.generation.load(Relaxed)));
            sums.each.extend(id.map(|id| (id, of)));
            let Some(id) = id.filter(|_| sums.worst.len() < top) else {
                sums.others += row.totals.locks;
                continue;
            };
            let (name, kind) = match known.0.remove(&id) {
                Some(known) => known,
                None => describe(ledger, names, row, index),
            };
            seen.insert(id, (name.clone(), kind.clone()));
            sums.worst.push(SummedLock {
                id,
                name,
                kind,
                sums: of,
                waiting: row.totals.still_waiting,
                longest_ns: row.max_wait,
            });
        }
        // Names of locks that are gone are not kept.
        known.0 = seen;
        sums
    }
}

impl LockSums {
    fn add(&mut self, other: &LockSums) {
        *self = LockSums {
            acquisitions: self.acquisitions.saturating_add(other.acquisitions),
            contended: self.contended.saturating_add(other.contended),
            waited_ns: self.waited_ns.saturating_add(other.waited_ns),
            held_ns: self.held_ns.saturating_add(other.held_ns),
        };
    }
}

fn of_row(row: &ReportRow) -> LockSums {
    LockSums {
        acquisitions: row.totals.acquisitions,
        contended: row.totals.contended,
        waited_ns: row.totals.waited_ns,
        held_ns: row.held,
    }
}

fn describe(
    ledger: &Ledger<'_>,
    names: &mut dyn Names,
    row: &ReportRow,
    index: u32,
) -> (String, String) {
    let Some(record) = ledger.lock(index) else { return Default::default() };
    let mut facts = LockFacts::of(ledger, record);
    let kind = type_name(facts.kind, facts.attributes);
    let name = match &row.futex {
        Some(futex) => futex.name(names, &mut facts),
        None => names.lock(&facts),
    };
    let kind = if facts.kind.plain() == ObjectKind::Unknown { "unknown".into() } else { kind };
    (name, kind)
}

//! A row that is shown: its name, its times, the places where it was waited
//! and held.

use super::account::{Account, Unfinished};
use super::holders::HoldersByRecord;
use super::model::{DurationBucket, Durations, LockReport, percent};
use super::names::{
    LockFacts, Names, attribute_names, class_name, kind_name, life_name, type_name,
};
use super::places::Places;
use super::python::WaitsByRecord;
use super::roles;
use super::rows::{ReportRow, is_over};
use super::sites::{ShareSum, SharesOf, SiteShare, site_of, sites, stack};
use crate::waits::grip;
use lockstead_ledger::Ledger;
use lockstead_ledger::histogram::{Times, bucket};
use lockstead_ledger::lock::{LockRecord, ObjectKind, RecordLife, attribute};
use std::sync::atomic::Ordering::Relaxed;

/// What the records of a row come to.
#[derive(Default)]
struct Sum {
    wait: Times,
    hold: Times,
    waited_at: ShareSum,
    held_at: ShareSum,
    /// The number of holds that were timed; `scaled`: the time that was added for the others.
    timed: u64,
    scaled: u64,
    coarse: u64,
    coarse_total: u64,
    timed_out: u64,
    refused: u64,
    still_waiting: u64,
    still_held: u64,
}

/// What rows are described from.
pub(super) struct Described<'a> {
    pub(super) ledger: Ledger<'a>,
    pub(super) account: &'a Account,
    pub(super) places: &'a Places,
    pub(super) python: &'a WaitsByRecord<'a>,
    pub(super) holders: &'a HoldersByRecord<'a>,
}

/// Looks up everything about a row. `all_waited_ns` is what it has a share of.
pub(super) fn describe(
    &Described { ref ledger, account, places, python, holders }: &Described<'_>,
    names: &mut dyn Names,
    row: &ReportRow,
    all_waited_ns: u64,
) -> Option<LockReport> {
    let members = row.members.all();
    let lock = ledger.lock(*members.first()?)?;
    let sum = sum(ledger, account, members);
    let mut facts = LockFacts::of(ledger, lock);
    let (kind, life, attributes) = lock.shape();
    let one = row.totals.locks == 1 && life != RecordLife::MassGrave;
    // A semaphore of the interpreter's is known by the object that it belongs to.
    let is_semaphore = one && kind == ObjectKind::Semaphore;
    let object = is_semaphore.then(|| python.object(members[0])).flatten();
    let name = match (&row.called, &row.futex) {
        (Some(called), _) => called.clone(),
        (None, Some(futex)) => futex.name(names, &mut facts),
        (None, None) if one => object.unwrap_or_else(|| names.lock(&facts)),
        (None, None) => class_name(names, &facts),
    };
    let initialised = lock.init_stack.load(Relaxed);
    let as_lock = kind == ObjectKind::Condition && !row.idle;
    let over = members.iter().filter_map(|&index| ledger.lock(index)).all(is_over);
    Some(LockReport {
        name,
        kind: kind_name(kind),
        attributes: attribute_names(attributes),
        type_name: match &row.futex {
            Some(futex) => futex.noun.into(),
            None if as_lock => AS_LOCK.into(),
            None => type_name(kind, attributes),
        },
        mutex: if as_lock { mutex(ledger, names, lock) } else { None },
        address: match &row.futex {
            Some(futex) => futex.address.filter(|_| one),
            None => one.then_some(facts.address),
        },
        locks: row.totals.locks,
        row: None,
        group: None,
        spread: None,
        life: match life {
            _ if one => life_name(life),
            _ if over => life_name(RecordLife::MassGrave),
            _ => "several",
        },
        acquisitions: row.totals.acquisitions,
        waits_only: kind == ObjectKind::Futex
            || kind.is_told() && attributes & attribute::FOLLOWED == 0,
        contended: row.totals.contended,
        contended_percent: percent(row.totals.contended, row.totals.acquisitions).min(100.0),
        timed_out: sum.timed_out,
        refused: sum.refused,
        share_percent: percent(row.totals.waited_ns, all_waited_ns),
        still_waiting: sum.still_waiting,
        still_held: sum.still_held,
        wait: durations(ledger, places, names, &sum.wait),
        hold: Durations {
            timed: sum.timed,
            scaled_ns: sum.scaled,
            coarse: sum.coarse,
            coarse_ns: sum.coarse_total,
            ..durations(ledger, places, names, &sum.hold)
        },
        waited_at: sites(ledger, places, names, &sum.waited_at, SharesOf::Time),
        python: python.places(members, sum.wait.total),
        holder: (sum.wait.total != 0 && grip::is_known_of(kind))
            .then(|| holders.report(ledger, names, places, members)),
        verdict: None,
        held_at: match row.futex {
            Some(_) => Vec::new(),
            None => sites(ledger, places, names, &sum.held_at, SharesOf::Time),
        },
        woken_at: match row.futex {
            Some(_) => sites(ledger, places, names, &sum.held_at, SharesOf::Count),
            None => Vec::new(),
        },
        roles: roles::of(ledger, names, members),
        initialised_at: stack(ledger, names, initialised),
    })
}

/// The type of a condition that serves as a lock.
const AS_LOCK: &str = "lock of a condition and a mutex";

/// Returns what the mutex of a condition is called.
fn mutex(ledger: &Ledger<'_>, names: &mut dyn Names, condition: &LockRecord) -> Option<String> {
    let address = ledger.existing_extension(condition)?.handing.mutex.load(Relaxed);
    let mutex = ledger.lock(ledger.find_lock(address)?)?;
    Some(names.lock(&LockFacts::of(ledger, mutex)))
}

fn sum(ledger: &Ledger<'_>, account: &Account, members: &[u32]) -> Sum {
    let mut sum = Sum::default();
    for &index in members {
        let extension = ledger.lock(index).and_then(|lock| ledger.existing_extension(lock));
        if let Some(statistics) = extension {
            sum.wait.absorb(&statistics.wait.read());
            sum.hold.absorb(&statistics.hold.read());
            sum.timed_out = sum.timed_out.saturating_add(statistics.timed_out.load(Relaxed));
            sum.refused = sum.refused.saturating_add(statistics.refused.load(Relaxed));
            for (sum, word) in [
                (&mut sum.timed, &statistics.timed),
                (&mut sum.scaled, &statistics.scaled),
                (&mut sum.coarse, &statistics.coarse),
                (&mut sum.coarse_total, &statistics.coarse_total),
            ] {
                *sum = sum.saturating_add(word.load(Relaxed));
            }
            sum.waited_at.add_all(ledger, &statistics.waited_at);
            sum.held_at.add_all(ledger, &statistics.held_at);
        }
        for wait in account.waits(index) {
            sum.still_waiting += 1;
            add_unfinished(&mut sum.wait, &mut sum.waited_at, *wait);
        }
        for hold in account.holds(index) {
            sum.still_held += 1;
            add_unfinished(&mut sum.hold, &mut sum.held_at, *hold);
        }
    }
    sum
}

fn add_unfinished(times: &mut Times, shares: &mut ShareSum, Unfinished { ns, stack }: Unfinished) {
    let Some(ns) = ns else { return };
    let mut one = Times { total: ns, max: ns, max_stack: stack, ..Times::default() };
    one.counts[bucket(ns)] = 1;
    times.absorb(&one);
    shares.add(SiteShare { stack, count: 1, total: ns });
}

/// Returns durations all of which were timed.
pub(super) fn durations(
    ledger: &Ledger<'_>,
    places: &Places,
    names: &mut dyn Names,
    times: &Times,
) -> Durations {
    let used = |&count: &u64| count != 0;
    let first = times.counts.iter().position(used).unwrap_or(0);
    let last = times.counts.iter().rposition(used).map_or(0, |last| last + 1);
    let histogram = (first..last)
        .map(|at| DurationBucket {
            // The first bucket holds what took less than 2 ns, nothing included.
            from_ns: if at == 0 { 0 } else { 1 << at },
            count: times.counts[at],
        })
        .collect();
    Durations {
        count: times.count(),
        total_ns: times.total,
        p50_ns: times.quantile(0.5),
        p99_ns: times.quantile(0.99),
        max_ns: times.max,
        max_at: (times.max_stack != 0).then(|| {
            let share = SiteShare { stack: times.max_stack, count: 1, total: times.max };
            site_of(ledger, places, names, &share).site
        }),
        histogram,
        timed: times.count(),
        ..Durations::default()
    }
}

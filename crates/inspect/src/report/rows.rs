//! Which locks a report lists: one light row for each lock that was used, or
//! for all of one origin, ordered. Names and histograms come later, and only
//! for the rows that are shown.

use super::account::{Account, canonical};
use super::futexes::FutexRow;
use super::model::{LockTotals, Sort};
use super::names::Names;
use crate::stack::Frame;
use crate::symbols::site;
use lockstead_ledger::lock::{LockRecord, ObjectKind, RecordLife};
use lockstead_ledger::{Ledger, LedgerPart};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::Ordering::Relaxed;

/// The records that a row stands for.
#[derive(Clone, Debug)]
pub(super) enum Members {
    One(u32),
    Many(Vec<u32>),
}

impl Members {
    pub(super) fn all(&self) -> &[u32] {
        match self {
            Members::One(index) => std::slice::from_ref(index),
            Members::Many(indices) => indices,
        }
    }

    fn add(&mut self, index: u32) {
        match self {
            Members::One(first) => *self = Members::Many(vec![*first, index]),
            Members::Many(indices) => indices.push(index),
        }
    }
}

/// One row, as far as is needed to choose it.
#[derive(Clone, Debug)]
pub(super) struct ReportRow {
    pub(super) members: Members,
    pub(super) totals: LockTotals,
    pub(super) max_wait: u64,
    pub(super) held: u64,
    /// Threads wait here for work, not for a lock.
    pub(super) idle: bool,
    /// What it is, of futex words.
    pub(super) futex: Option<FutexRow>,
    /// What its locks are called together, if they are a group.
    pub(super) called: Option<String>,
    /// Nanoseconds of the waiting that the threads have counted as waiting for a lock already.
    pub(super) counted: u64,
}

impl ReportRow {
    fn is_used(&self) -> bool {
        self.totals.acquisitions != 0 || self.totals.waited_ns != 0 || self.held != 0
    }

    pub(super) fn absorb(&mut self, other: &ReportRow) {
        for &index in other.members.all() {
            self.members.add(index);
        }
        add(&mut self.totals, &other.totals);
        self.max_wait = self.max_wait.max(other.max_wait);
        self.held = self.held.saturating_add(other.held);
        self.counted = self.counted.saturating_add(other.counted);
    }

    /// Returns the kind of what it is about.
    pub(super) fn kind(&self, ledger: &Ledger<'_>) -> Option<ObjectKind> {
        Some(ledger.lock(self.members.all()[0])?.shape().0)
    }

    /// Tells whether threads count waits for it by themselves, before anybody knows what it is.
    pub(super) fn is_counted_apart(&self, ledger: &Ledger<'_>) -> bool {
        matches!(self.kind(ledger), Some(ObjectKind::Condition | ObjectKind::Futex))
    }

    /// Returns what `sort` looks at first.
    pub(super) fn key(&self, sort: Sort) -> u64 {
        match sort {
            Sort::Wait | Sort::Name => self.totals.waited_ns,
            Sort::MaxWait => self.max_wait,
            Sort::Hold => self.held,
            Sort::Acquisitions => self.totals.acquisitions,
            Sort::Contended => self.totals.contended,
        }
    }
}

/// Returns where a row stands among others.
pub(super) fn rank(row: &ReportRow, sort: Sort) -> impl Ord + use<> {
    let totals = &row.totals;
    Reverse((
        row.key(sort),
        totals.waited_ns,
        totals.contended,
        totals.acquisitions,
        Reverse(row.members.all()[0]),
    ))
}

/// Adds sums to others.
pub(super) fn add(to: &mut LockTotals, what: &LockTotals) {
    to.locks += what.locks;
    to.acquisitions = to.acquisitions.saturating_add(what.acquisitions);
    to.contended = to.contended.saturating_add(what.contended);
    to.waited_ns = to.waited_ns.saturating_add(what.waited_ns);
    to.still_waiting += what.still_waiting;
}

/// Returns all rows of a ledger in no particular order.
pub(super) fn all(ledger: &Ledger<'_>, account: &Account, by_class: bool) -> Vec<ReportRow> {
    let mut rows: Vec<ReportRow> = Vec::new();
    let mut classes: HashMap<(ObjectKind, u32, bool), usize> = HashMap::new();
    let mut doubles = Vec::new();
    // Only while a table grows can an address come to have two records.
    let may_double = ledger.header().address_level.load(Relaxed) > 0;
    for index in 1..ledger.used(LedgerPart::Locks) as u32 {
        let Some(lock) = ledger.lock(index) else { continue };
        let (kind, life, _) = lock.shape();
        if life == RecordLife::Unused {
            continue;
        }
        let row = row(ledger, account, index, lock);
        if !row.is_used() {
            continue;
        }
        if may_double && canonical(ledger, index) != index {
            doubles.push(row);
            continue;
        }
        match class_of(lock).filter(|_| by_class) {
            Some(class) => match classes.entry((kind, class, row.idle)) {
                Entry::Occupied(at) => rows[*at.get()].absorb(&row),
                Entry::Vacant(free) => {
                    free.insert(rows.len());
                    rows.push(row);
                }
            },
            None => rows.push(row),
        }
    }
    merge_doubles(ledger, &mut rows, doubles);
    rows
}

fn merge_doubles(ledger: &Ledger<'_>, rows: &mut Vec<ReportRow>, doubles: Vec<ReportRow>) {
    if doubles.is_empty() {
        return;
    }
    let places: HashMap<u32, usize> = rows
        .iter()
        .enumerate()
        .flat_map(|(at, row)| row.members.all().iter().map(move |&index| (index, at)))
        .collect();
    for mut double in doubles {
        match places.get(&canonical(ledger, double.members.all()[0])) {
            Some(&at) => {
                double.totals.locks = 0;
                rows[at].absorb(&double);
            }
            None => rows.push(double),
        }
    }
}

/// Returns the stack that all locks of one origin share; none for a static lock, which is one of
/// its kind.
fn class_of(lock: &LockRecord) -> Option<u32> {
    let [init, first, module] =
        [&lock.init_stack, &lock.first_stack, &lock.module].map(|field| field.load(Relaxed));
    match (init, module) {
        (0, 0) => Some(first).filter(|&first| first != 0),
        (0, _) => None,
        (init, _) => Some(init),
    }
}

fn row(ledger: &Ledger<'_>, account: &Account, index: u32, lock: &LockRecord) -> ReportRow {
    let (kind, life, _) = lock.shape();
    let locks = match life {
        RecordLife::MassGrave => u64::from(lock.buried.load(Relaxed)).max(1),
        _ => 1,
    };
    let mut row = ReportRow {
        members: Members::One(index),
        totals: LockTotals {
            locks,
            acquisitions: lock
                .acquisitions
                .load(Relaxed)
                .saturating_add(account.acquisitions(index)),
            ..LockTotals::default()
        },
        max_wait: 0,
        held: 0,
        // A semaphore has no owner: whether it guards something or counts it
        // cannot be told, and most count.
        idle: matches!(
            kind.plain(),
            ObjectKind::Condition | ObjectKind::Barrier | ObjectKind::Semaphore | ObjectKind::Futex
        ),
        futex: None,
        called: None,
        counted: 0,
    };
    if let Some(statistics) = ledger.existing_extension(lock) {
        row.totals.contended = statistics.contended.load(Relaxed);
        let wait = statistics.wait.read();
        (row.totals.waited_ns, row.max_wait) = (wait.total, wait.max);
        row.held = statistics.hold.read().total;
        row.counted = statistics.handing.counted.load(Relaxed);
        if let Some((acquisitions, contended)) = statistics.as_lock() {
            row.idle = false;
            row.totals.acquisitions = acquisitions;
            row.totals.contended = contended;
        }
    }
    for wait in account.waits(index) {
        row.totals.still_waiting += 1;
        let ns = wait.ns.unwrap_or(0);
        row.totals.waited_ns = row.totals.waited_ns.saturating_add(ns);
        row.max_wait = row.max_wait.max(ns);
    }
    for hold in account.holds(index) {
        row.held = row.held.saturating_add(hold.ns.unwrap_or(0));
    }
    row
}

/// Adds up conditions, semaphores and barriers that were destroyed before the end by the place
/// that made them: programs make one for each job, or each wait.
pub(super) fn gather_short_lived(
    ledger: &Ledger<'_>,
    names: &mut dyn Names,
    rows: Vec<ReportRow>,
) -> Vec<ReportRow> {
    let mut gathered: Vec<ReportRow> = Vec::new();
    let mut places: HashMap<u32, Option<String>> = HashMap::new();
    let mut known: HashMap<(ObjectKind, String), usize> = HashMap::new();
    for row in rows {
        let lock = ledger.lock(row.members.all()[0]);
        let origin =
            lock.filter(|lock| is_over(lock)).and_then(|lock| Some((lock, class_of(lock)?)));
        let place = origin.and_then(|(lock, stack)| {
            let place = places.entry(stack).or_insert_with(|| place_of(ledger, names, stack));
            Some((lock.shape().0, place.clone()?))
        });
        match place {
            Some(place) => match known.entry(place) {
                Entry::Occupied(at) => gathered[*at.get()].absorb(&row),
                Entry::Vacant(free) => {
                    free.insert(gathered.len());
                    gathered.push(row);
                }
            },
            None => gathered.push(row),
        }
    }
    gathered
}

/// Tells whether a record is about what was destroyed.
pub(super) fn is_over(lock: &LockRecord) -> bool {
    matches!(lock.shape().1, RecordLife::Grave | RecordLife::MassGrave)
}

/// Returns the place of the program that a stack leads to, in words.
fn place_of(ledger: &Ledger<'_>, names: &mut dyn Names, stack: u32) -> Option<String> {
    let stored = ledger.stack(stack)?;
    let returns: Vec<u64> = stored.returns().collect();
    site(&names.stack(&returns, stored.end)).map(Frame::site)
}

/// Orders `rows` and divides them into those to list and the sum of the rest.
/// What has nothing of what is sorted by is not listed.
pub(super) fn choose(
    mut rows: Vec<ReportRow>,
    sort: Sort,
    top: usize,
) -> (Vec<ReportRow>, LockTotals) {
    rows.sort_by_cached_key(|row| rank(row, sort));
    let listed = rows.iter().take(top).take_while(|row| row.key(sort) != 0).count();
    let mut more = LockTotals::default();
    for row in rows.drain(listed..) {
        add(&mut more, &row.totals);
    }
    (rows, more)
}

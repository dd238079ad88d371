//! Which locks of a process are listed, for themselves or as a group.

use super::groups::{LockGroup, gather};
use super::model::{LockReport, LockTotals, Sort, percent};
use super::names::{LockFacts, Names, class_name};
use super::rows::{ReportRow, add, rank};
use super::spread::{LockSpread, SpreadLock, SpreadOf, WORST, most};
use lockstead_ledger::Ledger;

/// Locks that are described, and where they stand.
pub(super) struct ListedRow {
    pub(super) row: ReportRow,
    /// The number of its row, from 1.
    number: Option<u64>,
    /// The place of its group.
    group: Option<u64>,
    spread: Option<LockSpread>,
}

impl ListedRow {
    /// Adds to a description where the row stands.
    pub(super) fn placed(&self, described: LockReport) -> LockReport {
        let ListedRow { number, group, spread, .. } = self;
        LockReport { row: *number, group: *group, spread: spread.clone(), ..described }
    }
}

/// What is listed of the locks of a process.
pub(super) struct Listing {
    /// The groups that are a row.
    pub(super) groups: Vec<ListedRow>,
    /// The worst locks, and those with a row of their own, the worst first.
    pub(super) locks: Vec<ListedRow>,
    /// The sums over those that are not among `locks`.
    pub(super) more: LockTotals,
    /// The sums over those that are in no row.
    pub(super) more_rows: LockTotals,
}

/// Chooses at most `top` rows, and at most as many locks. `together`: those of one family are one
/// row. What has nothing of what is sorted by is not listed.
pub(super) fn choose(
    ledger: &Ledger<'_>,
    names: &mut dyn Names,
    mut rows: Vec<ReportRow>,
    (sort, top, together): (Sort, usize, bool),
) -> Listing {
    rows.sort_by_cached_key(|row| rank(row, sort));
    let mut groups = if together { gather(ledger, names, &rows, sort) } else { Vec::new() };
    groups.sort_by_cached_key(|group| rank(&group.row, sort));
    let mut is_member = vec![false; rows.len()];
    groups.iter().flat_map(|group| &group.rows).for_each(|&at| is_member[at] = true);

    // Both are in order: the rows are those of the two, the worse one first.
    let mut alone = (0..rows.len()).filter(|&at| !is_member[at]).peekable();
    let (mut numbers, mut listed_groups) = (vec![None; rows.len()], 0);
    let mut group_numbers = Vec::new();
    for number in 1..=top as u64 {
        let group = groups.get(listed_groups).map(|group| &group.row);
        let lock = alone.peek().map(|&at| &rows[at]);
        let is_group = match (group, lock) {
            (Some(group), Some(lock)) => rank(group, sort) < rank(lock, sort),
            (group, _) => group.is_some(),
        };
        if group.filter(|_| is_group).or(lock).is_none_or(|row| row.key(sort) == 0) {
            break;
        }
        if is_group {
            listed_groups += 1;
            group_numbers.push(number);
        } else if let Some(at) = alone.next() {
            numbers[at] = Some(number);
        }
    }
    groups.truncate(listed_groups);

    let mut group_of = vec![None; rows.len()];
    for (number, group) in (0..).zip(&groups) {
        group.rows.iter().for_each(|&at| group_of[at] = Some(number));
    }
    let worst = rows.iter().take(top).take_while(|row| row.key(sort) != 0).count();
    let groups = groups.into_iter().zip(group_numbers).map(|(group, number)| ListedRow {
        spread: Some(spread(ledger, names, &group, &rows, sort)),
        row: group.row,
        number: Some(number),
        group: None,
    });
    let groups = groups.collect();
    let (mut more, mut more_rows) = (LockTotals::default(), LockTotals::default());
    let mut locks = Vec::new();
    for (at, row) in rows.into_iter().enumerate() {
        let (number, group) = (numbers[at], group_of[at]);
        if number.is_none() && group.is_none() {
            add(&mut more_rows, &row.totals);
        }
        if at < worst || number.is_some() {
            locks.push(ListedRow { row, number, group, spread: None });
        } else {
            add(&mut more, &row.totals);
        }
    }
    Listing { groups, locks, more, more_rows }
}

/// Returns how what a group is listed for is spread among its locks.
fn spread(
    ledger: &Ledger<'_>,
    names: &mut dyn Names,
    group: &LockGroup,
    rows: &[ReportRow],
    sort: Sort,
) -> LockSpread {
    // What the longest wait is, one lock has alone.
    let (of, by) = match sort {
        Sort::Wait | Sort::MaxWait | Sort::Name => (SpreadOf::Waiting, Sort::Wait),
        Sort::Hold => (SpreadOf::Holding, sort),
        Sort::Acquisitions => (SpreadOf::Acquisitions, sort),
        Sort::Contended => (SpreadOf::Contended, sort),
    };
    let mut members: Vec<&ReportRow> = group.rows.iter().map(|&at| &rows[at]).collect();
    members.sort_by_cached_key(|row| rank(row, by));
    let whole = group.row.key(by);
    let lock = |row: &&ReportRow| {
        let (name, address) = named(ledger, names, row);
        SpreadLock {
            name,
            address,
            locks: row.totals.locks,
            share_percent: percent(row.key(by), whole),
            waited_ns: row.totals.waited_ns,
            max_wait_ns: row.max_wait,
            acquisitions: row.totals.acquisitions,
            contended: row.totals.contended,
        }
    };
    let worst = members.iter().take(WORST).take_while(|row| row.key(by) != 0).map(lock).collect();
    let parts = members.iter().map(|row| (row.key(by), row.totals.locks)).collect();
    LockSpread { of, worst, ..most(parts) }
}

/// Returns the name of a lock of a group, and its address.
fn named(ledger: &Ledger<'_>, names: &mut dyn Names, row: &ReportRow) -> (String, Option<u64>) {
    let Some(record) = ledger.lock(row.members.all()[0]) else { return Default::default() };
    let mut facts = LockFacts::of(ledger, record);
    match &row.futex {
        Some(futex) => (futex.name(names, &mut facts), futex.address),
        None if row.totals.locks > 1 => (class_name(names, &facts), None),
        None => (names.lock(&facts), Some(facts.address)),
    }
}

/// Numbers the rows anew, in the order of their names.
pub(super) fn number_by_name(groups: &mut [LockReport], locks: &mut [LockReport]) {
    let all = groups.iter_mut().chain(locks);
    let mut rows: Vec<&mut LockReport> = all.filter(|lock| lock.row.is_some()).collect();
    rows.sort_by(|a, b| (&a.name, a.row).cmp(&(&b.name, b.row)));
    for (number, lock) in (1..).zip(rows) {
        lock.row = Some(number);
    }
}

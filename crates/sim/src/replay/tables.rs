//! What each row of a published table is in the simulator.

use super::published::{number, rows};
use crate::engine::task::Activity;
use crate::locks::SimLockName;

/// The rows that calibrated the numbers that no document gives: table and row, and the column
/// where it was one alone. At most three of a table; all others are predictions.
pub const CALIBRATED: [(&str, &str); 11] = [
    ("high_systime_2013", "1100-2000 users, 8 nodes, HT off"),
    ("high_systime_2013", "1100-2000 users, 1 nodes, HT off"),
    ("high_systime_2013", "200-1000 users, 1 nodes, HT off"),
    ("slowpath_share_2013", "8 nodes, 1500 users"),
    ("aim7_patch2_2013", "alltests, 1100-2000 users"),
    ("aim7_patch2_2013", "shared, 1100-2000 users"),
    ("fserver_2013", "1100-2000 users, 8 nodes, patch 1"),
    ("fserver_2013", "1100-2000 users, 4 nodes, patch 1"),
    ("fserver_2013", "1100-2000 users, 1 nodes, patch 1"),
    ("vfs_2005", "8-way x86, mutex"),
    ("vfs_2005", "2-way P4 HT, mutex"),
];

/// A simulation, but for its fit and its seed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TablePoint {
    pub(super) machine: &'static str,
    pub(super) nodes: usize,
    pub(super) threads: usize,
    pub(super) lock: SimLockName,
    pub(super) workload: &'static str,
    pub(super) users: usize,
}

/// A value that is read off some simulations.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// The mean number of jobs a minute.
    PerMinute(Vec<TablePoint>),
    /// The number of loops a second.
    PerSecond(TablePoint),
    /// The per cent by which the second are better.
    Change(Vec<TablePoint>, Vec<TablePoint>),
    /// The per cent of the time used that an activity took.
    Share(TablePoint, Activity),
    /// The per cent of the processors that were used.
    Busy(TablePoint),
    /// The loops of the first over those of the second.
    Faster(TablePoint, TablePoint),
    /// The loops by processor time, likewise.
    Thriftier(TablePoint, TablePoint),
}

/// A figure of a published table.
#[derive(Clone, Debug)]
pub(super) struct TableFigure {
    pub(super) table: &'static str,
    /// The row that calibrates, or does not.
    pub(super) row: String,
    /// The figure of the row, if that has several.
    pub(super) column: &'static str,
    pub(super) unit: &'static str,
    pub(super) published: f64,
    pub(super) value: Value,
}

impl TableFigure {
    pub(super) fn calibrated(&self) -> bool {
        let column = format!("{}, {}", self.row, self.column);
        CALIBRATED
            .iter()
            .any(|&(table, row)| table == self.table && (row == self.row || row == column))
    }
}

/// The way in which a range of users is sampled.
pub(super) struct TableSamples {
    pub(super) low: &'static [usize],
    pub(super) middle: &'static [usize],
    pub(super) high: &'static [usize],
}

impl TableSamples {
    pub(super) const QUICK: TableSamples =
        TableSamples { low: &[50], middle: &[400, 800], high: &[1500] };
    pub(super) const FULL: TableSamples = TableSamples {
        low: &[20, 80],
        middle: &[200, 400, 600, 800, 1000],
        high: &[1200, 1500, 1900],
    };

    fn of(&self, range: &str) -> &'static [usize] {
        match range {
            "10-100" => self.low,
            "200-1000" => self.middle,
            _ => self.high,
        }
    }
}

/// The boxes of the documents of 2010 and 2013.
pub(super) const BOX_2010: &str = "nehalem-ex-8x8";
pub(super) const BOX_2013: &str = "westmere-8x10";

const BEFORE: SimLockName = SimLockName::Spinning2013;
const PATCH_2: SimLockName = SimLockName::ReadFirst2013;
const PATCH_3: SimLockName = SimLockName::Queued2013;

/// Returns all figures of all tables.
pub(super) fn entries(samples: &TableSamples) -> Vec<TableFigure> {
    let mut all = spin_2010();
    all.extend(high_systime(samples));
    all.extend(slow_path());
    all.extend(patch("aim7_patch2_2013", BEFORE, PATCH_2, samples));
    all.extend(fserver(samples));
    all.extend(fserver_profile());
    all.extend(patch("aim7_patch3_2013", PATCH_2, PATCH_3, samples));
    all.extend(vfs());
    all
}

fn points(
    nodes: usize,
    threads: usize,
    lock: SimLockName,
    workload: &'static str,
    users: &[usize],
) -> Vec<TablePoint> {
    let point =
        |&users: &usize| TablePoint { machine: BOX_2013, nodes, threads, lock, workload, users };
    users.iter().map(point).collect()
}

/// Returns the figures of the mutex whose spinners stay when its owner changes, and of the one whose
/// spinners do not. The document
/// does not say how many users fserver had.
fn spin_2010() -> Vec<TableFigure> {
    let table = "mutex_spin_2010";
    let mut entries = Vec::new();
    for cells in rows(table) {
        let at = |lock| TablePoint {
            machine: BOX_2010,
            nodes: 8,
            threads: 2,
            lock,
            workload: workload(cells[0]),
            users: cells[1].parse().unwrap_or(1500),
        };
        let (before, after) = (number(cells[2]), number(cells[3]));
        let unit = if cells[4] == "jpm" { "jpm" } else { "per second" };
        let value = |point: TablePoint| match unit {
            "jpm" => Value::PerMinute(vec![point]),
            _ => Value::PerSecond(point),
        };
        let entry = |column, unit, published, value| TableFigure {
            table,
            row: cells[0].to_owned(),
            column,
            unit,
            published,
            value,
        };
        let (stays, leaves) = (at(SimLockName::Spinning2009), at(BEFORE));
        entries.push(entry("without patch", unit, before, value(stays.clone())));
        entries.push(entry("with patch", unit, after, value(leaves.clone())));
        let change = (after / before - 1.0) * 100.0;
        entries.push(entry("change", "percent", change, Value::Change(vec![stays], vec![leaves])));
    }
    entries
}

fn high_systime(samples: &TableSamples) -> Vec<TableFigure> {
    let table = "high_systime_2013";
    let mut entries = Vec::new();
    for cells in rows(table) {
        let nodes = cells[1].parse().expect("nodes");
        let threads = if cells[2] == "on" { 2 } else { 1 };
        let row = format!("{} users, {} nodes, HT {}", cells[0], cells[1], cells[2]);
        let at = |lock| points(nodes, threads, lock, "high-systime", samples.of(cells[0]));
        let (before, after) = (number(cells[3]), number(cells[4]));
        let entry = |column, unit, published, value| TableFigure {
            table,
            row: row.clone(),
            column,
            unit,
            published,
            value,
        };
        entries.push(entry("without patch", "jpm", before, Value::PerMinute(at(BEFORE))));
        entries.push(entry("with patch", "jpm", after, Value::PerMinute(at(PATCH_2))));
        // From the row's own figures: a printed percentage contradicts them.
        let change = (after / before - 1.0) * 100.0;
        entries.push(entry("change", "percent", change, Value::Change(at(BEFORE), at(PATCH_2))));
    }
    entries
}

fn slow_path() -> Vec<TableFigure> {
    let table = "slowpath_share_2013";
    let mut entries = Vec::new();
    for cells in rows(table) {
        let nodes = cells[0].parse().expect("nodes");
        for (column, lock, cell) in [("without patch", BEFORE, 1), ("with patch", PATCH_2, 2)] {
            let point = points(nodes, 1, lock, "high-systime", &[1500]).remove(0);
            entries.push(TableFigure {
                table,
                row: format!("{nodes} nodes, 1500 users"),
                column,
                unit: "percent",
                published: number(cells[cell]),
                value: Value::Share(point, Activity::SlowPath),
            });
        }
    }
    entries
}

/// Returns the built-in workload of this name.
fn workload(name: &str) -> &'static str {
    crate::work::BUNDLED
        .iter()
        .map(|&(known, _)| known)
        .find(|known| *known == name.replace('_', "-"))
        .expect("each published workload is built in")
}

fn patch(
    table: &'static str,
    from: SimLockName,
    to: SimLockName,
    samples: &TableSamples,
) -> Vec<TableFigure> {
    let mut entries = Vec::new();
    for cells in rows(table) {
        let name = workload(cells[0]);
        for (range, cell) in [("10-100", 1), ("200-1000", 2), ("1100-2000", 3)] {
            let at = |lock| points(8, 1, lock, name, samples.of(range));
            entries.push(TableFigure {
                table,
                row: format!("{}, {range} users", cells[0]),
                column: "change",
                unit: "percent",
                published: number(cells[cell]),
                value: Value::Change(at(from), at(to)),
            });
        }
    }
    entries
}

/// The mutexes of fserver's tables, by column.
const FSERVER: [(&str, SimLockName); 3] =
    [("without patch", BEFORE), ("patch 1", PATCH_2), ("patches 1 and 2", PATCH_3)];

fn fserver(samples: &TableSamples) -> Vec<TableFigure> {
    let table = "fserver_2013";
    let mut entries = Vec::new();
    for cells in rows(table) {
        let nodes = cells[1].parse().expect("nodes");
        let row = format!("{} users, {} nodes", cells[0], cells[1]);
        let at = |lock| points(nodes, 1, lock, "fserver", samples.of(cells[0]));
        for (cell, (column, lock)) in (2..).zip(FSERVER) {
            entries.push(TableFigure {
                table,
                row: row.clone(),
                column,
                unit: "jpm",
                published: number(cells[cell]),
                value: Value::PerMinute(at(lock)),
            });
        }
        entries.push(TableFigure {
            table,
            row,
            column: "change",
            unit: "percent",
            published: number(cells[5]),
            value: Value::Change(at(PATCH_2), at(PATCH_3)),
        });
    }
    entries
}

/// The kernel's functions of the profile, by what a task does in them.
const FUNCTIONS: [(&str, Activity); 6] = [
    ("__read_lock_failed", Activity::ReadLock),
    ("__write_lock_failed", Activity::WriteLock),
    ("mutex_spin_on_owner", Activity::SpinOnOwner),
    ("mspin_lock", Activity::SpinQueue),
    ("__mutex_lock_slowpath", Activity::SlowPath),
    ("_raw_spin_lock", Activity::SpinLock),
];

fn fserver_profile() -> Vec<TableFigure> {
    let table = "fserver_profile_2013";
    let mut entries = Vec::new();
    for cells in rows(table) {
        let known = FUNCTIONS.iter().find(|&&(function, _)| function == cells[0]);
        let &(_, place) = known.expect("a function that is simulated");
        // A mutex without a queue has no figure for waiting in it.
        let measured = (1..).zip(FSERVER).filter(|&(cell, _)| !cells[cell].is_empty());
        for (cell, (column, lock)) in measured {
            let point = points(8, 1, lock, "fserver", &[1500]).remove(0);
            entries.push(TableFigure {
                table,
                row: cells[0].to_owned(),
                column,
                unit: "percent",
                published: number(cells[cell]),
                value: Value::Share(point, place),
            });
        }
    }
    entries
}

fn vfs() -> Vec<TableFigure> {
    let table = "vfs_2005";
    let mut entries = Vec::new();
    let mut before: Option<(TablePoint, f64, f64)> = None;
    for cells in rows(table) {
        let (machine, nodes, threads) =
            if cells[0].contains("P4") { ("p4-2way-2005", 2, 2) } else { ("smp-8way-2005", 8, 1) };
        let lock =
            if cells[1] == "mutex" { SimLockName::Counter2006 } else { SimLockName::Semaphore2005 };
        let users = cells[2].parse().expect("tasks");
        let point = TablePoint { machine, nodes, threads, lock, workload: "test-mutex-v", users };
        let row = format!("{}, {}", cells[0], cells[1]);
        let entry = |column, unit, published, value| TableFigure {
            table,
            row: row.clone(),
            column,
            unit,
            published,
            value,
        };
        entries.push(entry(
            "loops",
            "per second",
            number(cells[4]),
            Value::PerSecond(point.clone()),
        ));
        entries.push(entry("processors", "percent", number(cells[5]), Value::Busy(point.clone())));
        let (loops, busy) = (number(cells[4]), number(cells[5]));
        // A row of the semaphore comes before that of the mutex of the same box.
        let Some((semaphore, slow, used)) = before.take() else {
            before = Some((point, loops, busy));
            continue;
        };
        let row = format!("{}, mutex over semaphore", cells[0]);
        let entry = |column, published, value| TableFigure {
            table,
            row: row.clone(),
            column,
            unit: "times",
            published,
            value,
        };
        let pair = (point, semaphore);
        entries.push(entry("loops", loops / slow, Value::Faster(pair.0.clone(), pair.1.clone())));
        let thrift = (loops / busy) / (slow / used);
        entries.push(entry("loops by processor time", thrift, Value::Thriftier(pair.0, pair.1)));
    }
    entries
}

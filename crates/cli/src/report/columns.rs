//! The columns of the table of locks: each once, for the text and for the page.
//!
//! A new column is a field of [`LockReport`] and an entry here; the test below names the
//! fields of which nothing is shown.

use lockstead_inspect::report::model::{Durations, LockReport};
use lockstead_render::table::{amount, count, time};
use lockstead_render::words::percent;

/// Columns that stand together.
pub(super) struct ColumnGroup {
    /// The heading in the text, with its indentation; none: each column has two lines of its own.
    text: Option<&'static str>,
    /// The heading on the page.
    pub(super) page: &'static str,
    /// The columns from left to right.
    pub(super) columns: &'static [LockColumn],
}

/// One number of a lock.
pub(super) struct LockColumn {
    /// The two lines above it in the text.
    text: [&'static str; 2],
    /// Its heading on the page.
    pub(super) page: &'static str,
    /// The number of characters in the text.
    width: usize,
    /// The number of a lock.
    pub(super) cell: fn(&LockReport) -> ColumnCell,
}

/// One number of a lock, as it is shown.
pub(super) struct ColumnCell {
    /// What the page sorts by.
    pub(super) value: u64,
    /// The number in few characters, for the text.
    short: String,
    /// The text for the page.
    pub(super) long: String,
}

/// All columns, from left to right.
pub(super) const GROUPS: [ColumnGroup; 3] = [
    ColumnGroup {
        text: Some("    waiting"),
        page: "waiting",
        columns: &[
            column("total", |lock| duration(lock.wait.total_ns)),
            column("p50", |lock| quantile(&lock.wait, lock.wait.p50_ns)),
            column("p99", |lock| quantile(&lock.wait, lock.wait.p99_ns)),
            column("max", |lock| quantile(&lock.wait, lock.wait.max_ns)),
        ],
    },
    ColumnGroup {
        text: Some("  holding*"),
        page: "holding *",
        columns: &[
            column("p50", |lock| quantile(&lock.hold, lock.hold.p50_ns)),
            column("p99", |lock| quantile(&lock.hold, lock.hold.p99_ns)),
            column("max", |lock| quantile(&lock.hold, lock.hold.max_ns)),
        ],
    },
    ColumnGroup {
        text: None,
        page: "acquisitions",
        columns: &[
            LockColumn { text: ["acqui-", "sitions"], page: "all", width: 9, cell: acquisitions },
            LockColumn { text: ["con-", "tended"], page: "contended", width: 8, cell: contended },
        ],
    },
];

const fn column(title: &'static str, cell: fn(&LockReport) -> ColumnCell) -> LockColumn {
    LockColumn { text: ["", title], page: title, width: 8, cell }
}

fn columns() -> impl Iterator<Item = &'static LockColumn> {
    GROUPS.iter().flat_map(|group| group.columns)
}

/// Returns the number of characters of all columns in the text.
pub(super) fn width() -> usize {
    columns().map(|column| column.width).sum()
}

/// Returns the two lines above the columns in the text.
pub(super) fn heads() -> [String; 2] {
    let aligned = |column: &LockColumn, at: usize| format!("{:>1$}", column.text[at], column.width);
    let above = GROUPS.iter().flat_map(|group| match group.text {
        Some(title) => {
            let width: usize = group.columns.iter().map(|column| column.width).sum();
            vec![format!("{title:<width$}")]
        }
        None => group.columns.iter().map(|column| aligned(column, 0)).collect(),
    });
    [above.collect(), columns().map(|column| aligned(column, 1)).collect()]
}

/// Returns the columns of a lock in the text.
pub(super) fn line(lock: &LockReport) -> String {
    columns().map(|column| format!("{:>1$}", (column.cell)(lock).short, column.width)).collect()
}

/// Returns the first columns of a lock that nobody holds, in the text: its waits.
pub(super) fn waits(lock: &LockReport) -> String {
    let columns = GROUPS[0].columns.iter();
    columns.map(|column| format!("{:>1$}", (column.cell)(lock).short, column.width)).collect()
}

fn duration(ns: u64) -> ColumnCell {
    let text = time(ns as f64);
    ColumnCell { value: ns, short: text.clone(), long: text }
}

/// Returns a quantile; there is none of no durations.
fn quantile(times: &Durations, ns: u64) -> ColumnCell {
    match times.count {
        0 => ColumnCell { value: 0, short: "-".into(), long: "-".into() },
        _ => duration(ns),
    }
}

/// Returns the number of acquisitions, as far as it is known.
fn acquisitions(lock: &LockReport) -> ColumnCell {
    let value = lock.acquisitions;
    if lock.waits_only {
        return ColumnCell { value, short: "-".into(), long: "-".into() };
    }
    ColumnCell { value, short: amount(value), long: count(value as f64) }
}

/// Returns the share of the acquisitions that found the lock taken, sorted by its thousandths. A
/// thread that still waits has found the lock taken too, and has not acquired it.
fn contended(lock: &LockReport) -> ColumnCell {
    let share = lock.contended_percent;
    let short = if lock.waits_only { "-".into() } else { percent(share) };
    let mut cell =
        ColumnCell { value: (share.max(0.0) * 1000.0) as u64, long: short.clone(), short };
    if lock.still_waiting != 0 {
        cell.long += &format!(" + {} waiting", count(lock.still_waiting as f64));
        cell.value += 1;
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    /// The numbers of a lock that are said in words beside its name, or not at all.
    const NO_COLUMN: [&str; 10] = [
        "address",
        "contended",
        "group",
        "locks",
        "refused",
        "row",
        "share_percent",
        "still_held",
        "still_waiting",
        "timed_out",
    ];

    #[test]
    fn a_number_is_a_column_or_known_to_be_none() {
        let lock = sample::lock("cache_lock", "mutex", 5);
        let before: Vec<u64> = columns().map(|column| (column.cell)(&lock).value).collect();
        let fields = serde_json::to_value(&lock).expect("a lock as JSON");
        for (name, value) in fields.as_object().expect("fields") {
            if !value.is_number() || NO_COLUMN.contains(&name.as_str()) {
                continue;
            }
            let mut other = lock.clone();
            match name.as_str() {
                "acquisitions" => other.acquisitions += 1,
                "contended_percent" => other.contended_percent += 1.0,
                _ => panic!("{name} has no column: give it one, or list it in NO_COLUMN"),
            }
            let after: Vec<u64> = columns().map(|column| (column.cell)(&other).value).collect();
            assert_ne!(before, after, "{name}");
        }
    }
}

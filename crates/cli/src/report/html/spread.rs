//! How the whole of a row is spread among its locks, on the page.

use crate::report::words;
use lockstead_inspect::report::spread::LockSpread;
use lockstead_render::table::{count, time};
use lockstead_render::words::{clean, percent};

/// The spread of a row.
pub(super) struct SpreadView {
    /// How few have how much.
    pub(super) most: String,
    /// Its worst locks, the worst one first.
    pub(super) rows: Vec<SpreadRow>,
}

/// One of the worst locks.
pub(super) struct SpreadRow {
    pub(super) name: String,
    pub(super) share: String,
    pub(super) waited: String,
    pub(super) longest: String,
    pub(super) acquisitions: String,
    pub(super) contended: String,
}

/// Returns what the page shows of a spread among so many locks.
pub(super) fn view(spread: &LockSpread, locks: u64) -> SpreadView {
    let rows = spread.worst.iter().map(|lock| SpreadRow {
        name: clean(&lock.name),
        share: percent(lock.share_percent),
        waited: time(lock.waited_ns as f64),
        longest: time(lock.max_wait_ns as f64),
        acquisitions: count(lock.acquisitions as f64),
        contended: count(lock.contended as f64),
    });
    let most = format!("{} {}", percent(spread.most_percent), words::most(spread, locks));
    SpreadView { most, rows: rows.collect() }
}

//! fserver and new_fserver: fits to the rows without a queue of spinners, from which what the
//! queue gains is predicted.
//!
//! # Role
//! The documents say which kinds of locks there are, by their profile: a reader-writer lock and
//! mutexes. [`search_servers`] draws how they are used and judges the draws by the calibrated rows
//! of `fserver_2013`, which are those of patch 1. new_fserver has no throughput published, and gets
//! the same numbers.
//!
//! # Invariant
//! As FIT-CALIBRATED-ONLY of `search`: no row that is not calibrated is simulated here, so that
//! the gain of the queue is not seen before a fit is chosen.

use super::fits::ServerFit;
use super::search::{AGAIN, FitSearch, between};
use super::tables::{TableFigure, TableSamples, entries};
use super::{Numbers, ReplayRow, Shipped, score, simulated};
use crate::engine::event::Random;
use crate::many::{Stopped, many};
use std::sync::atomic::AtomicBool;

/// The ranges from which numbers are drawn, on a logarithmic scale.
pub const SERVER_RANGES: [(&str, f64, f64); 7] = [
    ("shared", 20.0, 300.0),
    ("read_section", 0.1, 0.6),
    ("write_section", 1.0, 20.0),
    ("writes", 0.005, 0.1),
    ("mutexes", 1.0, 8.99),
    ("acquisitions", 4.0, 60.0),
    ("section", 1.0, 10.0),
];

/// A fit of fserver that was found.
#[derive(Clone, Debug)]
pub struct FoundServer {
    /// The numbers that were found.
    pub fit: ServerFit,
    /// The distance of its rows from the published ones: see [`score`].
    pub score: f64,
    /// The calibrated rows, simulated with these numbers.
    pub rows: Vec<ReplayRow>,
}

/// Searches for the best numbers: each draw with one seed, and the best again with `seeds`.
///
/// # Errors
/// [`Stopped`] if `stop` was set.
pub fn search_servers(
    search: &FitSearch,
    stop: &AtomicBool,
    step: &mut dyn FnMut(u64, u64, &str),
) -> Result<Vec<FoundServer>, Stopped> {
    let entries: Vec<TableFigure> = entries(&TableSamples::QUICK)
        .into_iter()
        .filter(|entry| {
            entry.calibrated() && entry.table == "fserver_2013" && entry.column != "change"
        })
        .collect();
    let fits: Vec<ServerFit> = (0..search.draws).map(|number| draw(search.seed, number)).collect();
    let scores = many(fits.len(), stop, step, "draws", |at| judge(&fits[at], &entries, 1).0)?;
    let mut first: Vec<(f64, ServerFit)> = scores.into_iter().zip(fits).collect();
    first.sort_by(|one, other| one.0.total_cmp(&other.0));
    first.truncate(search.keep * AGAIN);
    let mut found = many(first.len(), stop, step, "fits, again", |at| {
        let fit = first[at].1.clone();
        let (score, rows) = judge(&fit, &entries, search.seeds);
        FoundServer { fit, score, rows }
    })?;
    found.sort_by(|one, other| one.score.total_cmp(&other.score));
    found.truncate(search.keep);
    Ok(found)
}

/// Returns the score of a fit over some seeds, and the rows it is made of.
fn judge(fit: &ServerFit, entries: &[TableFigure], seeds: u64) -> (f64, Vec<ReplayRow>) {
    let shipped = Shipped::load();
    let rows = simulated(entries, Numbers { server: fit, ..shipped.best() }, seeds);
    (score(&rows), rows)
}

/// Returns the draw of this number.
fn draw(seed: u64, number: usize) -> ServerFit {
    let mut random = Random::new(seed.wrapping_mul(0xd1b5_4a32_d192_ed03) ^ number as u64);
    // The first values of neighbouring seeds are alike.
    random.next();
    let [shared, read_section, write_section, writes, mutexes, acquisitions, section] =
        SERVER_RANGES.map(|(_, low, high)| between(random.unit(), low, high));
    ServerFit {
        name: format!("{seed}-{number}"),
        shared,
        read_section,
        write_section,
        writes,
        mutexes: mutexes as usize,
        acquisitions,
        section,
    }
}

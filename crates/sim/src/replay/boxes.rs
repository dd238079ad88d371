//! The boxes of 2005: fits to their mutex rows, from which the semaphore's rows are predicted.
//!
//! # Role
//! Two boxes ran the same test. What it does in a loop is the same on both, but for the pace
//! of their processors; what switches and wake-ups cost is one multiple of the other's; how
//! long a signal takes, each has for itself. [`search_boxes`] draws these numbers and judges
//! them by the calibrated rows of `vfs_2005`: the larger box first, then, for the best of
//! those, the smaller one.
//!
//! # Invariant
//! As FIT-CALIBRATED-ONLY of `search`: no row that is not calibrated is simulated here.

use super::fits::{BoxFit, LARGE};
use super::search::{FitSearch, between};
use super::tables::{TableFigure, TableSamples, entries};
use super::{Numbers, ReplayRow, Shipped, simulated};
use crate::engine::event::Random;
use crate::many::{Stopped, many};
use std::sync::atomic::AtomicBool;

/// The ranges from which numbers are drawn, on a logarithmic scale.
pub const BOX_RANGES: [(&str, f64, f64); 9] = [
    ("switch", 2.0, 12.0),
    // A switch does what a wake-up does, and changes the address space.
    ("wake over switch", 0.1, 0.5),
    ("signal", 1.0, 16.0),
    ("section", 1.5, 5.5),
    ("gap", 0.2, 4.0),
    ("compute", 1.0, 9.0),
    ("kernel", 0.08, 0.8),
    ("signal of the P4", 0.5, 8.0),
    ("pace", 0.35, 0.65),
];

/// A fit of the boxes that was found.
#[derive(Clone, Debug)]
pub struct FoundBox {
    /// The numbers that were found.
    pub fit: BoxFit,
    /// The largest logarithm of simulated over published of the calibrated figures.
    pub score: f64,
    /// The calibrated rows, simulated with these numbers.
    pub rows: Vec<ReplayRow>,
}

/// Draws of the smaller box for each fit of the larger one that was good enough.
const SMALL: usize = 60;

/// A draw is good enough within so much of each figure with one seed.
const NEAR: f64 = 0.08;

/// Searches for the best numbers.
///
/// # Errors
/// [`Stopped`] if `stop` was set.
pub fn search_boxes(
    search: &FitSearch,
    stop: &AtomicBool,
    step: &mut dyn FnMut(u64, u64, &str),
) -> Result<Vec<FoundBox>, Stopped> {
    let all: Vec<TableFigure> = entries(&TableSamples::QUICK)
        .into_iter()
        .filter(|entry| entry.calibrated() && entry.table == "vfs_2005")
        .collect();
    let of = |large: bool| -> Vec<TableFigure> {
        let all = all.iter().filter(|entry| is_large(entry) == large);
        all.cloned().collect()
    };
    let (large, small) = (of(true), of(false));
    let fits: Vec<BoxFit> = (0..search.draws).map(|number| draw(search.seed, number)).collect();
    let scores = many(fits.len(), stop, step, "draws", |number| judge(&fits[number], &large, 1).0)?;
    let near = |fits: Vec<BoxFit>, scores: Vec<f64>| -> Vec<BoxFit> {
        let pairs = fits.into_iter().zip(scores);
        pairs.filter(|&(_, score)| score < NEAR).map(|(fit, _)| fit).collect()
    };
    let first = near(fits, scores);
    let fits: Vec<BoxFit> = first
        .iter()
        .flat_map(|fit| (0..SMALL).map(move |number| draw_small(search.seed, number, fit)))
        .collect();
    let scores = many(fits.len(), stop, step, "draws", |number| judge(&fits[number], &small, 1).0)?;
    let both = near(fits, scores);
    let mut found = many(both.len(), stop, step, "fits, again", |place| {
        let fit = both[place].clone();
        let (score, rows) = judge(&fit, &all, search.seeds);
        FoundBox { fit, score, rows }
    })?;
    found.sort_by(|one, other| one.score.total_cmp(&other.score));
    // One for each fit of the larger box: they shall differ.
    let mut seen = Vec::new();
    found.retain(|found| {
        let large = found.fit.name.split('.').next().map(str::to_owned);
        let fresh = !seen.contains(&large);
        seen.push(large);
        fresh
    });
    found.truncate(search.keep);
    Ok(found)
}

fn is_large(entry: &TableFigure) -> bool {
    entry.value.points().iter().all(|point| point.machine == LARGE)
}

/// Returns the score of a fit over some seeds, and the rows it is made of: medians.
fn judge(fit: &BoxFit, entries: &[TableFigure], seeds: u64) -> (f64, Vec<ReplayRow>) {
    let shipped = Shipped::load();
    let rows = simulated(entries, Numbers { boxes: fit, ..shipped.best() }, seeds);
    // The farthest seed counts as well: some draws have one runner in one run and two in another.
    let far = |value: f64, row: &ReplayRow| (value / row.published).ln().abs();
    let worst = |row: &ReplayRow| {
        (far(row.range.0, row) + far(row.range.1, row)) / 4.0 + far(row.simulated, row) / 2.0
    };
    (rows.iter().map(worst).fold(0.0, f64::max), rows)
}

/// Returns the draw of this number for the larger box.
fn draw(seed: u64, number: usize) -> BoxFit {
    let mut random = Random::new(seed.wrapping_mul(0x9e6c_63d0_876a_3f6b) ^ number as u64);
    // The first values of neighbouring seeds are alike.
    random.next();
    let [switch, wake, signal, section, gap, compute, kernel, signal_p4, pace] =
        BOX_RANGES.map(|(_, low, high)| between(random.unit(), low, high));
    let name = format!("{seed}-{number}");
    let wake = wake * switch;
    BoxFit { name, switch, wake, signal, section, gap, compute, kernel, signal_p4, pace }
}

/// Draws numbers for the smaller box, and keeps those of the larger one.
fn draw_small(seed: u64, number: usize, large: &BoxFit) -> BoxFit {
    let other = draw(seed ^ 0x5_ca1e, number);
    BoxFit {
        name: format!("{}.{number}", large.name),
        kernel: other.kernel,
        signal_p4: other.signal_p4,
        pace: other.pace,
        ..large.clone()
    }
}

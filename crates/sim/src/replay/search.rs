//! Looks for fits: draws the numbers that no document gives, and judges them by the
//! calibrated rows.
//!
//! # Role
//! [`RANGES`] says between which limits each number is drawn; a number outside of them makes
//! no physical sense. Each draw is simulated once for the rows of [`CALIBRATED`] with 8
//! nodes and judged by [`score`]. The best are judged again, by all calibrated rows of their
//! tables and over several seeds, and the best of those are the result.
//!
//! # Invariant
//! **F1** No row that is not calibrated is simulated here, let alone looked at.
//!
//! [`CALIBRATED`]: super::CALIBRATED

use super::tables::{Entry, Samples, entries};
use super::{Fit, Numbers, Row, all_points, rows_of, score, shipped_boxes};
use crate::engine::world::Random;
use crate::many::{Stopped, many};
use std::sync::atomic::AtomicBool;

/// What is drawn, from where to where; on a logarithmic scale where that is above 0.
pub const RANGES: [(&str, f64, f64); 14] = [
    // Some ten cycles: the time in which an instruction that has got its line is done.
    ("hold_write", 2.5, 6.0),
    ("hold_read over hold_write", 1.5, 6.0),
    // None of them in half of the draws.
    ("preference", 0.0, 0.6),
    ("patience", 4.0, 8.0),
    // A request that meets others is tried again, but not for ever.
    ("contended, next door", 1.0, 2.0),
    ("contended, beyond, over next door", 1.0, 1.6),
    ("occupied, next door", 14.0, 60.0),
    ("occupied, beyond, over next door", 1.2, 1.8),
    ("switch", 0.8, 3.0),
    ("wake", 0.4, 2.0),
    // Times four.
    ("rounds", 1.0, 4.99),
    ("acquisitions", 60.0, 110.0),
    // Holding for a job on one node, in microseconds.
    ("acquisitions times section", 150.0, 260.0),
    ("lines", 1.0, 2.99),
];

/// Between two acquisitions of a burst, as a multiple of the section.
const GAP: (f64, f64) = (0.2, 1.5);

/// Transfers next door and beyond, of published tables.
const TRANSFER: [f64; 2] = [140.0, 230.0];

/// A search.
#[derive(Clone, Debug)]
pub struct Search {
    /// Draws.
    pub draws: usize,
    /// What chance depends on.
    pub seed: u64,
    /// How many fits are wanted.
    pub keep: usize,
    /// Seeds of the simulations in the second round.
    pub seeds: u64,
}

/// A fit that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The numbers.
    pub fit: Fit,
    /// Its score in the second round: see [`score`].
    pub score: f64,
    /// The calibrated rows.
    pub rows: Vec<Row>,
}

/// How many times more are judged again than are wanted.
const AGAIN: usize = 3;

/// A draw whose score with the patch is beyond this is not simulated without it.
const FAR: f64 = 0.8;

/// Searches.
///
/// # Errors
/// [`Stopped`] if `stop` was set.
pub fn search(
    search: &Search,
    stop: &AtomicBool,
    step: &mut dyn FnMut(u64, u64, &str),
) -> Result<Vec<Found>, Stopped> {
    let all: Vec<Entry> = entries(&Samples::QUICK)
        .into_iter()
        .filter(|entry| {
            entry.calibrated()
                && ["high_systime_2013", "slowpath_share_2013"].contains(&entry.table)
        })
        .collect();
    let large: Vec<Entry> = all
        .iter()
        .filter(|entry| entry.row.contains("8 nodes") && entry.column != "change")
        .cloned()
        .collect();
    let patched: Vec<Entry> =
        large.iter().filter(|entry| entry.column == "with patch").cloned().collect();
    let fits: Vec<Fit> = (0..search.draws).map(|number| draw(search.seed, number)).collect();
    let half = many(fits.len(), stop, step, "draws", |number| judge(&fits[number], &patched, 1).0)?;
    let fits: Vec<Fit> =
        fits.into_iter().zip(half).filter(|&(_, score)| score < FAR).map(|(fit, _)| fit).collect();
    let scores =
        many(fits.len(), stop, step, "those left", |number| judge(&fits[number], &large, 1).0)?;
    let mut first: Vec<(f64, Fit)> = scores.into_iter().zip(fits).collect();
    first.sort_by(|one, other| one.0.total_cmp(&other.0));
    first.truncate(search.keep * AGAIN);
    let mut found = many(first.len(), stop, step, "fits, again", |place| {
        let fit = first[place].1.clone();
        let (score, rows) = judge(&fit, &all, search.seeds);
        Found { fit, score, rows }
    })?;
    found.sort_by(|one, other| one.score.total_cmp(&other.score));
    found.truncate(search.keep);
    Ok(found)
}

/// The score of a fit over some seeds, and the rows it is made of.
fn judge(fit: &Fit, entries: &[Entry], seeds: u64) -> (f64, Vec<Row>) {
    let points = all_points(entries);
    let boxes = shipped_boxes();
    let numbers = Numbers { fit, boxes: &boxes[0] };
    let figures: Vec<_> = (1..=seeds)
        .flat_map(|seed| points.iter().map(move |point| point.simulate(numbers, seed)))
        .collect();
    let rows = rows_of(entries, &points, &figures);
    (score(&rows), rows)
}

/// From a number between 0 and 1: one between two others, on a logarithmic scale where those
/// are above 0.
pub(super) fn between(unit: f64, low: f64, high: f64) -> f64 {
    if low > 0.0 { low * (high / low).powf(unit) } else { low + (high - low) * unit }
}

/// The draw of this number.
fn draw(seed: u64, number: usize) -> Fit {
    let mut random = Random::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ number as u64);
    // The first values of neighbouring seeds are alike.
    random.next();
    let mut between = |low: f64, high: f64| between(random.unit(), low, high);
    let [
        hold_write,
        hold_read,
        preference,
        patience,
        near,
        far,
        occupied,
        occupied_far,
        switch,
        wake,
        rounds,
        acquisitions,
        held,
        lines,
    ] = RANGES.map(|(_, low, high)| between(low, high));
    let section = held / acquisitions;
    Fit {
        name: format!("{seed}-{number}"),
        hold_write,
        hold_read: hold_write * hold_read,
        preference: if between(0.0, 1.0) < 0.5 { 0.0 } else { preference },
        patience: patience as u32,
        transfer: TRANSFER,
        contended: [near, near * far],
        occupied: [occupied, occupied * occupied_far],
        switch,
        wake,
        rounds: rounds as u32 * 4,
        acquisitions,
        section,
        gap: section * between(GAP.0, GAP.1),
        lines: lines as usize,
    }
}

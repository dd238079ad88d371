//! Looks for fits: draws the numbers that no document gives, and judges them by the
//! calibrated rows.
//!
//! # Role
//! [`RANGES`] says between which limits each number is drawn; a number outside of them makes
//! no physical sense. Each draw is simulated once for the calibrated rows with 8 nodes
//! ([`CALIBRATED`]) with the patch; where those are near, the contention is solved for that
//! gives the row without the patch, over a few seeds, and both are judged by [`score`]. The best
//! are judged again, by all calibrated rows of their tables and over more seeds, and the best of
//! those are the result.
//!
//! # Invariant
//! **FIT-CALIBRATED-ONLY** No row that is not calibrated is simulated here, let alone looked at.
//!
//! [`CALIBRATED`]: super::CALIBRATED

use super::tables::{TableFigure, TableSamples, entries};
use super::{Fit, Numbers, ReplayRow, Shipped, score, simulated};
use crate::engine::event::Random;
use crate::many::{Stopped, many};
use std::sync::atomic::AtomicBool;

/// The ranges from which numbers are drawn, on a logarithmic scale where they are above 0.
pub const RANGES: [(&str, f64, f64); 11] = [
    // Some ten cycles: the time in which an instruction that has got its line is done, or not.
    ("hold_write", 2.5, 6.0),
    ("hold_read", 8.0, 14.0),
    ("contended, what it adds next door, over beyond", 0.3, 1.0),
    ("occupied, next door", 40.0, 60.0),
    ("occupied, beyond, over next door", 1.1, 1.5),
    ("switch", 0.8, 3.0),
    // Below, much of the slow path with the patch: a calibrated row.
    ("wake", 1.2, 3.0),
    // Times four.
    ("rounds", 1.0, 2.99),
    ("acquisitions", 65.0, 95.0),
    // Holding for a job on one node, in microseconds.
    ("acquisitions times section", 190.0, 250.0),
    ("lines", 1.0, 2.99),
];

/// The range of the factor by which a transfer beyond takes longer while others wait. It is not
/// drawn, but solved for. A request that meets others is tried again, but not for ever.
pub const CONTENDED: (f64, f64) = (1.0, 2.5);

/// The value with which the search starts.
const START: f64 = 1.5;

/// The number of halvings of that range.
const HALVINGS: usize = 5;

/// The range of the time between two acquisitions of a burst, as a multiple of the section.
const GAP: (f64, f64) = (0.2, 1.5);

/// The costs of transfers next door and beyond, from published tables.
const TRANSFER: [f64; 2] = [140.0, 230.0];

/// The settings of a search.
#[derive(Clone, Debug)]
pub struct FitSearch {
    /// The number of draws.
    pub draws: usize,
    /// The number that all chance depends on.
    pub seed: u64,
    /// The number of fits that are wanted.
    pub keep: usize,
    /// The number of seeds of the simulations in the second round.
    pub seeds: u64,
}

/// A fit that was found.
#[derive(Clone, Debug)]
pub struct FoundFit {
    /// The numbers that were found.
    pub fit: Fit,
    /// The score of the fit in the second round: see [`score`].
    pub score: f64,
    /// The calibrated rows, simulated with these numbers.
    pub rows: Vec<ReplayRow>,
}

/// The number of fits judged again for each one that is wanted: near the collapse few seeds say
/// little, and the best by few seeds are the luckiest.
pub(super) const AGAIN: usize = 8;

/// The number of seeds by which the contention is solved for, and by which those fits are chosen
/// that are judged again.
const FEW: u64 = 3;

/// A draw whose score with the patch is beyond this is not simulated without it.
const FAR: f64 = 0.3;

/// Searches for the best numbers.
///
/// # Errors
/// [`Stopped`] if `stop` was set.
pub fn search(
    search: &FitSearch,
    stop: &AtomicBool,
    step: &mut dyn FnMut(u64, u64, &str),
) -> Result<Vec<FoundFit>, Stopped> {
    let all: Vec<TableFigure> = entries(&TableSamples::QUICK)
        .into_iter()
        .filter(|entry| {
            entry.calibrated()
                && ["high_systime_2013", "slowpath_share_2013"].contains(&entry.table)
        })
        .collect();
    let large: Vec<TableFigure> = all
        .iter()
        .filter(|entry| entry.row.contains("8 nodes") && entry.column != "change")
        .cloned()
        .collect();
    let patched: Vec<TableFigure> =
        large.iter().filter(|entry| entry.column == "with patch").cloned().collect();
    let unpatched: Vec<TableFigure> = large
        .iter()
        .filter(|entry| entry.column == "without patch" && entry.unit == "jpm")
        .cloned()
        .collect();
    let fits: Vec<Fit> = (0..search.draws).map(|number| draw(search.seed, number)).collect();
    let half = many(fits.len(), stop, step, "draws", |number| judge(&fits[number], &patched, 1).0)?;
    let fits: Vec<Fit> =
        fits.into_iter().zip(half).filter(|&(_, score)| score < FAR).map(|(fit, _)| fit).collect();
    let mut first = many(fits.len(), stop, step, "those left", |number| {
        let fit = solve(&fits[number], &unpatched);
        (judge(&fit, &large, FEW).0, fit)
    })?;
    first.sort_by(|one, other| one.0.total_cmp(&other.0));
    first.truncate(search.keep * AGAIN);
    let mut found = many(first.len(), stop, step, "fits, again", |place| {
        let fit = first[place].1.clone();
        let (score, rows) = judge(&fit, &all, search.seeds);
        FoundFit { fit, score, rows }
    })?;
    found.sort_by(|one, other| one.score.total_cmp(&other.score));
    found.truncate(search.keep);
    Ok(found)
}

/// Returns the fit with the contention that makes it collapse without the patch as far as it
/// should.
fn solve(fit: &Fit, unpatched: &[TableFigure]) -> Fit {
    let mut fit = fit.clone();
    let near = (fit.contended[0] - 1.0) / (fit.contended[1] - 1.0);
    let (mut low, mut high) = CONTENDED;
    // Chance has its part: the best step is not always the last.
    let mut best = (f64::INFINITY, fit.contended);
    for _ in 0..HALVINGS {
        let beyond = f64::midpoint(low, high);
        fit.contended = [1.0 + near * (beyond - 1.0), beyond];
        let (score, rows) = judge(&fit, unpatched, FEW);
        if score < best.0 {
            best = (score, fit.contended);
        }
        let too_fast = rows.iter().all(|row| row.simulated > row.published);
        (low, high) = if too_fast { (beyond, high) } else { (low, beyond) };
    }
    fit.contended = best.1;
    fit
}

/// Returns the score of a fit over some seeds, and the rows it is made of.
fn judge(fit: &Fit, entries: &[TableFigure], seeds: u64) -> (f64, Vec<ReplayRow>) {
    let shipped = Shipped::load();
    let rows = simulated(entries, Numbers { fit, best: fit, ..shipped.best() }, seeds);
    (score(&rows), rows)
}

/// Returns the number between `low` and `high` that `unit`, between 0 and 1, stands for, on a
/// logarithmic scale where those are above 0.
pub(super) fn between(unit: f64, low: f64, high: f64) -> f64 {
    if low > 0.0 { low * (high / low).powf(unit) } else { low + (high - low) * unit }
}

/// Returns the draw of this number.
fn draw(seed: u64, number: usize) -> Fit {
    let mut random = Random::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ number as u64);
    // The first values of neighbouring seeds are alike.
    random.next();
    let mut between = |low: f64, high: f64| between(random.unit(), low, high);
    let [
        hold_write,
        hold_read,
        near,
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
        hold_read,
        // With any, no contention makes the mutex without the patch collapse.
        preference: 0.0,
        patience: 4,
        transfer: TRANSFER,
        contended: [1.0 + near * (START - 1.0), START],
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

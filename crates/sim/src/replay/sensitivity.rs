//! The effect of the numbers that no document gives on the figures.

use super::tables::TablePoint;
use super::{Fit, Numbers, Shipped};
use crate::engine::task::Activity;
use crate::locks::SimLockName;
use crate::many::{Stopped, many};
use crate::work::RunFigures;
use std::sync::atomic::AtomicBool;

/// The factors by which each number of the best fit is multiplied.
pub const FACTORS: [f64; 2] = [0.8, 1.25];

/// The numbers of a fit, by the names that they have in its file. Lists change as a whole.
pub const DIALS: [&str; 12] = [
    "hold_write",
    "hold_read",
    "preference",
    "contended",
    "occupied",
    "switch",
    "wake",
    "rounds",
    "acquisitions",
    "section",
    "gap",
    "lines",
];

/// The figures of high_systime that are looked at.
pub const WATCHED: [&str; 5] = [
    "8 nodes, without patch, jobs a minute",
    "8 nodes, with patch, jobs a minute",
    "8 nodes, with patch, slow path in per cent",
    "4 nodes, without patch, jobs a minute",
    "8 nodes, HT on, without patch, jobs a minute",
];

/// The settings: what is changed, and how often it is simulated.
#[derive(Clone, Debug)]
pub struct Turns {
    /// The numbers that are changed, some of [`DIALS`].
    pub dials: Vec<&'static str>,
    /// The number of users of high_systime.
    pub users: usize,
    /// The number of seeds of each simulation; the figures are medians.
    pub seeds: u64,
}

/// The effect of a change.
#[derive(Clone, Debug)]
pub struct NumberEffect {
    /// The number that is changed; empty for the fit as it is.
    pub dial: &'static str,
    /// The factor by which it is changed.
    pub factor: f64,
    /// The figures that [`WATCHED`] names.
    pub figures: Vec<f64>,
}

impl Fit {
    /// Multiplies the number with this name.
    fn turn(&mut self, dial: &str, factor: f64) {
        let whole = |n: f64| (n * factor).round().max(1.0);
        match dial {
            "hold_write" => self.hold_write *= factor,
            "hold_read" => self.hold_read *= factor,
            "preference" => self.preference *= factor,
            "contended" => self.contended.iter_mut().for_each(|n| *n = 1.0 + (*n - 1.0) * factor),
            "occupied" => self.occupied.iter_mut().for_each(|n| *n *= factor),
            "switch" => self.switch *= factor,
            "wake" => self.wake *= factor,
            "rounds" => self.rounds = whole(f64::from(self.rounds)) as u32,
            "acquisitions" => self.acquisitions *= factor,
            "section" => self.section *= factor,
            "gap" => self.gap *= factor,
            "lines" => self.lines = whole(self.lines as f64) as usize,
            _ => {}
        }
    }
}

/// Changes numbers of the best fit, one at a time; the first result is without a change.
///
/// # Errors
/// [`Stopped`] if `stop` was set.
///
/// # Panics
/// If no fit is shipped.
pub fn sensitivity(
    turns: &Turns,
    stop: &AtomicBool,
    step: &mut dyn FnMut(u64, u64, &str),
) -> Result<Vec<NumberEffect>, Stopped> {
    let shipped = Shipped::load();
    let best = shipped.best();
    let point = |nodes, threads, lock| TablePoint {
        machine: "westmere-8x10",
        nodes,
        threads,
        lock,
        workload: "high-systime",
        users: turns.users,
    };
    let points = [
        point(8, 1, SimLockName::Spinning2013),
        point(8, 1, SimLockName::ReadFirst2013),
        point(4, 1, SimLockName::Spinning2013),
        point(8, 2, SimLockName::Spinning2013),
    ];
    let changes: Vec<(&'static str, f64)> = std::iter::once(("", 1.0))
        .chain(turns.dials.iter().flat_map(|&dial| FACTORS.map(|factor| (dial, factor))))
        .collect();
    let runs = points.len() * turns.seeds as usize;
    let figures = many(changes.len() * runs, stop, step, "simulations", |index| {
        let (dial, factor) = changes[index / runs];
        let mut fit = best.fit.clone();
        fit.turn(dial, factor);
        let numbers = Numbers { fit: &fit, best: &fit, ..best };
        points[index % points.len()].simulate(numbers, (index % runs / points.len()) as u64 + 1)
    })?;
    let effects = changes.iter().zip(figures.chunks(runs)).map(|(&(dial, factor), figures)| {
        let median = |point: usize, of: fn(&RunFigures) -> f64| {
            let mut values: Vec<f64> =
                figures.iter().skip(point).step_by(points.len()).map(of).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let jobs = |figures: &RunFigures| figures.jobs * 60.0;
        let slow = |figures: &RunFigures| figures.share(Activity::SlowPath) * 100.0;
        let figures = vec![
            median(0, jobs),
            median(1, jobs),
            median(1, slow),
            median(2, jobs),
            median(3, jobs),
        ];
        NumberEffect { dial, factor, figures }
    });
    Ok(effects.collect())
}

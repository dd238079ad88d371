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
//! As **FIT-CALIBRATED-ONLY** of `search`: no row that is not calibrated is simulated here, so that
//! the gain of the queue is not seen before a fit is chosen.

use super::search::{AGAIN, FitSearch, between};
use super::tables::{TableFigure, TableSamples, entries};
use super::{Numbers, ReplayRow, Shipped, score, simulated};
use crate::engine::event::Random;
use crate::file::parse;
use crate::many::{Stopped, many};
use crate::work::{UseKind, WorkUse, Workload};
use serde::Deserialize;
use std::fmt;
use std::sync::atomic::AtomicBool;

/// The way in which a job uses its locks, with times in microseconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerFit {
    /// The name that reports write for it.
    pub name: String,
    /// The number of acquisitions of the reader-writer lock in a job.
    pub shared: f64,
    /// A section of its readers.
    pub read_section: f64,
    /// A section of its writers.
    pub write_section: f64,
    /// The share of those acquisitions that write.
    pub writes: f64,
    /// The number of mutexes that there are.
    pub mutexes: usize,
    /// The number of acquisitions of mutexes in a job.
    pub acquisitions: f64,
    /// A section of theirs.
    pub section: f64,
}

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

/// The processor time of a job on one node: ten processors do 197,972 jobs a minute (a calibrated
/// row).
const DEMAND: f64 = 10.0 * 60e6 / 197_972.0;

impl fmt::Display for ServerFit {
    /// Writes the numbers as the file of fits has them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "[[fit]]\nname = {:?}", self.name)?;
        writeln!(f, "shared = {:.1}\nread_section = {:.3}", self.shared, self.read_section)?;
        writeln!(f, "write_section = {:.2}\nwrites = {:.4}", self.write_section, self.writes)?;
        writeln!(f, "mutexes = {}\nacquisitions = {:.1}", self.mutexes, self.acquisitions)?;
        writeln!(f, "section = {:.2}", self.section)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerFits {
    fit: Vec<ServerFit>,
}

/// The fits of fserver that are shipped, the best first.
///
/// # Panics
/// If their file is wrong, which a test would have noticed.
#[must_use]
pub fn shipped_servers() -> Vec<ServerFit> {
    let fits: ServerFits = parse("fits-fserver.toml", include_str!("../../fits-fserver.toml"))
        .unwrap_or_else(|error| panic!("{error}"));
    fits.fit
}

impl ServerFit {
    /// The workload of this name with these numbers.
    pub(super) fn workload(&self, name: &str) -> Workload {
        let mut workload = Workload::bundled(name).expect("it is built in");
        let rounds = f64::from(workload.rounds);
        let mut locked = 0.0;
        for user in &mut workload.locks {
            let mean = if user.kind == UseKind::ReadWrite {
                *user = WorkUse {
                    burst: self.shared / rounds,
                    section: self.read_section,
                    write_section: Some(self.write_section),
                    writes: self.writes,
                    ..user.clone()
                };
                self.read_section + self.writes * (self.write_section - self.read_section)
            } else {
                *user = WorkUse {
                    many: self.mutexes,
                    burst: self.acquisitions / rounds,
                    section: self.section,
                    ..user.clone()
                };
                self.section
            };
            locked += user.burst * rounds * (mean + user.gap);
        }
        workload.compute = (DEMAND - locked).max(0.0);
        workload
    }
}

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

/// The score of a fit over some seeds, and the rows it is made of.
fn judge(fit: &ServerFit, entries: &[TableFigure], seeds: u64) -> (f64, Vec<ReplayRow>) {
    let shipped = Shipped::load();
    let rows = simulated(entries, Numbers { server: fit, ..shipped.best() }, seeds);
    (score(&rows), rows)
}

/// The draw of this number.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workload_that_is_built_in_has_the_numbers_of_the_best_fit() {
        for name in ["fserver", "new-fserver"] {
            let file = Workload::bundled(name).expect("it is built in");
            let fit = shipped_servers()[0].workload(name);
            let numbers = |workload: &Workload| {
                let of = |user: &WorkUse| {
                    let write = user.write_section.unwrap_or(0.0);
                    [user.many as f64, user.burst, user.section, write, user.writes]
                };
                let mut numbers = vec![workload.compute];
                numbers.extend(workload.locks.iter().flat_map(of));
                numbers
            };
            for (one, other) in numbers(&file).into_iter().zip(numbers(&fit)) {
                assert!((one - other).abs() <= 0.001 * other, "{name}: {one}, {other} in the fit");
            }
        }
    }
}

//! The fits: numbers that no document gives, each set of which explains the calibrated rows
//! about equally well.

use crate::file::parse;
use crate::machine::Machine;
use crate::work::{WorkUse, Workload};
use serde::Deserialize;
use std::fmt;

/// A set of numbers, which [`Machine`] and [`Workload`] explain.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// The name that reports write.
    pub name: String,
    /// The time for which an owner keeps a line that another wants to write, in nanoseconds.
    pub hold_write: f64,
    /// The time for which it keeps one that another wants to read.
    pub hold_read: f64,
    /// The chance that the nearest request is served first.
    pub preference: f64,
    /// The number of times that a request may be passed over.
    pub patience: u32,
    /// The cost of transfers to the node next door and beyond, in nanoseconds.
    pub transfer: [f64; 2],
    /// The factors by which those take longer while others wait.
    pub contended: [f64; 2],
    /// The times for which a read there keeps the next one waiting.
    pub occupied: [f64; 2],
    /// The time to change tasks, in microseconds.
    pub switch: f64,
    /// The time to wake a task, in microseconds.
    pub wake: f64,
    /// The number of rounds of a job of high_systime.
    pub rounds: u32,
    /// The number of acquisitions of the hot lock in such a job.
    pub acquisitions: f64,
    /// The length of its section, in microseconds.
    pub section: f64,
    /// The time between two acquisitions of a burst, in microseconds.
    pub gap: f64,
    /// The number of lines that the section changes.
    pub lines: usize,
}

impl fmt::Display for Fit {
    /// Writes the numbers as the file of fits has them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [near, far] = self.contended;
        writeln!(f, "[[fit]]\nname = {:?}", self.name)?;
        writeln!(f, "hold_write = {:.1}\nhold_read = {:.1}", self.hold_write, self.hold_read)?;
        writeln!(f, "preference = {:.2}\npatience = {}", self.preference, self.patience)?;
        writeln!(f, "transfer = [{:.1}, {:.1}]", self.transfer[0], self.transfer[1])?;
        writeln!(f, "contended = [{near:.2}, {far:.2}]")?;
        writeln!(f, "occupied = [{:.1}, {:.1}]", self.occupied[0], self.occupied[1])?;
        writeln!(f, "switch = {:.2}\nwake = {:.2}", self.switch, self.wake)?;
        writeln!(f, "rounds = {}\nacquisitions = {:.1}", self.rounds, self.acquisitions)?;
        writeln!(f, "section = {:.2}\ngap = {:.2}\nlines = {}", self.section, self.gap, self.lines)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fits {
    fit: Vec<Fit>,
}

/// The fits that are shipped, the best first.
///
/// # Panics
/// If their file is wrong, which a test would have noticed.
#[must_use]
pub fn shipped() -> Vec<Fit> {
    let fits: Fits = parse("fits.toml", include_str!("../../fits.toml"))
        .unwrap_or_else(|error| panic!("{error}"));
    fits.fit
}

/// The processor time of a job of high_systime on one node, in microseconds: 10 processors do
/// 126,036 jobs a minute (a calibrated row).
const DEMAND: f64 = 4750.0;

impl Fit {
    /// The box of 2013 with these numbers.
    pub(super) fn machine(&self) -> Machine {
        let mut machine = Machine::bundled("westmere-8x10").expect("it is built in");
        let lines = &mut machine.lines;
        lines.hold_write = self.hold_write;
        lines.hold_read = self.hold_read;
        lines.preference = self.preference;
        lines.patience = self.patience;
        lines.transfer[2..].copy_from_slice(&self.transfer);
        lines.contended[2..4].copy_from_slice(&self.contended);
        lines.occupied[2..4].copy_from_slice(&self.occupied);
        machine.scheduler.switch = self.switch;
        machine.scheduler.wake = self.wake;
        machine.settle();
        machine
    }

    /// A workload with this fit's hot lock, where it has one.
    pub(super) fn workload(&self, name: &str) -> Workload {
        let mut workload = Workload::bundled(name).expect("it is built in");
        let Some(hot) = workload.locks.iter_mut().find(|user| user.name == "hot") else {
            return workload;
        };
        // In a file `burst` says how much of high_systime's demand there is.
        let share = hot.burst;
        workload.rounds = self.rounds;
        *hot = WorkUse {
            burst: share * self.acquisitions / f64::from(self.rounds),
            section: self.section,
            gap: self.gap,
            lines: self.lines,
            ..hot.clone()
        };
        let locked = share * self.acquisitions * (self.section + self.gap);
        workload.compute = (DEMAND - locked).max(0.0);
        workload
    }
}

/// Tells whether a workload gets these numbers.
pub(super) fn is_server(workload: &str) -> bool {
    ["fserver", "new-fserver"].contains(&workload)
}

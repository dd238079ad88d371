//! The fits: numbers that no document gives, each set of which explains the calibrated rows
//! about equally well.

use crate::file::parse;
use crate::machine::Machine;
use crate::work::{UseKind, WorkUse, Workload};
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

/// Returns the fits that are shipped, the best first.
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
    /// Returns the box of this name, that of 2013 or that of 2010, with these numbers.
    pub(super) fn machine(&self, name: &str) -> Machine {
        let mut machine = Machine::bundled(name).expect("it is built in");
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

    /// Returns a workload with this fit's hot lock, where it has one.
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

/// A set of numbers for both boxes, with times in microseconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoxFit {
    /// The name that reports write.
    pub name: String,
    /// The time to change tasks on the 8-way box.
    pub switch: f64,
    /// The time to wake a task there.
    pub wake: f64,
    /// The time until an idle processor there notices a wake-up.
    pub signal: f64,
    /// The length of a section of the test.
    pub section: f64,
    /// The time between its two sections.
    pub gap: f64,
    /// The rest of a loop.
    pub compute: f64,
    /// The factor of the switches and wake-ups of the smaller box, a P4.
    pub kernel: f64,
    /// The signal time of the smaller box.
    pub signal_p4: f64,
    /// The factor of the smaller box's sections and computing.
    pub pace: f64,
}

/// The part of a signal that leaving the idle state takes.
const EXIT: f64 = 1.0 / 3.0;

/// The larger box, whose name the smaller one does not have.
pub(super) const LARGE: &str = "smp-8way-2005";

impl fmt::Display for BoxFit {
    /// Writes the numbers as the file of fits has them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "[[fit]]\nname = {:?}", self.name)?;
        writeln!(
            f,
            "switch = {:.2}\nwake = {:.2}\nsignal = {:.2}",
            self.switch, self.wake, self.signal
        )?;
        writeln!(
            f,
            "section = {:.2}\ngap = {:.2}\ncompute = {:.2}",
            self.section, self.gap, self.compute
        )?;
        writeln!(
            f,
            "kernel = {:.3}\nsignal_p4 = {:.2}\npace = {:.3}",
            self.kernel, self.signal_p4, self.pace
        )
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BoxFits {
    fit: Vec<BoxFit>,
}

/// Returns the fits of the boxes that are shipped, the best first.
///
/// # Panics
/// If their file is wrong, which a test would have noticed.
#[must_use]
pub fn shipped_boxes() -> Vec<BoxFit> {
    let fits: BoxFits = parse("fits-2005.toml", include_str!("../../fits-2005.toml"))
        .unwrap_or_else(|error| panic!("{error}"));
    fits.fit
}

/// The times of the test on the box of 2010 over those on the 8-way box of 2005, by that of the P4: half.
/// Chosen, in knowledge of none of its rows: no document says how fast it is with one task.
const PACE_2010: f64 = 0.5;

impl BoxFit {
    /// Returns the workload of the test as the box of 2010 does it.
    pub(super) fn workload_of_2010(&self, name: &str) -> Workload {
        let mut workload = self.workload(name);
        let pace = self.pace * PACE_2010;
        workload.compute *= pace;
        for user in &mut workload.locks {
            (user.section, user.gap) = (user.section * pace, user.gap * pace);
        }
        workload
    }

    /// Returns the box of this name with these numbers.
    pub(super) fn machine(&self, name: &str) -> Machine {
        let mut machine = Machine::bundled(name).expect("it is built in");
        let (kernel, signal, pace) = if name == LARGE {
            (1.0, self.signal, 1.0)
        } else {
            (self.kernel, self.signal_p4, self.pace)
        };
        machine.layout.pace = pace;
        machine.scheduler.switch = self.switch * kernel;
        machine.scheduler.wake = self.wake * kernel;
        machine.scheduler.signal = signal;
        machine.scheduler.idle = vec![(0.0, signal * EXIT)];
        machine.settle();
        machine
    }

    /// Returns the workload of the test with these numbers.
    pub(super) fn workload(&self, name: &str) -> Workload {
        let mut workload = Workload::bundled(name).expect("it is built in");
        workload.compute = self.compute;
        for user in &mut workload.locks {
            (user.section, user.gap) = (self.section, self.gap);
        }
        workload
    }
}

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

/// The processor time of a job on one node: ten processors do 197,972 jobs a minute (a calibrated
/// row).
const SERVER_DEMAND: f64 = 10.0 * 60e6 / 197_972.0;

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

/// Returns the fits of fserver that are shipped, the best first.
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
    /// Returns the workload of this name with these numbers.
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
        workload.compute = (SERVER_DEMAND - locked).max(0.0);
        workload
    }
}

/// Tells whether a workload gets these numbers.
pub(super) fn is_server(workload: &str) -> bool {
    ["fserver", "new-fserver"].contains(&workload)
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

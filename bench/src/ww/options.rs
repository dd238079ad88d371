//! What `lockstead bench ww` measures.

use crate::contended::{MAX_THREADS, check_times};
use crate::{Error, options};
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// The largest number of locks that a turn may take.
pub const MAX_TAKE: usize = 16;
/// The largest number of locks that there may be.
pub const MAX_LOCKS: usize = 4096;

/// A way to take several locks without deadlock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WwScheme {
    /// Wait/wound mutexes in a context of a class of wound-wait.
    WoundWait,
    /// Wait/wound mutexes in a context of a class of wait-die.
    WaitDie,
    /// This project's mutexes, in the order of their addresses.
    Order,
    /// `std::sync::Mutex`, in the order of their addresses.
    OrderStd,
    /// `std::sync::Mutex`: waits for one, tries the others, and if one is held releases all and
    /// waits for that one.
    TryStd,
}

impl WwScheme {
    /// All, in the order of the reports.
    pub const ALL: [WwScheme; 5] = [
        WwScheme::WoundWait,
        WwScheme::WaitDie,
        WwScheme::Order,
        WwScheme::OrderStd,
        WwScheme::TryStd,
    ];

    /// Returns the name as users type it and reports write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            WwScheme::WoundWait => "wound-wait",
            WwScheme::WaitDie => "wait-die",
            WwScheme::Order => "order",
            WwScheme::OrderStd => "order-std",
            WwScheme::TryStd => "try-std",
        }
    }
}

impl fmt::Display for WwScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a measurement is asked for: every combination of threads, locks of a turn, locks and
/// sections.
#[derive(Clone, Debug)]
pub struct WwOptions {
    /// The schemes, in the order of the report.
    pub schemes: Vec<WwScheme>,
    /// Numbers of threads, each 1 to 1024.
    pub threads: Vec<usize>,
    /// Numbers of locks that a turn takes, each 1 to [`MAX_TAKE`].
    pub take: Vec<usize>,
    /// Numbers of locks that there are, each 1 to [`MAX_LOCKS`] and no less than any of `take`.
    pub locks: Vec<usize>,
    /// Lengths of the section, with all locks of the turn held. Zero: one load and one store for
    /// each lock.
    pub sections: Vec<Duration>,
    /// The number of rounds; each measures all schemes of a cell once, in shuffled order.
    pub rounds: usize,
    /// Time for one scheme in one round; half as much again for the times of its turns.
    pub slice: Duration,
}

impl Default for WwOptions {
    /// Returns the grid of `lockstead bench ww`, 5 rounds of 100 ms.
    fn default() -> Self {
        Self {
            schemes: WwScheme::ALL.to_vec(),
            threads: vec![2, 8, 16],
            take: vec![2, 4],
            locks: vec![4, 16],
            sections: [0, 2_000, 20_000].map(Duration::from_nanos).to_vec(),
            rounds: 5,
            slice: Duration::from_millis(100),
        }
    }
}

impl WwOptions {
    /// Returns the same cells, each in 3 rounds of 20 ms.
    #[must_use]
    pub fn quick(self) -> Self {
        Self { rounds: 3, slice: Duration::from_millis(20), ..self }
    }

    pub(super) fn timed_slice(&self) -> Duration {
        self.slice / 2
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        options::some("--schemes", &self.schemes, "at least one scheme")?;
        options::some("--threads", &self.threads, "at least one number")?;
        for &threads in &self.threads {
            options::within("--threads", threads, 1..=MAX_THREADS, "")?;
        }
        options::some("--take", &self.take, "at least one number")?;
        options::some("--locks", &self.locks, "at least one number")?;
        for &locks in &self.locks {
            options::within("--locks", locks, 1..=MAX_LOCKS, "")?;
            for &take in &self.take {
                options::within("--take", take, 1..=MAX_TAKE.min(locks), "")?;
            }
        }
        check_times(&self.sections, &[0.0])?;
        options::within("--rounds", self.rounds, 1..=1000, "")?;
        options::within("--slice", self.slice.as_millis(), 2..=3_600_000, "ms")
    }

    pub(super) fn grid(&self) -> Vec<WwKey> {
        let mut grid = Vec::new();
        for &threads in &self.threads {
            for &take in &self.take {
                for &locks in &self.locks {
                    for &section in &self.sections {
                        grid.push(WwKey { threads, take, locks, section });
                    }
                }
            }
        }
        grid
    }
}

/// A cell of the grid.
#[derive(Clone, Copy)]
pub(super) struct WwKey {
    pub(super) threads: usize,
    pub(super) take: usize,
    pub(super) locks: usize,
    pub(super) section: Duration,
}

impl fmt::Display for WwKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WwKey { threads, take, locks, section } = self;
        let plural = if *threads == 1 { "" } else { "s" };
        write!(f, "{threads} thread{plural}, {take} of {locks} locks, {section:?} section")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_turn_takes_more_locks_than_there_are() {
        assert!(WwOptions::default().check().is_ok());
        let options = WwOptions { take: vec![2, 5], locks: vec![16, 4], ..WwOptions::default() };
        let error = options.check().expect_err("five of four");
        assert_eq!(error.to_string(), "--take: `5` is not possible; allowed: 1 to 4");
    }

    #[test]
    fn every_combination_is_a_cell() {
        let names: Vec<String> = WwOptions {
            threads: vec![1, 2],
            take: vec![2],
            locks: vec![4, 8],
            sections: vec![Duration::ZERO],
            ..WwOptions::default()
        }
        .grid()
        .iter()
        .map(WwKey::to_string)
        .collect();
        assert_eq!(
            names,
            [
                "1 thread, 2 of 4 locks, 0ns section",
                "1 thread, 2 of 8 locks, 0ns section",
                "2 threads, 2 of 4 locks, 0ns section",
                "2 threads, 2 of 8 locks, 0ns section",
            ]
        );
    }
}

//! What `lockstead bench contended` measures, and how users write it.

use crate::hogs::MAX_HOGS;
use crate::quota::{MAX_QUOTA, MIN_QUOTA};
use crate::{Error, LockName, options};
use std::time::Duration;

/// What a measurement is asked for: every combination of threads, section and think ratio.
#[derive(Clone, Debug)]
pub struct ContendedOptions {
    /// The locks, in the order of the report.
    pub locks: Vec<LockName>,
    /// Numbers of threads, each 1 to [`MAX_THREADS`].
    pub threads: Vec<usize>,
    /// Lengths of the critical section. Zero: one load and one store.
    pub sections: Vec<Duration>,
    /// Time between release and next acquisition, as a multiple of the section.
    pub thinks: Vec<f64>,
    /// The number of rounds; each measures all locks of a cell once, in shuffled order.
    pub rounds: usize,
    /// Time for one lock in one round; half as much again for its waits.
    pub slice: Duration,
    /// Time of each of [`SHARES_ROUNDS`] turns more for each lock, in which the threads' shares are
    /// counted; without it they are counted in the turns of `slice`. A scheduler that gives each of
    /// 64 threads its processor for 3 ms needs a tenth of a second to have all of them run once.
    pub shares: Option<Duration>,
    /// Busy processes beside the run, at most [`MAX_HOGS`].
    pub foreign: usize,
    /// Per cent of one processor that the run may use, all threads together.
    pub quota: Option<u32>,
    /// The holder sleeps inside its section.
    pub sleep: Option<Sleep>,
    /// Whether threads are pinned to processors, in turn; both ways are measured if both
    /// are there.
    pub pinned: Vec<bool>,
}

/// Sleeping with the lock held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sleep {
    /// How long the holder sleeps.
    pub length: Duration,
    /// The holder sleeps in one of so many sections, from 1.
    pub every: u64,
}

/// The number of turns of [`ContendedOptions::shares`].
pub const SHARES_ROUNDS: usize = 3;
/// The largest number of threads.
pub const MAX_THREADS: usize = 1024;
/// The longest section that can be asked for.
pub const MAX_SECTION: Duration = Duration::from_millis(100);
/// The largest think ratio.
pub const MAX_THINK: f64 = 1000.0;
/// The longest section and think time together, in seconds.
pub const MAX_TURN: f64 = 1.0;

impl Default for ContendedOptions {
    /// Returns the grid of `lockstead bench contended`, 5 rounds of 100 ms.
    fn default() -> Self {
        Self {
            locks: crate::locks::for_several_threads(),
            threads: vec![2, 4, 16, 64],
            sections: [0, 50, 1_000, 20_000].map(Duration::from_nanos).to_vec(),
            thinks: vec![0.0, 1.0, 10.0],
            rounds: 5,
            slice: Duration::from_millis(100),
            shares: None,
            foreign: 0,
            quota: None,
            sleep: None,
            pinned: vec![false],
        }
    }
}

impl ContendedOptions {
    /// Returns the same cells, each in 3 rounds of 20 ms.
    #[must_use]
    pub fn quick(self) -> Self {
        Self { rounds: 3, slice: Duration::from_millis(20), ..self }
    }
}

/// Parses a section as users write it: `0`, `50ns`, `1us`, `20us`.
///
/// # Errors
/// [`Error::Option`] naming `--section`.
pub fn parse_section(text: &str) -> Result<Duration, Error> {
    let section = match text.trim() {
        "0" => Some(Duration::ZERO),
        text => humantime::parse_duration(text).ok(),
    };
    section.filter(|&section| section <= MAX_SECTION).ok_or_else(|| Error::Option {
        option: "--section",
        given: text.to_owned(),
        allowed: format!("durations from 0 to {MAX_SECTION:?}, written 0, 50ns, 1us, 2ms"),
    })
}

/// Parses a sleep inside of sections as users write it: `50us`, in every section, or `1ms:100`,
/// in every hundredth.
///
/// # Errors
/// [`Error::Option`] naming `--sleep-in-section`.
pub fn parse_sleep(text: &str) -> Result<Sleep, Error> {
    let (length, every) = text.split_once(':').unwrap_or((text, "1"));
    let length = humantime::parse_duration(length.trim()).ok();
    let length = length.filter(|length| (Duration::from_nanos(1)..=MAX_SECTION).contains(length));
    let every = every.trim().parse().ok().filter(|&every| every >= 1);
    length.zip(every).map(|(length, every)| Sleep { length, every }).ok_or_else(|| Error::Option {
        option: "--sleep-in-section",
        given: text.to_owned(),
        allowed: format!(
            "a duration up to {MAX_SECTION:?}, alone or with `:N` for every Nth section, written \
             50us or 1ms:100"
        ),
    })
}

/// Parses a think ratio as users write it: `0`, `1x`, `10x`, `0.5x`.
///
/// # Errors
/// [`Error::Option`] naming `--think`.
pub fn parse_think(text: &str) -> Result<f64, Error> {
    let number = text.trim();
    number
        .strip_suffix('x')
        .unwrap_or(number)
        .parse()
        .ok()
        .filter(|think| (0.0..=MAX_THINK).contains(think))
        .ok_or_else(|| Error::Option {
            option: "--think",
            given: text.to_owned(),
            allowed: format!(
                "multiples of the section from 0 to {MAX_THINK}x, written 0, 0.5x, 10x"
            ),
        })
}

/// Whether pinned, threads, section, think ratio.
pub(crate) type CellKey = (bool, usize, Duration, f64);

/// Tells whether sections and think times, as multiples of them, can be measured.
pub(crate) fn check_times(sections: &[Duration], thinks: &[f64]) -> Result<(), Error> {
    options::some("--section", sections, "at least one duration")?;
    options::some("--think", thinks, "at least one multiple")?;
    for &section in sections {
        options::within("--section", section.as_nanos(), 0..=MAX_SECTION.as_nanos(), "ns")?;
    }
    for &think in thinks {
        options::within("--think", think, 0.0..=MAX_THINK, "x")?;
        for &section in sections {
            // Who is measured looks whether to stop once in a while only.
            let turn = section.as_secs_f64() * (1.0 + think);
            options::within("--section times (1 + --think)", turn, 0.0..=MAX_TURN, " s")?;
        }
    }
    Ok(())
}

impl ContendedOptions {
    pub(crate) fn check(&self) -> Result<(), Error> {
        options::locks(&self.locks)?;
        options::some("--threads", &self.threads, "at least one number")?;
        for &threads in &self.threads {
            options::within("--threads", threads, 1..=MAX_THREADS, "")?;
        }
        check_times(&self.sections, &self.thinks)?;
        options::within("--foreign", self.foreign, 0..=MAX_HOGS, "")?;
        if let Some(percent) = self.quota {
            options::within("--quota", percent, MIN_QUOTA..=MAX_QUOTA, "")?;
        }
        if let Some(sleep) = self.sleep {
            let longest = MAX_SECTION.as_nanos();
            options::within("--sleep-in-section", sleep.length.as_nanos(), 1..=longest, "ns")?;
            options::within("--sleep-in-section", sleep.every, 1..=u64::MAX, "")?;
        }
        options::some("--pin", &self.pinned, "off, on or both")?;
        options::within("--rounds", self.rounds, 1..=1000, "")?;
        if let Some(length) = self.shares {
            options::within("--shares-over", length.as_millis(), 1..=3_600_000, "ms")?;
        }
        options::within("--slice", self.slice.as_millis(), 1..=3_600_000, "ms")
    }

    /// Returns how many turns each lock has in each cell.
    pub(crate) fn turns(&self) -> usize {
        self.rounds + self.shares.map_or(0, |_| SHARES_ROUNDS)
    }

    pub(crate) fn grid(&self) -> Vec<CellKey> {
        let mut grid = Vec::new();
        for &pinned in &self.pinned {
            for &threads in &self.threads {
                for &section in &self.sections {
                    grid.extend(self.thinks.iter().map(|&think| (pinned, threads, section, think)));
                }
            }
        }
        grid
    }

    pub(crate) fn wait_slice(&self) -> Duration {
        self.slice / 2
    }
}

//! The report of a comparison. The JSON is these structs as they stand; `docs/json.md` has its
//! fields.

use super::verdict::ChangeVerdict;
use lockstead_render::table::amount;
use serde::Serialize;

/// The name of the format.
pub(super) const SCHEMA: &str = "lockstead-diff";

/// Everything that `lockstead diff` says.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DiffReport {
    /// The name of this format, `lockstead-diff`.
    pub(super) schema: &'static str,
    /// The version of these fields; raised if one of them is removed or changes its meaning.
    pub(super) version: u32,
    /// The version of lockstead.
    pub(super) lockstead: &'static str,
    /// The reports from before.
    pub(super) before: Vec<String>,
    /// The reports from after.
    pub(super) after: Vec<String>,
    /// What makes the two sides hard to compare.
    pub(super) notes: Vec<String>,
    /// The run as a whole, then each program.
    pub(super) figures: Vec<ComparedFigure>,
    /// The locks of each program, the largest change of waiting first.
    pub(super) locks: Vec<ComparedLock>,
    /// How much more is allowed, `--fail-on`; null without.
    pub(super) fail_on_percent: Option<f64>,
    /// Whether something got worse by more than that.
    pub(super) failed: bool,
}

/// A time before and after.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Comparison {
    /// The time before, the median of the runs.
    pub(super) before_ns: f64,
    /// The time after, the median of the runs.
    pub(super) after_ns: f64,
    /// The change, in per cent of `before_ns`; null if that is 0.
    pub(super) change_percent: Option<f64>,
    /// What the runs show of the change.
    pub(super) verdict: ChangeVerdict,
    /// The time of each run before.
    pub(super) before_runs_ns: Vec<u64>,
    /// The time of each run after.
    pub(super) after_runs_ns: Vec<u64>,
    /// Whether `--fail-on` fails because of it.
    pub(super) fails: bool,
}

/// A figure of the run, or of a program.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ComparedFigure {
    /// `run time`; `processor time`; `waiting` for locks, of one program.
    pub(super) figure: &'static str,
    /// The program; null of the whole run.
    pub(super) program: Option<String>,
    /// The figure before and after.
    #[serde(flatten)]
    pub(super) time: Comparison,
}

/// A lock, or all locks of a program that have one name but for a number or an address.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ComparedLock {
    /// The program that uses the lock.
    pub(super) program: String,
    /// The name of the lock.
    pub(super) lock: String,
    /// Its waiting before and after. A report that does not list all locks may have more of it, and
    /// the verdict counts with that.
    #[serde(flatten)]
    pub(super) time: Comparison,
    /// Whether its waits are less than 1 % of the time of the program's threads before and after; such
    /// waits do not make `--fail-on` fail.
    pub(super) small: bool,
    /// How often it was acquired before, the median of the runs whose reports say it; null where none
    /// does, since it, or another lock of an array that it is one of, is not listed; 0 where only waits
    /// are seen.
    pub(super) acquisitions_before: Option<f64>,
    /// How often it was acquired after.
    pub(super) acquisitions_after: Option<f64>,
    /// The places where threads waited for it, the largest change first.
    pub(super) sites: Vec<ComparedSite>,
}

/// The waits for a lock at one place.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ComparedSite {
    /// The function, or the place where that has no name.
    pub(super) place: String,
    /// The waiting there before, the median of the runs.
    pub(super) before_ns: f64,
    /// The waiting there after.
    pub(super) after_ns: f64,
    /// The waiting there in each run before; 0 in one that does not list the place. For the page alone.
    #[serde(skip)]
    pub(super) before_runs_ns: Vec<u64>,
    /// The same of the runs after.
    #[serde(skip)]
    pub(super) after_runs_ns: Vec<u64>,
}

impl ComparedSite {
    /// Returns how much more waiting there is.
    pub(super) fn change(&self) -> f64 {
        self.after_ns - self.before_ns
    }
}

impl ComparedLock {
    /// Returns how often it was acquired, before and after, as it is shown: nothing where that is not
    /// known of both, or only waits were seen.
    pub(super) fn acquisitions(&self) -> Option<[String; 2]> {
        let often = [self.acquisitions_before?, self.acquisitions_after?];
        let shown = often.map(|often| amount(often.round() as u64));
        (often.iter().sum::<f64>() > 0.0).then_some(shown)
    }
}

impl Comparison {
    /// Returns how much more time it is.
    pub(super) fn change(&self) -> f64 {
        self.after_ns - self.before_ns
    }
}

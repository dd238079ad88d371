//! What surrounds a measurement: busy processes, a quota; and which rounds count.

use super::options::Options;
use super::report::QuotaUsed;
use crate::foreign::{Observation, TOLERATED};
use crate::hogs::Hogs;
use crate::quota::Quota;
use crate::{Error, stats};
use std::time::Duration;

/// The surroundings that options ask for. They end when this is dropped.
pub(crate) struct Beside {
    hogs: Hogs,
    quota: Option<(u32, Quota)>,
}

impl Beside {
    /// Starts the busy processes, and then enters the quota, which is not for them.
    pub(crate) fn enter(options: &Options) -> Result<Self, Error> {
        let hogs = Hogs::start(options.foreign)?;
        let enter = |percent| Quota::enter(percent).map(|quota| (percent, quota));
        Ok(Self { hogs, quota: options.quota.map(enter).transpose()? })
    }

    /// From now on, who uses the processors?
    pub(crate) fn observe(&self) -> Observed<'_> {
        Observed { observation: Observation::begin(), hogs: &self.hogs, hogged: self.hogs.cpu() }
    }

    /// The quota so far.
    pub(crate) fn quota_used(&self) -> Option<QuotaUsed> {
        self.quota.as_ref().map(|(percent, quota)| QuotaUsed {
            percent: *percent,
            control_groups: quota.generation(),
            throttled_periods: quota.throttled(),
        })
    }
}

/// The beginning of an observation.
pub(crate) struct Observed<'a> {
    observation: Observation,
    hogs: &'a Hogs,
    hogged: Duration,
}

impl Observed<'_> {
    /// As [`Observation::foreign_percent`]; the busy processes of the run are its own.
    pub(crate) fn foreign_percent(&self) -> Option<f64> {
        self.observation.foreign_percent_beside(self.hogs.cpu().saturating_sub(self.hogged))
    }
}

/// The rounds of a cell. One that others disturbed is measured again; as many as there
/// are rounds, then they count all the same.
pub(crate) struct Rounds {
    wanted: usize,
    kept: usize,
    foreign: Vec<f64>,
    /// Thrown away.
    pub(crate) discarded: usize,
    /// Disturbed, and kept.
    pub(crate) disturbed: usize,
}

impl Rounds {
    pub(crate) fn new(wanted: usize) -> Self {
        Self { wanted, kept: 0, foreign: Vec::new(), discarded: 0, disturbed: 0 }
    }

    /// Whether there is another round.
    pub(crate) fn more(&self) -> bool {
        self.kept < self.wanted
    }

    /// Whether the round that has ended counts, in which others used so much.
    pub(crate) fn counts(&mut self, others: Option<f64>) -> bool {
        let disturbed = others.is_some_and(|percent| percent > TOLERATED);
        if disturbed && self.discarded < self.wanted {
            self.discarded += 1;
            return false;
        }
        self.disturbed += usize::from(disturbed);
        self.kept += 1;
        self.foreign.extend(others);
        true
    }

    /// What others used in the rounds that count: the median.
    pub(crate) fn foreign_percent(&self) -> Option<f64> {
        (!self.foreign.is_empty()).then(|| stats::median(&self.foreign))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbed_rounds_are_measured_again_but_not_for_ever() {
        let mut rounds = Rounds::new(2);
        let counted: Vec<bool> =
            [7.0, 1.0, 90.0, 8.0].map(|percent| rounds.counts(Some(percent))).to_vec();
        assert_eq!(counted, [false, true, false, true]);
        assert!(!rounds.more());
        assert_eq!((rounds.discarded, rounds.disturbed), (2, 1));
        assert_eq!(rounds.foreign_percent(), Some(4.5));
    }

    #[test]
    fn rounds_too_short_to_judge_count() {
        let mut rounds = Rounds::new(1);
        assert!(rounds.counts(None));
        assert!(!rounds.more());
        assert_eq!((rounds.discarded, rounds.disturbed, rounds.foreign_percent()), (0, 0, None));
    }

    #[test]
    fn the_own_busy_processes_are_not_foreign() {
        let beside =
            Beside::enter(&Options { foreign: 1, ..Options::default() }).expect("a process");
        let observed = beside.observe();
        let mut plain = None;
        while plain.is_none() {
            std::thread::sleep(Duration::from_millis(20));
            plain = observed.observation.foreign_percent();
        }
        let without = observed.foreign_percent().expect("long enough by now");
        assert!(without <= plain.expect("a figure") + 1.0, "{without} of {plain:?}");
        assert!(beside.quota_used().is_none());
    }
}

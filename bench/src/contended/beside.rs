//! What surrounds a measurement: busy processes, a quota; and which rounds count.

use super::options::ContendedOptions;
use super::report::{Disturbance, QuotaUsed};
use crate::foreign::{Observation, TOLERATED};
use crate::hogs::Hogs;
use crate::quota::QuotaGroup;
use crate::session::StepsProgress;
use crate::{Error, stats};

/// The surroundings that options ask for. They end when this is dropped.
pub(crate) struct ContendedSurroundings {
    hogs: Hogs,
    quota: Option<(u32, QuotaGroup)>,
}

impl ContendedSurroundings {
    /// Starts the busy processes, and then enters the quota, which is not for them.
    pub(crate) fn enter(options: &ContendedOptions) -> Result<Self, Error> {
        let hogs = Hogs::start(options.foreign)?;
        let enter = |percent| QuotaGroup::enter(percent).map(|quota| (percent, quota));
        Ok(Self { hogs, quota: options.quota.map(enter).transpose()? })
    }

    /// Begins to observe who uses the processors, and returns a function that tells what others
    /// have used since, as [`Observation::foreign_percent`] does. The busy processes of the run
    /// count as its own.
    pub(crate) fn observe(&self) -> impl Fn() -> Option<f64> {
        let (observation, before) = (Observation::begin(), self.hogs.cpu());
        move || observation.foreign_percent_beside(self.hogs.cpu().saturating_sub(before))
    }

    /// Returns the quota so far.
    pub(crate) fn quota_used(&self) -> Option<QuotaUsed> {
        self.quota.as_ref().map(|(percent, quota)| QuotaUsed {
            percent: *percent,
            control_groups: quota.generation(),
            throttled_periods: quota.throttled(),
        })
    }
}

/// Measures `0..of`, each once a round, in shuffled order, until `wanted` rounds count;
/// `keep` gets what these gave. A round that others disturbed is measured again; as many
/// as there are rounds, then they count all the same. `observe` begins to look at what
/// others use.
///
/// # Errors
/// The first of `measure`.
pub(crate) fn rounds<S, O: Fn() -> Option<f64>>(
    (wanted, of): (usize, usize),
    progress: &mut StepsProgress,
    observe: impl Fn() -> O,
    mut measure: impl FnMut(usize, &mut StepsProgress) -> Result<S, Error>,
    mut keep: impl FnMut(usize, S),
) -> Result<Disturbance, Error> {
    let mut rounds = Rounds { wanted, kept: 0, foreign: Vec::new(), discarded: 0, disturbed: 0 };
    let mut order: Vec<usize> = (0..of).collect();
    while rounds.kept < wanted {
        fastrand::shuffle(&mut order);
        let others = observe();
        let mut round = Vec::new();
        for &index in &order {
            round.push((index, measure(index, progress)?));
        }
        if rounds.counts(others()) {
            round.into_iter().for_each(|(index, sample)| keep(index, sample));
        } else {
            progress.again(of);
        }
    }
    Ok(rounds.disturbance())
}

/// The rounds that count, and those that were disturbed.
struct Rounds {
    wanted: usize,
    kept: usize,
    foreign: Vec<f64>,
    discarded: usize,
    disturbed: usize,
}

impl Rounds {
    /// Tells whether the round that has ended counts, in which others used so much.
    fn counts(&mut self, others: Option<f64>) -> bool {
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

    fn disturbance(&self) -> Disturbance {
        Disturbance {
            foreign_cpu_percent: (!self.foreign.is_empty()).then(|| stats::median(&self.foreign)),
            rounds_discarded: self.discarded,
            rounds_disturbed: self.disturbed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::time::Duration;

    /// Runs rounds of three subjects in which others used so much, one after the other. Returns how
    /// often each was measured and kept.
    fn three(wanted: usize, others: &[Option<f64>]) -> (Disturbance, usize, [usize; 3]) {
        let (others, mut measured, mut kept) = (Cell::new(others), 0, [0; 3]);
        let observe = || {
            let (now, later) = others.get().split_first().expect("no round too many");
            others.set(later);
            move || *now
        };
        let measure = |index: usize, _: &mut StepsProgress| {
            measured += 1;
            Ok(index)
        };
        let keep = |index: usize, sample| kept[index] += usize::from(index == sample);
        let done = rounds((wanted, 3), &mut StepsProgress::new(3 * wanted), observe, measure, keep);
        (done.expect("nothing fails"), measured, kept)
    }

    #[test]
    fn disturbed_rounds_are_measured_again_but_not_for_ever() {
        let (disturbance, measured, kept) = three(2, &[7.0, 1.0, 90.0, 8.0].map(Some));
        assert_eq!((measured, kept), (12, [2; 3]));
        assert_eq!((disturbance.rounds_discarded, disturbance.rounds_disturbed), (2, 1));
        assert_eq!(disturbance.foreign_cpu_percent, Some(4.5));
    }

    #[test]
    fn rounds_too_short_to_judge_count() {
        let (disturbance, measured, kept) = three(1, &[None]);
        assert_eq!((measured, kept), (3, [1; 3]));
        assert_eq!((disturbance.rounds_discarded, disturbance.rounds_disturbed), (0, 0));
        assert_eq!(disturbance.foreign_cpu_percent, None);
    }

    #[test]
    fn a_failure_ends_the_rounds() {
        let failed = |_: usize, _: &mut StepsProgress| Err::<(), _>(Error::Interrupted);
        let done = rounds((2, 3), &mut StepsProgress::new(6), || || None, failed, |_, ()| ());
        assert!(matches!(done, Err(Error::Interrupted)));
    }

    #[test]
    fn the_own_busy_processes_are_not_foreign() {
        let beside = ContendedSurroundings::enter(&ContendedOptions {
            foreign: 1,
            ..ContendedOptions::default()
        })
        .expect("a process");
        let (observation, foreign_percent) = (Observation::begin(), beside.observe());
        let mut plain = None;
        while plain.is_none() {
            std::thread::sleep(Duration::from_millis(20));
            plain = observation.foreign_percent();
        }
        let without = foreign_percent().expect("long enough by now");
        assert!(without <= plain.expect("a figure") + 1.0, "{without} of {plain:?}");
        assert!(beside.quota_used().is_none());
    }
}

//! One prediction, and why there may be none.

use super::draws::Draws;
use super::profile::Profile;
use super::represent::{RecordedLoad, not_predictable};
use lockstead_sim::RunFigures;
use serde::Serialize;

/// One lock on one number of cores.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct WhatifPoint {
    /// The lock, by the name that it has in `lockstead sim list`, or `present`, which is the C
    /// library's.
    pub(super) lock: &'static str,
    /// The number of cores.
    pub(super) cores: usize,
    /// Why there is no prediction, in words; null if there is one. Then and with `--anyway` there are
    /// figures.
    pub(super) not_predictable: Option<String>,
    /// The figures; null if there is no prediction.
    pub(super) figures: Option<WhatifFigures>,
}

/// What is predicted of one lock on one number of cores.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct WhatifFigures {
    /// Jobs in a second of simulated time: the median over the seeds.
    pub(super) jobs_per_second: f64,
    /// `jobs_per_second` of the slowest seed.
    pub(super) lowest: f64,
    /// `jobs_per_second` of the fastest seed.
    pub(super) highest: f64,
    /// Whether the two are further apart than a quarter of the median: then the system has more than
    /// one state, or is near a collapse.
    pub(super) seeds_disagree: bool,
    /// How much of all processors' time was used, with the seed of the median.
    pub(super) processors_used_percent: f64,
    /// The longest wait for any lock with any seed, those among them that had not ended when the
    /// simulation did.
    pub(super) longest_wait_ns: u64,
    /// Whether that wait had ended.
    pub(super) longest_wait_ended: bool,
    /// The most tasks that still waited for a lock when the simulation of a seed ended.
    pub(super) still_waiting: u64,
    /// The lock that was waited for most, with the seed of the median; null if none was.
    pub(super) worst: Option<String>,
    /// How much of the time that lock was held or on its way.
    pub(super) worst_busy_percent: f64,
}

/// Makes the figures of the runs of all seeds.
pub(super) fn figures_of(runs: &[RunFigures]) -> WhatifFigures {
    let draws = Draws::new(runs);
    let (figures, longest) = (draws.median(), draws.longest());
    let worst = figures.locks.iter().max_by_key(|lock| lock.wait);
    let busy = |held: u64| held as f64 / 1e12 / figures.seconds * 100.0;
    WhatifFigures {
        jobs_per_second: figures.jobs.round(),
        lowest: draws.lowest().round(),
        highest: draws.highest().round(),
        seeds_disagree: draws.disagree(),
        processors_used_percent: (figures.busy * 1000.0).round() / 10.0,
        longest_wait_ns: longest.ns,
        longest_wait_ended: longest.ended,
        still_waiting: draws.waiting(),
        worst: worst.filter(|lock| lock.wait > 0).map(|lock| lock.name.clone()),
        worst_busy_percent: worst.map_or(0.0, |lock| (busy(lock.held) * 10.0).round() / 10.0),
    }
}

/// Says why a recorded program cannot be predicted with so many of its tasks running, if so.
pub(super) fn reason(profile: &Profile, running: usize) -> Option<String> {
    let load = RecordedLoad::of(profile.others_percent, profile.delayed_percent);
    (load == RecordedLoad::Much)
        .then(|| load_words(profile.others_percent.unwrap_or_default()))
        .or_else(|| profile.not_predictable.clone())
        .or_else(|| not_predictable(&profile.unrepresented, running))
}

/// Says how busy others kept the machine, and what to do about it.
pub(super) fn load_words(percent: f64) -> String {
    format!(
        "others used {percent:.1} % of the processors while it was recorded, so threads that waited \
         for one seem to compute, or to hold a lock; record it with nothing else to do"
    )
}

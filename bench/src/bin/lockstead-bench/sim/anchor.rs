//! The recorded run beside its own simulation: whether the one makes what the other made.

use super::draws::Draws;
use super::flags::Whatif;
use super::profile::Profile;
use super::simulate::simulate;
use crate::failure::Failure;
use crate::table::rate;
use lockstead_sim::{Machine, RunSettings, SimLockName, Workload, run as run_simulation};
use serde::Serialize;

/// What the recorded run made, and what its simulation makes.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Anchor {
    /// The number of processors on which it was recorded.
    cores: usize,
    /// The jobs a second that it made.
    jobs_per_second: f64,
    /// The jobs a second of its simulation on as many cores of the machine, before anything was
    /// corrected: the median over the seeds.
    simulated_per_second: f64,
    /// The error of that, more than 0 if it is too fast. Above 25, to either side, nothing is
    /// predicted.
    error_percent: f64,
    /// The factor by which the computing outside of sections was multiplied, so that the simulation makes what
    /// was recorded: the recorded time contains what the kernel did for sleeping and waking, which
    /// the simulation has besides.
    compute_factor: f64,
    /// The error that is left.
    left_percent: f64,
}

/// A simulation that does not make what the recorded run made within so many per cent lacks
/// something; chosen.
const MOST: f64 = 25.0;

/// The error that may be left after the correction, in per cent; chosen.
const LEFT: f64 = 10.0;

/// The least and the most by which computing is multiplied; at either nothing is predicted. Chosen, after a
/// program with 0.33 had been predicted wrong by half: what the recorded time holds besides computing is
/// the kernel's part in sleeping and waking, and that is not most of it.
const FACTORS: (f64, f64) = (0.5, 2.0);

/// How often the correction is corrected.
const STEPS: usize = 4;

/// Simulates the recorded run with its own number of threads, if the report says how fast it was, and
/// corrects the computing of the workload by what it makes too much or too little.
///
/// # Errors
/// As [`Failure`].
pub(super) fn calibrate(
    profile: &mut Profile,
    machine: &Machine,
    flags: &Whatif,
) -> Result<Option<Anchor>, Failure> {
    let Some(recorded) = profile.recorded else { return Ok(None) };
    // Nobody knows which of the processors were threads of one core.
    let part = machine.with_threads(1).and_then(|one| one.with_cores(recorded.processors));
    let Ok(part) = part else { return Ok(None) };
    let tasks = profile.workload.own_tasks();
    let jobs = |workload: &Workload| -> Result<f64, Failure> {
        let runs = simulate(flags.seeds as usize, |seed| {
            let how = RunSettings { seed: flags.seed + seed as u64, ..RunSettings::default() };
            run_simulation(&part, SimLockName::Futex, workload, tasks, how)
        })?;
        Ok(Draws::new(&runs).median().jobs.max(1e-9))
    };
    let wanted = recorded.jobs_per_second;
    let raw = jobs(&profile.workload)?;
    let (mut factor, mut found): (f64, f64) = (1.0, raw);
    let mut before: Option<(f64, f64)> = None;
    for _ in 0..STEPS {
        let off: f64 = (found / wanted).ln();
        if off.abs() < 0.01 {
            break;
        }
        // How much faster it gets with less computing, as far as that is known.
        let slope = match before {
            Some((other, then)) if factor != other => {
                let (by, gain) = ((factor / other).ln(), (found / then).ln());
                (gain / by).clamp(-1.5, -0.3)
            }
            _ => -1.0,
        };
        before = Some((factor, found));
        factor = (factor * (-off / slope).exp()).clamp(FACTORS.0, FACTORS.1);
        found = jobs(&scaled(&profile.workload, factor))?;
    }
    profile.workload = scaled(&profile.workload, factor);
    let error = |jobs: f64| ((jobs / wanted - 1.0) * 1000.0).round() / 10.0;
    Ok(Some(Anchor {
        cores: recorded.processors,
        jobs_per_second: wanted.round(),
        simulated_per_second: raw.round(),
        error_percent: error(raw),
        compute_factor: (factor * 1000.0).round() / 1000.0,
        left_percent: error(found),
    }))
}

/// Returns a workload whose classes compute so many times as long outside of sections.
fn scaled(workload: &Workload, factor: f64) -> Workload {
    let mut scaled = workload.clone();
    for class in &mut scaled.classes {
        class.compute *= factor;
    }
    scaled
}

impl Anchor {
    /// Says it in a sentence.
    pub(super) fn words(&self) -> String {
        format!(
            "The recorded run made {} jobs a second on {} processors; simulated, {} ({:+.0} %), and \
             {:+.0} % with {:.2} of the computing.",
            rate(self.jobs_per_second),
            self.cores,
            rate(self.simulated_per_second),
            self.error_percent,
            self.left_percent,
            self.compute_factor
        )
    }

    /// Says why nothing can be predicted, if the two are too far apart.
    pub(super) fn not_predictable(&self) -> Option<String> {
        let is_off = self.error_percent.abs() > MOST || self.left_percent.abs() > LEFT;
        let bounded = self.compute_factor <= FACTORS.0 || self.compute_factor >= FACTORS.1;
        if bounded && !is_off {
            return Some(format!(
                "it makes what was recorded ({} jobs a second) only with {:.1} of the computing that \
                 was recorded, or {} even: something else decides how fast it is",
                rate(self.jobs_per_second),
                self.compute_factor,
                if self.compute_factor < 1.0 { "less" } else { "more" }
            ));
        }
        is_off.then(|| {
            format!(
                "simulated as it was recorded, it makes {} jobs a second and not {} ({:+.0} %): \
                 something that it does is not in the report",
                rate(self.simulated_per_second),
                rate(self.jobs_per_second),
                self.error_percent
            )
        })
    }
}

//! `lockstead whatif --gate`: whether a change lowers the predicted throughput.

use super::anchor::{self, Anchor};
use super::draws::Draws;
use super::flags::Whatif;
use super::prediction::reason;
use super::profile::{self, Profile};
use super::scene;
use super::simulate::simulate;
use crate::failure::Failure;
use crate::output;
use crate::table::rate;
use lockstead_sim::{Machine, RunSettings, SimLockName, run as run_simulation};
use serde::Serialize;
use std::path::Path;

/// The exit status if the throughput falls by more than is allowed.
const FELL: u8 = 3;

/// What `lockstead whatif --gate --json` writes.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct GateReport {
    /// The number of cores.
    cores: usize,
    /// The unit that is counted: what a job is in the base.
    job: String,
    /// What is predicted of the base a second: the median over the seeds.
    base_per_second: f64,
    /// What is predicted of the profile a second, in the same unit.
    per_second: f64,
    /// The change in per cent: the median over the seeds, each beside the same seed of the base.
    change_percent: f64,
    /// `change_percent` of the lowest seed.
    lowest: f64,
    /// `change_percent` of the highest seed.
    highest: f64,
    /// The fall that is allowed, in per cent.
    drop_percent: f64,
    /// Whether it falls by more, by the median.
    failed: bool,
}

/// Predicts both on the same number of cores, and compares.
///
/// # Errors
/// As [`Failure`]; with status 3 if the throughput falls by more than the flags allow.
pub(super) fn run(
    flags: &Whatif,
    machine: &Machine,
    base: &Path,
    (profile, anchor): (&Profile, Option<&Anchor>),
) -> Result<(), Failure> {
    let cores = match flags.cores[..] {
        [] => machine.cores(),
        [cores] => cores,
        _ => {
            let why = "--gate compares on one number of cores";
            return Err(Failure::option("--cores <LIST>", join(&flags.cores), why));
        }
    };
    let part = scene::with_cores(machine, cores)?;
    let mut before = profile::read(base)?;
    let base_anchor = anchor::calibrate(&mut before, machine, flags)?;
    let units = units(flags, &before, profile, base)?;
    let both = [&before, profile];
    let anchors = [base_anchor.as_ref(), anchor];
    for ((of, anchor), file) in both.iter().zip(anchors).zip([base, &flags.profile]) {
        let running = flags.tasks(&of.workload, &part).min(part.cpus());
        let why = reason(of, running).or_else(|| anchor?.not_predictable());
        if let Some(why) = why.filter(|_| !flags.anyway) {
            return Err(Failure::Run(format!("{}: not predictable: {why}", file.display())));
        }
    }
    let seeds = flags.seeds as usize;
    let runs = simulate(2 * seeds, |job| {
        let workload = &both[job / seeds].workload;
        let how = RunSettings { seed: flags.seed + (job % seeds) as u64, ..RunSettings::default() };
        run_simulation(&part, SimLockName::Futex, workload, flags.tasks(workload, &part), how)
    })?;
    let (old, new) = runs.split_at(seeds);
    let mut changes: Vec<f64> = old
        .iter()
        .zip(new)
        .map(|(old, new)| ((new.jobs * units.1) / (old.jobs * units.0) - 1.0) * 100.0)
        .collect();
    changes.sort_by(f64::total_cmp);
    let rounded = |value: f64| (value * 10.0).round() / 10.0;
    let change = rounded(changes[seeds / 2]);
    let report = GateReport {
        cores,
        job: if flags.work.is_some() { "a unit of --work".into() } else { before.job.clone() },
        base_per_second: rounded(Draws::new(old).median().jobs * units.0),
        per_second: rounded(Draws::new(new).median().jobs * units.1),
        change_percent: change,
        lowest: rounded(changes[0]),
        highest: rounded(changes[seeds - 1]),
        drop_percent: flags.drop,
        failed: change < -flags.drop,
    };
    if flags.json {
        output::print_json(&report)?;
    } else {
        output::print(&format!(
            "{}, {cores} cores: {} a second, {} before: {change:+.1} % ({:+.1} to {:+.1} by seed)\n\
             counted: {}\n",
            machine.name,
            rate(report.per_second),
            rate(report.base_per_second),
            report.lowest,
            report.highest,
            report.job
        ))?;
    }
    if report.failed {
        return Err(Failure::Refused {
            status: FELL,
            text: format!(
                "the predicted throughput on {cores} cores falls by {:.1} %, more than {} %",
                -change, flags.drop
            ),
        });
    }
    Ok(())
}

fn join(cores: &[usize]) -> String {
    cores.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

/// Returns how many units one job of the base is, and one of the profile. Jobs of both are the same
/// if they are of the same thing; else who asks has to say how much work each run did.
fn units(
    flags: &Whatif,
    before: &Profile,
    after: &Profile,
    base: &Path,
) -> Result<(f64, f64), Failure> {
    if let (Some(work), Some((old, new))) = (&flags.work, before.recorded.zip(after.recorded)) {
        let [base_work, own_work] = work[..] else {
            return Err(Failure::Usage("`--work` takes two numbers: BASE,PROFILE".into()));
        };
        return Ok((base_work / old.jobs, own_work / new.jobs));
    }
    if before.job == after.job {
        return Ok((1.0, 1.0));
    }
    Err(Failure::Usage(format!(
        "a job is {} in {}, and {} in {}; say with --work BASE,PROFILE how much work each run did, in \
         requests for example",
        before.job,
        base.display(),
        after.job,
        flags.profile.display()
    )))
}

//! Two sides, compared.

use super::model::{ComparedFigure, ComparedLock, ComparedSite, Comparison, DiffReport, SCHEMA};
use super::side::{LockKey, Side, median};
use super::verdict::{ChangeVerdict, ValueBounds, judge};
use std::collections::BTreeSet;

/// The share of a program's threads' time from which on a lock matters.
const SMALL: f64 = 0.01;

/// Compares the runs after with those before. `fail_on`: how much more is allowed, in per cent.
pub(super) fn compare(before: &Side, after: &Side, fail_on: Option<f64>) -> DiffReport {
    let time = |a: &[ValueBounds], b: &[ValueBounds], counts| times(a, b, fail_on, counts);
    let figure = |figure, program: Option<&str>, a: &[ValueBounds], b: &[ValueBounds]| {
        ComparedFigure { figure, program: program.map(str::to_owned), time: time(a, b, true) }
    };
    let mut figures = vec![figure("run time", None, &before.wall, &after.wall)];
    if let (Some(a), Some(b)) = (&before.cpu, &after.cpu) {
        figures.push(figure("processor time", None, a, b));
    }
    let programs: BTreeSet<&String> = before.programs().chain(after.programs()).collect();
    for program in programs {
        let (a, b) = (before.waited(program), after.waited(program));
        figures.push(figure("waiting", Some(program), &a, &b));
    }
    let keys: BTreeSet<LockKey> = before.locks().chain(after.locks()).collect();
    let mut locks: Vec<ComparedLock> =
        keys.iter().map(|key| lock(before, after, key, &time)).collect();
    locks.sort_by(|a, b| b.time.change().abs().total_cmp(&a.time.change().abs()));
    let failed =
        figures.iter().any(|figure| figure.time.fails) || locks.iter().any(|lock| lock.time.fails);
    DiffReport {
        schema: SCHEMA,
        version: 1,
        lockstead: env!("CARGO_PKG_VERSION"),
        before: before.files.clone(),
        after: after.files.clone(),
        notes: notes(before, after),
        figures,
        locks,
        fail_on_percent: fail_on,
        failed,
    }
}

/// Compares one lock.
fn lock(
    before: &Side,
    after: &Side,
    key: &LockKey,
    time: &impl Fn(&[ValueBounds], &[ValueBounds], bool) -> Comparison,
) -> ComparedLock {
    let (a, b) = (before.waited_for(key), after.waited_for(key));
    let share = |side: &Side, waited: &[ValueBounds]| {
        median(waited.iter().map(|waited| waited.least)) / side.lived(&key.0)
    };
    // No share where the program did not run.
    let small = !(share(before, &a) >= SMALL || share(after, &b) >= SMALL);
    let (here, there) = (before.sites(key), after.sites(key));
    let places: BTreeSet<&String> = here.keys().chain(there.keys()).collect();
    let site = |place: &String| ComparedSite {
        place: place.clone(),
        before_ns: here.get(place).copied().unwrap_or_default(),
        after_ns: there.get(place).copied().unwrap_or_default(),
    };
    let mut sites: Vec<ComparedSite> = places.into_iter().map(site).collect();
    sites.sort_by(|a, b| b.change().abs().total_cmp(&a.change().abs()));
    ComparedLock {
        program: key.0.clone(),
        lock: key.1.clone(),
        time: time(&a, &b, !small),
        small,
        acquisitions_before: before.acquired(key),
        acquisitions_after: after.acquired(key),
        sites,
    }
}

/// Compares times. `counts`: whether a change for the worse is a failure.
fn times(
    before: &[ValueBounds],
    after: &[ValueBounds],
    fail_on: Option<f64>,
    counts: bool,
) -> Comparison {
    let runs = |values: &[ValueBounds]| values.iter().map(|value| value.least).collect::<Vec<_>>();
    let (before_runs_ns, after_runs_ns) = (runs(before), runs(after));
    let before_ns = median(before_runs_ns.iter().copied());
    let after_ns = median(after_runs_ns.iter().copied());
    let verdict = judge(before, after);
    let may_be_worse = matches!(verdict, ChangeVerdict::Worse | ChangeVerdict::TooFewRuns);
    let grows = |allowed: f64| after_ns > before_ns * (1.0 + allowed / 100.0);
    Comparison {
        before_ns,
        after_ns,
        change_percent: (before_ns > 0.0).then(|| 100.0 * (after_ns - before_ns) / before_ns),
        verdict,
        before_runs_ns,
        after_runs_ns,
        fails: counts && may_be_worse && fail_on.is_some_and(grows),
    }
}

/// Returns what makes the sides hard to compare.
fn notes(before: &Side, after: &Side) -> Vec<String> {
    let mut notes = Vec::new();
    let machines = before.machines.union(&after.machines).collect::<Vec<_>>();
    if machines.len() > 1 {
        let each = machines.iter().map(|(cpu, processors)| {
            let cpu = if cpu.is_empty() { "a processor without a name" } else { cpu };
            format!("{processors} of {cpu}")
        });
        let each = each.collect::<Vec<_>>().join("; ");
        notes.push(format!("not all runs had the same processors: {each}"));
    }
    if judge(&before.wall, &after.wall) == ChangeVerdict::TooFewRuns {
        notes.push(
            "what is noise is not known: three runs of each side are the fewest that tell".into(),
        );
    }
    notes
}

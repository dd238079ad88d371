//! Two sides, compared.

use super::model::{ComparedFigure, ComparedLock, ComparedSite, Comparison, DiffReport, SCHEMA};
use super::side::{LockKey, Side, median};
use super::verdict::{ChangeVerdict, ValueBounds, judge};
use std::collections::BTreeSet;

/// The share of the time of a program's threads from which on a wait matters.
const SMALL: f64 = 0.01;

/// Compares the runs after with those before. `fail_on`: how much more is allowed, in per cent.
pub(super) fn compare(before: &Side, after: &Side, fail_on: Option<f64>) -> DiffReport {
    let time = |a: &[ValueBounds], b: &[ValueBounds], counts| times(a, b, fail_on, counts);
    let of_run = |figure, a: &[ValueBounds], b: &[ValueBounds]| ComparedFigure {
        figure,
        program: None,
        time: time(a, b, true),
    };
    let mut figures = vec![of_run("run time", &before.wall, &after.wall)];
    if let (Some(a), Some(b)) = (&before.cpu, &after.cpu) {
        figures.push(of_run("processor time", a, b));
    }
    let programs: BTreeSet<&String> = before.programs().chain(after.programs()).collect();
    for program in programs {
        let (a, b) = (before.waited(program), after.waited(program));
        let counts = !is_small((before, &a), (after, &b), program);
        let time = time(&a, &b, counts);
        figures.push(ComparedFigure { figure: "waiting", program: Some(program.clone()), time });
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

/// Tells whether waits are less than 1 % of the time of a program's threads, before and after.
fn is_small(
    (before, a): (&Side, &[ValueBounds]),
    (after, b): (&Side, &[ValueBounds]),
    program: &str,
) -> bool {
    let share = |side: &Side, waited: &[ValueBounds]| {
        median(waited.iter().map(|waited| waited.least)) / side.lived(program)
    };
    // No share where the program did not run.
    !(share(before, a) >= SMALL || share(after, b) >= SMALL)
}

/// Compares the waits for one lock on both sides.
fn lock(
    before: &Side,
    after: &Side,
    key: &LockKey,
    time: &impl Fn(&[ValueBounds], &[ValueBounds], bool) -> Comparison,
) -> ComparedLock {
    let (a, b) = (before.waited_for(key), after.waited_for(key));
    let small = is_small((before, &a), (after, &b), &key.0);
    let site = |place: &&String| {
        let (here, there) = (before.waited_at(key, place), after.waited_at(key, place));
        ComparedSite {
            place: (*place).clone(),
            before_ns: median(here.iter().copied()),
            after_ns: median(there.iter().copied()),
            before_runs_ns: here,
            after_runs_ns: there,
        }
    };
    let places = &before.places(key) | &after.places(key);
    let mut sites: Vec<ComparedSite> = places.iter().map(site).collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::recorded::RecordedRun;
    use serde_json::json;

    /// Makes a side of three runs in which the threads of `srv` live for a second, and two locks are
    /// waited for so long.
    fn side(hot: u64, cold: u64, processors: u64, cpu: u64) -> Side {
        let run = |number: u64| {
            let lock = |name: &str, waited: u64| {
                json!({
                    "name": name, "acquisitions": 5, "waited_at": [],
                    "wait": { "total_ns": waited + number },
                })
            };
            let run = json!({
                "wall_ns": 1_000_000_000, "cpu_ns": cpu, "processors": processors,
                "machine": { "cpu": "A" },
                "processes": [{
                    "exe": "/bin/srv",
                    "waiting": { "thread_ns": 1_000_000_000, "waited_ns": hot + cold + number },
                    "more": { "waited_ns": 0, "acquisitions": 0 },
                    "locks": [lock("hot", hot), lock("cold", cold)],
                }],
            });
            serde_json::from_value::<RecordedRun>(run).expect("all that is read")
        };
        Side::of(vec!["a".into(), "b".into(), "c".into()], &[0, 1, 2].map(run))
    }

    /// Returns the locks, and the figures, because of which it fails.
    fn failing(report: &DiffReport) -> Vec<&str> {
        let locks = report.locks.iter().filter(|lock| lock.time.fails).map(|lock| &*lock.lock);
        let figures = report.figures.iter().filter(|it| it.time.fails).map(|it| it.figure);
        figures.chain(locks).collect()
    }

    #[test]
    fn waits_of_less_than_a_hundredth_of_the_time_fail_nothing() {
        let base = side(100_000_000, 1_000_000, 2, 7);
        let cold = compare(&base, &side(100_000_000, 9_000_000, 2, 7), Some(50.0));
        assert!(!cold.failed && failing(&cold).is_empty(), "{cold:?}");
        assert_eq!(cold.locks[0].lock, "cold");
        assert_eq!((cold.locks[0].time.verdict, cold.locks[0].small), (ChangeVerdict::Worse, true));
        let text = super::super::text::render(&cold, true);
        let line = text.lines().find(|line| line.contains("9.00 ms")).expect("the lock");
        assert!(line.contains("below 1% of the threads' time") && !line.contains('+'), "{line}");
        let hot = compare(&base, &side(200_000_000, 1_000_000, 2, 7), Some(50.0));
        assert!(hot.failed);
        assert_eq!(failing(&hot), ["waiting", "hot"]);
        // The waits of the program are as few.
        let few = compare(&side(1000, 0, 2, 7), &side(3000, 0, 2, 7), Some(50.0));
        assert!(!few.failed, "{few:?}");
        assert!(!compare(&base, &side(200_000_000, 1_000_000, 2, 7), None).failed);
    }

    #[test]
    fn what_makes_sides_unlike_is_said_and_an_unknown_figure_left_out() {
        let base = side(1000, 1000, 2, 7);
        assert!(compare(&base, &side(1000, 1000, 2, 7), None).notes.is_empty());
        let other = compare(&base, &side(1000, 1000, 4, 0), None);
        assert_eq!(other.notes, ["not all runs had the same processors: 2 of A; 4 of A"]);
        let figures: Vec<_> = other.figures.iter().map(|it| it.figure).collect();
        assert_eq!(figures, ["run time", "waiting"]);
    }
}

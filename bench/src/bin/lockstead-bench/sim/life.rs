//! What each task does when, from the steps of a simulation.

use lockstead_sim::{StepKind, TraceStep};
use serde::Serialize;
use std::collections::BTreeMap;

/// Picoseconds of a microsecond.
const US: f64 = 1e6;

/// What a task does for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(super) enum SimDoing {
    /// Has the lock, and a processor.
    Holds,
    /// Has the lock, and no processor: all others wait for the scheduler.
    HoldsWithoutProcessor,
    /// Waits on a processor.
    Spins,
    /// The task waits asleep.
    Sleeps,
    /// Was woken, or lost its processor, while it waits: waits for one.
    Ready,
}

impl SimDoing {
    /// All, with words for a legend and colours.
    pub(super) const ALL: [(SimDoing, &'static str, &'static str); 5] = [
        (SimDoing::Holds, "holds", "#1f66a8"),
        (SimDoing::HoldsWithoutProcessor, "holds, off its processor", "#be3c28"),
        (SimDoing::Spins, "spins", "#d98b1f"),
        (SimDoing::Sleeps, "sleeps", "#cdd2d8"),
        (SimDoing::Ready, "waits for a processor", "#8a9bb0"),
    ];

    pub(super) fn colour(self) -> &'static str {
        Self::ALL.iter().find(|(doing, ..)| *doing == self).map_or("", |&(_, _, colour)| colour)
    }
}

/// What one task does for a while.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Span {
    /// The task that it is about.
    pub(super) task: u32,
    /// The time at which it begins, in microseconds from the beginning of the trace.
    pub(super) from: f64,
    /// The time at which it ends, in microseconds from the beginning of the trace.
    pub(super) to: f64,
    /// What the task does.
    pub(super) what: SimDoing,
}

/// The place where a task is with its lock, and with the processors.
#[derive(Clone, Copy)]
struct TaskLife {
    wants: bool,
    has: bool,
    runs: bool,
    sleeps: bool,
    since: f64,
}

impl TaskLife {
    fn doing(self) -> Option<SimDoing> {
        match self {
            TaskLife { has: true, runs: true, .. } => Some(SimDoing::Holds),
            TaskLife { has: true, .. } => Some(SimDoing::HoldsWithoutProcessor),
            TaskLife { wants: true, sleeps: true, .. } => Some(SimDoing::Sleeps),
            TaskLife { wants: true, runs: true, .. } => Some(SimDoing::Spins),
            TaskLife { wants: true, .. } => Some(SimDoing::Ready),
            _ => None,
        }
    }
}

/// Returns the spans of all tasks between `begin` (in picoseconds) and `length` microseconds later.
pub(super) fn lives(steps: &[TraceStep], begin: f64, length: f64) -> Vec<Span> {
    let start = TaskLife { wants: false, has: false, runs: false, sleeps: false, since: 0.0 };
    let mut tasks: BTreeMap<u32, TaskLife> = BTreeMap::new();
    let mut spans = Vec::new();
    let mut change = |task: u32, at: f64, change: &dyn Fn(&mut TaskLife)| {
        let state = tasks.entry(task).or_insert(start);
        let before = state.doing();
        let mut after = *state;
        change(&mut after);
        if after.doing() != before {
            if let Some(what) = before
                && at > 0.0
                && state.since < length
            {
                let (from, to) = (state.since.max(0.0), at.min(length));
                spans.push(Span { task, from, to, what });
            }
            after.since = at;
        }
        *state = after;
    };
    for step in steps {
        let at = (step.at as f64 - begin) / US;
        match step.kind {
            StepKind::Ask => change(step.task, at, &|task| (task.wants, task.runs) = (true, true)),
            StepKind::Take => change(step.task, at, &|task| {
                (task.wants, task.has, task.runs) = (false, true, true);
            }),
            StepKind::Release => change(step.task, at, &|task| task.has = false),
            StepKind::Sleep => change(step.task, at, &|task| {
                (task.sleeps, task.runs) = (true, false);
            }),
            StepKind::Wake => change(step.value as u32, at, &|task| task.sleeps = false),
            StepKind::Run => change(step.task, at, &|task| {
                (task.sleeps, task.runs) = (false, true);
            }),
            StepKind::Preempted => change(step.task, at, &|task| task.runs = false),
            StepKind::Load | StepKind::Store | StepKind::Update => {}
        }
    }
    // What has not ended is shown to the end.
    for (task, state) in tasks {
        if let Some(what) = state.doing()
            && state.since < length
        {
            spans.push(Span { task, from: state.since.max(0.0), to: length, what });
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(us: u64, task: u32, kind: StepKind, value: u64) -> TraceStep {
        TraceStep { at: us * 1_000_000, task, cpu: 0, kind, offset: 0, value }
    }

    fn of(spans: &[Span], task: u32) -> Vec<(f64, f64, SimDoing)> {
        spans.iter().filter(|s| s.task == task).map(|s| (s.from, s.to, s.what)).collect()
    }

    #[test]
    fn who_spins_sleeps_and_holds_is_told_apart() {
        use StepKind::{Ask, Preempted, Release, Run, Sleep, Take, Wake};
        let steps = [
            step(0, 0, Ask, 0),
            step(1, 0, Take, 0),
            step(2, 1, Ask, 0),
            step(4, 1, Sleep, 0),
            step(5, 0, Preempted, 0),
            step(7, 0, Run, 0),
            step(8, 0, Release, 0),
            step(9, 0, Wake, 1),
            step(12, 1, Run, 0),
            step(13, 1, Take, 0),
        ];
        let spans = lives(&steps, 0.0, 20.0);
        assert_eq!(
            of(&spans, 0),
            [
                (0.0, 1.0, SimDoing::Spins),
                (1.0, 5.0, SimDoing::Holds),
                (5.0, 7.0, SimDoing::HoldsWithoutProcessor),
                (7.0, 8.0, SimDoing::Holds),
            ]
        );
        assert_eq!(
            of(&spans, 1),
            [
                (2.0, 4.0, SimDoing::Spins),
                (4.0, 9.0, SimDoing::Sleeps),
                (9.0, 12.0, SimDoing::Ready),
                (12.0, 13.0, SimDoing::Spins),
                (13.0, 20.0, SimDoing::Holds),
            ]
        );
        // Seen from the middle, and not to the end.
        let cut = lives(&steps, 6_000_000.0, 2.0);
        assert!(cut.iter().all(|span| span.from >= 0.0 && span.to <= 2.0 && span.from < span.to));
        assert_eq!(of(&cut, 1), [(0.0, 2.0, SimDoing::Sleeps)]);
    }
}

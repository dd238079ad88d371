//! `lockstead sim trace`: one lock, step by step.

use super::flags::TraceFlags;
use super::life::{Span, lives};
use super::picture::timeline;
use super::scene;
use super::simulate::simulate;
use crate::failure::Failure;
use crate::output;
use crate::table::time;
use lockstead_sim::{RunSettings, StepKind, TraceStep, run_traced};
use serde::Serialize;
use std::collections::HashMap;
use std::fmt::Write;

/// Picoseconds of a microsecond.
const US: f64 = 1e6;

/// What `lockstead sim trace --json` writes.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TraceReport<'a> {
    /// The name of the machine.
    machine: &'a str,
    /// The name of the workload.
    workload: &'a str,
    /// The name of the lock.
    lock: &'static str,
    /// The number of tasks.
    tasks: usize,
    /// The steps of all tasks, in the order of time.
    steps: Vec<TraceLine>,
    /// What each task does from when to when.
    spans: &'a [Span],
}

/// A step of a task.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct TraceLine {
    /// The time, in microseconds from the beginning of the trace.
    at_us: f64,
    /// The task that does it.
    task: u32,
    /// The processor that the task runs on.
    processor: u32,
    /// What it does, in words.
    what: String,
}

/// Simulates what the flags ask for, prints the figures, and draws them if asked to.
///
/// # Errors
/// As [`Failure`].
pub(super) fn run(flags: &TraceFlags) -> Result<(), Failure> {
    flags.files.check()?;
    let (machine, mut workload) = flags.scene.resolve()?;
    let lock = scene::lock(&flags.lock)?;
    workload.length = flags.length as f64 / 1000.0;
    let begin = workload.warm_up * 1e9;
    let tasks = flags.scene.tasks(&workload);
    let how = RunSettings { seed: flags.scene.seed, trace: true, ..RunSettings::default() };
    let steps = simulate(1, |_| run_traced(&machine, lock, &workload, tasks, how).1)?.remove(0);
    let spans = lives(&steps, begin, flags.length as f64);
    let lines = lines(&steps, begin, flags.accesses);
    let mut text = format!("{:>10}  {:>5} {:>4}  step\n", "us", "task", "cpu");
    for line in &lines {
        let _ = writeln!(
            text,
            "{:>10.3}  {:>5} {:>4}  {}",
            line.at_us, line.task, line.processor, line.what
        );
    }
    let title = format!("{} with {tasks} tasks on {}", lock.name(), machine.name);
    flags.files.write(&title, || timeline(&title, flags.length as f64, &spans), &text)?;
    if flags.json {
        return output::print_json(&TraceReport {
            machine: &machine.name,
            workload: &workload.name,
            lock: lock.name(),
            tasks,
            steps: lines,
            spans: &spans,
        });
    }
    output::print(&text)
}

/// Returns the steps after the warm-up in words.
fn lines(steps: &[TraceStep], begin: f64, accesses: bool) -> Vec<TraceLine> {
    let mut story = TraceStory::default();
    let mut lines = Vec::new();
    for step in steps {
        // Also what came before: it says how long somebody has waited.
        let what = story.words(step);
        let access = matches!(step.kind, StepKind::Load | StepKind::Store | StepKind::Update);
        if step.at as f64 >= begin && (accesses || !access) {
            let at_us = (step.at as f64 - begin).round() / US;
            lines.push(TraceLine { at_us, task: step.task, processor: step.cpu, what });
        }
    }
    lines
}

/// What has to be remembered to tell a step from its number.
#[derive(Default)]
struct TraceStory {
    /// Since when each task asks, and how often it has slept for that.
    asks: HashMap<u32, (u64, u32)>,
    /// The task that has each lock, and since when.
    holders: HashMap<u64, (u32, u64)>,
    /// The task that had each lock last.
    last: HashMap<u64, u32>,
}

impl TraceStory {
    fn words(&mut self, step: &TraceStep) -> String {
        let at = format!("{:#x}", step.offset);
        let ns = |from: u64| time(step.at.saturating_sub(from) as f64 / 1000.0);
        match step.kind {
            StepKind::Load => format!("reads {:#x} at {at}", step.value),
            StepKind::Store => format!("writes {:#x} to {at}", step.value),
            StepKind::Update => format!("exchanges, leaves {:#x} at {at}", step.value),
            StepKind::Ask => {
                self.asks.insert(step.task, (step.at, 0));
                match self.holders.get(&step.value) {
                    Some((holder, _)) => {
                        format!("asks for lock {}, which task {holder} has", step.value)
                    }
                    None => format!("asks for lock {}", step.value),
                }
            }
            StepKind::Take => {
                self.holders.insert(step.value, (step.task, step.at));
                let (asked, slept) = self.asks.remove(&step.task).unwrap_or((step.at, 0));
                let how = match slept {
                    0 => "awake".to_owned(),
                    1 => "slept once".to_owned(),
                    n => format!("slept {n} times"),
                };
                let from = match self.last.get(&step.value) {
                    Some(last) if *last == step.task => ", which it had last itself".to_owned(),
                    Some(last) => format!(", which task {last} had"),
                    None => String::new(),
                };
                format!("has lock {}{from}, after {}, {how}", step.value, ns(asked))
            }
            StepKind::Release => {
                self.last.insert(step.value, step.task);
                let since = self.holders.remove(&step.value).map_or(step.at, |(_, since)| since);
                format!("releases lock {} after {}", step.value, ns(since))
            }
            StepKind::Sleep => {
                if let Some((_, slept)) = self.asks.get_mut(&step.task) {
                    *slept += 1;
                }
                "goes to sleep".into()
            }
            StepKind::Wake => format!("wakes task {}", step.value),
            StepKind::Run => "gets a processor".into(),
            StepKind::Preempted => "loses its processor".into(),
        }
    }
}

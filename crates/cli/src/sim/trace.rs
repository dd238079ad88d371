//! `lockstead sim trace`: one lock, step by step.

use super::flags::Trace;
use super::picture::{Span, timeline};
use super::{scene, simulate};
use crate::failure::Failure;
use crate::output;
use crate::report::{can_write, write};
use lockstead_sim::{How, Step, StepKind, run_traced};
use std::collections::HashMap;
use std::fmt::Write;

/// Picoseconds of a microsecond.
const US: f64 = 1e6;

/// Simulates, prints, draws.
///
/// # Errors
/// As [`Failure`].
pub(super) fn run(flags: &Trace) -> Result<(), Failure> {
    if let Some(file) = &flags.svg {
        can_write(file).map_err(|why| Failure::option("--svg <FILE>", file.display(), why))?;
    }
    let (machine, mut workload) = flags.scene.resolve()?;
    let lock = scene::lock(&flags.lock)?;
    workload.length = flags.length as f64 / 1000.0;
    let begin = workload.warm_up * 1e9;
    let tasks = flags.scene.tasks(&workload);
    let how = How { seed: flags.scene.seed, trace: true, ..How::default() };
    let steps = simulate(1, |_| run_traced(&machine, lock, &workload, tasks, how).1)?.remove(0);
    if let Some(file) = &flags.svg {
        let title = format!("{} with {tasks} tasks on {}", lock.name(), machine.name);
        let picture = timeline(&title, flags.length as f64, &spans(&steps, begin, flags.length));
        write(file, &picture).map_err(|error| {
            Failure::Run(format!("cannot write the picture to {}: {error}", file.display()))
        })?;
    }
    let mut text = format!("{:>10}  {:>5} {:>4}  step\n", "us", "task", "cpu");
    for step in steps.iter().filter(|step| step.at as f64 >= begin) {
        let access = matches!(step.kind, StepKind::Load | StepKind::Store | StepKind::Update);
        if access && !flags.accesses {
            continue;
        }
        let _ = writeln!(
            text,
            "{:>10.3}  {:>5} {:>4}  {}",
            (step.at as f64 - begin) / US,
            step.task,
            step.cpu,
            words(step)
        );
    }
    output::print(&text)
}

fn words(step: &Step) -> String {
    let at = format!("{:#x}", step.offset);
    match step.kind {
        StepKind::Load => format!("reads {:#x} at {at}", step.value),
        StepKind::Store => format!("writes {:#x} to {at}", step.value),
        StepKind::Update => format!("exchanges, leaves {:#x} at {at}", step.value),
        StepKind::Ask => format!("asks for lock {}", step.value),
        StepKind::Take => format!("has lock {}", step.value),
        StepKind::Release => format!("releases lock {}", step.value),
        StepKind::Sleep => "goes to sleep".into(),
        StepKind::Wake => format!("wakes task {}", step.value),
        StepKind::Run => "gets a processor".into(),
        StepKind::Preempted => "loses its processor".into(),
    }
}

/// What each task does when, from the steps.
fn spans(steps: &[Step], begin: f64, length: u64) -> Vec<Span> {
    let mut since: HashMap<u32, (f64, &'static str)> = HashMap::new();
    let mut spans = Vec::new();
    let end = length as f64;
    let mut close = |since: &mut HashMap<u32, (f64, &'static str)>, task: u32, at: f64| {
        if let Some((from, what)) = since.remove(&task)
            && at > 0.0
        {
            spans.push(Span { task, from: from.max(0.0), to: at.min(end), what });
        }
    };
    for step in steps {
        let at = (step.at as f64 - begin) / US;
        let next = match step.kind {
            StepKind::Ask => Some("waits"),
            StepKind::Take => Some("holds"),
            StepKind::Sleep => Some("sleeps"),
            StepKind::Run if since.get(&step.task).is_some_and(|s| s.1 == "sleeps") => {
                Some("waits")
            }
            StepKind::Release => None,
            _ => continue,
        };
        close(&mut since, step.task, at);
        if let Some(what) = next {
            since.insert(step.task, (at, what));
        }
    }
    let mut open: Vec<u32> = since.keys().copied().collect();
    open.sort_unstable();
    for task in open {
        close(&mut since, task, end);
    }
    spans
}

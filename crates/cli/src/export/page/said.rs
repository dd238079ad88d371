//! What a recording has and lacks, in words.

use super::timeline::{Lane, Timeline};
use crate::recording::Recording;
use lockstead_render::table::time;
use lockstead_render::words::{clean, plural};

/// The most threads that are named for what they lost.
const NAMED: usize = 3;

/// Returns what was recorded.
pub(super) fn recorded(timeline: &Timeline) -> String {
    let of = |lane| timeline.events.iter().filter(move |event| event.lane == lane);
    let waited: u64 = of(Lane::Wait).map(|event| event.lasted).sum();
    let number = |lane| of(lane).count() as u64;
    format!(
        "{} of {} in {}: {} for locks ({} in all), {} for something to happen, {} of locks, {} that \
         wake. {} of holders.",
        plural(timeline.events.len() as u64, "event", "events"),
        plural(timeline.rows.len() as u64, "thread", "threads"),
        plural(timeline.processes.len() as u64, "process", "processes"),
        plural(number(Lane::Wait), "wait", "waits"),
        time(waited as f64),
        plural(number(Lane::Idle), "wait", "waits"),
        plural(number(Lane::Hold), "hold", "holds"),
        plural(number(Lane::Wake), "call", "calls"),
        plural(timeline.samples.len() as u64, "sample", "samples"),
    )
}

/// Returns what the recording lacks, a sentence each.
pub(super) fn lacking(recording: &Recording) -> Vec<String> {
    let totals = recording.totals;
    let mut said = Vec::new();
    if totals.lost != 0 {
        said.push(format!(
            "{} lost: the rings of their threads were full, or there was none.{}",
            were(totals.lost),
            worst(recording, |thread| thread.lost)
        ));
    }
    if totals.cut != 0 {
        said.push(format!(
            "{} left out: the file had no room for them; --record-limit gives more.{}",
            were(totals.cut),
            worst(recording, |thread| thread.cut)
        ));
    }
    let without: u64 = recording.processes.iter().map(|process| process.names.without_ring).sum();
    if without != 0 {
        let events = plural(without, "of them was", "of them were");
        said.push(format!("{events} of threads for which there was no ring."));
    }
    said
}

fn were(events: u64) -> String {
    plural(events, "event was", "events were")
}

/// Names the threads that lack the most events.
fn worst(recording: &Recording, of: impl Fn(&crate::recording::ThreadFacts) -> u64) -> String {
    let threads = recording.processes.iter().flat_map(|process| &process.names.threads);
    let mut worst: Vec<_> = threads.filter(|thread| of(thread) != 0).collect();
    worst.sort_by_key(|thread| std::cmp::Reverse(of(thread)));
    let named: Vec<String> = worst
        .iter()
        .take(NAMED)
        .map(|thread| {
            let name = thread.name.clone().unwrap_or_else(|| format!("thread {}", thread.thread));
            format!(
                "{} (tid {}): {}",
                clean(&name),
                thread.tid,
                plural(of(thread), "event", "events")
            )
        })
        .collect();
    let more = match worst.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {}", plural(more as u64, "thread more", "threads more")),
    };
    if named.is_empty() {
        String::new()
    } else {
        format!(" Most of all {}{more}.", named.join(", "))
    }
}

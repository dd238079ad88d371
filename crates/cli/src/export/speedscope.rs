//! The stacks of a recording for speedscope.

use super::blame::{self, WeighedStack};
use super::flags::BlameBy;
use crate::recording::{FrameNames, Recording};
use serde::Serialize;
use std::collections::HashMap;
use std::io::{self, Write};

/// A file of speedscope.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SpeedscopeFile<'r> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    shared: SharedFrames<'r>,
    profiles: Vec<SampledProfile>,
    name: String,
    active_profile_index: usize,
    exporter: String,
}

#[derive(Serialize)]
struct SharedFrames<'r> {
    frames: Vec<SpeedscopeFrame<'r>>,
}

#[derive(Serialize)]
struct SpeedscopeFrame<'r> {
    name: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

/// The stacks of a process.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SampledProfile {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    samples: Vec<Vec<usize>>,
    weights: Vec<u64>,
}

/// Writes a profile for each process that has waited.
pub(super) fn write(
    recording: &Recording,
    (by, idle): (BlameBy, bool),
    to: &mut dyn Write,
) -> io::Result<()> {
    let verb = if by == BlameBy::Waiter { "waited" } else { "kept others waiting" };
    let all: Vec<(String, Vec<(WeighedStack, u64)>)> = recording
        .processes
        .iter()
        .map(|process| {
            let (program, pid) = (&process.facts.program, process.facts.pid);
            let stacks = blame::weights(process, by, idle);
            (format!("{program} (pid {pid}): where threads {verb}"), stacks)
        })
        .collect();
    let mut frames: Vec<&FrameNames> = Vec::new();
    let mut places: HashMap<&FrameNames, usize> = HashMap::new();
    let mut profiles = Vec::new();
    for (name, stacks) in &all {
        let samples = stacks.iter().map(|(stack, _)| {
            let place = |frame| {
                *places.entry(frame).or_insert_with(|| {
                    frames.push(frame);
                    frames.len() - 1
                })
            };
            stack.iter().map(place).collect()
        });
        let samples = samples.collect();
        let weights: Vec<u64> = stacks.iter().map(|&(_, ns)| ns).collect();
        profiles.push(SampledProfile {
            kind: "sampled",
            name: name.clone(),
            unit: "nanoseconds",
            start_value: 0,
            end_value: weights.iter().fold(0, |sum, &ns| sum.saturating_add(ns)),
            samples,
            weights,
        });
    }
    let frames = frames.iter().map(|frame| SpeedscopeFrame {
        name: &frame.name,
        file: frame.file.as_deref(),
        line: frame.line,
    });
    let file = SpeedscopeFile {
        schema: "https://www.speedscope.app/file-format-schema.json",
        shared: SharedFrames { frames: frames.collect() },
        profiles,
        name: recording.run.command.join(" "),
        active_profile_index: 0,
        exporter: format!("lockstead {}", recording.run.lockstead),
    };
    serde_json::to_writer(&mut *to, &file)?;
    writeln!(to)
}

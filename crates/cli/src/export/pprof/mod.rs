//! A recording as a profile of pprof, which `go tool pprof` and others show.
//!
//! # What is in it
//! The two types of sample that Go's profiles of mutexes and of blocking have: how often threads
//! waited, and how long. Stacks have functions of the program alone; which lock it was, and whose
//! stack it is, are labels, by which pprof selects (`-tagfocus`) and groups (`-tagleaf=lock`).

mod messages;
mod tables;

use super::blame::{self, AwaitedThing, BlamedThread, NOBODY};
use super::flags::BlameBy;
use super::labels::Labels;
use crate::recording::{RecordedProcess, Recording};
use flate2::Compression;
use flate2::write::GzEncoder;
use lockstead_ledger::events::Event;
use messages::{Label, Profile, Sample, ValueType};
use prost::Message;
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;
use tables::Tables;

/// What a stack is shown as of which no frame is known.
const NO_STACK: &str = "[no stack is known]";

/// Writes the profile of all processes of a recording.
pub(super) fn write(
    recording: &Recording,
    how: (BlameBy, bool),
    to: &mut dyn Write,
) -> io::Result<()> {
    let mut compressed = GzEncoder::new(to, Compression::default());
    compressed.write_all(&profile(recording, how).encode_to_vec())?;
    compressed.finish()?;
    Ok(())
}

fn profile(recording: &Recording, (by, idle): (BlameBy, bool)) -> Profile {
    let mut tables = Tables::new();
    let mut value =
        |what: &str, unit: &str| ValueType { r#type: tables.text(what), unit: tables.text(unit) };
    let contentions = value("contentions", "count");
    let delay = value("delay", "nanoseconds");
    let samples = recording.processes.iter();
    let sample = samples.flat_map(|process| samples_of(process, (by, idle), &mut tables)).collect();
    let comment = comments(recording, (by, idle)).iter().map(|line| tables.text(line)).collect();
    let ended = recording.processes.iter().map(|process| process.names.ended).max();
    let lasted = ended.map_or(0, |ended| ended.saturating_sub(recording.run.began));
    Profile {
        sample_type: vec![contentions, delay],
        sample,
        time_nanos: signed(recording.run.date),
        duration_nanos: signed(lasted),
        // Each wait is in it.
        period_type: Some(contentions),
        period: 1,
        comment,
        default_sample_type: delay.r#type,
        mapping: tables.mappings,
        location: tables.locations,
        function: tables.functions,
        string_table: tables.texts,
    }
}

/// Returns what there is to say of a profile as a whole.
fn comments(recording: &Recording, (by, idle): (BlameBy, bool)) -> Vec<String> {
    let run = &recording.run;
    let whose = match by {
        BlameBy::Waiter => "the stacks are those of threads that waited",
        BlameBy::Holder => "the stacks are those of threads that held the lock meanwhile",
    };
    let waits = if idle { "all waits count" } else { "waits for locks count" };
    let totals = recording.totals;
    let missing = if totals.lost + totals.cut == 0 {
        "no event was lost".into()
    } else {
        format!(
            "{} events are missing: {} were lost, {} had no room in the file",
            totals.lost + totals.cut,
            totals.lost,
            totals.cut,
        )
    };
    vec![
        format!("lockstead {}: {}", run.lockstead, run.command.join(" ")),
        format!("{whose}; {waits}"),
        missing,
    ]
}

/// Returns the samples of a process, those with the longest waiting first.
fn samples_of(
    process: &RecordedProcess,
    (by, idle): (BlameBy, bool),
    tables: &mut Tables,
) -> Vec<Sample> {
    let labels = Labels::of(process);
    let mut sums: HashMap<(AwaitedThing, Option<BlamedThread>), (u64, u64)> = HashMap::new();
    let mut examples: HashMap<AwaitedThing, &Event> = HashMap::new();
    blame::each(process, by, idle, |wait, share| {
        let lock = blame::awaited(wait);
        examples.entry(lock).or_insert(wait);
        let (count, ns) = sums.entry((lock, share.who)).or_default();
        *count += u64::from(share.counts);
        *ns = ns.saturating_add(share.ns);
    });
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|&((lock, who), (count, ns))| {
        let who = who.map(|who| (who.thread, who.stack));
        (std::cmp::Reverse((ns, count)), lock, who)
    });
    let program = Path::new(&process.facts.program);
    let program = program.file_name().unwrap_or_default().to_string_lossy();
    let sample =
        |((lock, who), (count, ns)): ((AwaitedThing, Option<BlamedThread>), (u64, u64))| {
            let wait = examples[&lock];
            let mut facts = vec![("lock", labels.lock(wait))];
            facts.extend(labels.kind(wait).map(|lock| ("lock_kind", lock.kind.clone())));
            facts.push(("process", program.clone().into_owned()));
            facts.push(("pid", process.facts.pid.to_string()));
            let mut location_id = Vec::new();
            match who {
                Some(who) => {
                    facts.push(("thread", labels.thread(who.thread)));
                    let tid = labels.thread_facts(who.thread).map(|facts| facts.tid.to_string());
                    facts.extend(tid.map(|tid| ("tid", tid)));
                    let frames = labels.stack(who.stack);
                    location_id.extend(frames.iter().map(|frame| tables.location(frame)));
                    if frames.is_empty() {
                        location_id.push(tables.location(&blame::plain(NO_STACK.into())));
                    }
                }
                None => location_id.push(tables.location(&blame::plain(NOBODY.into()))),
            }
            let label = |(key, text): &(&str, String)| Label {
                key: tables.text(key),
                str: tables.text(text),
            };
            let label = facts.iter().map(label).collect();
            Sample { location_id, value: vec![signed(count), signed(ns)], label }
        };
    sums.into_iter().map(sample).collect()
}

/// Returns a number as the format has it.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

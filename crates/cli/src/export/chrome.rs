//! A recording as a trace of Chrome's, which Perfetto shows.
//!
//! # What is drawn
//! A track for each thread: its life, in it its waits and its holds, each a slice. Slices of a track
//! lie one in the other or one behind the other; a hold that does not is drawn in a further track of
//! its thread. An arrow leads from the end of a hold, or from a call that wakes, to the end of the
//! wait that it ended. Samples of holders are marks.
//!
//! # Source
//! "Trace Event Format", Google: complete events, flow events, instant events, metadata. Times are
//! microseconds, here from the beginning of the run.

use super::labels::{Labels, doing, is_join, way};
use super::wakers::{Wakers, Waking};
use crate::recording::{RecordedProcess, Recording, UNFINISHED};
use lockstead_ledger::events::{Event, EventKind, ending, hold};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

/// What the number of a further track of a thread is above that of the one before: no thread of a
/// Linux system has such a number.
const TRACKS: u64 = 1 << 23;

/// The time for which a call is drawn, in nanoseconds.
const MOMENT: u64 = 1;

/// Writes the trace of a recording.
pub(super) fn write(recording: &Recording, to: &mut dyn Write) -> io::Result<()> {
    let mut trace = Trace { to, began: recording.run.began, is_first: true, arrows: 0 };
    write!(trace.to, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    for process in &recording.processes {
        trace.process(process)?;
    }
    let other = json!({
        "recorded by": format!("lockstead {}", recording.run.lockstead),
        "command": recording.run.command.join(" "),
        "began (ns since 1970)": recording.run.date.to_string(),
        "events lost": recording.totals.lost.to_string(),
        "events without room in the file": recording.totals.cut.to_string(),
    });
    writeln!(trace.to, "\n],\"otherData\":{other}}}")
}

/// A slice of a thread.
struct Slice<'e> {
    began: u64,
    ended: u64,
    what: Drawn<'e>,
}

#[derive(Clone, Copy)]
enum Drawn<'e> {
    Life,
    /// An event and its place in the list.
    Event(&'e Event, usize),
}

struct Trace<'w> {
    to: &'w mut dyn Write,
    began: u64,
    is_first: bool,
    /// The number of arrows so far.
    arrows: u64,
}

impl Trace<'_> {
    fn put(&mut self, event: &Value) -> io::Result<()> {
        let comma = if std::mem::take(&mut self.is_first) { "" } else { "," };
        write!(self.to, "{comma}\n{event}")
    }

    /// Returns a time as the format has it.
    fn micros(&self, at: u64) -> f64 {
        at.saturating_sub(self.began) as f64 / 1e3
    }

    fn metadata(&mut self, name: &str, (pid, tid): (u32, u64), args: Value) -> io::Result<()> {
        self.put(&json!({ "ph": "M", "name": name, "pid": pid, "tid": tid, "args": args }))
    }

    fn process(&mut self, process: &RecordedProcess) -> io::Result<()> {
        let labels = Labels::of(process);
        let wakers = Wakers::of(process);
        let pid = process.facts.pid;
        let program = &process.facts.program;
        self.metadata("process_name", (pid, 0), json!({ "name": program }))?;
        let mut threads: BTreeMap<u32, Vec<Slice<'_>>> = BTreeMap::new();
        for thread in &process.names.threads {
            let ended = thread.ended.unwrap_or(process.names.ended).max(thread.began);
            let life = Slice { began: thread.began, ended, what: Drawn::Life };
            threads.entry(thread.thread).or_default().push(life);
        }
        for (place, event) in process.events.iter().enumerate() {
            let least = if event.kind == EventKind::Wake { MOMENT } else { 0 };
            let ended = event.began.saturating_add(event.lasted.max(least));
            let slice = Slice { began: event.began, ended, what: Drawn::Event(event, place) };
            threads.entry(event.thread).or_default().push(slice);
        }
        // Where the slice of each event is drawn, for the arrows.
        let mut tracks: HashMap<usize, u64> = HashMap::new();
        for (&thread, slices) in &mut threads {
            let tid = tid(&labels, thread);
            let name = labels.thread(thread);
            let mut last = None;
            // What lasts longer lies around what begins at the same time.
            slices.sort_by_key(|slice| (slice.began, std::cmp::Reverse(slice.ended)));
            let mut open: Vec<Vec<u64>> = Vec::new();
            for slice in slices.iter() {
                let track = place(&mut open, slice.began, slice.ended);
                let at = tid + track as u64 * TRACKS;
                if last.is_none_or(|last| track > last) {
                    last = Some(track);
                    let name = if track == 0 { name.clone() } else { format!("{name} (holds)") };
                    self.metadata("thread_name", (pid, at), json!({ "name": name }))?;
                    let order = json!({ "sort_index": tid });
                    self.metadata("thread_sort_index", (pid, at), order)?;
                }
                if let Drawn::Event(_, event) = slice.what {
                    tracks.insert(event, at);
                }
                self.slice(&labels, slice, (pid, at), &name)?;
            }
        }
        for (place, event) in process.events.iter().enumerate() {
            if let (Some(waking), Some(&to)) = (wakers.waker(event), tracks.get(&place)) {
                let from = match waking.event {
                    Some(event) => tracks.get(&event).copied(),
                    None => Some(tid(&labels, waking.thread)),
                };
                let Some(from) = from else { continue };
                self.arrow(process, (&waking, from), (event, to))?;
            }
        }
        self.samples(process, &labels)
    }

    fn slice(
        &mut self,
        labels: &Labels<'_>,
        slice: &Slice<'_>,
        (pid, tid): (u32, u64),
        thread: &str,
    ) -> io::Result<()> {
        let (name, category, args) = match slice.what {
            Drawn::Life => (format!("thread {thread}"), "thread", Map::new()),
            Drawn::Event(event, _) => described(labels, event),
        };
        self.put(&json!({
            "ph": "X",
            "name": name,
            "cat": category,
            "pid": pid,
            "tid": tid,
            "ts": self.micros(slice.began),
            "dur": slice.ended.saturating_sub(slice.began) as f64 / 1e3,
            "args": args,
        }))
    }

    /// Draws an arrow from a waking to the end of the wait that it ended. Both ends lie in slices.
    fn arrow(
        &mut self,
        process: &RecordedProcess,
        (waking, from): (&Waking, u64),
        (wait, to): (&Event, u64),
    ) -> io::Result<()> {
        self.arrows += 1;
        let pid = process.facts.pid;
        let began = waking.event.map_or(0, |event| process.events[event].began);
        let start = waking.at.saturating_sub(1).max(began);
        let end = wait.began.saturating_add(wait.lasted).saturating_sub(1).max(wait.began);
        for (phase, tid, at) in [("s", from, start), ("f", to, end.max(start))] {
            let mut flow = json!({
                "ph": phase,
                "id": self.arrows,
                "name": "wakes",
                "cat": "wakes",
                "pid": pid,
                "tid": tid,
                "ts": self.micros(at),
            });
            if phase == "f" {
                flow["bp"] = "e".into();
            }
            self.put(&flow)?;
        }
        Ok(())
    }

    fn samples(&mut self, process: &RecordedProcess, labels: &Labels<'_>) -> io::Result<()> {
        for sample in &process.samples {
            let met = doing(sample.doing);
            self.put(&json!({
                "ph": "i",
                "s": "t",
                "name": format!("sample: {met}"),
                "cat": "sample",
                "pid": process.facts.pid,
                "tid": sample.tid,
                "ts": self.micros(sample.at),
                "args": { "holds": labels.lock_in(sample.lock, sample.generation) },
            }))?;
        }
        Ok(())
    }
}

/// Returns the first track in which a slice has its place, among the ends of slices that are open.
fn place(open: &mut Vec<Vec<u64>>, began: u64, ended: u64) -> usize {
    for (track, ends) in open.iter_mut().enumerate() {
        while ends.last().is_some_and(|&end| end <= began) {
            ends.pop();
        }
        if ends.last().is_none_or(|&end| end >= ended) {
            ends.push(ended);
            return track;
        }
    }
    open.push(vec![ended]);
    open.len() - 1
}

fn tid(labels: &Labels<'_>, thread: u32) -> u64 {
    let known = labels.thread_facts(thread).map(|facts| u64::from(facts.tid));
    // A thread that never said who it is.
    known.filter(|&tid| tid != 0).unwrap_or(TRACKS / 2 + u64::from(thread))
}

/// Returns the name of a slice, its category and what is shown of it.
fn described(labels: &Labels<'_>, event: &Event) -> (String, &'static str, Map<String, Value>) {
    let lock = labels.lock(event);
    let mut args = Map::new();
    if let Some(known) = labels.kind(event) {
        args.insert("lock".into(), json!(known.name));
        args.insert("kind".into(), json!(known.kind));
        args.insert("address".into(), json!(format!("{:#x}", known.address)));
    }
    let stack: Vec<String> = labels
        .stack(event.stack)
        .iter()
        .map(|frame| match (&frame.file, frame.line) {
            (Some(file), Some(line)) => format!("{} at {file}:{line}", frame.name),
            _ => frame.name.clone(),
        })
        .collect();
    if !stack.is_empty() {
        args.insert("stack".into(), json!(stack));
    }
    match event.kind {
        EventKind::Wait => {
            args.insert("way".into(), json!(way(event)));
            let ended = match event.ending {
                ending::GRANTED => "granted",
                ending::TIMED_OUT => "timed out",
                ending::INTERRUPTED => "interrupted",
                ending::ABANDONED => "abandoned",
                UNFINISHED => "lasts",
                _ => "refused",
            };
            args.insert("ended".into(), json!(ended));
            let preposition = if is_join(event) { "waits for" } else { "wait:" };
            (format!("{preposition} {lock}"), "wait", args)
        }
        EventKind::Hold => {
            let has = |bit| event.how & bit != 0;
            args.insert("reads".into(), json!(has(hold::READ)));
            args.insert("beginning is an estimate".into(), json!(has(hold::COARSE)));
            args.insert("others waited at its end".into(), json!(has(hold::WAITED_FOR)));
            args.insert("given back for a condition".into(), json!(has(hold::LENT)));
            (format!("hold: {lock}"), "hold", args)
        }
        EventKind::Wake | EventKind::Thread => (format!("wakes: {lock}"), "wake", args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_a_track_lie_in_or_behind_each_other() {
        let mut open = Vec::new();
        let mut place = |began, ended| place(&mut open, began, ended);
        assert_eq!(place(0, 100), 0);
        assert_eq!(place(10, 20), 0, "in the first");
        assert_eq!(place(20, 30), 0, "behind the second");
        assert_eq!(place(25, 35), 1, "across its end");
        assert_eq!(place(26, 36), 2);
        assert_eq!(place(35, 100), 0);
        assert_eq!(place(100, 101), 0);
    }
}

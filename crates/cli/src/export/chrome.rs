//! A recording as a trace of Chrome's, which Perfetto shows.
//!
//! # What is drawn
//! A track for each thread: its life, in it its waits and its holds, each a slice. Slices of a track
//! lie one in the other or one behind the other; a hold that does not is drawn in a further track of
//! its thread. An arrow leads from the end of a hold, or from a call that wakes, to the end of the
//! wait that it ended. Samples of holders are marks.
//!
//! # Ends of arrows
//! The format ties the end of an arrow to the slice around it. Perfetto takes for that the slice of the
//! track that began last, whether it has ended or not; lets an arrow lead from whichever slice began
//! first; and draws it from the end of that to the beginning of the other. A wait begins before the
//! hold that it waits for as often as not. So each end of an arrow has a slice of its own, as long as
//! nothing, at the moment at which it is.
//!
//! # Source
//! "Trace Event Format", Google: complete events, flow events, instant events, metadata. Times are
//! microseconds, here from the beginning of the run.

use super::labels::{Labels, doing, is_join, way};
use super::wakers::Wakers;
use crate::recording::{RecordedProcess, Recording, UNFINISHED};
use lockstead_ledger::events::{Event, EventKind, ending, hold};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};

/// What the number of a further track of a thread is above that of the one before: no thread of a
/// Linux system has such a number.
const TRACKS: u64 = 1 << 23;

/// The time for which a call, and an end of an arrow, is drawn, in nanoseconds.
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
        // One slice for all arrows from one moment.
        let mut drawn: HashSet<(u64, u64)> = HashSet::new();
        for (place, event) in process.events.iter().enumerate() {
            let (Some(waking), Some(&to)) = (wakers.waker(event), tracks.get(&place)) else {
                continue;
            };
            let (from, source) = match waking.event {
                Some(by) => match tracks.get(&by) {
                    Some(&track) => (track, Some(&process.events[by])),
                    None => continue,
                },
                None => (tid(&labels, waking.thread), None),
            };
            let lock = labels.lock(event);
            let (start, named) = match source {
                // A call is a moment itself.
                Some(call) if call.kind == EventKind::Wake => (call.began, None),
                Some(hold) => (last_moment(hold), Some(format!("gives back: {lock}"))),
                None => (waking.at.saturating_sub(MOMENT), Some("ends".into())),
            };
            if let Some(name) = named.filter(|_| drawn.insert((from, start))) {
                self.end_of_arrow(&name, (pid, from), start)?;
            }
            let end = last_moment(event).max(start);
            self.arrows += 1;
            self.flow("s", (pid, from), start)?;
            self.end_of_arrow("goes on", (pid, to), end)?;
            self.flow("f", (pid, to), end)?;
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

    /// Draws the slice to which an end of an arrow is tied.
    fn end_of_arrow(&mut self, name: &str, (pid, tid): (u32, u64), at: u64) -> io::Result<()> {
        self.put(&json!({
            "ph": "X",
            "name": name,
            "cat": "arrow",
            "pid": pid,
            "tid": tid,
            "ts": self.micros(at),
            "dur": MOMENT as f64 / 1e3,
        }))
    }

    /// Draws an end of the arrow that is the last one so far.
    fn flow(&mut self, phase: &str, (pid, tid): (u32, u64), at: u64) -> io::Result<()> {
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
        self.put(&flow)
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

/// Returns when the last moment of an event begins, or the event, if it lasted no longer.
fn last_moment(event: &Event) -> u64 {
    event.began.saturating_add(event.lasted.saturating_sub(MOMENT))
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
            args.insert("lasts".into(), json!(event.ending == UNFINISHED));
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

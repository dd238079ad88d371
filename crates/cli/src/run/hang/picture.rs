//! What a run looks like in which nothing moves, as text and as data.

use super::super::processes::Observed;
use super::super::standstill_text::{party, plain};
use super::watch::Hang;
use crate::cycle_text::duration;
use crate::dump;
use lockstead_inspect::proc::process::LiveProcess;
use lockstead_inspect::report::finding::FindingThread;
use lockstead_inspect::snapshot::{self, Snapshot};
use lockstead_render::words::clean;
use std::fmt::Write;
use std::sync::Arc;

/// The picture of a run.
pub(crate) struct Picture {
    /// The text, a line feed at its end.
    pub(crate) text: String,
    /// The threads, with what each waits for.
    pub(crate) threads: Vec<FindingThread>,
}

/// Returns the picture of all processes of a standstill; with `everything` it has what
/// `lockstead dump --all` shows.
pub(crate) fn picture(hang: &Hang, watched: &[Arc<Observed>], everything: bool) -> Picture {
    let lasted = duration(u64::try_from(hang.since.elapsed().as_nanos()).unwrap_or(u64::MAX));
    let count = |number, one: &str, more: &str| match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {more}"),
    };
    let mut text = format!(
        "lockstead: HANG: nothing has moved for {lasted}: {}, {}\n",
        count(hang.pids.len(), "process", "processes"),
        count(hang.threads, "thread", "threads"),
    );
    let mut threads = Vec::new();
    for &pid in &hang.pids {
        let observed = watched.iter().find(|process| process.pid == pid);
        match look(pid, observed) {
            Ok(found) => {
                let lines = plain(&dump::all_threads(&found, everything));
                lines.lines().for_each(|line| indented(&mut text, line));
                let notes = found.limits.iter().chain(&found.advice);
                notes.for_each(|note| indented(&mut text, &clean(note)));
                let process = format!("{} (pid {pid})", found.process.name);
                let all = found.threads.iter().filter_map(|thread| party(&found, thread.tid));
                let all =
                    all.map(|party| FindingThread { process: Some(process.clone()), ..party });
                threads.extend(all);
            }
            Err(why) => indented(&mut text, &format!("process {pid} cannot be looked at: {why}")),
        }
    }
    Picture { text, threads }
}

/// Takes a snapshot, of a process that is watched from its ledger.
fn look(pid: u32, observed: Option<&Arc<Observed>>) -> Result<Snapshot, String> {
    let process = LiveProcess::open(pid).map_err(|why| why.to_string())?;
    let found = match observed {
        Some(observed) => snapshot::recorded(&process, &observed.ledger, true, true),
        None => snapshot::capture(&process, true, true),
    };
    found.map_err(|why| why.to_string())
}

/// Adds a line of the dump: indented, so that none looks like the beginning of a report.
fn indented(text: &mut String, line: &str) {
    if !line.is_empty() {
        let _ = writeln!(text, "  {line}");
    }
}

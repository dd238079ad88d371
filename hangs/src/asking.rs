//! What `lockstead` says of a program that hangs: of one that was started plainly, by `dump`, and of
//! one under `run`, by both.

use crate::builds::Program;
use crate::judgement::{Cycle, Judgement, Verdict, judge};
use crate::process::Hung;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// How long `lockstead run` has time to report a deadlock.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long the next line of a report may take.
const PIECE: Duration = Duration::from_millis(200);

/// How a program is started and asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// It is started plainly, and `lockstead dump` looks at it.
    Dump,
    /// It is started under `lockstead run`, and both report.
    Run,
}

/// Starts a case of a program, waits until it hangs, asks `lockstead`, and compares.
///
/// # Errors
/// If the case does not hang, or `lockstead` does not answer.
pub fn ask(
    lockstead: &Path,
    mode: Mode,
    program: &Program,
    case: &str,
) -> Result<Judgement, String> {
    let plain = program.case(case);
    let mut hung = match mode {
        Mode::Dump => Hung::start(plain, false)?,
        Mode::Run => {
            let mut under = Command::new(lockstead);
            under.args(["run", "--"]).arg(plain.get_program()).args(plain.get_args());
            Hung::start(under, true)?
        }
    };
    let deadlocks = match mode {
        Mode::Dump => None,
        Mode::Run => Some(reported(&mut hung)?),
    };
    let dump = dump(lockstead, hung.pid)?;
    let judgement = judge(&hung, &dump, deadlocks.as_deref());
    hung.finish()?;
    Ok(judgement)
}

fn dump(lockstead: &Path, pid: u32) -> Result<Value, String> {
    let output = Command::new(lockstead)
        .args(["dump", "--json", &pid.to_string()])
        .output()
        .map_err(|error| format!("lockstead dump: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !matches!(output.status.code(), Some(0 | 3)) {
        return Err(format!("lockstead dump, {}: {text}", output.status));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("its JSON: {error}"))
}

/// Returns each deadlock that `lockstead run` reports within some time, until the first one.
fn reported(hung: &mut Hung) -> Result<Vec<Cycle>, String> {
    let errors = hung.errors().ok_or("lockstead run has no standard error")?;
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(errors).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let start = Instant::now();
    let mut deadlocks: Vec<Cycle> = Vec::new();
    let mut inside = false;
    loop {
        // A report comes in one piece: after its first line the others are there.
        let left = if inside { PIECE } else { PATIENCE.saturating_sub(start.elapsed()) };
        let Ok(line) = receiver.recv_timeout(left) else { return Ok(deadlocks) };
        if let Some(rest) = line.strip_prefix("lockstead: DEADLOCK") {
            let probable = rest.starts_with(", probably");
            let verdict = if probable { Verdict::Probable } else { Verdict::Deadlock };
            deadlocks.push((verdict, BTreeSet::new()));
            inside = true;
        } else if line.starts_with("lockstead:") {
            inside = false;
        } else if inside && let (Some(id), Some(last)) = (member(&line), deadlocks.last_mut()) {
            last.1.insert(id);
        }
    }
}

/// Returns the id in a line that begins what is said of a member: `thread "one" (tid 12)`.
fn member(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("  thread ")?;
    let (_, digits) = rest.split_once("(tid ")?;
    let end = digits.find(|letter: char| !letter.is_ascii_digit())?;
    digits[..end].parse().ok()
}

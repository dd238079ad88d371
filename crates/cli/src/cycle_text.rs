//! The members of a cycle as text: the one form in which a deadlock is told, whatever its locks are
//! and whoever found it.
//!
//! # Role
//! Who waits is said with the lock and the place. What the thread holds that the one before it wants
//! is said with the place where it acquired that; where nobody saw it acquire the lock, with what
//! shows that it holds it.

use crate::finding_text::{line, stack_lines, thread_text};
use lockstead_inspect::python::PythonStack;
use lockstead_inspect::report::finding::{FindingHold, FindingThread, FindingWait};
use lockstead_inspect::snapshot::model::HolderEvidence;
use lockstead_inspect::stack::{Frame, Stack, StackEnd};
use lockstead_inspect::symbols::program_frames;
use lockstead_render::words::{brief, clean};
use std::fmt::Write;

/// How much of each stack is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownFrames {
    /// The frames of the program, at most so many.
    Most(usize),
    /// All frames, those of the system's libraries included.
    All,
}

/// The number of frames of a stack in a cycle of two, so that it fits a screen.
const FRAMES: usize = 7;
/// The number of threads from which on stacks are shortened further.
const MANY: usize = 6;
const FEW_FRAMES: usize = 3;

impl ShownFrames {
    /// Returns how much fits a screen where so many threads wait for each other.
    pub(crate) fn of(members: usize) -> ShownFrames {
        ShownFrames::Most(if members < MANY { FRAMES } else { FEW_FRAMES })
    }
}

/// Says how many threads it is about: `2 threads wait for each other`.
pub(crate) fn who(members: usize) -> String {
    match members {
        1 => "1 thread waits for itself".into(),
        _ => format!("{members} threads wait for each other"),
    }
}

/// Adds the members, each of which waits for the next one.
pub(crate) fn members(text: &mut String, parties: &[FindingThread], shown: ShownFrames) {
    for (at, party) in parties.iter().enumerate() {
        let next = &parties[(at + 1) % parties.len()];
        let _ = writeln!(text, "  {}", called(party));
        if let Some(waits) = &party.waits {
            waits_for(text, waits, next, shown);
        }
        if let Some(holds) = &party.holds {
            held(text, holds, shown);
        }
    }
}

/// Names a thread: `thread "worker" (tid 13)`, and its process where that has to be said.
pub(crate) fn called(party: &FindingThread) -> String {
    let thread = thread_text(party.name.as_deref(), party.tid);
    match &party.process {
        Some(process) => format!("{thread} of {process}"),
        None => thread,
    }
}

/// Returns a time in the unit that suits it.
pub(crate) fn duration(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} us", ns / 1_000),
        1_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
        1_000_000_000..120_000_000_000 => format!("{:.1} s", ns as f64 / 1e9),
        _ => format!("{} min", ns / 60_000_000_000),
    }
}

fn waits_for(text: &mut String, waits: &FindingWait, next: &FindingThread, shown: ShownFrames) {
    let how = match &waits.lock {
        Some(lock) => waits_how(waits, &brief(&lock.text())),
        None => format!("waits for the end of {}", called(next)),
    };
    let _ = writeln!(text, "    {how}{}, at:", since(waits));
    stacks(text, waits.stack.as_ref(), waits.python.as_ref(), shown);
}

fn held(text: &mut String, holds: &FindingHold, shown: ShownFrames) {
    let reading = if holds.shared { " for reading" } else { "" };
    let how = match holds.evidence {
        HolderEvidence::Likely if holds.lock.type_name.contains("semaphore") => "would release",
        HolderEvidence::Likely => "likely holds",
        _ => "holds",
    };
    let lock = brief(&holds.lock.text());
    let _ = write!(text, "    {how} {lock}{reading}");
    if holds.by_word {
        text.push_str(", as its word says\n");
    } else if holds.stack.is_some() || holds.rests_on.is_none() {
        text.push_str(", acquired at:\n");
        stacks(text, holds.stack.as_ref(), None, shown);
    } else {
        text.push('\n');
    }
    if let Some(rests_on) = &holds.rests_on {
        let _ = writeln!(text, "      {}: {}", holds.evidence.word(), clean(rests_on));
    }
}

/// Says how a thread waits for a lock of this name.
pub(crate) fn waits_how(waits: &FindingWait, lock: &str) -> String {
    match waits.how {
        "read" if waits.behind_writer => format!("waits to read {lock}, behind a waiting writer"),
        "read" => format!("waits to read {lock}"),
        "write" => format!("waits to write {lock}"),
        "condition" => format!("waits for {lock}, to have it back after a condition"),
        _ => format!("waits for {lock}"),
    }
}

/// Says how long a wait has lasted and whether it ends by itself, as far as that is known.
pub(crate) fn since(waits: &FindingWait) -> String {
    let since = waits.waited_ns.map(|ns| format!(", since {}", duration(ns))).unwrap_or_default();
    let timed = if waits.timed { ", with a time-out" } else { "" };
    format!("{since}{timed}")
}

/// Adds a stack; where its frames of Python are known, native ones only as far as the
/// interpreter's own.
pub(crate) fn stacks(
    text: &mut String,
    stack: Option<&Stack>,
    python: Option<&PythonStack>,
    shown: ShownFrames,
) {
    let most = match shown {
        ShownFrames::Most(most) => most,
        ShownFrames::All => usize::MAX,
    };
    let inner = stack.zip(python).and_then(|(stack, _)| native_part(stack));
    match (stack, shown) {
        (Some(stack), ShownFrames::All) => every_frame(text, stack),
        (None, _) if python.is_some() => {}
        _ => match inner {
            Some(inner) => {
                let own = program_frames(&inner).into_iter().filter(|frame| !frame.is_libc());
                own.take(most).for_each(|frame| line(text, frame));
            }
            None => stack_lines(text, stack, most),
        },
    }
    let Some(python) = python else { return };
    for frame in python.frames.iter().take(most) {
        let _ = writeln!(text, "      {}", brief(&frame.site()));
    }
    if python.frames.len() > most {
        let _ = writeln!(text, "      ... {} more", python.frames.len() - most);
    } else if python.cut {
        let _ = writeln!(text, "      (cut after {} frames of Python)", python.frames.len());
    }
}

fn every_frame(text: &mut String, stack: &Stack) {
    stack.frames.iter().for_each(|frame| line(text, frame));
    if !stack.end.is_complete() {
        let _ = writeln!(text, "      ({})", clean(&stack.end.to_string()));
    }
}

/// Returns the frames inside of Python's interpreter: those of what it called.
pub(crate) fn native_part(stack: &Stack) -> Option<Stack> {
    let own = stack.frames.iter().position(is_interpreter)?;
    Some(Stack { frames: stack.frames[..own].to_vec(), end: StackEnd::Bottom })
}

/// Tells whether a frame is one of Python's interpreter.
fn is_interpreter(frame: &Frame) -> bool {
    let module = frame.module.as_deref().unwrap_or_default();
    let name = module.rsplit('/').next().unwrap_or_default();
    name.starts_with("libpython") || name.starts_with("python")
}

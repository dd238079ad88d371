//! Findings in words.

use super::Level;
use super::cycles::Member;
use super::engine::{Engine, Subject};
use super::thread::{Held, Want};
use crate::Site;
use backtrace::Backtrace;
use lockstead_lockdep::{Excuse, Finding, Kind};
use std::fmt::Write;

/// Frames of a call chain that are shown: two locks, two chains each, must fit
/// a screen of 40 lines.
const FRAMES: usize = 6;

/// Code that is not the program's, in front of what led to a call and behind it.
const OURS: [&str; 6] =
    ["lockstead::", "lockstead_core::", "backtrace::", "core::", "std::", "__rust"];

fn lock(subject: Option<&Subject>) -> String {
    match subject {
        None => "a lock that is no more".into(),
        Some(Subject { name: Some(name), address, .. }) => format!("`{name}` at {address:#x}"),
        Some(Subject { origin, address, .. }) => format!("the lock of {origin} at {address:#x}"),
    }
}

/// Writes a place and the call chain that led there.
fn place(text: &mut String, what: &str, site: Site, chain: Option<&Backtrace>) {
    let _ = writeln!(text, "    {what} at {site}");
    let Some(chain) = chain else { return };
    let mut chain = chain.clone();
    chain.resolve();
    let symbols = chain.frames().iter().flat_map(backtrace::BacktraceFrame::symbols);
    let mut lines = Vec::new();
    for symbol in symbols {
        let Some(name) = symbol.name() else { continue };
        let name = format!("{name:#}");
        // Also of a type of ours, as a trait's method has it.
        let is_ours = |code: &&str| name.trim_start_matches('<').starts_with(*code);
        if OURS.iter().any(is_ours) {
            continue;
        }
        lines.push(match (symbol.filename(), symbol.lineno()) {
            (Some(file), Some(line)) => format!("{name} ({}:{line})", file.display()),
            _ => name,
        });
    }
    let more = lines.len().saturating_sub(FRAMES);
    for line in lines.iter().take(if more == 1 { FRAMES + 1 } else { FRAMES }) {
        let _ = writeln!(text, "      in {line}");
    }
    if more > 1 {
        let _ = writeln!(text, "      and {more} more");
    }
}

fn first_line(level: Level, what: &str) -> String {
    format!("lockstead: {level}: {what}\n")
}

pub(super) fn inversion(engine: &Engine, level: Level, finding: &Finding) -> String {
    let steps = &finding.steps;
    let what = match (finding.kind, steps.len()) {
        (Kind::Classes, 1) => "lock order inversion of 1 class".into(),
        (Kind::Classes, count) => format!("lock order inversion of {count} classes"),
        (Kind::Cycle | Kind::Handler { .. }, count) => {
            format!("lock order inversion of {count} locks")
        }
    };
    let mut text = first_line(level, &what);
    for step in steps {
        let [from, to] = [step.from, step.to].map(|id| lock(engine.subject_of(id)));
        let thread = engine.thread_name(step);
        let _ = writeln!(text, "  thread {thread} asked for {to}\n  while it held {from}");
        let (held, chain) = engine.place(step.witness.from_site);
        place(&mut text, "held since", held, Some(chain));
        let (asked, chain) = engine.place(step.witness.to_site);
        place(&mut text, "asked for", asked, Some(chain));
    }
    let excuse = match finding.excuse {
        None if finding.kind == Kind::Classes => {
            "not the same locks, but of their classes: each order was seen with several pairs"
                .into()
        }
        None => "each of them could hold what the next one asks for, and wait for ever".into(),
        Some(Excuse::OneThread) => "not by as many threads as that takes, so far".into(),
        Some(Excuse::Gate(gate)) => {
            format!(
                "but they held {} as well, so not at the same time",
                lock(engine.subject_of(gate))
            )
        }
        Some(Excuse::Alone) => "but one of them while there was no other thread".into(),
        Some(Excuse::OtherInstances) => "but the locks are not the same, only their classes".into(),
    };
    let _ = writeln!(text, "  {excuse}");
    text
}

pub(super) fn deadlock(engine: &Engine, members: &[Member]) -> String {
    let what = match members.len() {
        1 => "1 thread waits for itself".into(),
        count => format!("{count} threads wait for each other"),
    };
    let mut text = first_line(Level::Deadlock, &what);
    for (at, member) in members.iter().enumerate() {
        let wanted = lock(engine.subject(member.want.number));
        let next = &members[(at + 1) % members.len()].thread;
        let _ = writeln!(
            text,
            "  thread {} waits for {wanted}\n  which thread {} holds",
            member.thread.name, next.name
        );
        place(&mut text, "waits", member.want.site, engine.chain(member.want.site));
        place(&mut text, "held since", member.held.site, engine.chain(member.held.site));
    }
    text
}

pub(super) fn read_again(engine: &Engine, thread: &str, before: &Held, want: &Want) -> String {
    let mut text = first_line(Level::Rule, "recursive read lock");
    let lock = lock(engine.subject(want.number));
    let _ = writeln!(text, "  thread {thread} asked for {lock}, which it reads already");
    place(&mut text, "held since", before.site, engine.chain(before.site));
    place(&mut text, "asked for", want.site, engine.chain(want.site));
    let _ = writeln!(text, "  a writer that comes in between waits for it, and it for the writer");
    text
}

pub(super) fn leaked(engine: &Engine, thread: &str, held: &Held) -> String {
    let mut text = first_line(Level::Rule, "thread exit while holding");
    let lock = lock(engine.subject(held.number));
    let _ = writeln!(text, "  thread {thread} has ended and holds {lock}: its guard was leaked");
    place(&mut text, "held since", held.site, engine.chain(held.site));
    text
}

pub(super) fn violation(what: &str, story: &str, places: &[(&str, Site)]) -> String {
    let mut text = first_line(Level::Rule, what);
    let _ = writeln!(text, "  {story}");
    for (what, site) in places {
        place(&mut text, what, site, None);
    }
    text
}

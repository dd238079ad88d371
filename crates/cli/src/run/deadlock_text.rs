//! A cycle as data and as text: its threads and its locks, and no others.

use super::across;
use super::scene::{Scene, called, duration};
use crate::finding_text::stack_lines;
use lockstead_inspect::report::finding::{FindingThread, FindingWait};
use lockstead_inspect::waits::detect::FoundCycle;
use lockstead_ledger::publish::WaitKind;
use lockstead_render::words::clean;
use std::fmt::Write;

/// The number of frames of a stack in a cycle of two, so that it fits a screen.
const FRAMES: usize = 7;
/// The number of threads from which on stacks are shortened further.
const MANY: usize = 6;
const FEW_FRAMES: usize = 3;

/// Returns the members, each waiting for the next one.
pub(super) fn parties(scene: &mut Scene, found: &FoundCycle, now: u64) -> Vec<FindingThread> {
    let count = found.members.len();
    let next = |at: usize| &found.members[(at + 1) % count];
    let party = |(at, member): (usize, _)| {
        let member: &lockstead_inspect::waits::detect::CycleMember = member;
        let waiter = &member.waiter;
        let mut waits = scene.waits(&waiter.waiting, member.lock, now);
        match member.lock {
            None => waits.thread = Some(next(at).waiter.tid),
            Some(_) => {
                waits.behind_writer =
                    waiter.waiting.how.kind() == WaitKind::READ && next(at).holding.is_none();
            }
        }
        FindingThread {
            waits: Some(waits),
            holds: member.holding.as_ref().map(|holding| scene.holds(holding, now)),
            ..scene.party(waiter.thread)
        }
    };
    found.members.iter().enumerate().map(party).collect()
}

/// Returns a member of a cycle through several processes; the scene is its own process's.
pub(super) fn party_across(
    scene: &mut Scene,
    member: &across::CrossMember,
    now: u64,
) -> FindingThread {
    let waiting = &member.waiter.waiting;
    FindingThread {
        waits: Some(scene.waits(waiting, Some(waiting.target), now)),
        holds: Some(scene.holds(&member.holding, now)),
        process: Some(scene.program()),
        ..scene.party(member.waiter.thread)
    }
}

/// Returns the text, a line feed at its end.
pub(super) fn text(program: &str, parties: &[FindingThread], timed: bool) -> String {
    let count = parties.len();
    let threads = match count {
        1 => "1 thread waits for itself".into(),
        _ => format!("{count} threads wait for each other"),
    };
    let mut text = if timed {
        format!("lockstead: CYCLE: {threads} until a time-out, in {program}\n")
    } else {
        format!("lockstead: DEADLOCK: {threads}, in {program}\n")
    };
    let frames = if count < MANY { FRAMES } else { FEW_FRAMES };
    for (at, party) in parties.iter().enumerate() {
        describe(&mut text, party, &parties[(at + 1) % count], frames);
    }
    text
}

/// What a cycle rests on that leads through a semaphore; a line feed at its end.
pub(super) const BY_USE: &str = "  It rests on how the semaphore was used: it began with one token, \
     and so far each thread that took it gave it back.\n";

/// What a cycle rests on where mutexes of it do not say who owns them; a line feed at its end.
pub(super) const UNNAMED: &str = "  It rests on the calls that the threads made, and on the kernel, \
     for which they sleep: the words of these mutexes name no owner, as where another library than \
     glibc has them.\n";

fn describe(text: &mut String, party: &FindingThread, next: &FindingThread, frames: usize) {
    let _ = writeln!(text, "  {}", called(party));
    if let Some(waits) = &party.waits {
        let timed = if waits.timed { ", with a time-out" } else { "" };
        let since = duration(waits.waited_ns);
        let _ = writeln!(text, "    waits {}, since {since}{timed}, at:", what_for(waits, next));
        stack_lines(text, waits.stack.as_ref(), frames);
    }
    if let Some(holds) = &party.holds {
        let reading = if holds.shared { " for reading" } else { "" };
        let lock = clean(&holds.lock.text());
        if holds.by_word {
            let _ = writeln!(text, "    holds {lock}, as its word says");
            return;
        }
        let _ = writeln!(text, "    holds {lock}{reading}, acquired at:");
        stack_lines(text, holds.stack.as_ref(), frames);
    }
}

fn what_for(waits: &FindingWait, next: &FindingThread) -> String {
    let Some(lock) = &waits.lock else { return format!("for the end of {}", called(next)) };
    let lock = clean(&lock.text());
    match waits.how {
        "read" if waits.behind_writer => format!("to read {lock}, behind a waiting writer"),
        "read" => format!("to read {lock}"),
        "write" => format!("to write {lock}"),
        "condition" => format!("for {lock}, to have it back after a condition"),
        _ => format!("for {lock}"),
    }
}

//! The report of a cycle as text: its threads and its locks, and no others.

use super::scene::{Scene, duration};
use lockstead_inspect::waits::detect::{Found, Member};
use lockstead_ledger::publish::{Flags, How};
use std::fmt::Write;

/// Frames of a stack in a cycle of two, so that it fits a screen.
const FRAMES: usize = 7;
/// Threads from which on stacks are shortened further.
const MANY: usize = 6;
const FEW_FRAMES: usize = 3;

/// The text, a line feed at its end.
pub(super) fn text(scene: &mut Scene, found: &Found) -> String {
    let count = found.members.len();
    let threads = if count == 1 { "1 thread".into() } else { format!("{count} threads") };
    let program = scene.program();
    let mut text = if found.timed {
        format!("lockstead: CYCLE of {threads} in {program}, ends by time-out\n")
    } else {
        format!("lockstead: DEADLOCK of {threads} in {program}\n")
    };
    let frames = if count < MANY { FRAMES } else { FEW_FRAMES };
    let now = super::supervise::now();
    for (at, member) in found.members.iter().enumerate() {
        let next = &found.members[(at + 1) % count];
        describe(scene, &mut text, member, next, now, frames);
    }
    text
}

fn describe(
    scene: &mut Scene,
    text: &mut String,
    member: &Member,
    next: &Member,
    now: u64,
    frames: usize,
) {
    let waiter = &member.waiter;
    let waiting = &waiter.waiting;
    let _ = writeln!(text, "  {}", scene.thread(waiter.thread));
    let what = match (member.lock, waiting.how.kind()) {
        (None, _) => format!("the end of {}", scene.thread(next.waiter.thread)),
        (Some(lock), How::READ) if next.holding.is_none() => {
            format!("to read {}, behind a waiting writer", scene.lock(lock))
        }
        (Some(lock), How::READ) => format!("to read {}", scene.lock(lock)),
        (Some(lock), How::WRITE) => format!("to write {}", scene.lock(lock)),
        (Some(lock), How::CONDITION) => {
            format!("{}, to have it back after a condition", scene.lock(lock))
        }
        (Some(lock), _) => scene.lock(lock),
    };
    let waits = if what.starts_with("to ") { "waits" } else { "waits for" };
    let timed = if waiting.how.is_timed() && waiting.how.kind() != How::CONDITION {
        ", with a time-out"
    } else {
        ""
    };
    let since = duration(now.saturating_sub(waiting.since));
    let _ = writeln!(text, "    {waits} {what}, since {since}{timed}, at:");
    scene.stack(text, waiting.stack, frames);
    if let Some(holding) = member.holding {
        let reading = if holding.flags.has(Flags::READ) { " for reading" } else { "" };
        let lock = scene.lock(holding.address);
        let _ = writeln!(text, "    holds {lock}{reading}, acquired at:");
        scene.stack(text, holding.stack, frames);
    }
}

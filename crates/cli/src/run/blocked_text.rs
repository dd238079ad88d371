//! The report of a wait that lasts: the waiter, the owner, what it does.

use super::scene::{Scene, duration};
use lockstead_inspect::memory::{Memory, ProcessMemory};
use lockstead_inspect::waits::observe::Waiter;
use lockstead_ledger::lock::Kind;
use lockstead_ledger::publish::{Flags, Holding, How, Waiting};
use lockstead_ledger::thread::state;
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

const FRAMES: usize = 8;
/// Owners of one lock that are described; readers may be many.
const OWNERS: usize = 3;
/// How far a chain of waits is followed: from owner to owner.
const CHAIN: usize = 16;
/// Where glibc's mutex names its owner.
const MUTEX_OWNER: u64 = 8;

/// Somebody who holds a lock.
struct Owner {
    thread: u32,
    tid: u32,
    gone: bool,
    holding: Holding,
    waits: Option<Waiting>,
}

/// The text, a line feed at its end.
pub(super) fn text(scene: &mut Scene, waiter: &Waiter, at: u64) -> String {
    let waiting = &waiter.waiting;
    let lock = scene.lock(waiting.target);
    let lasted = duration(at.saturating_sub(waiting.since));
    let how = match waiting.how.kind() {
        How::READ => " to read",
        How::WRITE => " to write",
        _ => "",
    };
    let mut text = format!(
        "lockstead: BLOCKED for {lasted}: {} of {} waits{how} for {lock}\n",
        scene.thread(waiter.thread),
        scene.program(),
    );
    let timed = if waiting.how.is_timed() { " with a time-out" } else { "" };
    let _ = writeln!(text, "    waits{timed} at:");
    scene.stack(&mut text, waiting.stack, FRAMES);
    let found = owners(scene, waiting.target);
    if found.is_empty() {
        unknown(scene, &mut text, waiting.target);
    }
    for owner in found.iter().take(OWNERS) {
        describe(scene, &mut text, owner, at);
    }
    if found.len() > OWNERS {
        let _ = writeln!(text, "  and {} more that hold it", found.len() - OWNERS);
    }
    text
}

/// All who hold a lock at this moment.
fn owners(scene: &Scene, lock: u64) -> Vec<Owner> {
    let ledger = scene.process.ledger.view();
    let mut found = Vec::new();
    for (index, thread) in ledger.threads().enumerate() {
        let condition = thread.record.state.load(Relaxed);
        if !matches!(condition, state::LIVE | state::LEAKED) {
            continue;
        }
        let Some((_, holding)) = thread.stack().find(lock) else { continue };
        if holding.flags.has(Flags::LENT) {
            continue;
        }
        found.push(Owner {
            thread: index as u32,
            tid: thread.record.tid.load(Relaxed),
            gone: condition == state::LEAKED,
            holding,
            waits: thread.record.wait.read().map(|(_, waiting)| waiting),
        });
    }
    found
}

fn describe(scene: &mut Scene, text: &mut String, owner: &Owner, now: u64) {
    let reading = if owner.holding.flags.has(Flags::READ) { " for reading" } else { "" };
    let who = scene.thread(owner.thread);
    let since = match owner.holding.started {
        0 => String::new(),
        started => format!(" for {}", duration(now.saturating_sub(started))),
    };
    if owner.gone {
        let _ = writeln!(
            text,
            "  held{reading} by {who}, which has ended without releasing it; acquired at:"
        );
        scene.stack(text, owner.holding.stack, FRAMES);
        return;
    }
    let _ = writeln!(text, "  held{reading}{since} by {who}, acquired at:");
    scene.stack(text, owner.holding.stack, FRAMES);
    match &owner.waits {
        Some(waits) => chain(scene, text, waits),
        None => scene.doing(text, owner.tid, FRAMES),
    }
}

/// What an owner waits for itself, and on from owner to owner.
fn chain(scene: &mut Scene, text: &mut String, first: &Waiting) {
    let mut waiting = *first;
    for depth in 0..CHAIN {
        let what = match waiting.how.kind() {
            How::JOIN => "the end of a thread".to_owned(),
            _ => scene.lock(waiting.target),
        };
        let _ = writeln!(text, "    which itself waits for {what}, at:");
        scene.stack(text, waiting.stack, if depth == 0 { FRAMES } else { 2 });
        let is_lock = matches!(waiting.how.kind(), How::MUTEX | How::READ | How::WRITE | How::SPIN);
        if !is_lock {
            return;
        }
        let Some(owner) = owners(scene, waiting.target).into_iter().next() else { return };
        let who = scene.thread(owner.thread);
        let place = scene.site(owner.holding.stack);
        let _ = writeln!(text, "    which is held by {who}, acquired at {place}");
        match owner.waits {
            Some(next) if !owner.gone => waiting = next,
            _ if owner.gone => {
                text.push_str("    which has ended without releasing it\n");
                return;
            }
            _ => return scene.doing(text, owner.tid, FRAMES),
        }
    }
    text.push_str("    and so on\n");
}

/// Nobody has it, as far as the ledger goes. A mutex may know better.
fn unknown(scene: &mut Scene, text: &mut String, lock: u64) {
    let ledger = scene.process.ledger.view();
    let record = ledger.find_lock(lock).and_then(|index| ledger.lock(index));
    let kind = record.map_or(Kind::Unknown, |record| record.shape().0);
    let mut owner = [0; 4];
    let read = ProcessMemory::new(scene.process.pid).read(lock + MUTEX_OWNER, &mut owner);
    let tid = u32::from_ne_bytes(owner);
    if kind != Kind::Mutex || !matches!(read, Ok(4)) || tid == 0 {
        text.push_str(
            "  nobody is known to hold it: acquired where lockstead could not see it, or freed \
             and used again while held\n",
        );
        return;
    }
    let _ = writeln!(
        text,
        "  held by thread {tid}, says the mutex; where it was acquired lockstead has not seen"
    );
    scene.doing(text, tid, FRAMES);
}

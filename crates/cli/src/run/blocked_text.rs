//! A wait that lasts as data and as text: the waiter, the owners, what they do.

use super::across;
use super::scene::{Scene, doing, place};
use crate::cycle_text::{ShownFrames, stacks};
use crate::cycle_text::{called, duration};
use crate::finding_text::stack_lines;
use lockstead_inspect::python::{self, PythonStack};
use lockstead_inspect::report::finding::{FindingHold, FindingThread, FindingWait, HolderActivity};
use lockstead_inspect::waits::observe::LastingWaiter;
use lockstead_inspect::waits::words::named_by_word;
use lockstead_ledger::lock::ObjectKind;
use lockstead_ledger::publish::{Flags, Holding, WaitKind, Waiting};
use lockstead_ledger::thread::{ThreadPart, ThreadRecord, state};
use lockstead_render::words::brief;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

const FRAMES: usize = 8;
/// The number of frames in the stacks of those whom an owner waits for.
const FEW_FRAMES: usize = 2;
/// The most owners of one lock that are described; readers may be many.
const OWNERS: usize = 3;
/// How far a chain of waits is followed: from owner to owner.
const CHAIN: usize = 16;

/// A wait that lasts, and why.
pub(super) struct Blocked {
    waiter: FindingThread,
    /// The threads that hold the lock: the first [`OWNERS`] of them.
    owners: Vec<FindingThread>,
    more_owners: usize,
    /// The threads that each owner waits for, and so on: as many chains as owners.
    chains: Vec<Vec<FindingThread>>,
}

impl Blocked {
    /// Adds the frames of Python of those who wait.
    fn add_python(&mut self, stacks: &BTreeMap<u32, PythonStack>) {
        let others = self.owners.iter_mut().chain(self.chains.iter_mut().flatten());
        let others = others.filter(|other| other.process.is_none());
        for thread in others.chain([&mut self.waiter]) {
            if let Some(waits) = &mut thread.waits {
                waits.python = stacks.get(&thread.tid).cloned();
            }
        }
    }

    /// Returns everybody with a part in it.
    pub(super) fn into_parties(self) -> Vec<FindingThread> {
        let chains = self.chains.into_iter().flatten();
        [self.waiter].into_iter().chain(self.owners).chain(chains).collect()
    }
}

/// A holder of a lock, before anything has got a name.
struct UnnamedOwner {
    thread: u32,
    ended: bool,
    holding: Holding,
    waits: Option<Waiting>,
}

/// Returns all of the scene's process that hold the lock at this address of it, which others share.
pub(super) fn parties(scene: &mut Scene, lock: u64, now: u64) -> Vec<FindingThread> {
    let process = scene.program();
    let named = |party| FindingThread { process: Some(process.clone()), ..party };
    recorded_owners(scene, lock).iter().map(|owner| named(party(scene, owner, now))).collect()
}

/// Finds out about a wait; `elsewhere` are those who hold the lock in other processes.
pub(super) fn blocked(
    scene: &mut Scene,
    waiter: &LastingWaiter,
    elsewhere: Vec<FindingThread>,
    now: u64,
) -> Blocked {
    let lock = waiter.waiting.target;
    let waits = Some(scene.waits(&waiter.waiting, Some(lock), now));
    let found = owners(scene, &waiter.waiting);
    let more_owners = (found.len() + elsewhere.len()).saturating_sub(OWNERS);
    let (mut owners, mut chains) = (Vec::new(), Vec::new());
    for owner in found.iter().take(OWNERS) {
        owners.push(party(scene, owner, now));
        let waits = owner.waits.filter(|_| !owner.ended);
        chains.push(waits.map_or_else(Vec::new, |waits| chain(scene, &waits, now)));
    }
    for owner in elsewhere.into_iter().take(OWNERS - owners.len()) {
        owners.push(owner);
        chains.push(Vec::new());
    }
    if owners.is_empty()
        && let Some(owner) = unrecorded(scene, lock)
    {
        owners.push(owner);
        chains.push(Vec::new());
    }
    let waiter = FindingThread { waits, ..scene.party(waiter.thread) };
    let mut blocked = Blocked { waiter, owners, more_owners, chains };
    if scene.process.visible {
        blocked.add_python(&python::stacks_of(scene.process.pid));
    }
    blocked
}

/// Returns all who hold the lock at this moment that `waiting` is for: those who have published that,
/// or whom its word names.
fn owners(scene: &Scene, waiting: &Waiting) -> Vec<UnnamedOwner> {
    let ledger = scene.process.ledger.view();
    let lock = waiting.target;
    if named_by_word(&ledger, lock).is_none() {
        return recorded_owners(scene, lock);
    }
    let owner = scene.words.owner(waiting, &ledger, scene.process.pid);
    let is_owner = |record: &ThreadRecord| {
        Some(record.tid.load(Relaxed)) == owner && record.state.load(Relaxed) == state::LIVE
    };
    let owner = ledger.threads().enumerate().find(|(_, thread)| is_owner(thread.record));
    let named = |(index, thread): (usize, ThreadPart<'_>)| UnnamedOwner {
        thread: index as u32,
        ended: false,
        holding: Holding { address: lock, flags: Flags::BY_WORD, ..Holding::default() },
        waits: thread.record.wait.read().map(|(_, waiting)| waiting),
    };
    owner.map(named).into_iter().collect()
}

/// Returns all who have published that they hold a lock at this moment.
fn recorded_owners(scene: &Scene, lock: u64) -> Vec<UnnamedOwner> {
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
        found.push(UnnamedOwner {
            thread: index as u32,
            ended: condition == state::LEAKED,
            holding,
            waits: thread.record.wait.read().map(|(_, waiting)| waiting),
        });
    }
    found
}

fn party(scene: &mut Scene, owner: &UnnamedOwner, now: u64) -> FindingThread {
    let mut party = scene.party(owner.thread);
    party.ended = owner.ended;
    party.holds = Some(&owner.holding)
        .filter(|holding| !holding.flags.has(Flags::BY_WORD))
        .map(|holding| scene.holds(holding, now));
    match &owner.waits {
        _ if owner.ended => {}
        None => party.doing = Some(scene.doing(party.tid)),
        Some(waits) => {
            let lock = (waits.how.kind() != WaitKind::JOIN).then_some(waits.target);
            party.waits = Some(scene.waits(waits, lock, now));
        }
    }
    party
}

/// Returns the threads that `first` waits for, from owner to owner.
fn chain(scene: &mut Scene, first: &Waiting, now: u64) -> Vec<FindingThread> {
    let (mut waiting, mut found) = (*first, Vec::new());
    while is_for_lock(&waiting) && found.len() < CHAIN {
        let Some(owner) = owners(scene, &waiting).into_iter().next() else { break };
        found.push(party(scene, &owner, now));
        match owner.waits {
            Some(next) if !owner.ended => waiting = next,
            _ => break,
        }
    }
    found
}

fn is_for_lock(waiting: &Waiting) -> bool {
    matches!(
        waiting.how.kind(),
        WaitKind::MUTEX | WaitKind::READ | WaitKind::WRITE | WaitKind::SPIN
    )
}

/// Returns an owner that the ledger does not know: a mutex may.
fn unrecorded(scene: &mut Scene, lock: u64) -> Option<FindingThread> {
    let ledger = scene.process.ledger.view();
    let record = ledger.find_lock(lock).and_then(|index| ledger.lock(index));
    let is_mutex = record.is_some_and(|record| record.shape().0 == ObjectKind::Mutex);
    let tid = across::owner_by_word(&scene.process, lock).filter(|_| is_mutex)?;
    let (name, process) = (across::name(tid), across::process_of(&scene.process, tid));
    let is_elsewhere = process.is_some();
    let doing = match (is_elsewhere, across::place(&scene.process, lock)) {
        (true, _) => HolderActivity { what: "which is not watched".into(), stack: None },
        (false, Some(_)) if !across::is_thread_of(&scene.process, tid) => {
            let what = "which has ended, or is in another PID namespace".into();
            HolderActivity { what, stack: None }
        }
        (false, _) => scene.doing(tid),
    };
    let name = name.filter(|_| is_elsewhere);
    Some(FindingThread { tid, name, process, doing: Some(doing), ..FindingThread::default() })
}

/// Returns the text, a line feed at its end.
pub(super) fn text(program: &str, blocked: &Blocked) -> String {
    let Some(waits) = &blocked.waiter.waits else { return String::new() };
    let lock = waits.lock.as_ref().map_or_else(String::new, |lock| brief(&lock.text()));
    let how = match waits.how {
        "read" => " to read",
        "write" => " to write",
        _ => "",
    };
    let (lasted, who) = (duration(waits.waited_ns.unwrap_or(0)), called(&blocked.waiter));
    let mut text =
        format!("lockstead: BLOCKED: {who} of {program} waits{how} for {lock}, since {lasted}\n");
    let timed = if waits.timed { " with a time-out" } else { "" };
    let _ = writeln!(text, "    waits{timed} at:");
    waits_at(&mut text, waits, FRAMES);
    for (owner, chain) in blocked.owners.iter().zip(&blocked.chains) {
        describe(&mut text, owner, chain);
    }
    if blocked.owners.is_empty() {
        text.push_str(
            "  nobody is known to hold it: acquired where lockstead could not see it, or freed \
             and used again while held\n",
        );
    }
    if blocked.more_owners != 0 {
        let _ = writeln!(text, "  and {} more that hold it", blocked.more_owners);
    }
    text
}

fn describe(text: &mut String, owner: &FindingThread, chain: &[FindingThread]) {
    let who = called(owner);
    match &owner.holds {
        None => {
            let _ = writeln!(
                text,
                "  held by {who}, says the lock; where it was acquired lockstead has not seen"
            );
        }
        Some(FindingHold { shared, held_ns, stack, .. }) => {
            let reading = if *shared { " for reading" } else { "" };
            let since = held_ns.map_or_else(String::new, |ns| format!(" for {}", duration(ns)));
            if owner.ended {
                let _ = writeln!(
                    text,
                    "  held{reading} by {who}, which has ended without releasing it; acquired at:"
                );
            } else {
                let _ = writeln!(text, "  held{reading}{since} by {who}, acquired at:");
            }
            stack_lines(text, stack.as_ref(), FRAMES);
        }
    }
    on(text, owner, FRAMES);
    for next in chain {
        let at = next.holds.as_ref().map(|holds| place(holds.stack.as_ref()));
        let at = at.map_or_else(|| ", says the lock".into(), |at| format!(", acquired at {at}"));
        let _ = writeln!(text, "    which is held by {}{at}", called(next));
        if next.ended {
            text.push_str("    which has ended without releasing it\n");
        }
        on(text, next, FEW_FRAMES);
    }
    if chain.len() == CHAIN {
        text.push_str("    and so on\n");
    }
}

/// Adds what an owner does, or waits for itself.
fn on(text: &mut String, owner: &FindingThread, frames: usize) {
    if let Some(what) = &owner.doing {
        doing(text, what, FRAMES);
    }
    if let Some(waits) = &owner.waits {
        let lock = waits.lock.as_ref().map(|lock| brief(&lock.text()));
        let what = lock.unwrap_or_else(|| "the end of a thread".into());
        let _ = writeln!(text, "    which itself waits for {what}, at:");
        waits_at(text, waits, frames);
    }
}

/// Adds where a thread waits, in Python as well.
fn waits_at(text: &mut String, waits: &FindingWait, frames: usize) {
    match &waits.python {
        Some(python) => stacks(text, waits.stack.as_ref(), Some(python), ShownFrames::of(1)),
        None => stack_lines(text, waits.stack.as_ref(), frames),
    }
}

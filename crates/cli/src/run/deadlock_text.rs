//! A cycle as data and as text: its threads and its locks, and no others.

use super::across;
use super::scene::Scene;
use crate::cycle_text::{self, ShownFrames};
use lockstead_inspect::report::finding::{FindingHold, FindingThread, NamedLock};
use lockstead_inspect::snapshot::Snapshot;
use lockstead_inspect::snapshot::model::{CycleVerdict, JudgedCycle};
use lockstead_inspect::waits::detect::FoundCycle;
use lockstead_ledger::publish::{Holding, WaitKind};

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
        let wanted = found.members[(at + count - 1) % count].lock;
        let hold = |holding: &Holding| match wanted {
            // Of the right to become the writer the lock itself is named.
            Some(lock) if lock != holding.address => {
                let hold = scene.holds(&Holding { address: lock, ..*holding }, now);
                FindingHold { shared: true, ..hold }
            }
            _ => scene.holds(holding, now),
        };
        let holds = member.holding.as_ref().map(hold);
        FindingThread { waits: Some(waits), holds, ..scene.party(waiter.thread) }
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

/// Gives locks that only their words say are held the names that they have for who waits for them: the
/// ledger of the holder may never have heard of them.
pub(super) fn name_by_waiters(parties: &mut [FindingThread]) {
    let names = parties.iter().map(|party| party.waits.as_ref()?.lock.clone());
    let names: Vec<Option<NamedLock>> = names.collect();
    let before = names.iter().cycle().skip(parties.len().saturating_sub(1));
    for (party, name) in parties.iter_mut().zip(before) {
        if let (Some(holds), Some(name)) = (party.holds.as_mut().filter(|h| h.by_word), name) {
            holds.lock = name.clone();
        }
    }
}

/// Returns the members of a cycle that memory has shown, called as the exit report calls them.
pub(super) fn parties_of(
    scene: &mut Scene,
    found: &Snapshot,
    cycle: &JudgedCycle,
) -> Vec<FindingThread> {
    let parties = found.parties(cycle).into_iter();
    let named = |party: FindingThread| FindingThread {
        name: scene.name_by_number(party.tid).or(party.name),
        ..party
    };
    parties.map(named).collect()
}

/// Returns the text, a line feed at its end.
pub(super) fn text(program: &str, parties: &[FindingThread], verdict: CycleVerdict) -> String {
    let threads = cycle_text::who(parties.len());
    let mut text = match verdict {
        CycleVerdict::Timed => {
            format!("lockstead: CYCLE: {threads} until a time-out, in {program}\n")
        }
        CycleVerdict::Probable => {
            format!("lockstead: DEADLOCK, probably: {threads}, in {program}\n")
        }
        CycleVerdict::Deadlock | CycleVerdict::Unconfirmed => {
            format!("lockstead: DEADLOCK: {threads}, in {program}\n")
        }
    };
    cycle_text::members(&mut text, parties, ShownFrames::of(parties.len()));
    text
}

/// What a cycle rests on that leads through a semaphore; a line feed at its end.
pub(super) const BY_USE: &str = "  It rests on how the semaphore was used: it began with one token, \
     and so far each thread that took it gave it back.\n";

/// What a cycle rests on where mutexes of it do not say who owns them; a line feed at its end.
pub(super) const UNNAMED: &str = "  It rests on the calls that the threads made, and on the kernel, \
     for which they sleep: the words of these mutexes name no owner, as where another library than \
     glibc has them.\n";

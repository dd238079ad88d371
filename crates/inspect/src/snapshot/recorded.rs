//! A snapshot of a process under `lockstead run`, from its ledger.
//!
//! # Role
//! The ledger says who holds what since when and from where, and who waits. The
//! process's memory is asked only for what no ledger has: threads that sleep in
//! futex calls of other libraries, the owners of locks that were taken before
//! the library came, and what threads that do not wait are doing.
//!
//! # Order
//! The cycles first, which stay if they are true; then the threads as the kernel
//! shows them; then the ledger, thread by thread while they run.
//!
//! # Cost
//! Two small files of `/proc` a thread, and each distinct stack named once,
//! however many locks were acquired there.

use super::capture::{Looking, SnapshotFacts};
use super::entries::{LedgerEntries, ReadWait};
use super::model::{
    CycleVerdict, JudgedCycle, LockHeld, LockHolder, Snapshot, SnapshotLock, SnapshotSource,
    ThreadWait, WaitTarget,
};
use super::objects::ledger_now;
use crate::ledger::{MappedLedger, code};
use crate::modules::Modules;
use crate::proc::process::{LiveProcess, Unusable};
use crate::proc::task::{self, TaskDoing};
use crate::waits::detect::{Detector, FoundCycle};
use crate::waits::graph::Wants;
use crate::waits::observe::Observer;
use crate::waits::surroundings::WaitSurroundings;
use crate::waits::verify;
use crate::waits::words::WordOwners;
use lockstead_ledger::Ledger;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Looks at a cycle until its threads sleep, so often.
const ROUNDS: u32 = 5;
/// The time between two of these looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Looks at a process that has a ledger. `everything`: also the stacks of
/// threads that neither wait nor hold what others want. `may_stop` as for
/// [`capture`](super::capture()).
///
/// # Errors
/// It ended meanwhile.
pub fn recorded(
    process: &LiveProcess,
    mapped: &MappedLedger,
    everything: bool,
    may_stop: bool,
) -> Result<Snapshot, Unusable> {
    let ledger = mapped.view();
    let refused = matches!(task::doing(process.pid, process.pid), Ok(TaskDoing::Refused));
    let visible = !process.status.nested() && !refused;
    let found = cycles(&WaitSurroundings { ledger, pid: process.pid, visible });
    let mut looking = Looking::start(process, may_stop)?;
    looking.open_code(|| {
        Modules::of(process.pid).or_else(|_| Ok(Modules::saved(code_of(process, &ledger))))
    });
    if let Some(barrier) = looking.barrier(process) {
        looking.limits.push(format!(
            "only what the ledger has is shown, and not what threads that do not wait are doing: \
             {}",
            barrier.reason()
        ));
    }
    looking.limits.extend(losses(&ledger));
    if found.iter().any(|(_, found)| found.unnamed && found.has_semaphore()) {
        looking.limits.push(
            "a deadlock leads through a semaphore, which names no owner: it rests on its use, for it \
             began with one token, and so far each thread that took it gave it back"
                .into(),
        );
    }
    if found.iter().any(|(_, found)| found.unnamed && !found.has_semaphore()) {
        looking.limits.push(
            "mutexes of a deadlock name no owner, as where another library than glibc has them: it \
             rests on the calls that the threads made, and on the kernel, for which they sleep"
                .into(),
        );
    }

    let taking_back = found.iter().flat_map(|(_, found)| taking_back(found)).collect();
    let mut entries = LedgerEntries::read(&mut looking, &ledger, &taking_back);
    name_by_words(&looking, &ledger, &mut entries);
    look_in_memory(&mut looking, &ledger, &mut entries);
    place_seen(&looking, &mut entries);
    looking.look_at_python(std::mem::take(&mut entries.taken));
    let waits = entries.waits.iter();
    let tids: HashMap<u32, u32> =
        waits.filter_map(|(&tid, waits)| Some((waits.record?, tid))).collect();
    let mut cycles: Vec<JudgedCycle> =
        found.iter().filter_map(|(verdict, found)| cycle(*verdict, found, &tids)).collect();
    cycles.extend(unrecorded_cycles(&mut looking, &cycles));
    cycles.sort_by(|a, b| a.threads.cmp(&b.threads));

    let wanted: HashSet<u32> = entries.wanted_holders();
    looking.read_other_stacks(|tid| {
        everything || wanted.contains(&tid) || entries.waits.contains_key(&tid)
    });
    let LedgerEntries { waits, mut locks, stacks, .. } = entries;
    locks.values_mut().for_each(|lock| lock.waiting.sort_unstable());
    let mut waits = waits.into_iter().map(|(tid, wait)| (tid, wait.wait)).collect();
    looking.name_python_waits(&mut waits, &mut locks);
    let source = SnapshotSource::Ledger;
    Ok(looking.finish(process, SnapshotFacts { source, waits, locks, cycles, stacks }))
}

/// Names the holders of locks that are told of only when somebody waits: their words have them.
fn name_by_words(looking: &Looking, ledger: &Ledger<'_>, entries: &mut LedgerEntries) {
    let words = WordOwners::default();
    for record in entries.waits.values().filter_map(|wait| wait.record) {
        let Some((_, waiting)) =
            ledger.thread(record as usize).and_then(|thread| thread.record.wait.read())
        else {
            continue;
        };
        if let Some(lock) = entries.locks.get_mut(&waiting.target)
            && matches!(lock.held, LockHeld::Unknown { .. })
            && let Some(owner) = words.named_owner(&waiting, ledger, looking.pid)
            && let Some(&tid) = looking.numbers.get(&owner)
        {
            lock.held = LockHeld::By { holders: vec![LockHolder::alone(tid)] };
        }
    }
}

/// Says of the holders that the ledger saw acquire their locks where and when that was.
fn place_seen(looking: &Looking, entries: &mut LedgerEntries) {
    for (&address, lock) in &mut entries.locks {
        let LockHeld::By { holders } = &mut lock.held else { continue };
        let Some(seen) = looking.seen_holder(address) else { continue };
        let unplaced =
            |holder: &&mut LockHolder| holder.thread == seen.thread && holder.acquired.is_none();
        for holder in holders.iter_mut().filter(unplaced) {
            holder.acquired = Some(entries.stacks.len());
            entries.stacks.push(seen.stack.clone());
            holder.held_ns = Some(entries.now.saturating_sub(seen.at));
            holder.exact = true;
        }
    }
}

/// Returns the cycles that the ledger shows, and what they are.
fn cycles(surroundings: &WaitSurroundings<'_>) -> Vec<(CycleVerdict, FoundCycle)> {
    let (ledger, detector) = (&surroundings.ledger, Detector::default());
    let (mut observer, mut judged) = (Observer::default(), Vec::new());
    let words = WordOwners::default();
    observer.look(ledger);
    for round in 1..=ROUNDS {
        observer.look(ledger);
        judged.clear();
        let mut pending = false;
        let waiters = words.complete(observer.waiters(), ledger, surroundings.pid);
        let place = (surroundings.pid, surroundings.visible);
        for mut found in detector.find(waiters.iter(), surroundings) {
            let verdict = match verify::verify(&found, ledger, &words, place) {
                verify::Confirmation::True if found.timed => CycleVerdict::Timed,
                verify::Confirmation::True => CycleVerdict::Deadlock,
                verify::Confirmation::Unnamed if !found.timed && found.is_old(ledger_now()) => {
                    found.unnamed = true;
                    CycleVerdict::Deadlock
                }
                verify::Confirmation::NotYet | verify::Confirmation::Unnamed => {
                    pending = true;
                    CycleVerdict::Unconfirmed
                }
                verify::Confirmation::False => continue,
            };
            judged.push((verdict, found));
        }
        if !pending || round == ROUNDS {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    judged
}

/// Returns the threads of a cycle that are getting a mutex back after a condition, by the indices
/// of their records.
fn taking_back(found: &FoundCycle) -> impl Iterator<Item = u32> + '_ {
    let members = found.members.iter();
    members
        .filter(|member| member.lock.is_some_and(|lock| lock == member.waiter.waiting.companion))
        .map(|member| member.waiter.thread)
}

/// Returns the cycle by its threads' ids, which `tids` has by their records; `None` if it has gone
/// since.
fn cycle(
    verdict: CycleVerdict,
    found: &FoundCycle,
    tids: &HashMap<u32, u32>,
) -> Option<JudgedCycle> {
    let members = found.members.iter();
    let threads: Option<Vec<u32>> =
        members.map(|member| tids.get(&member.waiter.thread).copied()).collect();
    let mut threads = threads?;
    let first = threads.iter().enumerate().min_by_key(|(_, tid)| **tid)?.0;
    threads.rotate_left(first);
    Some(JudgedCycle { verdict, threads })
}

/// Looks in memory at the threads that sleep for something the ledger knows nothing of, and the
/// owners of what it knows no owner of.
fn look_in_memory(looking: &mut Looking, ledger: &Ledger<'_>, entries: &mut LedgerEntries) {
    let silent = entries.without_holder();
    looking.find_waits(|tid| silent.contains(&tid) || !entries.waits.contains_key(&tid));
    looking.read_seen(ledger);
    looking.find_owners();
    let found: Vec<u32> = looking.waits.keys().copied().collect();
    for tid in found {
        let known = looking.waits.remove(&tid);
        let Some(known) = known else { continue };
        let mut own = BTreeMap::new();
        let wait = looking.wait_of(tid, &known, &mut own);
        let Some(recorded) = entries.waits.get(&tid) else {
            if !looking.stays(tid) || entries.waits_now(looking, ledger, tid) {
                continue;
            }
            for (address, lock) in own {
                let there = entries
                    .locks
                    .entry(address)
                    .or_insert(SnapshotLock { waiting: Vec::new(), ..lock });
                there.waiting.push(tid);
            }
            looking.waits.insert(tid, known);
            let since = entries.sleeping.get(&tid);
            let waited_ns = since.map(|&since| entries.now.saturating_sub(since));
            entries
                .waits
                .insert(tid, ReadWait { record: None, wait: ThreadWait { waited_ns, ..wait } });
            continue;
        };
        let WaitTarget::Lock { address } = recorded.wait.target else { continue };
        if let (Some(lock), Some(seen)) = (entries.locks.get_mut(&address), own.remove(&address))
            && matches!(
                seen.held,
                LockHeld::By { .. } | LockHeld::Elsewhere { .. } | LockHeld::Readers { .. }
            )
        {
            lock.held = seen.held;
        }
    }
}

/// Returns the cycles through locks that are in no ledger: of all threads that sleep, by memory
/// alone. Only where such a lock has an owner.
fn unrecorded_cycles(looking: &mut Looking, known: &[JudgedCycle]) -> Vec<JudgedCycle> {
    let facts = looking.facts();
    let mut owned = facts
        .values()
        .any(|fact| !fact.holders.is_empty() || matches!(fact.wants, Some(Wants::Join(_))));
    // A wait that the ledger has may be for a lock whose readers only their own code tells.
    owned |= looking.owners.has_any();
    if !owned && !looking.has_python() {
        return Vec::new();
    }
    looking.find_waits(|_| true);
    let members = |cycle: &JudgedCycle| cycle.threads.iter().copied().collect::<BTreeSet<u32>>();
    let known: Vec<BTreeSet<u32>> = known.iter().map(members).collect();
    let mut cycles = looking.cycles();
    cycles.retain(|cycle| !known.contains(&members(cycle)));
    cycles
}

/// Returns the code of a process of which not even the maps may be read: the ledger has the files
/// that its recorded addresses lie in.
fn code_of(process: &LiveProcess, ledger: &Ledger<'_>) -> crate::maps::Maps {
    // Anybody may read how it was called; a bare name is none of a file.
    let program = process.command.first().filter(|name| name.starts_with('/'));
    let program = program.map(PathBuf::from).unwrap_or_default();
    code::maps(b"", &code::modules(ledger), &program)
}

/// Returns what the ledger lacks.
fn losses(ledger: &Ledger<'_>) -> Option<String> {
    // Whatever a program has written there.
    let of_threads = ledger.threads().map(|thread| {
        let [held, skipped] = [&thread.record.held_dropped, &thread.record.skipped];
        held.load(Relaxed).saturating_add(skipped.load(Relaxed))
    });
    let lost = of_threads.fold(ledger.header().losses.threads.load(Relaxed), u64::saturating_add);
    (lost != 0).then(|| {
        format!(
            "{lost} acquisitions and waits were not recorded (in signal handlers, or for want of \
             room): a lock that is held may be missing"
        )
    })
}

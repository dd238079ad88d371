//! What the ledger does not have, as text: a process in which all threads wait, a wait for
//! a lock that is not recorded, a cycle of such locks.
//!
//! # Role
//! These reports are made of the snapshot that `lockstead dump` shows, so that both say the
//! same of a thread.

use super::processes::Observed;
use crate::cycle_text::duration;
use crate::dump;
use lockstead_inspect::proc::process::LiveProcess;
use lockstead_inspect::report::finding::{FindingThread, HolderActivity as Doing};
use lockstead_inspect::snapshot::model::{
    HolderEvidence, JudgedCycle, LockHeld, SnapshotLock, SnapshotThread, ThreadActivity, WaitTarget,
};
use lockstead_inspect::snapshot::{self, Snapshot};
use lockstead_inspect::waits::standstill::Enders;
use lockstead_render::words::clean;
use std::fmt::Write;
use std::time::Instant;

/// Returns the process as it is now; `whole`: with the stacks of all threads.
pub(super) fn snapshot(process: &Observed, whole: bool) -> Option<Snapshot> {
    let opened = LiveProcess::open(process.pid).ok()?;
    snapshot::recorded(&opened, &process.ledger, whole, true).ok()
}

/// Renders a report that all threads wait. Returns `None` if they do not any more.
pub(super) fn stuck(
    program: &str,
    found: &Snapshot,
    enders: Enders,
    since: Instant,
) -> Option<String> {
    let living = found.threads.iter().filter(|thread| thread.activity != ThreadActivity::Ended);
    let living: Vec<&SnapshotThread> = living.collect();
    if living.is_empty() || !living.iter().all(|thread| waits_for_ever(thread)) {
        return None;
    }
    // Of waits for what others hold the watch tells, and to wait for another process, or for a
    // signal, is what many programs are there for.
    let is_event = |thread: &&SnapshotThread| {
        thread.wait().is_some_and(|wait| match wait.target {
            WaitTarget::Lock { address } => !found.lock(address).is_some_and(is_held),
            WaitTarget::Join { .. } => false,
            WaitTarget::Unknown { .. } => true,
        })
    };
    if enders != Enders::Nobody && !living.iter().any(is_event) {
        return None;
    }
    let lasted = duration(u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX));
    let threads = match living.len() {
        1 => "the only thread waits, without a deadline".to_owned(),
        count => format!("all {count} threads wait, none with a deadline"),
    };
    let mut text = format!("lockstead: STUCK: {threads}, in {program}, for at least {lasted}\n");
    text.push_str(match enders {
        Enders::Nobody => {
            "  nothing outside the process can end any of these waits, and no thread is left that \
             could\n"
        }
        Enders::Others | Enders::Child => {
            "  no thread is left that could end any of these waits: a signal could, or another \
             process, but the others of the run wait as well\n"
        }
    });
    for thread in living {
        if thread.wait().is_some() || thread.kernel_lock().is_some() {
            text.push_str(&plain(&dump::one_waiter(found, thread.tid)));
        } else {
            text.push_str(&plain(&dump::one_sleeper(found, thread.tid)));
        }
        if let Some(whose) = whose_turn(found, thread) {
            let _ = writeln!(text, "    {whose}");
        }
    }
    advice(&mut text, found);
    Some(text)
}

/// Adds which tool of the program's runtime shows more.
fn advice(text: &mut String, found: &Snapshot) {
    if let Some(advice) = &found.advice {
        let _ = writeln!(text, "  {advice}");
    }
}

/// Returns who could have ended a wait for an event.
fn whose_turn(found: &Snapshot, thread: &SnapshotThread) -> Option<&'static str> {
    let WaitTarget::Lock { address } = thread.wait()?.target else { return None };
    Some(match found.lock(address)?.kind.as_str() {
        "semaphore" => "a thread that calls sem_post for it would end this",
        "condition variable" => "a thread that signals it would end this",
        "barrier" => "the threads that have not come to it would end this",
        _ => return None,
    })
}

/// Tells whether a lock is one of Python's: the ledger does not know who has it.
fn is_of_python(lock: &SnapshotLock) -> bool {
    lock.kind == "GIL" || lock.kind.starts_with("threading.")
}

fn is_held(lock: &SnapshotLock) -> bool {
    matches!(lock.held, LockHeld::By { .. } | LockHeld::Elsewhere { .. } | LockHeld::Readers { .. })
}

fn waits_for_ever(thread: &SnapshotThread) -> bool {
    match &thread.activity {
        ThreadActivity::Waiting { wait } => wait.until.is_none(),
        ThreadActivity::Asleep { on, .. } => !on.timed,
        _ => false,
    }
}

/// Renders a report of a wait for what others hold, which was seen first at `since`; `before`: it had
/// begun before the command came. Returns `None` if the wait is over, or for something else.
pub(super) fn blocked(
    program: &str,
    found: &Snapshot,
    tid: u32,
    (since, before): (Instant, bool),
) -> Option<String> {
    let thread = found.thread(tid)?;
    let (what, limited) = match (thread.kernel_lock(), thread.wait()) {
        (Some(on), _) => (on.what.clone()?, on.timed),
        (None, Some(wait)) => {
            let WaitTarget::Lock { address } = wait.target else { return None };
            let lock = found.lock(address)?;
            // Of waits that the ledger has the watch tells.
            if !is_held(lock) || wait.word.is_none() {
                return None;
            }
            (lock.name.clone(), wait.until.is_some())
        }
        (None, None) => return None,
    };
    let lasted = duration(u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX));
    let limit = if limited { ", with a time-out" } else { "" };
    let before = if before { ", and before the command came" } else { "" };
    let who = format!("thread \"{}\" (tid {tid})", clean(&thread.name));
    let mut text = format!(
        "lockstead: BLOCKED: {who} of {program} waits for {}, since {lasted}{before}{limit}\n",
        clean(&what)
    );
    let lines = plain(&dump::one_waiter(found, tid));
    // The first line is said already.
    lines.lines().skip(1).for_each(|line| {
        let _ = writeln!(text, "{line}");
    });
    advice(&mut text, found);
    Some(text)
}

/// Returns whether the ledger has all waits of a cycle, and who holds what, so that the detection
/// sees it as well.
pub(super) fn is_recorded(found: &Snapshot, cycle: &JudgedCycle) -> bool {
    let next = cycle.threads.iter().cycle().skip(1);
    cycle.threads.iter().zip(next).all(|(&tid, &next)| {
        let wait = found.thread(tid).and_then(SnapshotThread::wait);
        wait.is_some_and(|wait| {
            let by_evidence = match wait.target {
                WaitTarget::Lock { address } => {
                    found.lock(address).is_some_and(|lock| is_of_python(lock) || shows(lock, next))
                }
                WaitTarget::Join { .. } | WaitTarget::Unknown { .. } => false,
            };
            wait.word.is_none() && !by_evidence
        })
    })
}

/// Tells whether something else than its word and the ledger shows that the thread holds a lock.
fn shows(lock: &SnapshotLock, tid: u32) -> bool {
    let LockHeld::By { holders } = &lock.held else { return false };
    let mut its = holders.iter().filter(|holder| holder.thread == tid);
    its.any(|holder| holder.evidence != HolderEvidence::Word)
}

/// Returns whether a thread is in a cycle.
pub(super) fn is_in_cycle(found: &Snapshot, tid: u32) -> bool {
    found.cycles.iter().any(|cycle| cycle.threads.contains(&tid))
}

/// Returns the threads, with what each waits for.
pub(super) fn parties(found: &Snapshot) -> Vec<FindingThread> {
    found.threads.iter().filter_map(|thread| party(found, thread.tid)).collect()
}

/// Returns one thread, with what it waits for.
pub(super) fn party(found: &Snapshot, tid: u32) -> Option<FindingThread> {
    let thread = found.thread(tid)?;
    let lines = plain(&dump::one_waiter(found, tid)) + &plain(&dump::one_sleeper(found, tid));
    let what = lines.lines().next().unwrap_or_default().trim().to_owned();
    let doing = Some(Doing { what, stack: thread.stack.clone() });
    Some(FindingThread { tid, name: Some(thread.name.clone()), doing, ..FindingThread::default() })
}

/// Returns a text without its colours.
pub(super) fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

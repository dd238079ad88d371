//! The threads of a process: how many, who waited most, and which part of
//! their time that was.

use super::account::is_running;
use super::kinds::ThreadTimes;
use super::model::{ThreadReport, ThreadsReport, WaitingShare, percent};
use super::names::{FIRST, Names, thread_name};
use super::roles::{Kinds, peak};
use lockstead_ledger::lock::LockRecord;
use lockstead_ledger::publish::WaitKind;
use lockstead_ledger::thread::{KEPT_ENDED, ThreadPart, ThreadRecord, state};
use lockstead_ledger::{Ledger, LedgerPart};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

/// Threads that are listed by name.
const LISTED: usize = 5;

/// Counts the threads of a ledger whose process lived from `began` to `end`.
pub(super) fn count(
    ledger: &Ledger<'_>,
    names: &mut dyn Names,
    roles: &FutexRoles,
    times: &HashMap<u32, ThreadTimes>,
    (began, end): (u64, u64),
) -> (ThreadsReport, WaitingShare) {
    let mut threads = ThreadsReport::default();
    let mut waiting = WaitingShare::default();
    let mut changes = Vec::new();
    let mut kinds = Kinds::default();
    let mut leaked = 0;
    for thread in ledger.threads() {
        let record = thread.record;
        leaked += usize::from(record.state.load(Relaxed) == state::LEAKED);
        if matches!(record.state.load(Relaxed), state::FREE | state::CLAIMED) {
            continue;
        }
        threads.created += 1;
        let mut report = one(&thread, names, ledger.header().pid.load(Relaxed), end);
        let start = record.began.load(Relaxed);
        changes.push((start, 1));
        changes.push((start.saturating_add(report.lived_ns), -1));
        waiting.thread_ns = waiting.thread_ns.saturating_add(report.lived_ns);
        waiting.waited_ns = waiting.waited_ns.saturating_add(report.waited_ns);
        waiting.idled_ns = waiting.idled_ns.saturating_add(report.idled_ns);
        kinds.add(&report, start, times.get(&report.tid));
        // The sums of the process are put right by the rows of the locks.
        apply_roles(ledger, &thread, roles, end, &mut report);
        if report.waited_ns != 0 {
            threads.worst.push(report);
        }
    }
    threads.peak = peak(changes);
    threads.kinds = kinds.finish();
    let retired = &ledger.header().retired;
    let gone = retired.threads.load(Relaxed);
    if gone != 0 {
        threads.created = threads.created.saturating_add(gone);
        waiting.thread_ns = waiting.thread_ns.saturating_add(retired.lived.load(Relaxed));
        waiting.waited_ns = waiting.waited_ns.saturating_add(retired.waited.load(Relaxed));
        waiting.idled_ns = waiting.idled_ns.saturating_add(retired.idled.load(Relaxed));
        // When the newest record was taken, no other one was spare.
        let used = ledger.used(LedgerPart::Threads);
        let together = if used > KEPT_ENDED { used - leaked } else { 0 };
        threads.peak = threads.peak.max(together as u64);
    }
    threads.worst.sort_by_key(|thread| (Reverse(thread.waited_ns), thread.tid));
    threads.worst.truncate(LISTED);
    shares(&mut waiting, end.saturating_sub(began));
    (threads, waiting)
}

/// What the futex words of a ledger are, by the indices of their records: true for locks.
pub(super) type FutexRoles = HashMap<u32, bool>;

/// Counts the sleeps of a thread on futex words as the rows of these count them: as waiting where
/// the stacks say that it was for a lock, and as idle time elsewhere.
fn apply_roles(
    ledger: &Ledger<'_>,
    thread: &ThreadPart<'_>,
    roles: &FutexRoles,
    end: u64,
    report: &mut ThreadReport,
) {
    let move_to = |is_lock: bool, ns: u64, report: &mut ThreadReport| {
        let (from, to) = match is_lock {
            true => (&mut report.idled_ns, &mut report.waited_ns),
            false => (&mut report.waited_ns, &mut report.idled_ns),
        };
        let ns = ns.min(*from);
        (*from, *to) = (*from - ns, to.saturating_add(ns));
    };
    for time in &thread.record.futex_times {
        let index = time.lock.load(Relaxed);
        let is_same =
            |lock: &LockRecord| lock.generation.load(Relaxed) == time.generation.load(Relaxed);
        let Some(&is_lock) = roles.get(&index).filter(|_| ledger.lock(index).is_some_and(is_same))
        else {
            continue;
        };
        let wrong = if is_lock { &time.idled } else { &time.waited };
        move_to(is_lock, wrong.load(Relaxed), report);
    }
    if let Some((_, wait)) = thread.record.wait.read().filter(|_| is_running(thread))
        && wait.how.kind() == WaitKind::FUTEX
        && ledger.lock_of(&wait).is_some_and(|index| roles.get(&index) == Some(&true))
    {
        report.stuck = true;
        move_to(true, end.saturating_sub(wait.since), report);
    }
}

fn shares(waiting: &mut WaitingShare, lived: u64) {
    waiting.waited_percent = percent(waiting.waited_ns, waiting.thread_ns);
    waiting.idled_percent = percent(waiting.idled_ns, waiting.thread_ns);
    waiting.waiting_threads = percent(waiting.waited_ns, lived) / 100.0;
}

/// Moves time: of what counts as idle `late` was waiting for locks, and of what counts as waiting
/// for locks `wrong` was idle after all.
pub(super) fn move_idle_time(waiting: &mut WaitingShare, late: u64, wrong: u64, lived: u64) {
    let late = late.min(waiting.idled_ns);
    let wrong = wrong.min(waiting.waited_ns);
    waiting.waited_ns = (waiting.waited_ns - wrong).saturating_add(late);
    waiting.idled_ns = (waiting.idled_ns - late).saturating_add(wrong);
    shares(waiting, lived);
}

fn one(thread: &ThreadPart<'_>, names: &mut dyn Names, first: u32, end: u64) -> ThreadReport {
    let record = thread.record;
    let tid = record.tid.load(Relaxed);
    let ended = record.ended.load(Relaxed);
    let until = if is_running(thread) || ended == 0 { end } else { ended };
    let mut report = ThreadReport {
        tid,
        name: thread_name(record),
        start: start(record, first, names),
        lived_ns: until.saturating_sub(record.began.load(Relaxed)),
        waited_ns: record.waited.load(Relaxed),
        idled_ns: record.idled.load(Relaxed),
        acquisitions: acquisitions(thread),
        contended: record.contended.load(Relaxed),
        stuck: false,
    };
    // A wait that had not ended is in none of the sums yet.
    if let Some((_, wait)) = record.wait.read().filter(|_| is_running(thread)) {
        let ns = end.saturating_sub(wait.since);
        if is_for_lock(wait.how) {
            report.stuck = true;
            report.waited_ns = report.waited_ns.saturating_add(ns);
        } else {
            report.idled_ns = report.idled_ns.saturating_add(ns);
        }
    }
    report
}

/// Tells whether this is a wait for a lock, not for work or for a thread's end.
#[must_use]
pub fn is_for_lock(how: WaitKind) -> bool {
    matches!(how.kind(), WaitKind::MUTEX | WaitKind::READ | WaitKind::WRITE | WaitKind::SPIN)
}

/// Returns all acquisitions of a thread.
pub(super) fn acquisitions(thread: &ThreadPart<'_>) -> u64 {
    thread.known().fold(thread.record.acquisitions.load(Relaxed), |sum, known| {
        sum.saturating_add(u64::from(known.count.load(Relaxed)))
    })
}

/// Returns the function that a thread of this ledger began with, which is what it is called where
/// nobody has named it.
pub fn thread_start(
    record: &ThreadRecord,
    ledger: &Ledger<'_>,
    names: &mut dyn Names,
) -> Option<String> {
    start(record, ledger.header().pid.load(Relaxed), names)
}

fn start(record: &ThreadRecord, first: u32, names: &mut dyn Names) -> Option<String> {
    match record.start_routine.load(Relaxed) {
        0 if record.tid.load(Relaxed) == first => Some(FIRST.into()),
        0 => None,
        address => names.function(address),
    }
}

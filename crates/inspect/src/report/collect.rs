//! From ledgers to the report.

use super::account::Account;
use super::detail::{Described, describe};
use super::finding::Finding;
use super::futexes;
use super::holders::{HolderLooks, HoldersByRecord};
use super::kinds::ThreadTimes;
use super::listing::{self, ListedRow, Listing, number_by_name};
use super::model::{
    Glimpse, LockReport, LockTotals, Losses, ProcessReport, RunReport, SCHEMA, Sort, VERSION,
};
use super::names::Names;
use super::places::Places;
use super::python::{PythonLooks, PythonWaits, WaitsByRecord};
use super::rows::{self, ReportRow, add, choose};
use super::semaphores::model::Semaphores;
use super::threads::{self, FutexRoles};
use super::verdict;
use lockstead_ledger::Ledger;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

/// What the command knows of a process besides its ledger.
#[derive(Clone, Debug, Default)]
pub struct ProcessFacts {
    /// Its id, in the command's namespace.
    pub pid: u32,
    /// The process that started it.
    pub parent: Option<u32>,
    /// The file it ran.
    pub exe: Option<String>,
    /// The arguments that it was called with.
    pub command: Vec<String>,
    /// The time at which it ended, in nanoseconds of `CLOCK_MONOTONIC`; `None` if it runs or nobody
    /// saw it.
    pub ended_ns: Option<u64>,
    /// How the process ended.
    pub exit: Option<String>,
    /// Processor time that it has used as this program, in nanoseconds.
    pub ran_ns: Option<u64>,
    /// How long its threads stood ready without a processor, in nanoseconds.
    pub queued_ns: Option<u64>,
    /// The times of each thread as far as anybody looked, by its number in the ledger.
    pub threads: HashMap<u32, ThreadTimes>,
}

/// A process to report on.
pub struct LedgerProcess<'a> {
    /// The ledger of the process.
    pub ledger: Ledger<'a>,
    /// The facts that do not come from the ledger.
    pub facts: ProcessFacts,
    /// The source of its names.
    pub names: &'a mut dyn Names,
    /// What looks at its threads in Python have met, if there were any.
    pub python: Option<&'a PythonWaits>,
    /// What looks at the holders of locks have met, if there were any.
    pub holders: Option<&'a HolderLooks>,
}

/// What a report is to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportOptions {
    /// The most locks of a process.
    pub top: usize,
    /// The order of the locks.
    pub sort: Sort,
    /// One row for all locks of one origin.
    pub by_class: bool,
    /// A row for each lock, also of those that are elements of one array or from one place.
    pub each_lock: bool,
    /// Say of each lock what to do about it.
    pub verdicts: bool,
}

impl Default for ReportOptions {
    fn default() -> Self {
        ReportOptions {
            top: 10,
            sort: Sort::default(),
            by_class: false,
            each_lock: false,
            verdicts: true,
        }
    }
}

/// What there is to say of a whole run besides its processes.
#[derive(Clone, Debug, Default)]
pub struct RunFacts {
    /// The command that was run.
    pub command: Vec<String>,
    /// The length of the run in nanoseconds.
    pub wall_ns: u64,
    /// The number of processors that it could run on; 0: unknown.
    pub processors: u64,
    /// Processor time of the program, and of its children that somebody waited for; 0: unknown.
    pub cpu_ns: u64,
    /// Processor time that others had meanwhile, if it is known.
    pub others_ns: Option<u64>,
    /// Processes in which nothing at all happened.
    pub silent_processes: u64,
    /// Whether the order of locks and the rules of their use were checked.
    pub checked: bool,
    /// What was reported meanwhile.
    pub findings: Vec<Finding>,
    /// What semaphores were used for, if anybody asked.
    pub semaphores: Option<Semaphores>,
    /// Waits that no ledger has.
    pub glimpses: Vec<Glimpse>,
}

/// Makes the report of a run from those on its processes.
#[must_use]
pub fn assemble(
    mut processes: Vec<ProcessReport>,
    whole: RunFacts,
    options: &ReportOptions,
) -> RunReport {
    processes.sort_by_key(|report| (Reverse(report.waiting.waited_ns), report.pid));
    RunReport {
        schema: SCHEMA,
        version: VERSION,
        lockstead: env!("CARGO_PKG_VERSION"),
        command: whole.command,
        wall_ns: whole.wall_ns,
        processors: whole.processors,
        cpu_ns: whole.cpu_ns,
        others_ns: whole.others_ns,
        sort: options.sort,
        top: options.top,
        by_class: options.by_class,
        each_lock: options.each_lock,
        silent_processes: whole.silent_processes,
        checked: whole.checked,
        processes,
        findings: whole.findings,
        semaphores: whole.semaphores,
        glimpses: whole.glimpses,
    }
}

/// Makes the report on one process. Returns `None` if nothing at all happened in it: one thread and
/// no lock.
pub fn describe_process(
    process: LedgerProcess<'_>,
    options: &ReportOptions,
) -> Option<ProcessReport> {
    let ledger = process.ledger;
    let facts = process.facts;
    let names = process.names;
    let header = ledger.header();
    let began = header.began.load(Relaxed);
    let ended = header.ended.load(Relaxed);
    let end = match facts.ended_ns {
        Some(end) => end,
        None if ended != 0 => ended,
        None => header.clock.0.load(Relaxed),
    };
    let end = end.max(began);

    let account = Account::of(&ledger, end);
    let losses = losses(&ledger, &account);
    let rows = rows::all(&ledger, &account, options.by_class);
    let rows = futexes::gather(&ledger, names, rows);
    let futexes = rows.iter().filter(|row| row.futex.is_some());
    let roles = futexes.flat_map(|row| row.members.all().iter().map(|&index| (index, !row.idle)));
    let roles: FutexRoles = roles.collect();
    let (idle, locks): (Vec<ReportRow>, Vec<ReportRow>) =
        rows.into_iter().partition(|row| row.idle);
    let idle = rows::gather_short_lived(&ledger, names, idle);
    let (threads, mut waiting) =
        threads::count(&ledger, names, &roles, &facts.threads, (began, end));
    waiting.ran_ns = facts.ran_ns;
    waiting.queued_ns = facts.queued_ns;
    // Threads count a wait as one for a lock when the condition is known to be one by then.
    let sum_of = |rows: &[ReportRow], of: &dyn Fn(&ReportRow) -> u64| {
        rows.iter().fold(0, |sum: u64, row| sum.saturating_add(of(row)))
    };
    let late = sum_of(&locks, &|row| match row.is_counted_apart(&ledger) {
        true => row.totals.waited_ns.saturating_sub(row.counted),
        false => 0,
    });
    let wrong = sum_of(&idle, &|row| row.counted);
    threads::move_idle_time(&mut waiting, late, wrong, end - began);
    if locks.is_empty() && idle.is_empty() && losses.is_none() && threads.created < 2 {
        return None;
    }
    let totals = sum(&locks);
    let idle_totals = sum(&idle);
    let together = !options.by_class && !options.each_lock;
    let listing = listing::choose(&ledger, names, locks, (options.sort, options.top, together));
    let (idle, more_idle) = choose(idle, Sort::Wait, options.top);
    let mut places = Places::default();
    let listed = listing.groups.iter().chain(&listing.locks);
    let members = listed.flat_map(|listed| listed.row.members.all());
    for lock in members.filter_map(|&index| ledger.lock(index)) {
        if let Some(statistics) = ledger.existing_extension(lock) {
            places.learn(&ledger, names, &statistics.held_at);
        }
    }
    let python = WaitsByRecord::new(&ledger, process.python);
    let holders = HoldersByRecord::new(&ledger, process.holders);
    let (account, places) = (&account, &places);
    let described = Described { ledger, account, places, python: &python, holders: &holders };
    let mut describe_one = |row: &ReportRow, whole| describe(&described, names, row, whole);
    let idle: Vec<LockReport> =
        idle.iter().filter_map(|row| describe_one(row, idle_totals.waited_ns)).collect();
    let mut describe_all = |all: &[ListedRow]| -> Vec<LockReport> {
        let describe = |listed: &ListedRow| {
            let mut lock = listed.placed(describe_one(&listed.row, totals.waited_ns)?);
            if options.verdicts {
                lock.verdict = verdict::of(&lock, &waiting);
            }
            Some(lock)
        };
        all.iter().filter_map(describe).collect()
    };
    let mut groups = describe_all(&listing.groups);
    let mut locks = describe_all(&listing.locks);
    if options.sort == Sort::Name {
        number_by_name(&mut groups, &mut locks);
        locks.sort_by(|a, b| a.name.cmp(&b.name));
    }
    let Listing { more, more_rows, .. } = listing;
    Some(ProcessReport {
        pid: facts.pid,
        parent: facts.parent,
        exe: facts.exe,
        command: facts.command,
        exit: facts.exit,
        lived_ns: end - began,
        threads,
        waiting,
        totals,
        locks,
        more,
        groups,
        more_rows,
        idle,
        more_idle,
        python: process.python.and_then(looks),
        losses,
        order: None,
    })
}

fn looks(waits: &PythonWaits) -> Option<PythonLooks> {
    let PythonWaits { version, unreadable, looks, .. } = waits;
    let is_there = version.is_some() || unreadable.is_some();
    let (version, unreadable) = (version.clone(), unreadable.clone());
    is_there.then_some(PythonLooks { version, unreadable, looks: *looks })
}

fn sum(rows: &[ReportRow]) -> LockTotals {
    rows.iter().fold(LockTotals::default(), |mut sum, row| {
        add(&mut sum, &row.totals);
        sum
    })
}

fn losses(ledger: &Ledger<'_>, account: &Account) -> Losses {
    let header = &ledger.header().losses;
    let retired = &ledger.header().retired;
    let mut losses = Losses {
        locks: header.locks.load(Relaxed),
        statistics: header.extensions.load(Relaxed),
        stacks: header.stacks.load(Relaxed),
        threads: header.threads.load(Relaxed),
        modules: header.modules.load(Relaxed),
        late_acquisitions: header.late.load(Relaxed).saturating_add(account.late),
        in_handlers: retired.skipped.load(Relaxed),
        held: retired.held_dropped.load(Relaxed),
    };
    for thread in ledger.threads() {
        losses.in_handlers = losses.in_handlers.saturating_add(thread.record.skipped.load(Relaxed));
        losses.held = losses.held.saturating_add(thread.record.held_dropped.load(Relaxed));
    }
    losses
}

//! Makes the report on each process when it has ended, and lets go of it.
//!
//! # Role
//! A ledger takes descriptors, memory and much address space: a build starts
//! tens of thousands of processes, so none is kept for longer than it lives.
//! Finding names takes time, so that is done in a thread of its own, which
//! gives way to the program.

use super::processes::{Observed, inside};
use lockstead_inspect::check::Lives;
use lockstead_inspect::check::describe::Describer;
use lockstead_inspect::check::order::{self, RecordedOrder};
use lockstead_inspect::modules::Modules;
use lockstead_inspect::report::model::ProcessReport;
use lockstead_inspect::report::semaphores::model::Semaphores;
use lockstead_inspect::report::{
    LedgerProcess, ProcessFacts, ReportOptions, describe_process, semaphores, thread_name,
    thread_start,
};
use lockstead_inspect::symbols::Symbolizer;
use lockstead_render::output;
use lockstead_render::words::clean;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long somebody waits for the end before being told what for.
const PATIENCE: Duration = Duration::from_secs(2);
/// The number that is added to the niceness.
const GIVE_WAY: libc::c_int = 10;

/// What all processes came to.
#[derive(Default)]
pub(super) struct Accounts {
    /// The processes that used a lock, in the order in which they ended.
    pub(super) processes: Vec<ProcessReport>,
    /// The number of the others.
    pub(super) silent: u64,
    /// How many processes came.
    pub(super) count: u64,
    /// The processes that have written over their ledgers.
    pub(super) damaged: Vec<String>,
    /// What the semaphores of each are used for, if that was asked.
    pub(super) semaphores: Vec<Semaphores>,
}

/// Takes processes that have ended.
pub(super) struct Accountant {
    to: Sender<Arc<Observed>>,
    done: Receiver<()>,
    thread: JoinHandle<Accounts>,
    /// Whether it looks up names.
    reports: bool,
}

impl Accountant {
    /// Starts one, for reports made in this way, with the `order` of locks where that
    /// was checked, and with what `semaphores` are used for; without, it only counts.
    pub(super) fn start(options: Option<ReportOptions>, order: bool, semaphores: bool) -> Self {
        let (to, processes) = mpsc::channel();
        // Dropped with the thread: then there is nothing to wait for any more.
        let (finished, done) = mpsc::channel();
        let wanted = Wanted { options, order, semaphores };
        let reports = wanted.reports();
        let thread = thread::spawn(move || {
            let _finished = finished;
            work(&processes, &wanted)
        });
        Accountant { to, done, thread, reports }
    }

    /// Takes in a process that has ended, or is as good as ended.
    pub(super) fn settle(&self, process: Arc<Observed>) {
        // The thread ends only after the sender.
        let _ = self.to.send(process);
    }

    /// Returns a channel for a thread that hands over processes itself.
    pub(super) fn sender(&self) -> Sender<Arc<Observed>> {
        self.to.clone()
    }

    /// Waits for all reports.
    pub(super) fn finish(self) -> Accounts {
        drop(self.to);
        if self.reports && self.done.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            output::note("lockstead: looking up names for the report ...");
        }
        self.thread.join().unwrap_or_default()
    }
}

/// What to make of each process.
struct Wanted {
    options: Option<ReportOptions>,
    order: bool,
    semaphores: bool,
}

impl Wanted {
    fn reports(&self) -> bool {
        self.options.is_some() || self.semaphores
    }
}

fn work(processes: &Receiver<Arc<Observed>>, wanted: &Wanted) -> Accounts {
    // SAFETY: takes numbers; on Linux it is this thread's priority, and the
    // worst that can happen is that it stays as it is.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, libc::getpriority(0, 0) + GIVE_WAY) };
    let mut accounts = Accounts::default();
    let mut names: Option<Symbolizer> = None;
    for process in processes {
        accounts.count += 1;
        if process.ledger.is_damaged() {
            accounts.damaged.push(format!("{} (pid {})", clean(&process.name()), process.pid));
        }
        if !wanted.reports() {
            continue;
        }
        let maps = process.maps();
        let names = match &mut names {
            // What it has read of files serves for all processes.
            Some(names) => {
                names.update(maps);
                names
            }
            None => names.insert(Symbolizer::new(Modules::saved(maps))),
        };
        if wanted.semaphores {
            accounts.semaphores.push(semaphores_of(&process, names));
        }
        let Some(options) = &wanted.options else { continue };
        let facts = ProcessFacts {
            pid: process.pid,
            parent: process.parent,
            exe: Some(process.program.to_string_lossy().into_owned()),
            command: process.arguments.clone(),
            ended_ns: *inside(&process.ended),
            exit: inside(&process.exit).clone(),
            ran_ns: process.ran(),
            queued_ns: process.queued(),
            threads: process.thread_times(),
        };
        let (python, holders) = (inside(&process.python), inside(&process.holders));
        let described = LedgerProcess {
            ledger: process.ledger.view(),
            facts,
            names: &mut *names,
            python: Some(&python),
            holders: Some(&holders),
        };
        match describe_process(described, options) {
            Some(mut report) => {
                let lives = process.lives.get().filter(|_| wanted.order);
                report.order = lives.map(|lives| order_of(&process, lives, names));
                accounts.processes.push(report);
            }
            None => accounts.silent += 1,
        }
    }
    accounts
}

/// Returns what its semaphores are used for, with names.
fn semaphores_of(process: &Observed, names: &mut Symbolizer) -> Semaphores {
    semaphores::of_process(semaphores::SemaphoreProcess {
        ledger: process.ledger.view(),
        parents: process.elders().map(|elder| elder.ledger.view()).collect(),
        names,
        pid: process.pid,
        exe: Some(process.program.to_string_lossy().into_owned()),
    })
}

/// Returns the order of its locks, with names.
fn order_of(process: &Observed, lives: &Lives, names: &mut Symbolizer) -> RecordedOrder {
    let ledger = process.ledger.view();
    let called: Vec<Option<String>> = ledger
        .threads()
        .map(|thread| {
            let start = || thread_start(thread.record, &ledger, names);
            thread_name(thread.record).or_else(start)
        })
        .collect();
    let threads = |thread| {
        let index = process.record_of(thread)?;
        called.get(index as usize)?.clone()
    };
    let program = process.program.to_string_lossy();
    order::record(lives, &mut Describer { ledger, names, threads: &threads, program: &program })
}

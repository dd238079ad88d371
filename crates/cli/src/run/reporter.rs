//! Names what was found, prints it, and ends the program if that was asked for.
//!
//! # Role
//! A thread of its own, started with the first finding: finding names may take
//! a while, and the supervisor has a clock to keep. A report is written in one
//! piece, so that the program's own output does not part it.

use super::blocked_text;
use super::deadlock_text;
use super::processes::Observed;
use super::scene::{Scene, ThreadNames, current_name};
use crate::args::OnDeadlock;
use crate::output;
use lockstead_inspect::report::finding::{Finding, Party};
use lockstead_inspect::waits::detect::Found;
use lockstead_inspect::waits::observe::Waiter;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

/// Something to report.
pub(super) enum Job {
    /// Threads that wait for each other.
    Cycle {
        /// Where.
        process: Arc<Observed>,
        /// Who.
        found: Found,
    },
    /// A wait that lasts.
    Blocked {
        /// Where.
        process: Arc<Observed>,
        /// Who.
        waiter: Waiter,
        /// When that was noticed.
        at: u64,
    },
}

/// A job, and the names of its threads when it came.
type Named = (Job, ThreadNames);

impl Job {
    /// The names of those who wait, as they are now.
    fn names(&self) -> ThreadNames {
        let (process, waiters): (_, Vec<&Waiter>) = match self {
            Job::Cycle { process, found } => {
                (process, found.members.iter().map(|member| &member.waiter).collect())
            }
            Job::Blocked { process, waiter, .. } => (process, vec![waiter]),
        };
        let name = |waiter: &&Waiter| Some((waiter.thread, current_name(process, waiter.tid)?));
        waiters.iter().filter_map(name).collect()
    }
}

/// What was reported in a run.
#[derive(Default)]
pub(super) struct Reports {
    /// In the order of printing.
    pub(super) findings: Vec<Finding>,
    /// The program was ended because of a deadlock.
    pub(super) ended_program: bool,
}

/// Takes jobs.
pub(super) struct Reporter {
    on_deadlock: OnDeadlock,
    program: u32,
    start: u64,
    running: Option<(Sender<Named>, JoinHandle<Reports>)>,
}

impl Reporter {
    /// For a run of the process `program` that began at `start`.
    pub(super) fn new(on_deadlock: OnDeadlock, program: u32, start: u64) -> Self {
        Reporter { on_deadlock, program, start, running: None }
    }

    /// Reports, some time soon; the names are those of now.
    pub(super) fn report(&mut self, job: Job) {
        let names = job.names();
        let (on_deadlock, program, start) = (self.on_deadlock, self.program, self.start);
        let (sender, _) = self.running.get_or_insert_with(|| {
            let (sender, receiver) = mpsc::channel();
            let work =
                move || Work { on_deadlock, program, start, ..Work::default() }.all(receiver);
            (sender, thread::spawn(work))
        });
        // It ends only after the sender.
        let _ = sender.send((job, names));
    }

    /// Waits until all is printed.
    pub(super) fn finish(self) -> Reports {
        match self.running {
            None => Reports::default(),
            Some((sender, thread)) => {
                drop(sender);
                thread.join().unwrap_or_default()
            }
        }
    }
}

#[derive(Default)]
struct Work {
    on_deadlock: OnDeadlock,
    program: u32,
    start: u64,
    reports: Reports,
    /// By the address of the shared process: numbers may be used again.
    scenes: HashMap<usize, Scene>,
}

impl Work {
    fn all(mut self, jobs: Receiver<Named>) -> Reports {
        for (job, names) in jobs {
            match job {
                Job::Cycle { process, found } => {
                    let now = super::supervise::now();
                    let scene = self.scene(&process, names);
                    let parties = deadlock_text::parties(scene, &found, now);
                    let text = deadlock_text::text(&scene.program(), &parties, found.timed);
                    let kind = if found.timed { "timed_cycle" } else { "deadlock" };
                    // First, for nobody may be there to read.
                    if !found.timed {
                        self.end(&process);
                    }
                    self.print(kind, &process, text, parties);
                }
                Job::Blocked { process, waiter, at } => {
                    let scene = self.scene(&process, names);
                    let blocked = blocked_text::blocked(scene, &waiter, at);
                    let text = blocked_text::text(&scene.program(), &blocked);
                    self.print("blocked", &process, text, blocked.into_parties());
                }
            }
        }
        self.reports
    }

    fn scene(&mut self, process: &Arc<Observed>, names: ThreadNames) -> &mut Scene {
        let scene = self
            .scenes
            .entry(Arc::as_ptr(process) as usize)
            .or_insert_with(|| Scene::new(process.clone()));
        scene.update();
        scene.names = names;
        scene
    }

    fn print(&mut self, kind: &str, process: &Observed, text: String, threads: Vec<Party>) {
        output::finding(&text);
        self.reports.findings.push(Finding {
            kind: kind.into(),
            pid: process.pid,
            at_ns: super::supervise::now().saturating_sub(self.start),
            title: text.lines().next().unwrap_or_default().to_owned(),
            text,
            threads,
        });
    }

    fn end(&mut self, process: &Observed) {
        let signal = match self.on_deadlock {
            OnDeadlock::Continue => return,
            OnDeadlock::Abort => libc::SIGABRT,
            OnDeadlock::Kill => libc::SIGKILL,
        };
        process.signal(signal);
        self.reports.ended_program |= process.pid == self.program;
    }
}

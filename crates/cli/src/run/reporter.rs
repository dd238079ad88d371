//! Names what was found, prints it, and ends the program if that was asked for.
//!
//! # Role
//! A thread of its own, started with the first finding: finding names may take
//! a while, and the supervisor has a clock to keep. A report is written in one
//! piece, so that the program's own output does not part it.

use super::across;
use super::blocked_text;
use super::checked::{self, ReportedDeadlocks};
use super::deadlock_text;
use super::earlier;
use super::flags::OnDeadlock;
use super::glance::Sight;
use super::hang::hanging::HangTask;
use super::hang::picture::picture;
use super::hang::watch::Hang;
use super::hang::{OnHang, command};
use super::processes::Observed;
use super::scene::{Scene, ThreadNames, current_name};
use super::standstill_text;
use crate::check::{self, FindingVerdict, Judge};
use crate::clock::now;
use lockstead_inspect::check::facts::CheckFacts;
use lockstead_inspect::check::model::Details;
use lockstead_inspect::report::finding::{Finding, FindingThread};
use lockstead_inspect::snapshot::Snapshot;
use lockstead_inspect::snapshot::model::{CycleVerdict, JudgedCycle};
use lockstead_inspect::waits::detect::FoundCycle;
use lockstead_inspect::waits::observe::LastingWaiter;
use lockstead_inspect::waits::standstill::Enders;
use lockstead_render::output;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// How many processes are kept after they have ended, so that names need not be looked up twice.
const SCENES: usize = 32;

/// A finding that waits to be reported.
pub(super) enum ReportJob {
    /// Threads that wait for each other.
    Cycle {
        /// The process in which it was found.
        process: Arc<Observed>,
        /// The threads that have a part in it.
        found: FoundCycle,
    },
    /// A wait that lasts.
    Blocked {
        /// The process in which it was found.
        process: Arc<Observed>,
        /// The threads that have a part in it.
        waiter: LastingWaiter,
        /// The time at which that was noticed.
        at: u64,
        /// The processes that are watched, all of them: the owner may be in another one.
        all: Vec<Arc<Observed>>,
    },
    /// Threads of several processes that wait for each other.
    CycleAcross {
        /// The threads that have a part in it.
        members: Vec<across::CrossMember>,
    },
    /// Something that the ledger does not have.
    Seen {
        /// The process whose threads wait.
        process: Arc<Observed>,
        /// The wait, or that all its threads wait.
        sight: Sight,
    },
    /// Nothing moves in the run.
    Hang {
        /// The processes that stand still.
        hang: Hang,
        /// What to do about it.
        task: HangTask,
        /// Those of them that are watched.
        watched: Vec<Arc<Observed>>,
    },
    /// A broken rule, or an order that goes round.
    Check {
        /// The process in which it was found.
        process: Arc<Observed>,
        /// The facts of the finding.
        facts: CheckFacts,
    },
}

/// A job, and the names of its threads when it came.
type NamedJob = (ReportJob, ThreadNames);

impl ReportJob {
    /// Returns the names of those who wait, as they are now.
    fn names(&self) -> ThreadNames {
        let (process, waiters): (_, Vec<&LastingWaiter>) = match self {
            ReportJob::Cycle { process, found } => {
                (process, found.members.iter().map(|member| &member.waiter).collect())
            }
            ReportJob::Blocked { process, waiter, .. } => (process, vec![waiter]),
            ReportJob::Check { process, facts } => return checked::names(process, facts),
            ReportJob::CycleAcross { .. } | ReportJob::Seen { .. } | ReportJob::Hang { .. } => {
                return ThreadNames::new();
            }
        };
        let name =
            |waiter: &&LastingWaiter| Some((waiter.thread, current_name(process, waiter.tid)?));
        waiters.iter().filter_map(name).collect()
    }
}

/// What was reported in a run.
#[derive(Default)]
pub(super) struct Reports {
    /// The findings in the order of printing.
    pub(super) findings: Vec<Finding>,
    /// The program was ended because of a deadlock.
    pub(super) ended_program: bool,
    /// The judge, with the verdicts on all findings of a check.
    pub(super) judge: Judge,
}

/// What a reporter has to know of the run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReporterTask {
    /// What to do with a program that has a deadlock.
    pub(super) on_deadlock: OnDeadlock,
    /// The id of the program.
    pub(super) program: u32,
    /// The time at which the run began.
    pub(super) start: u64,
}

/// The thread that reports, once it runs.
pub(super) struct Reporter {
    /// What it begins with, until it does.
    waiting: Option<(ReporterTask, Judge, Option<File>)>,
    running: Option<(Sender<NamedJob>, JoinHandle<Reports>)>,
}

impl Reporter {
    /// Prepares a reporter for a run; a `copy` of all that is printed goes to the file.
    pub(super) fn new(task: ReporterTask, judge: Judge, copy: Option<File>) -> Self {
        Reporter { waiting: Some((task, judge, copy)), running: None }
    }

    /// Reports, some time soon; the names are those of now.
    pub(super) fn report(&mut self, job: ReportJob) {
        let names = job.names();
        let waiting = &mut self.waiting;
        let (sender, _) = self.running.get_or_insert_with(|| {
            let (sender, receiver) = mpsc::channel();
            let (task, judge, copy) = waiting.take().unwrap_or_default();
            let work = move || {
                let reports = Reports { judge, ..Reports::default() };
                Work { task, reports, copy, ..Work::default() }.all(receiver)
            };
            (sender, thread::spawn(work))
        });
        // It ends only after the sender.
        let _ = sender.send((job, names));
    }

    /// Waits until all is printed.
    pub(super) fn finish(self) -> Reports {
        match self.running {
            None => {
                let judge = self.waiting.unwrap_or_default().1;
                Reports { judge, ..Reports::default() }
            }
            Some((sender, thread)) => {
                drop(sender);
                thread.join().unwrap_or_default()
            }
        }
    }
}

#[derive(Default)]
struct Work {
    task: ReporterTask,
    reports: Reports,
    copy: Option<File>,
    /// The scene of each process, by the address of its [`Observed`]: numbers may be used again.
    scenes: HashMap<usize, Scene>,
    /// What the deadlocks have of each process that were reported.
    dead: HashMap<usize, ReportedDeadlocks>,
    /// The cycles of each process that memory alone showed.
    cycles: HashMap<usize, HashSet<Vec<u32>>>,
}

impl Work {
    fn all(mut self, jobs: Receiver<NamedJob>) -> Reports {
        for (job, names) in jobs {
            match job {
                ReportJob::Cycle { process, found } => self.cycle(&process, &found, names),
                ReportJob::CycleAcross { members } => self.cycle_across(&members),
                ReportJob::Blocked { process, waiter, at, all } => {
                    let elsewhere = self.owners_elsewhere(&process, &waiter, &all, at);
                    let scene = self.scene(&process, names);
                    let blocked = blocked_text::blocked(scene, &waiter, elsewhere, at);
                    let mut text = blocked_text::text(&scene.program(), &blocked);
                    if let Some(advice) = scene.advice() {
                        text += &format!("  {advice}\n");
                    }
                    let threads = blocked.into_parties();
                    self.print("blocked", process.pid, text, threads, Details::default());
                }
                ReportJob::Seen { process, sight } => self.seen(&process, &sight),
                ReportJob::Hang { hang, task, watched } => self.hang(&hang, &task, &watched),
                ReportJob::Check { process, facts } => self.check(&process, &facts, names),
            }
        }
        self.reports
    }

    fn cycle(&mut self, process: &Arc<Observed>, found: &FoundCycle, names: ThreadNames) {
        let mut threads: Vec<u32> = found.members.iter().map(|member| member.waiter.tid).collect();
        if let Some(first) = (0..threads.len()).min_by_key(|&at| threads[at]) {
            threads.rotate_left(first);
        }
        // Where semaphores are locks of Python's, memory may have shown it before.
        let known = self.cycles.entry(Arc::as_ptr(process) as usize).or_default();
        if !found.timed && !known.insert(threads) {
            return;
        }
        let now = now();
        let scene = self.scene(process, names);
        let parties = deadlock_text::parties(scene, found, now);
        let verdict = if found.timed { CycleVerdict::Timed } else { CycleVerdict::Deadlock };
        let mut text = deadlock_text::text(&scene.program(), &parties, verdict);
        if found.unnamed {
            let by_use = found.has_semaphore();
            let basis = if by_use { deadlock_text::BY_USE } else { deadlock_text::UNNAMED };
            text.push_str(basis);
        }
        let kind = if found.timed { "timed_cycle" } else { "deadlock" };
        let mut details = Details::default();
        if !found.timed {
            // First, for nobody may be there to read.
            self.end(process);
            let dead = self.dead.entry(Arc::as_ptr(process) as usize).or_default();
            if dead.note(found) {
                // All there is to say of it stands in the report before.
                text.truncate(text.find('\n').map_or(text.len(), |end| end + 1));
            }
            details = checked::of_deadlock();
            self.reports.judge.judge(&mut details, &text);
        }
        self.print(kind, process.pid, text, parties, details);
    }

    /// Looks at what the ledger does not have, and says it if it is still so.
    fn seen(&mut self, process: &Arc<Observed>, sight: &Sight) {
        let whole = matches!(sight, Sight::Standstill { .. });
        let (began, since) = (now(), Instant::now());
        let calls = matches!(sight, Sight::Earlier).then(|| earlier::calls(process.pid));
        let Some(found) = standstill_text::snapshot(process, whole) else { return };
        self.cycles_in_memory(process, &found);
        if let Some(calls) = calls {
            return process.earlier.note(&found, &calls, since);
        }
        if matches!(sight, Sight::Futexes) {
            let events = self.scene(process, ThreadNames::new()).events();
            return process.futexes.note(began, now(), events);
        }
        let program = self.scene(process, ThreadNames::new()).program();
        match sight {
            Sight::Standstill { enders, since } if !found.is_deadlocked() => {
                let Some(text) = standstill_text::stuck(&program, &found, *enders, *since) else {
                    return;
                };
                if *enders == Enders::Nobody {
                    self.end(process);
                }
                let threads = standstill_text::parties(&found);
                self.print("stuck", process.pid, text, threads, Details::default());
            }
            Sight::Unrecorded { tid, since } if !standstill_text::is_in_cycle(&found, *tid) => {
                let before = process.earlier.has(process.pid, *tid);
                let text = standstill_text::blocked(&program, &found, *tid, (*since, before));
                let Some(text) = text else { return };
                let threads = standstill_text::party(&found, *tid).into_iter().collect();
                self.print("blocked", process.pid, text, threads, Details::default());
            }
            Sight::Standstill { .. }
            | Sight::Unrecorded { .. }
            | Sight::Earlier
            | Sight::Futexes
            | Sight::Lasting => {}
        }
    }

    /// Reports that nothing moves, and runs the command for it.
    fn hang(&mut self, hang: &Hang, task: &HangTask, watched: &[Arc<Observed>]) {
        let found = picture(hang, watched, task.action == OnHang::Dump);
        self.print("hang", self.task.program, found.text, found.threads, Details::default());
        task.told.store(true, Relaxed);
        if let OnHang::Command(command) = &task.action
            && let Some(end) = command::run(command, self.task.program, hang, command::LIMIT)
        {
            output::note(end);
        }
    }

    /// Reports deadlocks through locks that no ledger has, each once.
    fn cycles_in_memory(&mut self, process: &Arc<Observed>, found: &Snapshot) {
        let is_dead = |cycle: &&JudgedCycle| {
            matches!(cycle.verdict, CycleVerdict::Deadlock | CycleVerdict::Probable)
        };
        for cycle in found.cycles.iter().filter(is_dead) {
            let known = self.cycles.entry(Arc::as_ptr(process) as usize).or_default();
            // Of a cycle of recorded locks the detection tells.
            if standstill_text::is_recorded(found, cycle) || !known.insert(cycle.threads.clone()) {
                continue;
            }
            let is_certain = cycle.verdict == CycleVerdict::Deadlock;
            let scene = self.scene(process, ThreadNames::new());
            let parties = deadlock_text::parties_of(scene, found, cycle);
            let text = deadlock_text::text(&scene.program(), &parties, cycle.verdict);
            if !is_certain {
                let none = Details::default();
                self.print("probable_deadlock", process.pid, text, parties, none);
                continue;
            }
            // First, for nobody may be there to read.
            self.end(process);
            let mut details = checked::of_deadlock();
            self.reports.judge.judge(&mut details, &text);
            self.print("deadlock", process.pid, text, parties, details);
        }
    }

    fn cycle_across(&mut self, members: &[across::CrossMember]) {
        let now = now();
        let mut processes: Vec<&Arc<Observed>> = Vec::new();
        for member in members {
            if !processes.iter().any(|known| Arc::ptr_eq(known, &member.process)) {
                processes.push(&member.process);
            }
        }
        let parties = members.iter().map(|member| {
            let scene = self.scene(&member.process, ThreadNames::new());
            deadlock_text::party_across(scene, member, now)
        });
        let mut parties: Vec<FindingThread> = parties.collect();
        deadlock_text::name_by_waiters(&mut parties);
        let program = match processes.as_slice() {
            [one] => self.scene(one, ThreadNames::new()).program(),
            several => format!("{} processes", several.len()),
        };
        let text = deadlock_text::text(&program, &parties, CycleVerdict::Deadlock);
        // First, for nobody may be there to read.
        processes.iter().for_each(|process| self.end(process));
        let mut details = checked::of_deadlock();
        self.reports.judge.judge(&mut details, &text);
        self.print("deadlock", processes[0].pid, text, parties, details);
    }

    /// Returns who has the lock in other processes, of the run and besides.
    fn owners_elsewhere(
        &mut self,
        process: &Arc<Observed>,
        waiter: &LastingWaiter,
        all: &[Arc<Observed>],
        now: u64,
    ) -> Vec<FindingThread> {
        let lock = waiter.waiting.target;
        let Some(place) = across::place(process, lock) else { return Vec::new() };
        let mut found = Vec::new();
        for other in all.iter().filter(|other| !Arc::ptr_eq(other, process)) {
            for address in across::addresses(other, place) {
                let scene = self.scene(other, ThreadNames::new());
                found.extend(blocked_text::parties(scene, address, now));
            }
        }
        found
    }

    fn check(&mut self, process: &Arc<Observed>, facts: &CheckFacts, names: ThreadNames) {
        let dead = self.dead.entry(Arc::as_ptr(process) as usize).or_default();
        let is_covered = dead.covers(facts);
        if !is_covered && self.reports.judge.hides(facts.level()) {
            return;
        }
        let scene = self.scene(process, names);
        let mut details = checked::details(scene, facts);
        let text = check::text(&scene.program(), &details);
        if is_covered {
            return self.reports.judge.is_covered(&details);
        }
        let kind = if details.order.is_some() { "order" } else { "violation" };
        match self.reports.judge.judge(&mut details, &text) {
            FindingVerdict::Print => self.print(kind, process.pid, text, Vec::new(), details),
            FindingVerdict::Keep => self.keep(kind, process.pid, text, Vec::new(), details),
            FindingVerdict::Drop => {}
        }
    }

    fn scene(&mut self, process: &Arc<Observed>, names: ThreadNames) -> &mut Scene {
        if self.scenes.len() >= SCENES {
            // A ledger takes descriptors and address space as long as it is known.
            self.scenes.retain(|_, scene| !scene.process.has_ended());
            self.dead.retain(|key, _| self.scenes.contains_key(key));
            self.cycles.retain(|key, _| self.scenes.contains_key(key));
        }
        let scene = self
            .scenes
            .entry(Arc::as_ptr(process) as usize)
            .or_insert_with(|| Scene::new(process.clone()));
        scene.update();
        scene.names = names;
        scene
    }

    fn print(
        &mut self,
        kind: &str,
        pid: u32,
        text: String,
        threads: Vec<FindingThread>,
        details: Details,
    ) {
        output::finding(&text);
        if let Some(copy) = &mut self.copy
            && let Err(error) = copy.write_all(text.as_bytes())
        {
            output::note(format_args!("lockstead: cannot write to the report file: {error}"));
            self.copy = None;
        }
        self.keep(kind, pid, text, threads, details);
    }

    fn keep(
        &mut self,
        kind: &str,
        pid: u32,
        text: String,
        threads: Vec<FindingThread>,
        details: Details,
    ) {
        self.reports.findings.push(Finding {
            kind: kind.into(),
            pid,
            at_ns: now().saturating_sub(self.task.start),
            title: text.lines().next().unwrap_or_default().to_owned(),
            text,
            threads,
            details,
        });
    }

    fn end(&mut self, process: &Observed) {
        let signal = match self.task.on_deadlock {
            OnDeadlock::Continue => return,
            OnDeadlock::Abort => libc::SIGABRT,
            OnDeadlock::Kill => libc::SIGKILL,
        };
        process.signal(signal);
        self.reports.ended_program |= process.pid == self.task.program;
    }
}

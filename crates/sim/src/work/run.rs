//! Running a workload: its tasks, its locks, and the figures that come out of it.

use super::act::{Data, Plan, SiteKind, UseSite, away_for, burst, compute, progress, vary};
use super::model::{UseKind, Workload};
use super::part;
use super::tokens::{Meeting, Tokens};
use crate::engine::TraceStep;
use crate::engine::task::{Activity, PLACES};
use crate::engine::time::{Ps, ps};
use crate::engine::words::{QueueNode, U64};
use crate::engine::world::{RunSettings, SimWorld};
use crate::locks::shared::SimRwLock;
use crate::locks::spin::RwSpinLock;
use crate::locks::{SimLock, SimLockName};
use crate::machine::Machine;
use crate::tally::LockFigures;

/// The figures of one simulation.
#[derive(Clone, Debug)]
pub struct RunFigures {
    /// The number of jobs a second.
    pub jobs: f64,
    /// The share of all processors' time that was used.
    pub busy: f64,
    /// The share of the time used, by place.
    pub shares: Vec<(Activity, f64)>,
    /// The locks that tasks use.
    pub locks: Vec<LockFigures>,
    /// The number of times that two tasks had one lock: 0.
    pub violations: u64,
    /// The number of events of the simulation.
    pub events: u64,
    /// The number of reads and writes of the tasks.
    pub accesses: u64,
    /// The simulated seconds that were counted.
    pub seconds: f64,
}

impl RunFigures {
    /// Returns the share of the time used that was spent at `place`.
    #[must_use]
    pub fn share(&self, place: Activity) -> f64 {
        self.shares.iter().find(|&&(p, _)| p == place).map_or(0.0, |&(_, share)| share)
    }

    /// Returns the longest wait of all locks, in seconds. A wait that has not ended when the
    /// simulation does counts with the time that it has taken by then.
    #[must_use]
    pub fn longest(&self) -> f64 {
        self.locks.iter().map(|lock| lock.longest).max().unwrap_or(0) as f64 / 1e12
    }

    /// Tells whether the longest wait of all had ended.
    #[must_use]
    pub fn longest_ended(&self) -> bool {
        let longest = self.locks.iter().max_by_key(|lock| lock.longest);
        longest.is_none_or(LockFigures::longest_ended)
    }

    /// Returns the number of tasks that still waited for a lock when the simulation ended.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.locks.iter().map(|lock| lock.waiting).sum()
    }
}

/// The activities, in the order of reports.
const ALL: [Activity; PLACES] = [
    Activity::Think,
    Activity::Section,
    Activity::Lock,
    Activity::SlowPath,
    Activity::SpinOnOwner,
    Activity::SpinQueue,
    Activity::SpinLock,
    Activity::ReadLock,
    Activity::WriteLock,
    Activity::Kernel,
];

/// Runs `workload` with `tasks` tasks and `lock` as its mutex.
#[must_use]
pub fn run(
    machine: &Machine,
    lock: SimLockName,
    workload: &Workload,
    tasks: usize,
    how: RunSettings,
) -> RunFigures {
    run_traced(machine, lock, workload, tasks, how).0
}

/// Does the same as [`run`], and returns the steps of the tasks if `how` says so.
#[must_use]
pub fn run_traced(
    machine: &Machine,
    lock: SimLockName,
    workload: &Workload,
    tasks: usize,
    how: RunSettings,
) -> (RunFigures, Vec<TraceStep>) {
    let mut world = SimWorld::new(machine, how);
    let w = &mut *world;
    let mut sites = Vec::new();
    for user in &workload.locks {
        for copy in 0..user.many {
            let name =
                if user.many > 1 { format!("{} {copy}", user.name) } else { user.name.clone() };
            let number = w.tally.add_lock(&name);
            let kind = match user.kind {
                UseKind::Mutex => SiteKind::Mutex(SimLock::place(w, lock)),
                UseKind::ReadWrite => SiteKind::ReadWrite(w.arena.place(RwSpinLock::new())),
                UseKind::Shared => SiteKind::Shared(SimRwLock::place(w, lock)),
            };
            let data = w.data.len();
            for _ in 0..user.lines {
                let line: Data = w.arena.place(U64::ZERO);
                w.data.push(line);
            }
            sites.push(UseSite { number, kind, data });
        }
    }
    let classes = workload.classes_of(tasks);
    let tasks = if classes.is_empty() { tasks } else { classes.len() };
    for _ in 0..tasks {
        let node = w.arena.place(QueueNode::new());
        w.nodes.push(node);
        let node = w.arena.place(QueueNode::new());
        w.kernel_nodes.push(node);
    }
    let tokens = workload.tokens.iter().map(|tokens| Tokens::place(w, tokens.start)).collect();
    let meetings = workload.tokens.iter().map(|_| Meeting::place(w)).collect();
    let plans = part::plans(workload, &classes);
    let plan = w.keep(Plan { workload: workload.clone(), sites, tokens, meetings, classes: plans });
    for number in 0..tasks {
        let class = classes.get(number).copied();
        w.spawn(move || task(plan, class));
    }
    let warm_up = ps(workload.warm_up * 1e6);
    let end = warm_up + ps(workload.length * 1e6);
    w.tally.from = warm_up;
    w.begin_count_at(warm_up);
    world.run(end);
    world.close();
    world.tally.close(end);
    let figures = figures(&world, workload, end - warm_up);
    (figures, std::mem::take(&mut world.trace.steps))
}

fn figures(world: &SimWorld, workload: &Workload, length: Ps) -> RunFigures {
    let seconds = length as f64 / 1e12;
    let spent: Ps = world.spent.iter().sum();
    let share = |place: Activity| world.spent[place as usize] as f64 / spent.max(1) as f64;
    RunFigures {
        jobs: world.tally.rounds / f64::from(workload.rounds) / seconds,
        busy: spent as f64 / (length as f64 * world.cpus.len() as f64),
        shares: ALL.iter().map(|&place| (place, share(place))).collect(),
        locks: world.tally.locks.clone(),
        violations: world.tally.violations,
        events: world.events,
        accesses: world.accesses,
        seconds,
    }
}

fn task(plan: *const Plan, class: Option<usize>) {
    // SAFETY: the plan belongs to the world, which outlives the task, and no task changes
    // it: `SimWorld::keep` gives it to them by a shared pointer.
    let plan = unsafe { &*plan };
    if let Some(class) = class {
        return part::task(plan, class);
    }
    let workload = &plan.workload;
    let rounds = f64::from(workload.rounds);
    loop {
        for _ in 0..workload.rounds {
            compute(vary(workload.compute / rounds, workload.variation), 1.0);
            for (number, user) in workload.locks.iter().enumerate() {
                burst(workload, user, plan.site(number));
            }
            if workload.compute == 0.0 {
                progress(1.0);
            }
        }
        away_for(workload.away);
    }
}

//! Running a workload: its tasks, its locks, and the figures that come out of it.

use super::{UseKind, WorkUse, Workload};
use crate::engine::TraceStep;
use crate::engine::calls::{at, away, chance, in_kernel, now, work};
use crate::engine::task::{Activity, PLACES};
use crate::engine::time::{Ps, ps};
use crate::engine::words::QueueNode;
use crate::engine::words::U64;
use crate::engine::world::{RunSettings, SimWorld, with};
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

/// The data that sections change: one word a cache line.
type Data = &'static U64;

/// A lock of a workload.
#[derive(Clone, Copy)]
struct UseSite {
    number: usize,
    kind: SiteKind,
    data: usize,
}

#[derive(Clone, Copy)]
enum SiteKind {
    Mutex(SimLock),
    ReadWrite(&'static RwSpinLock),
}

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
            };
            let data = w.data.len();
            for _ in 0..user.lines {
                let line: Data = w.arena.place(U64::ZERO);
                w.data.push(line);
            }
            sites.push(UseSite { number, kind, data });
        }
    }
    for _ in 0..tasks {
        let node = w.arena.place(QueueNode::new());
        w.nodes.push(node);
        let node = w.arena.place(QueueNode::new());
        w.kernel_nodes.push(node);
    }
    let plan = w.keep(Plan { workload: workload.clone(), sites });
    for _ in 0..tasks {
        w.spawn(move || task(plan));
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

/// The plan that tasks look at while they run. The world keeps it, so that it outlives them.
pub(crate) struct Plan {
    workload: Workload,
    sites: Vec<UseSite>,
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

fn vary(mean: f64, variation: f64) -> Ps {
    let pace = with(|w| w.machine.layout.pace);
    ps(mean * 1e3 * pace * (1.0 + variation * (2.0 * chance() - 1.0)))
}

/// Returns a time that is exponentially distributed, with this mean.
fn waiting(mean: f64) -> Ps {
    ps(mean * 1e3 * -(1.0 - chance()).ln())
}

fn task(plan: *const Plan) {
    // SAFETY: the plan belongs to the world, which outlives the task, and no task changes
    // it: `SimWorld::keep` gives it to them by a shared pointer.
    let plan = unsafe { &*plan };
    let workload = &plan.workload;
    let rounds = f64::from(workload.rounds);
    loop {
        for _ in 0..workload.rounds {
            compute(vary(workload.compute / rounds, workload.variation));
            let mut first = 0;
            for user in &workload.locks {
                let chosen = first + (chance() * user.many as f64) as usize;
                first += user.many;
                burst(workload, user, plan.sites[chosen]);
            }
            if workload.compute == 0.0 {
                progress(1.0);
            }
        }
        if workload.away > 0.0 {
            away(waiting(workload.away).max(1));
        }
    }
}

/// The time of computing that is credited at once. Whole jobs would be credited in clumps.
const PIECE: Ps = 250_000_000;

fn compute(time: Ps) {
    let pieces = time.div_ceil(PIECE).max(1);
    for _ in 0..pieces {
        work(time / pieces);
        progress(1.0 / pieces as f64);
    }
}

/// Credits a part of a round that is done.
fn progress(rounds: f64) {
    with(|w| {
        let now = w.local_now();
        w.tally.progress(now, rounds);
    });
}

fn burst(workload: &Workload, user: &WorkUse, site: UseSite) {
    // A burst of a fraction happens that often.
    let whole = user.burst.trunc();
    let many = whole as u64 + u64::from(chance() < user.burst - whole);
    for turn in 0..many {
        if turn > 0 {
            work(vary(user.gap, workload.variation));
        }
        if workload.kernel {
            in_kernel(|| acquire(workload, user, site));
        } else {
            acquire(workload, user, site);
        }
    }
}

fn acquire(workload: &Workload, user: &WorkUse, site: UseSite) {
    let section = |writes: bool| {
        for line in 0..user.lines {
            let data = with(|w| w.data[site.data + line]);
            let value = data.read();
            if writes {
                data.write(value + 1);
            }
        }
        let time = if writes && user.kind == UseKind::ReadWrite {
            user.write_section.unwrap_or(user.section)
        } else {
            user.section
        };
        work(vary(time, workload.variation));
    };
    match site.kind {
        SiteKind::Mutex(lock) => lock.with(site.number, || section(true)),
        SiteKind::ReadWrite(lock) => {
            let writes = chance() < user.writes;
            let asked = now();
            with(|w| w.tally.asked(site.number, w.current, asked));
            at(Activity::Lock, || if writes { lock.write_lock() } else { lock.read_lock() });
            let taken = now();
            with(|w| w.tally.entered(site.number, w.current, taken));
            at(Activity::Section, || section(writes));
            let released = now();
            with(|w| w.tally.shared((site.number, w.current), asked, taken, released));
            at(Activity::Lock, || if writes { lock.write_unlock() } else { lock.read_unlock() });
        }
    }
}

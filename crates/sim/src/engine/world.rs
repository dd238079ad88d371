//! The world of a simulation: all that there is in it, and whose turn it is.
//!
//! # Role
//! A [`SimWorld`] is one simulation: the machine, the tasks, the events to come. Time is
//! in picoseconds. `SimWorld::step` takes the earliest event and lets it happen, until it is a
//! task's turn; `run` resumes that task.
//!
//! # Invariants
//! - **EVENT-ORDER** Events happen in the order of their times, and those of one time in the order
//!   in which they were announced. Nothing else decides what happens next: two runs with
//!   one seed are the same.
//! - **EVENT-QUIET** A task that passes time runs on without an event if there is no earlier one,
//!   nor one of the same time, before the horizon: nobody could tell the difference.
//! - **WORLD-BORROW** No reference to the world lives across a suspension.

use super::arena::Arena;
use super::balance::starting_order;
use super::cpu::Cpu;
use super::event::{Queue, Random, What};
use super::line::{DirectoryLine, Reach};
use super::poll::Poll;
use super::set::Cpus;
use super::task::{Activity, NOBODY, PLACES, SimTask, Sleepers, TaskState};
use super::time::{Ps, at_speed};
use super::trace::{StepKind, StepTrace};
use super::turn::{TaskBody, TurnEnd};
use super::words::{Bucket, QueueNode, Sim, U32, U64};
use crate::machine::Machine;
use crate::tally::SimTally;
use lockstead_core::TableEntry;
use std::any::Any;
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};

/// The state of one simulation.
pub(crate) struct SimWorld {
    pub(crate) machine: Machine,
    pub(crate) now: Ps,
    pub(crate) horizon: Ps,
    pub(crate) current: usize,
    pub(crate) tasks: Vec<SimTask>,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) idle: Cpus,
    /// The processors whose queues have more tasks than they are about to take themselves.
    pub(crate) spare: Cpus,
    pub(crate) arena: Arena,
    pub(crate) lines: Vec<DirectoryLine>,
    pub(crate) copies: Vec<u64>,
    pub(crate) stride: usize,
    pub(crate) reach: Reach,
    pub(crate) slots: Vec<&'static TableEntry<Sim>>,
    pub(crate) sleepers: Sleepers,
    /// The kernel's buckets of waiters, and which one of them stands for which of its table.
    pub(crate) buckets: Vec<&'static Bucket>,
    pub(super) bucket_places: HashMap<usize, usize>,
    /// What the hash of an address depends on.
    pub(super) salt: u64,
    pub(crate) lists: Vec<VecDeque<u32>>,
    pub(crate) nodes: Vec<&'static QueueNode>,
    /// The tasks' places in queues of the kernel.
    pub(crate) kernel_nodes: Vec<&'static QueueNode>,
    /// Places in a queue that belong to no task yet.
    pub(crate) spare_nodes: Vec<&'static QueueNode>,
    pub(crate) data: Vec<&'static U64>,
    pub(crate) tally: SimTally,
    plan: Option<Box<dyn Any>>,
    pub(crate) spent: [Ps; PLACES],
    pub(crate) random: Random,
    pub(crate) every_poll: bool,
    pub(crate) trace: StepTrace,
    /// The number of tasks that sleep for a lock.
    pub(crate) asleep: u32,
    /// Whether tasks cannot tell if an owner runs.
    pub(crate) blind: bool,
    /// Whether a contended mutex goes through no slow unlocks.
    pub(crate) cold: bool,
    pub(crate) events: u64,
    pub(crate) accesses: u64,
    to_come: Queue,
    /// The processors on which tasks start, in their turn.
    order: Vec<usize>,
    pub(super) oracle: bool,
    pub(super) bodies: Vec<TaskBody>,
}

thread_local! {
    static WORLD: Cell<*mut SimWorld> = const { Cell::new(std::ptr::null_mut()) };
}

/// Runs `f` with the world of the calling task. `f` must not suspend (WORLD-BORROW).
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(&mut SimWorld) -> R) -> R {
    let world = WORLD.get();
    assert!(!world.is_null(), "outside of a simulation");
    // SAFETY: `with_world` has set the pointer, and its world outlives all that runs under it.
    // Only the task that has the turn uses the world (STRAND-TURN), and `f` neither suspends
    // (WORLD-BORROW) nor calls back here, which each caller keeps.
    f(unsafe { &mut *world })
}

/// Tells whether the caller is in a simulation that runs.
#[inline]
pub(crate) fn inside() -> bool {
    !WORLD.get().is_null()
}

/// Runs `f` with `world` as the world of the calling thread.
pub(crate) fn with_world<R>(world: *mut SimWorld, f: impl FnOnce() -> R) -> R {
    struct Back(*mut SimWorld);
    impl Drop for Back {
        fn drop(&mut self) {
            WORLD.set(self.0);
        }
    }
    let _back = Back(WORLD.replace(world));
    f()
}

/// The way in which a simulation is run, apart from what is simulated.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunSettings {
    /// The number that all chance depends on.
    pub seed: u64,
    /// Whether each turn of an idle spin loop is simulated, instead of the first and the last.
    pub every_poll: bool,
    /// Whether tasks run on threads of the operating system: slow, to check the engine.
    pub oracle: bool,
    /// Whether the steps of the tasks are noted.
    pub trace: bool,
}

impl SimWorld {
    pub(crate) fn new(machine: &Machine, how: RunSettings) -> Box<SimWorld> {
        let count = machine.cpus();
        Box::new(SimWorld {
            now: 0,
            horizon: 0,
            current: NOBODY,
            tasks: Vec::new(),
            cpus: (0..count).map(|number| Cpu::new(machine, number)).collect(),
            idle: Cpus::all(count),
            spare: Cpus::none(count),
            arena: Arena::new(),
            lines: Vec::new(),
            copies: Vec::new(),
            stride: machine.cores().div_ceil(64),
            reach: Reach::new(machine),
            slots: Vec::new(),
            sleepers: Sleepers::default(),
            buckets: Vec::new(),
            bucket_places: HashMap::new(),
            salt: how.seed,
            lists: Vec::new(),
            nodes: Vec::new(),
            kernel_nodes: Vec::new(),
            spare_nodes: Vec::new(),
            data: Vec::new(),
            tally: SimTally::default(),
            plan: None,
            spent: [0; PLACES],
            random: Random::new(how.seed ^ 0x51_7c_c1_b7_27_22_0a_95),
            every_poll: how.every_poll,
            trace: StepTrace::new(how.trace),
            asleep: 0,
            blind: false,
            cold: false,
            events: 0,
            accesses: 0,
            to_come: Queue::new(),
            order: starting_order(machine),
            oracle: how.oracle,
            bodies: Vec::new(),
            machine: machine.clone(),
        })
    }

    /// Adds a task that starts at the beginning.
    pub(crate) fn spawn(&mut self, body: impl Fn() + 'static) {
        let number = self.tasks.len();
        let on_cpu = self.arena.place(U32::ZERO);
        self.slots.push(self.arena.place(TableEntry::<Sim>::VACANT));
        let seed = self.random.next();
        self.tasks.push(SimTask {
            turn: TurnEnd::None,
            state: TaskState::Asleep,
            cpu: self.order[number % self.cpus.len()],
            kernel: 0,
            debt: 0,
            left: 0,
            scaled: false,
            began: 0,
            speed: 1.0,
            planned: false,
            number: 0,
            timer: 0,
            sleepy: false,
            lying: false,
            timed_out: false,
            virtual_time: 0,
            since: 0,
            left_at: 0,
            poll: Poll::default(),
            place: Activity::Think,
            mark: 0,
            hushed: false,
            on_cpu,
            random: Random::new(seed),
        });
        self.bodies.push(self.arena.place(body));
    }

    /// Keeps what the tasks look at.
    pub(crate) fn keep<T: Any>(&mut self, plan: T) -> *const T {
        (&raw const **self.plan.insert(Box::new(plan))).cast()
    }

    /// Forgets what was counted before `at`.
    pub(crate) fn begin_count_at(&mut self, at: Ps) {
        self.announce(at, What::Count);
    }

    /// Counts what running tasks have done so far.
    pub(crate) fn close(&mut self) {
        let now = self.now;
        for cpu in 0..self.cpus.len() {
            if let Some(task) = self.cpus[cpu].task {
                let task = &mut self.tasks[task];
                self.spent[task.place as usize] += now.saturating_sub(task.mark);
                task.mark = task.mark.max(now);
            }
        }
    }

    /// Announces what happens in `after`.
    #[inline]
    pub(crate) fn announce(&mut self, after: Ps, what: What) {
        self.to_come.push(self.now + after, what);
    }

    /// Lets things happen until it is a task's turn; `None` at the end.
    pub(super) fn step(&mut self) -> Option<usize> {
        loop {
            let (at, what) = self.to_come.pop()?;
            if at > self.horizon {
                self.now = self.horizon;
                return None;
            }
            debug_assert!(at >= self.now);
            self.now = at;
            self.events += 1;
            let turn = match what {
                What::Passed(task, number) => self.passed(task as usize, number),
                What::Line(line) => self.arrived(line as usize),
                What::Read(task, line) => self.was_read(task as usize, line as usize),
                What::Dispatch(cpu) => self.dispatch(cpu as usize),
                What::Slice(cpu, number) => {
                    self.slice_over(cpu as usize, number);
                    None
                }
                What::Timer(task, number) => {
                    self.timer(task as usize, number);
                    None
                }
                What::Balance => {
                    self.balance();
                    None
                }
                What::Count => {
                    self.close();
                    self.spent = [0; PLACES];
                    None
                }
            };
            if let Some(task) = turn {
                self.current = task;
                return Some(task);
            }
        }
    }

    /// Tells whether nothing happens up to and at `at`, which lies before the horizon
    /// (EVENT-QUIET).
    #[inline]
    fn quiet_until(&self, at: Ps) -> bool {
        at <= self.horizon && at < self.to_come.earliest()
    }

    /// Lets the running task pass its debt. Returns true if it has to suspend itself for that.
    #[inline]
    pub(crate) fn settle(&mut self) -> bool {
        let task = &mut self.tasks[self.current];
        let debt = std::mem::take(&mut task.debt);
        self.pass(debt, false)
    }

    /// Lets the running task pass time. Returns true if it has to suspend itself for that.
    #[inline]
    pub(crate) fn pass(&mut self, time: Ps, scaled: bool) -> bool {
        let current = self.current;
        let cpu = self.tasks[current].cpu;
        if self.cpus[cpu].resched && self.tasks[current].kernel == 0 {
            let task = &mut self.tasks[current];
            (task.left, task.scaled) = (time, scaled);
            self.preempt(current);
            return true;
        }
        if time == 0 {
            return false;
        }
        let needed = if scaled { at_speed(time, self.speed(cpu)) } else { time };
        let at = self.now + needed;
        if self.quiet_until(at) {
            self.now = at;
            return false;
        }
        let task = &mut self.tasks[current];
        (task.left, task.scaled) = (time, scaled);
        self.plan(current);
        true
    }

    /// Announces when a running task will have passed what is left.
    pub(crate) fn plan(&mut self, task: usize) {
        let speed = if self.tasks[task].scaled { self.speed(self.tasks[task].cpu) } else { 1.0 };
        let now = self.now;
        let task_ = &mut self.tasks[task];
        (task_.began, task_.speed, task_.planned) = (now, speed, true);
        task_.number = task_.number.wrapping_add(1);
        let (number, needed) = (task_.number, at_speed(task_.left, speed));
        self.announce(needed, What::Passed(task as u32, number));
    }

    /// Stops a plan, so that what is left is known again.
    pub(crate) fn unplan(&mut self, task: usize) {
        let now = self.now;
        let task = &mut self.tasks[task];
        if task.planned {
            let done = ((now - task.began) as f64 * task.speed) as Ps;
            task.left = task.left.saturating_sub(done);
            task.planned = false;
            task.number = task.number.wrapping_add(1);
        }
    }

    fn passed(&mut self, task: usize, number: u32) -> Option<usize> {
        if self.tasks[task].number != number || !self.tasks[task].planned {
            return None;
        }
        self.tasks[task].planned = false;
        self.tasks[task].left = 0;
        self.turn_of(task)
    }

    /// Returns the task that could run on, unless its processor is wanted by another.
    pub(crate) fn turn_of(&mut self, task: usize) -> Option<usize> {
        let cpu = self.tasks[task].cpu;
        if self.cpus[cpu].resched && self.tasks[task].kernel == 0 {
            self.preempt(task);
            return None;
        }
        Some(task)
    }

    /// Returns the time as the running task sees it.
    pub(crate) fn local_now(&self) -> Ps {
        self.now + self.tasks.get(self.current).map_or(0, |task| task.debt)
    }

    /// Notes that the running task begins something else. Returns what it was doing.
    pub(crate) fn go(&mut self, place: Activity) -> Activity {
        let now = self.local_now();
        let task = &mut self.tasks[self.current];
        let before = std::mem::replace(&mut task.place, place);
        let mark = std::mem::replace(&mut task.mark, now);
        self.spent[before as usize] += now.saturating_sub(mark);
        before
    }

    /// Notes a step of the running task.
    pub(crate) fn note(&mut self, kind: StepKind, address: usize, value: u64) {
        if self.trace.on {
            let task = self.current as u32;
            let cpu = self.tasks[self.current].cpu as u32;
            let (at, offset) = (self.local_now(), self.arena.offset(address));
            self.trace.push(at, task, cpu, kind, offset, value);
        }
    }
}

//! The scheduler, which decides what task runs on what processor, and for how long.
//!
//! # Role
//! Each processor has a queue of tasks that are ready; the one that has had least
//! processor time goes first. A task that wakes up goes to an idle processor near where it
//! ran before or where it is woken from, if its waker finds one (`finds`); else it queues, and takes the processor at once
//! if the running task is far enough ahead of it, and its turn is not new (`keeps`). A processor without work looks for some
//! in other queues, the nearest first; `balance` has that, and where a new task starts. A waker takes
//! its turn at the queue of the processor that it has chosen (`queue` of the machine's file).
//!
//! # Source
//! What the documentation of Linux' fair scheduler says of it: slices, the credit of
//! sleepers, the granularity of preemption at a wake-up. The locks of queues: `try_to_wake_up`, which
//! since Linux 3.0 leaves a task for a processor below another last-level cache in a list. `keeps`:
//! Linux from 6.6 on protects the slice of the running task from those that wake up (`RUN_TO_PARITY`) while it has had
//! no more than its share.
//!
//! # Not modelled
//! The ticks by which the real one takes its decisions, priorities, the two queues that a
//! processor locks to take a task from another, and what a signal takes from the task that runs there.

use super::event::What;
use super::task::{Activity, TaskState};
use super::time::{Ps, at_speed};
use super::trace::StepKind;
use super::world::SimWorld;

impl SimWorld {
    /// Returns how fast a processor computes, whose sibling may be busy.
    pub(crate) fn speed(&self, cpu: usize) -> f64 {
        if self.beside(cpu) { self.machine.smt.speed } else { 1.0 }
    }

    /// Tells whether another thread of its core is busy.
    pub(crate) fn beside(&self, cpu: usize) -> bool {
        self.machine.layout.threads > 1
            && self.machine.siblings(cpu).any(|other| self.cpus[other].task.is_some())
    }

    /// Counts whether a processor that has another task, or a longer or shorter queue, may spare
    /// any.
    fn count_spare(&mut self, cpu: usize) {
        let cpu_ = &self.cpus[cpu];
        self.spare.set(cpu, cpu_.queue.len() > usize::from(cpu_.task.is_none()));
    }

    /// Returns the time that a step of the kernel takes on `cpu`.
    pub(crate) fn kernel_time(&self, time: Ps, cpu: usize) -> Ps {
        at_speed(time, self.speed(cpu))
    }

    /// Waits until `task`, which the running task is about to wake, has left its processor.
    pub(crate) fn wait_for_leaving(&mut self, task: usize) {
        let left_at = self.cpus[self.tasks[task].cpu].left_at;
        if self.tasks[task].state == TaskState::Asleep {
            let current = self.current;
            self.tasks[current].debt += left_at.saturating_sub(self.now);
        }
    }

    /// Adapts the speed of a processor whose sibling became busy or idle.
    fn speed_changes(&mut self, cpu: usize) {
        for other in self.machine.siblings(cpu) {
            if let Some(task) = self.cpus[other].task
                && self.tasks[task].planned
                && self.tasks[task].scaled
            {
                self.unplan(task);
                self.plan(task);
            }
        }
    }

    /// Returns a processor without work among those of `from`'s last-level cache: one whose
    /// siblings have none either, if there is one.
    fn idle_near(&self, from: usize) -> Option<usize> {
        let range = self.machine.cpus_near(from);
        let mut found = None;
        for cpu in self.idle.within(range) {
            if self.machine.siblings(cpu).all(|other| self.idle.has(other)) {
                return Some(cpu);
            }
            found = found.or(Some(cpu));
        }
        found
    }

    fn load(&self, cpu: usize) -> usize {
        self.cpus[cpu].queue.len() + usize::from(self.cpus[cpu].task.is_some())
    }

    /// Returns the processor that a sleeping task goes to if it is woken from `from`.
    pub(crate) fn target(&mut self, task: usize, from: usize) -> usize {
        let before = self.tasks[task].cpu;
        if self.idle.has(before) {
            return before;
        }
        let finds = self.machine.scheduler.finds;
        let near = if finds >= 1.0 || finds > 0.0 && self.random.unit() < finds {
            self.idle_near(before).or_else(|| self.idle_near(from))
        } else {
            None
        };
        match near {
            Some(cpu) => cpu,
            None if self.load(from) < self.load(before) => from,
            None => before,
        }
    }

    /// Takes a turn at the queue of `target`, for the running task, which puts another one into it.
    /// Returns how long that takes.
    ///
    /// Below one last-level cache the waker locks the queue itself: it waits for others that do so, and
    /// for a switch that goes on there. The queue of a processor further away it does not touch: it
    /// leaves the task in a list there, and sends a signal.
    pub(crate) fn turn_at_queue(&mut self, target: usize) -> Ps {
        let from = self.tasks[self.current].cpu;
        let held = self.kernel_time(self.machine.cost.queue, from);
        let (here, there) = (self.cpus[from].cache, self.cpus[target].cache);
        if here != there {
            return self.machine.cost.transfer[self.machine.between(here, there)] + held;
        }
        let away =
            if self.cpus[target].locked_by == from { 0 } else { self.machine.cost.transfer[0] };
        let begins = (self.now + away).max(self.cpus[target].locked_until);
        self.cpus[target].locked_until = begins + held;
        self.cpus[target].locked_by = from;
        begins + held - self.now
    }

    /// Makes a sleeping task ready on a processor. Tells whether an idle processor had to be told.
    pub(crate) fn awaken(&mut self, task: usize, target: usize) -> bool {
        debug_assert_eq!(self.tasks[task].state, TaskState::Asleep);
        self.migrate(task, target);
        let credit = self.machine.cost.credit as i64;
        let floor = self.cpus[target].floor - credit;
        let task_ = &mut self.tasks[task];
        task_.virtual_time = task_.virtual_time.max(floor);
        let idle = self.idle.has(target);
        self.enqueue(task, target);
        idle
    }

    pub(super) fn migrate(&mut self, task: usize, to: usize) {
        let from = self.tasks[task].cpu;
        if from != to {
            self.tasks[task].virtual_time += self.cpus[to].floor - self.cpus[from].floor;
            self.tasks[task].cpu = to;
        }
    }

    /// Puts a ready task into a processor's queue, and sees to it that it is noticed.
    pub(crate) fn enqueue(&mut self, task: usize, cpu: usize) {
        self.tasks[task].state = TaskState::Queued;
        self.tasks[task].cpu = cpu;
        self.cpus[cpu].queue.push(task);
        self.count_spare(cpu);
        if self.idle.has(cpu) {
            self.idle.set(cpu, false);
            self.cpus[cpu].switching = true;
            let idle = self.now - self.cpus[cpu].idle_since;
            let exit = self.machine.idle_exit(idle);
            let switch = self.kernel_time(self.machine.cost.switch, cpu);
            self.spent[Activity::Kernel as usize] += switch;
            self.announce(exit + self.machine.cost.signal + switch, What::Dispatch(cpu as u32));
            return;
        }
        let Some(running) = self.cpus[cpu].task else { return };
        let ran = (self.now - self.tasks[running].since) as i64;
        let ahead = self.tasks[running].virtual_time + ran - self.tasks[task].virtual_time;
        if ahead > self.machine.cost.granularity as i64 && !self.keeps(ran as Ps) {
            self.want(cpu);
        } else if self.cpus[cpu].queue.len() == 1 {
            self.arm_slice(cpu);
        }
    }

    /// Tells whether a task that has had the processor for so long keeps it from one that wakes up.
    fn keeps(&mut self, ran: Ps) -> bool {
        let keeps = self.machine.scheduler.keeps;
        keeps > 0.0 && ran < self.machine.cost.slice && self.random.unit() < keeps
    }

    fn arm_slice(&mut self, cpu: usize) {
        let Some(running) = self.cpus[cpu].task else { return };
        let waiting = self.cpus[cpu].queue.len() as u64 + 1;
        let slice = (self.machine.cost.latency / waiting).max(self.machine.cost.slice);
        let ran = self.now - self.tasks[running].since;
        self.cpus[cpu].slice = self.cpus[cpu].slice.wrapping_add(1);
        let number = self.cpus[cpu].slice;
        self.announce(slice.saturating_sub(ran), What::Slice(cpu as u32, number));
    }

    pub(crate) fn slice_over(&mut self, cpu: usize, number: u32) {
        if self.cpus[cpu].slice == number && !self.cpus[cpu].queue.is_empty() {
            self.want(cpu);
        }
    }

    /// Asks a processor's task to make room, as soon as it may.
    fn want(&mut self, cpu: usize) {
        let Some(task) = self.cpus[cpu].task else { return };
        if self.cpus[cpu].resched {
            return;
        }
        self.cpus[cpu].resched = true;
        if self.tasks[task].poll.parked {
            // It looks, and finds that it is to make room.
            self.unpark(task);
        } else if self.tasks[task].kernel == 0 && self.tasks[task].planned {
            self.unplan(task);
            self.preempt(task);
        }
    }

    /// Puts the running task back into the queue; it must not run on.
    pub(crate) fn preempt(&mut self, task: usize) {
        let cpu = self.tasks[task].cpu;
        if self.trace.on {
            let step = (self.now, task as u32, cpu as u32);
            self.trace.push(step.0, step.1, step.2, StepKind::Preempted, 0, 0);
        }
        self.leave(task);
        self.tasks[task].state = TaskState::Queued;
        self.cpus[cpu].queue.push(task);
        self.count_spare(cpu);
    }

    /// Lets the running task's processor go on to another.
    pub(crate) fn leave(&mut self, task: usize) {
        let cpu = self.tasks[task].cpu;
        let now = self.now;
        let task_ = &mut self.tasks[task];
        let place = task_.place as usize;
        self.spent[place] += now.saturating_sub(task_.mark);
        task_.mark = now;
        let ran = now - task_.since;
        task_.virtual_time += ran as i64;
        task_.left_at = now;
        task_.on_cpu.set(0);
        let address = task_.on_cpu.address();
        self.write_at_once(cpu, address);
        let switch = self.kernel_time(self.machine.cost.switch, cpu);
        let cpu_ = &mut self.cpus[cpu];
        cpu_.busy += ran + switch;
        cpu_.left_at = now + switch;
        (cpu_.locked_until, cpu_.locked_by) = (cpu_.left_at, cpu);
        cpu_.task = None;
        cpu_.resched = false;
        cpu_.switching = true;
        self.spent[Activity::Kernel as usize] += switch;
        self.count_spare(cpu);
        self.announce(switch, What::Dispatch(cpu as u32));
    }

    /// Ends the running task.
    pub(crate) fn end(&mut self, task: usize) {
        self.leave(task);
        self.tasks[task].state = TaskState::Ended;
    }

    /// Takes the task that has had least out of a queue; `cold`: of those that another processor may have.
    fn first(&mut self, cpu: usize, cold: bool) -> Option<usize> {
        let queue = &self.cpus[cpu].queue;
        let (index, _) = queue
            .iter()
            .enumerate()
            .filter(|&(_, &task)| !cold || self.is_cold(task))
            .min_by_key(|&(n, &task)| (self.tasks[task].virtual_time, n))?;
        let task = self.cpus[cpu].queue.remove(index);
        self.count_spare(cpu);
        Some(task)
    }

    /// Tells whether a task has not run for so long that another processor may have it.
    fn is_cold(&self, task: usize) -> bool {
        let left_at = self.tasks[task].left_at;
        left_at == 0 || self.now >= left_at + self.machine.cost.hot
    }

    /// Returns a task from another processor's queue, the nearest first.
    pub(super) fn steal(&mut self, cpu: usize) -> Option<usize> {
        let victim = self.victim(cpu)?;
        let task = self.first(victim, true)?;
        self.migrate(task, cpu);
        Some(task)
    }

    /// Gives a processor its next task. Returns the task if it goes on at once.
    pub(crate) fn dispatch(&mut self, cpu: usize) -> Option<usize> {
        self.cpus[cpu].switching = false;
        let next = self.first(cpu, false).or_else(|| self.steal(cpu));
        let Some(task) = next else {
            self.idle.set(cpu, true);
            self.cpus[cpu].idle_since = self.now;
            self.speed_changes(cpu);
            return None;
        };
        let now = self.now;
        self.cpus[cpu].task = Some(task);
        self.count_spare(cpu);
        let task_ = &mut self.tasks[task];
        (task_.state, task_.cpu, task_.since, task_.mark) = (TaskState::Running, cpu, now, now);
        task_.on_cpu.set(1);
        let (address, time) = (task_.on_cpu.address(), task_.virtual_time);
        self.write_at_once(cpu, address);
        if self.trace.on {
            self.trace.push(now, task as u32, cpu as u32, StepKind::Run, 0, 0);
        }
        self.cpus[cpu].floor = self.cpus[cpu].floor.max(time);
        self.speed_changes(cpu);
        if !self.cpus[cpu].queue.is_empty() {
            self.arm_slice(cpu);
        }
        if self.tasks[task].left > 0 {
            self.plan(task);
            return None;
        }
        Some(task)
    }
}

//! Where tasks go: where a new one starts, from whom an idle processor takes one, and what a look
//! around now and then puts right.
//!
//! # Role
//! Three mechanisms of Linux, at which a machine's file may leave off (`placement`, `balance`):
//!
//! 1. *Fork balancing*: a new task starts on the node with the most idle processors, there below
//!    the last-level cache with the most, there on the core with the most. So no two tasks share
//!    a core while another core is idle. The first few stay on the first node (`stay`).
//! 2. *Pulling*: a processor that runs out of work takes a task from the longest queue of its core,
//!    else of its cache, of its node, of the nearest other nodes, and so on.
//! 3. *The periodic look* (`balance`): processors that are idle already take tasks that queue
//!    elsewhere, and a core that is idle as a whole takes a running task from one whose threads all
//!    have one.
//!
//! # Source
//! Linux' scheduling domains: `find_idlest_cpu` for a fork, `newidle_balance`, the balancing that a
//! processor's tick starts for idle ones, active balancing between cores whose child domain
//! prefers siblings, and the number of tasks that may be on one node alone (`imb_numa_nr`).
//! `docs/simulator.md` says from which versions on.

use super::event::What;
use super::task::TaskState;
use super::world::SimWorld;
use crate::machine::Machine;
use std::ops::Range;

/// Returns the processors in the order in which new tasks are given them, one each.
pub(super) fn starting_order(machine: &Machine) -> Vec<usize> {
    let count = machine.cpus();
    if !machine.balances() {
        return (0..count).collect();
    }
    let ranges = |cpus: Range<usize>, size: usize| -> Vec<Range<usize>> {
        cpus.clone().step_by(size.max(1)).map(|first| first..(first + size).min(cpus.end)).collect()
    };
    let layout = &machine.layout;
    let (core, cache) = (layout.threads, layout.threads * layout.cores);
    let nodes = ranges(0..count, cache * layout.caches);
    let stay = machine.scheduler.stay as usize;
    let mut busy = vec![false; count];
    let mut order = Vec::with_capacity(count);
    while order.len() < count {
        let idle = |range: &Range<usize>| range.clone().filter(|&cpu| !busy[cpu]).count();
        // Of several with as many the first.
        let idlest = |among: Vec<Range<usize>>| {
            let most = among.iter().map(idle).max().unwrap_or(0);
            among.into_iter().find(|range| idle(range) == most).expect("one has the most")
        };
        let stays = order.len() < stay && idle(&nodes[0]) > 0;
        let node = if stays { nodes[0].clone() } else { idlest(nodes.clone()) };
        let core = idlest(ranges(idlest(ranges(node, cache)), core));
        let cpu = core.clone().find(|&cpu| !busy[cpu]).expect("the idlest has an idle one");
        busy[cpu] = true;
        order.push(cpu);
    }
    order
}

impl SimWorld {
    /// Returns the processor whose queue an idle one takes a task from.
    pub(super) fn victim(&self, cpu: usize) -> Option<usize> {
        let longest = |range: Range<usize>| {
            let there = self.spare.within(range);
            there.max_by_key(|&other| (self.cpus[other].queue.len(), usize::MAX - other))
        };
        let all = 0..self.cpus.len();
        let machine = &self.machine;
        if !machine.balances() {
            return longest(machine.cpus_near(cpu)).or_else(|| longest(all));
        }
        let first = self.spare.within(all.clone()).next()?;
        if all.len() == 1 {
            return Some(first);
        }
        let near = [machine.cpus_of_core(cpu), machine.cpus_near(cpu), machine.cpus_of_node(cpu)];
        near.into_iter().find_map(longest).or_else(|| {
            let away = |other: usize| {
                let (here, there) = (self.cpus[cpu].cache, self.cpus[other].cache);
                machine.between(here, there)
            };
            let elsewhere = self.spare.within(all);
            elsewhere.min_by_key(|&other| {
                (away(other), usize::MAX - self.cpus[other].queue.len(), other)
            })
        })
    }

    /// Announces the first periodic look, if the machine has any.
    pub(super) fn begin_to_balance(&mut self) {
        if self.machine.cost.balance > 0 {
            self.announce(self.machine.cost.balance, What::Balance);
        }
    }

    /// Looks around: idle processors take what queues elsewhere, idle cores what shares a core.
    pub(super) fn balance(&mut self) {
        self.announce(self.machine.cost.balance, What::Balance);
        let all = 0..self.cpus.len();
        // On a large machine that has none of either, no idle processor has to search for itself.
        let shares =
            self.machine.layout.threads > 1 && all.clone().any(|cpu| self.movable(cpu).is_some());
        if !shares && self.spare.within(all.clone()).next().is_none() {
            return;
        }
        let idle: Vec<usize> = self.idle.within(all).collect();
        for cpu in idle {
            if !self.idle.has(cpu) {
                continue;
            }
            if let Some(task) = self.steal(cpu) {
                self.enqueue(task, cpu);
            } else if let Some(task) = self.sharer(cpu) {
                self.push_over(task, cpu);
            }
        }
    }

    /// Returns a running task that shares its core, and may be moved, if `cpu` is of a core that is
    /// idle as a whole: the nearest.
    fn sharer(&self, cpu: usize) -> Option<usize> {
        let machine = &self.machine;
        if machine.layout.threads == 1 || !machine.cpus_of_core(cpu).all(|c| self.idle.has(c)) {
            return None;
        }
        let shares = |range: Range<usize>| range.into_iter().find_map(|other| self.movable(other));
        shares(machine.cpus_near(cpu))
            .or_else(|| shares(machine.cpus_of_node(cpu)))
            .or_else(|| shares(0..self.cpus.len()))
    }

    /// Returns the task of a processor whose core is shared, if it computes: who waits for a line,
    /// spins or is in the kernel is left alone until the next look.
    fn movable(&self, cpu: usize) -> Option<usize> {
        let task = self.cpus[cpu].task?;
        let task_ = &self.tasks[task];
        let computes = task_.planned && task_.scaled && task_.kernel == 0 && !task_.poll.parked;
        (computes && self.beside(cpu)).then_some(task)
    }

    /// Moves a running task to an idle processor.
    fn push_over(&mut self, task: usize, to: usize) {
        self.unplan(task);
        self.leave(task);
        self.tasks[task].state = TaskState::Queued;
        self.migrate(task, to);
        self.enqueue(task, to);
    }
}

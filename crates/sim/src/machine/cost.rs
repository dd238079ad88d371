//! A machine's times in picoseconds.

use super::Machine;
use crate::engine::time::ps;

/// The costs of [`Machine`], in picoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) hit: u64,
    pub(crate) exchange: u64,
    /// The cost of an exchange beside a busy sibling.
    pub(crate) exchange_beside: u64,
    pub(crate) pause: u64,
    pub(crate) hold_write: u64,
    pub(crate) hold_read: u64,
    /// The cost of a transfer, by distance, then between siblings, then from memory.
    pub(crate) transfer: Vec<u64>,
    pub(crate) occupied: Vec<u64>,
    pub(crate) latency: u64,
    pub(crate) slice: u64,
    pub(crate) granularity: u64,
    pub(crate) credit: u64,
    pub(crate) switch: u64,
    pub(crate) wake: u64,
    /// The part of it for which the target's queue is locked.
    pub(crate) queue: u64,
    pub(crate) kick: u64,
    pub(crate) signal: u64,
    pub(crate) balance: u64,
    /// The time for which a task that has run is left where it is.
    pub(crate) hot: u64,
    pub(crate) idle: Vec<(u64, u64)>,
}

impl Machine {
    /// Works the costs out, after a number has changed.
    pub(crate) fn settle(&mut self) {
        let us = |us: f64| ps(us * 1000.0);
        let lines = &mut self.lines;
        let ends = [lines.sibling, lines.memory];
        // A line in memory is nobody's, so nobody contends for it; siblings neither.
        lines.contended.resize(lines.transfer.len() + 2, 1.0);
        lines.occupied.resize(lines.transfer.len() + 2, lines.hit);
        let (lines, scheduler) = (&self.lines, &self.scheduler);
        self.cost = Cost {
            hit: ps(lines.hit),
            exchange: ps(lines.exchange),
            exchange_beside: ps(lines.exchange / self.smt.exchanges),
            pause: ps(lines.pause),
            hold_write: ps(lines.hold_write),
            hold_read: ps(lines.hold_read),
            transfer: lines.transfer.iter().chain(&ends).map(|&ns| ps(ns)).collect(),
            occupied: lines.occupied.iter().map(|&ns| ps(ns)).collect(),
            latency: us(scheduler.latency),
            slice: us(scheduler.slice),
            granularity: us(scheduler.granularity),
            credit: us(scheduler.credit),
            switch: us(scheduler.switch),
            wake: us(scheduler.wake),
            queue: us(scheduler.queue.min(scheduler.wake)),
            kick: us(scheduler.kick),
            signal: us(scheduler.signal),
            balance: us(scheduler.balance),
            hot: us(scheduler.hot),
            idle: scheduler.idle.iter().map(|&(after, exit)| (us(after), us(exit))).collect(),
        };
    }
}

//! Machines with one number changed: for "what if" and for sensitivities.

use super::Machine;

/// The numbers that can be changed, by the names that they have in a file.
pub const NUMBERS: [&str; 34] = [
    "hit",
    "exchange",
    "sibling",
    "memory",
    "hold_write",
    "hold_read",
    "hold_variation",
    "preference",
    "jitter",
    "pause",
    "speed",
    "exchanges",
    "latency",
    "slice",
    "granularity",
    "credit",
    "switch",
    "wake",
    "queue",
    "kick",
    "signal",
    "placement",
    "finds",
    "hot",
    "keeps",
    "stay",
    "balance",
    "call",
    "futex",
    "bucket",
    "buckets",
    "waking",
    "clock",
    "restart",
];

/// The lists that can be scaled as a whole.
pub const LISTS: [&str; 3] = ["transfer", "occupied", "contended"];

impl Machine {
    /// Returns the number with this name.
    fn number(&mut self, name: &str) -> Option<&mut f64> {
        let (lines, scheduler, kernel) = (&mut self.lines, &mut self.scheduler, &mut self.kernel);
        Some(match name {
            "hit" => &mut lines.hit,
            "exchange" => &mut lines.exchange,
            "sibling" => &mut lines.sibling,
            "memory" => &mut lines.memory,
            "hold_write" => &mut lines.hold_write,
            "hold_read" => &mut lines.hold_read,
            "hold_variation" => &mut lines.hold_variation,
            "preference" => &mut lines.preference,
            "jitter" => &mut lines.jitter,
            "pause" => &mut lines.pause,
            "speed" => &mut self.smt.speed,
            "exchanges" => &mut self.smt.exchanges,
            "latency" => &mut scheduler.latency,
            "slice" => &mut scheduler.slice,
            "granularity" => &mut scheduler.granularity,
            "credit" => &mut scheduler.credit,
            "switch" => &mut scheduler.switch,
            "wake" => &mut scheduler.wake,
            "queue" => &mut scheduler.queue,
            "kick" => &mut scheduler.kick,
            "signal" => &mut scheduler.signal,
            "placement" => &mut scheduler.placement,
            "finds" => &mut scheduler.finds,
            "hot" => &mut scheduler.hot,
            "keeps" => &mut scheduler.keeps,
            "stay" => &mut scheduler.stay,
            "balance" => &mut scheduler.balance,
            "call" => &mut kernel.call,
            "futex" => &mut kernel.futex,
            "bucket" => &mut kernel.bucket,
            "buckets" => &mut kernel.buckets,
            "waking" => &mut kernel.waking,
            "clock" => &mut kernel.clock,
            "restart" => &mut kernel.restart,
            _ => return None,
        })
    }

    /// Replaces the number with this name by what `change` makes of it. A list is changed
    /// as a whole; contention is changed in what it adds to 1. Returns false if there is none.
    pub fn change(&mut self, name: &str, change: impl Fn(f64) -> f64) -> bool {
        match name {
            "transfer" => self.lines.transfer.iter_mut().for_each(|v| *v = change(*v)),
            "occupied" => self.lines.occupied.iter_mut().for_each(|v| *v = change(*v)),
            "contended" => {
                self.lines.contended.iter_mut().for_each(|v| *v = 1.0 + change(*v - 1.0));
            }
            _ => match self.number(name) {
                Some(number) => *number = change(*number),
                None => return false,
            },
        }
        self.settle();
        true
    }
}

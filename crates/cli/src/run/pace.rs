//! How often the command wakes.
//!
//! # Role
//! Keeping the coarse clock takes a wake-up every few milliseconds, which on a
//! virtual machine costs more than all that is done then. While the processes
//! of the run use no processor time, nothing changes in their ledgers, and the
//! clock may move in longer steps; what was asleep is looked at within one of
//! those.

use super::processes::Observed;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time between two settings of the coarse clock while something runs.
const BUSY: Duration = Duration::from_millis(4);
/// The time between two settings while nothing runs.
const CALM: Duration = Duration::from_millis(32);
/// How often to ask whether something runs.
const ASK: Duration = Duration::from_millis(48);

/// Tells when to wake next, for the coarse clock.
pub(super) struct ClockPace {
    next: Instant,
    ask: Instant,
    used: u64,
    calm: bool,
    /// The time since which nothing has run.
    quiet: Option<Instant>,
}

impl ClockPace {
    pub(super) fn new(now: Instant) -> Self {
        ClockPace { next: now + BUSY, ask: now + ASK, used: 0, calm: false, quiet: None }
    }

    /// Returns when the clock is to be set.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Returns since when no process has used the processor, as far as was asked.
    pub(super) fn quiet(&self) -> Option<Instant> {
        self.quiet
    }

    /// Notes that something has happened after which the processes are likely to run.
    pub(super) fn stir(&mut self, now: Instant) {
        self.calm = false;
        self.next = self.next.min(now + BUSY);
        self.ask = now + ASK;
    }

    /// Decides, after the clock has been set, when to set it next: that depends on the processes.
    pub(super) fn step<'p>(
        &mut self,
        now: Instant,
        processes: impl Iterator<Item = &'p Arc<Observed>>,
    ) {
        if self.calm || now >= self.ask {
            let used = processes.map(|process| process.processor_time()).fold(0, u64::wrapping_add);
            self.calm = used == self.used;
            self.quiet = if self.calm { self.quiet.or(Some(now)) } else { None };
            self.used = used;
            self.ask = now + ASK;
        }
        // After a stop many are due at once; one stands for them all.
        self.next = now + if self.calm { CALM } else { BUSY };
    }
}

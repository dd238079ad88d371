//! How often the command wakes, and how much of the time it looks.
//!
//! # Role
//! Keeping the coarse clock takes a wake-up every few milliseconds, which on a
//! virtual machine costs more than all that is done then. While the processes
//! of the run use no processor time, nothing changes in their ledgers, and the
//! clock may move in longer steps; what was asleep is looked at within one of
//! those. Each step is a little longer or shorter by chance: a program that does the same every few
//! milliseconds is not to be met always at the same point.

use super::processes::Observed;
use crate::clock;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time between two settings of the coarse clock while something runs, on average.
const BUSY: Duration = Duration::from_millis(4);
/// The time between two settings while nothing runs, on average.
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
    dice: u64,
    /// The looks at threads that wait.
    pub(super) looks: LookBudget,
}

impl ClockPace {
    pub(super) fn new(now: Instant) -> Self {
        let (next, ask) = (now + BUSY, now + ASK);
        // Any number serves that is not zero.
        let (dice, looks) = (clock::now() | 1, LookBudget::default());
        ClockPace { next, ask, used: 0, calm: false, quiet: None, dice, looks }
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
        let asks = self.calm || now >= self.ask;
        let mut used: u64 = 0;
        for process in processes {
            // With each step: where threads keep waiting for each other, nobody ever asks.
            process.note_delays(now);
            if asks {
                used = used.wrapping_add(process.processor_time());
            }
        }
        if asks {
            self.calm = used == self.used;
            self.quiet = if self.calm { self.quiet.or(Some(now)) } else { None };
            self.used = used;
            self.ask = now + ASK;
        }
        // After a stop many are due at once; one stands for them all.
        let step = if self.calm { CALM } else { BUSY };
        let step = step.mul_f64(0.75 + 0.5 * self.chance());
        self.looks.planned += step.as_nanos() as u64;
        self.next = now + step;
    }

    /// Returns a number from 0 to 1, by Marsaglia's xorshift.
    fn chance(&mut self) -> f64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        (self.dice >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The time for which the command wants the processor when it wakes, in nanoseconds: the least that
/// the scheduler takes.
const SLICE: u64 = 100_000;

/// Asks that the calling thread gets a processor soon when it wakes, for no more than short times: one
/// that comes when others have done their part meets them at other moments than those of its choice.
/// Kernels before 6.12 have no such wish, and nothing depends on it.
pub(super) fn wake_soon() {
    /// The first version of the kernel's `sched_attr`.
    #[repr(C)]
    #[derive(Default)]
    struct Wish {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    let mut wish = Wish::default();
    let size = size_of::<Wish>();
    // SAFETY: both calls are about the calling thread; they get an exclusively borrowed structure of
    // the size that they are told, and one that lives in this frame.
    unsafe {
        let known = libc::syscall(libc::SYS_sched_getattr, 0, &raw mut wish, size, 0) == 0;
        // To the other policies that number means something else, or nothing.
        if known && wish.policy == libc::SCHED_OTHER.unsigned_abs() {
            wish.runtime = SLICE;
            libc::syscall(libc::SYS_sched_setattr, 0, &raw const wish, 0);
        }
    }
}

/// How many times as long as looks used the processor there is none.
const REST: u64 = 40;

/// Bounds what the looks at threads that wait cost, of all processes together.
#[derive(Debug, Default)]
pub(super) struct LookBudget {
    is_open: bool,
    /// Nanoseconds of the processor that the looks since the last rest have used.
    used: u64,
    rests_until: u64,
    /// The time that was to pass since the last looks, in nanoseconds. A look that comes late, since
    /// processors are scarce, would meet that scarcity more often if it weighed more for it.
    planned: u64,
    /// The processor time that the thread had used when it last went to sleep, in nanoseconds.
    pub(super) used_before_sleep: u64,
}

impl LookBudget {
    /// Begins a round at `now`, in nanoseconds of the ledgers' clock.
    pub(super) fn begin(&mut self, now: u64) {
        self.is_open = now >= self.rests_until;
    }

    /// Looks, unless this is a round of rest. `look` is told for how many nanoseconds it stands.
    pub(super) fn spend(&mut self, look: impl FnOnce(u64)) {
        if self.is_open {
            let before = clock::used();
            look(self.planned);
            self.used += clock::used().saturating_sub(before);
        }
    }

    /// Ends the round, and has the next ones rest for as long as this one was dear.
    pub(super) fn end(&mut self) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        self.planned = 0;
        let rest = std::mem::take(&mut self.used).saturating_mul(REST);
        self.rests_until = clock::now().saturating_add(rest);
    }
}

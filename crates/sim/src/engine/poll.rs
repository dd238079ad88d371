//! Idle spin loops cost no events.
//!
//! # Role
//! A loop that reads some words, pauses and reads them again does the same until one of
//! them changes. Two turns of it that read the same from the task's own cache tell its
//! period; then the task is parked, and goes on at the turn that the loop would have come
//! to by itself after the change. If that turn reads the same words, it is parked again at
//! its end, though it had to fetch them: the period is known.
//!
//! # Invariants
//! - **SPIN-LOOP-PAUSE** Only [`pause`](super::calls::pause) parks: a loop that counts its turns,
//!   or looks at the clock, must not use it.
//! - **SPIN-LOOP-IDLE** A turn with a write or an exchange in it is not idle, nor is one with a
//!   miss, but for those of a loop that was parked before and has done neither since.
//! - **SPIN-LOOP-WOKEN** A parked task is woken by each write to a line it reads, from whatever
//!   processor, and by the wish for its processor.
//! - **SPIN-LOOP-WANTED** While its processor is wanted a task is parked only if that is nothing to
//!   it: the kernel keeps it there, and its loop does not look.
//!
//! A turn that reads several words is taken up at its beginning: a word that changes in
//! the middle of a turn is noticed one turn later than without elision, some ten
//! nanoseconds.

use super::time::Ps;

/// The number of reads of one turn that are remembered. Longer turns are not elided.
const MOST: usize = 6;

/// The state of a task's spin loop, as far as it is known.
#[derive(Default)]
pub(crate) struct Poll {
    /// Whether the loop is between two pauses.
    on: bool,
    /// Whether the turn has neither written nor exchanged.
    pure: bool,
    /// Whether the turn has read a line that was not in its cache.
    missed: bool,
    /// Whether the turn has looked if its processor is wanted.
    pub(super) asked: bool,
    reads: usize,
    /// The reads of the turn that goes on.
    current: [(u32, u64); MOST],
    /// The reads of the turn before.
    pub(super) last_reads: usize,
    pub(super) last: [(u32, u64); MOST],
    /// The time at which the latest turn began.
    began: Ps,
    period: Ps,
    /// The loop in which it was parked last, while it cannot have left it.
    known: bool,
    known_reads: usize,
    known_lines: [u32; MOST],
    known_period: Ps,
    pub(crate) parked: bool,
    pub(crate) number: u32,
}

impl Poll {
    /// Notes something that an idle loop does not do.
    #[inline]
    pub(crate) fn spoil(&mut self) {
        self.pure = false;
        self.known = false;
    }

    /// Takes note of a read that its own cache could not answer.
    #[inline]
    pub(crate) fn miss(&mut self) {
        self.missed = true;
    }

    /// Takes note of a look at whether the processor is wanted.
    #[inline]
    pub(crate) fn asked(&mut self) {
        self.asked = true;
    }

    /// Notes what a read of a line has found.
    #[inline]
    pub(crate) fn read(&mut self, line: usize, value: u64) {
        if !self.on {
            return;
        }
        if self.reads == MOST {
            self.spoil();
            return;
        }
        self.current[self.reads] = (line as u32, value);
        self.reads += 1;
    }

    /// Tells whether the turn was as the one before it, from the task's own cache.
    fn repeated(&self, period: Ps) -> bool {
        !self.missed
            && self.current[..self.reads] == self.last[..self.last_reads]
            && period == self.period
    }

    /// Tells whether the turn belongs to the loop in which the task was parked before.
    fn went_on(&self) -> bool {
        self.known
            && self.reads == self.known_reads
            && (self.current[..self.reads].iter().map(|&(line, _)| line))
                .eq(self.known_lines[..self.reads].iter().copied())
    }

    /// Ends the turn, at `now`, and begins the next one. Returns how long one takes if all that
    /// follow are the same.
    pub(super) fn next_turn(&mut self, now: Ps) -> Option<Ps> {
        let period = now - self.began;
        let idle = self.on && self.pure && self.reads > 0;
        let same = if idle && self.repeated(period) {
            Some(period)
        } else if idle && self.went_on() {
            Some(self.known_period)
        } else {
            None
        };
        (self.last, self.last_reads) = (self.current, self.reads);
        (self.began, self.period) = (now, period);
        self.begin();
        same
    }

    fn begin(&mut self) {
        (self.on, self.pure, self.missed, self.asked) = (true, true, false, false);
        self.reads = 0;
    }

    /// Makes the loop idle from now on. Returns the number of the parking.
    pub(super) fn park(&mut self, period: Ps) -> u32 {
        self.parked = true;
        self.number = self.number.wrapping_add(1);
        (self.known, self.known_reads, self.known_period) = (true, self.last_reads, period);
        for (known, &(line, _)) in self.known_lines.iter_mut().zip(&self.last[..self.last_reads]) {
            *known = line;
        }
        self.number
    }

    /// Lets the loop go on, and returns when its next turn begins.
    pub(super) fn unpark(&mut self, now: Ps) -> Ps {
        self.parked = false;
        let period = self.known_period.max(1);
        let turns = now.saturating_sub(self.began).div_ceil(period);
        self.began += turns * period;
        self.begin();
        self.began
    }
}

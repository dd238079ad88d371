//! Idle spin loops cost no events.
//!
//! # Role
//! A loop that reads some words, pauses and reads them again does the same until one of
//! them changes. Two turns of it that read the same from the task's own cache tell its
//! period; then the task is parked, and goes on at the turn that the loop would have come
//! to by itself after the change.
//!
//! # Invariants
//! - **L1** Only [`pause`](super::calls::pause) parks: a loop that counts its turns, or
//!   looks at the clock, must not use it.
//! - **L2** A turn with a miss, a write, or an exchange in it is not idle.
//! - **L3** A parked task is woken by each write to a line it reads, from whatever
//!   processor, and by the wish for its processor.
//!
//! A turn that reads several words is taken up at its beginning: a word that changes in
//! the middle of a turn is noticed one turn later than without elision, some ten
//! nanoseconds.

use super::world::{Ps, What, World};

/// Reads of one turn that are remembered; longer turns are not elided.
const MOST: usize = 6;

/// What is known of a task's spin loop.
#[derive(Default)]
pub(crate) struct Poll {
    /// Between two pauses.
    on: bool,
    pure: bool,
    reads: usize,
    now: [(u32, u64); MOST],
    /// The turn before.
    last_reads: usize,
    last: [(u32, u64); MOST],
    /// When the latest turn began.
    began: Ps,
    period: Ps,
    pub(crate) parked: bool,
    pub(crate) number: u32,
}

impl Poll {
    /// Something that an idle loop does not do.
    #[inline]
    pub(crate) fn spoil(&mut self) {
        self.pure = false;
    }

    /// A read from the task's own cache.
    #[inline]
    pub(crate) fn read(&mut self, line: usize, value: u64) {
        if !self.on {
            return;
        }
        if self.reads == MOST {
            self.pure = false;
            return;
        }
        self.now[self.reads] = (line as u32, value);
        self.reads += 1;
    }
}

impl World {
    /// The running task has done a turn and begins another; true if it is parked.
    pub(crate) fn turn_done(&mut self) -> bool {
        let (current, now) = (self.current, self.local_now());
        let resched = self.cpus[self.tasks[current].cpu].resched;
        let poll = &mut self.tasks[current].poll;
        let period = now - poll.began;
        let same = poll.on
            && poll.pure
            && poll.reads > 0
            && poll.now[..poll.reads] == poll.last[..poll.last_reads]
            && period == poll.period;
        (poll.last, poll.last_reads) = (poll.now, poll.reads);
        (poll.began, poll.period) = (now, period);
        (poll.on, poll.pure, poll.reads) = (true, true, 0);
        if !same || self.every_poll || resched || self.copies_lost(current) {
            return false;
        }
        let poll = &mut self.tasks[current].poll;
        poll.parked = true;
        poll.number = poll.number.wrapping_add(1);
        let (number, reads, lines) = (poll.number, poll.last_reads, poll.last);
        for (index, &(line, _)) in lines[..reads].iter().enumerate() {
            if lines[..index].iter().all(|&(other, _)| other != line) {
                self.watch(line as usize, current, number);
            }
        }
        true
    }

    /// Whether a line of the latest turn has left the task's cache since.
    fn copies_lost(&self, task: usize) -> bool {
        let cpu = self.tasks[task].cpu;
        let poll = &self.tasks[task].poll;
        poll.last[..poll.last_reads].iter().any(|&(line, _)| !self.readable(line as usize, cpu))
    }

    fn watch(&mut self, line: usize, task: usize, number: u32) {
        let limit = 4 * self.cpus.len();
        if self.lines[line].watchers.len() > limit {
            let mut watchers = std::mem::take(&mut self.lines[line].watchers);
            watchers.retain(|&(task, number)| self.is_parked(task as usize, number));
            self.lines[line].watchers = watchers;
        }
        self.lines[line].watchers.push((task as u32, number));
    }

    fn is_parked(&self, task: usize, number: u32) -> bool {
        let poll = &self.tasks[task].poll;
        poll.parked && poll.number == number
    }

    /// A line was written: whoever spins on it looks again.
    pub(crate) fn notice(&mut self, line: usize) {
        if self.lines[line].watchers.is_empty() {
            return;
        }
        let mut watchers = std::mem::take(&mut self.lines[line].watchers);
        for &(task, number) in &watchers {
            if self.is_parked(task as usize, number) {
                self.unpark(task as usize);
            }
        }
        watchers.clear();
        self.lines[line].watchers = watchers;
    }

    /// A parked task goes on at its loop's next turn.
    pub(crate) fn unpark(&mut self, task: usize) {
        let now = self.now;
        let task_ = &mut self.tasks[task];
        task_.poll.parked = false;
        task_.poll.on = false;
        // Its debt was passed when it was parked: up to the beginning of a turn.
        let (began, period) = (task_.poll.began, task_.poll.period.max(1));
        let turns = now.saturating_sub(began).div_ceil(period);
        (task_.left, task_.scaled) = ((began + turns * period).saturating_sub(now), false);
        task_.began = now;
        task_.speed = 1.0;
        task_.planned = true;
        task_.number = task_.number.wrapping_add(1);
        let (left, number) = (task_.left, task_.number);
        self.announce(left, What::Passed(task as u32, number));
    }
}

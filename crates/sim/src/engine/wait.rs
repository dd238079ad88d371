//! Sleeping and waking: timers, and words that one sleeps on.

use super::event::What;
use super::task::TaskState;
use super::trace::StepKind;
use super::words::Bucket;
use super::world::SimWorld;
use lockstead_core::WaitOutcome;

impl SimWorld {
    /// Lets the running task leave its processor until it is woken.
    pub(crate) fn sleep(&mut self) {
        let current = self.current;
        self.note(StepKind::Sleep, 0, 0);
        self.leave(current);
        let task = &mut self.tasks[current];
        (task.state, task.left, task.debt) = (TaskState::Asleep, 0, 0);
    }

    /// Wakes the running task after `time`, unless it is woken before.
    pub(crate) fn set_timer(&mut self, time: u64) {
        let current = self.current;
        let task = &mut self.tasks[current];
        task.timer = task.timer.wrapping_add(1);
        task.timed_out = false;
        let number = task.timer;
        self.announce(time, What::Timer(current as u32, number));
    }

    /// Makes its timer a dead letter.
    pub(crate) fn cancel_timer(&mut self, task: usize) {
        self.tasks[task].timer = self.tasks[task].timer.wrapping_add(1);
    }

    pub(crate) fn timer(&mut self, task: usize, number: u32) {
        if self.tasks[task].timer == number && self.tasks[task].state == TaskState::Asleep {
            self.tasks[task].timed_out = true;
            // By the clock: nobody pays for it.
            let target = self.target(task, self.tasks[task].cpu);
            let _ = self.awaken(task, target);
        }
    }

    /// Puts the running task among the sleepers of `address`.
    pub(crate) fn lie_down(&mut self, address: usize) {
        let task = &mut self.tasks[self.current];
        (task.lying, task.timed_out) = (true, false);
        let number = self.bucket_number(address);
        self.sleepers.queues.entry(number).or_default().push_back((address, self.current));
    }

    /// Tells whether the running task is among the sleepers, and no timer of its has ended that.
    pub(crate) fn lies(&self) -> bool {
        let task = &self.tasks[self.current];
        task.lying && !task.timed_out
    }

    /// Lets the running task leave its processor until it is woken, at the latest `until` then. Returns
    /// false if it was woken since it lay down, or if it is late.
    pub(crate) fn sleep_if_sleepy(&mut self, until: Option<u64>) -> bool {
        let (current, now) = (self.current, self.now);
        self.tasks[current].timed_out = until.is_some_and(|until| until <= now);
        if self.tasks[current].timed_out || !self.tasks[current].lying {
            return false;
        }
        if let Some(until) = until {
            self.set_timer(until - now);
        }
        self.tasks[current].sleepy = true;
        self.sleep();
        true
    }

    /// Lets a sleeper go on. Returns how it was woken.
    pub(crate) fn get_up(&mut self, task: usize, address: usize) -> WaitOutcome {
        self.cancel_timer(task);
        if !std::mem::replace(&mut self.tasks[task].lying, false) {
            return WaitOutcome::Woken;
        }
        let number = self.bucket_number(address);
        if let Some(queue) = self.sleepers.queues.get_mut(&number)
            && let Some(at) = queue.iter().position(|&(_, other)| other == task)
        {
            queue.remove(at);
        }
        WaitOutcome::TimedOut
    }

    /// Takes the task that has slept longest on `address`. Returns it with the number of those who lie
    /// before it, for other addresses.
    pub(crate) fn next_sleeper(&mut self, address: usize) -> Option<(usize, usize)> {
        let number = self.bucket_number(address);
        let queue = self.sleepers.queues.get_mut(&number)?;
        let at = queue.iter().position(|&(theirs, _)| theirs == address)?;
        let (_, task) = queue.remove(at)?;
        if queue.is_empty() {
            self.sleepers.queues.remove(&number);
        }
        self.tasks[task].lying = false;
        Some((task, at))
    }

    /// Returns the number of sleepers in the bucket of `address`.
    pub(crate) fn sleepers_beside(&self, address: usize) -> usize {
        self.sleepers.queues.get(&self.bucket_number(address)).map_or(0, |queue| queue.len())
    }

    /// Returns the number of the bucket of an address, which it may share with others: which ones, the
    /// seed says.
    fn bucket_number(&self, address: usize) -> usize {
        let hash = (self.arena.offset(address) / 8) as u64 ^ self.salt;
        let many = self.machine.buckets();
        (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (many - 1)
    }

    /// Returns the bucket of an address. Memory is only there for so many as are in use.
    pub(crate) fn bucket(&mut self, address: usize) -> &'static Bucket {
        let number = self.bucket_number(address);
        let used = self.bucket_places.len();
        let place = *self.bucket_places.entry(number).or_insert(used);
        self.buckets[place % self.buckets.len()]
    }
}

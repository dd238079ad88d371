//! Sleeping and waking: timers, and words that one sleeps on.

use super::event::What;
use super::task::TaskState;
use super::trace::StepKind;
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
            let _ = self.awaken(task, self.tasks[task].cpu);
        }
    }

    /// Puts the running task among the sleepers of `address`.
    pub(crate) fn lie_down(&mut self, address: usize) {
        self.tasks[self.current].lying = true;
        self.sleepers.queues.entry(address).or_default().push_back(self.current);
    }

    /// Lets a sleeper go on. Returns how it was woken.
    pub(crate) fn get_up(&mut self, task: usize, address: usize) -> WaitOutcome {
        self.cancel_timer(task);
        if !std::mem::replace(&mut self.tasks[task].lying, false) {
            return WaitOutcome::Woken;
        }
        if let Some(queue) = self.sleepers.queues.get_mut(&address)
            && let Some(at) = queue.iter().position(|&other| other == task)
        {
            queue.remove(at);
        }
        WaitOutcome::TimedOut
    }

    /// Takes the task that has slept longest on `address`.
    pub(crate) fn next_sleeper(&mut self, address: usize) -> Option<usize> {
        let queue = self.sleepers.queues.get_mut(&address)?;
        let first = queue.pop_front();
        if queue.is_empty() {
            self.sleepers.queues.remove(&address);
        }
        if let Some(task) = first {
            self.tasks[task].lying = false;
        }
        first
    }
}

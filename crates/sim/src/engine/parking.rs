//! Parking tasks whose spin loops are idle, and waking them (`poll` knows the loops).

use super::event::What;
use super::world::SimWorld;

impl SimWorld {
    /// Takes note that the running task has the word that it asked for.
    pub(crate) fn fetched(&mut self, address: usize, value: u64) {
        let line = self.arena.line(address).expect("a line that was asked for");
        self.tasks[self.current].poll.read(line, value);
    }

    /// Takes note that the running task has done a turn and begins another. Returns true if it is
    /// parked.
    pub(crate) fn turn_done(&mut self) -> bool {
        let (current, now) = (self.current, self.local_now());
        let task = &mut self.tasks[current];
        // SPIN-LOOP-WANTED.
        let wanted = self.cpus[task.cpu].resched && (task.kernel == 0 || task.poll.asked);
        let Some(period) = task.poll.next_turn(now) else { return false };
        if self.every_poll || wanted || self.copies_lost(current) {
            return false;
        }
        let poll = &mut self.tasks[current].poll;
        let number = poll.park(period);
        let (reads, lines) = (poll.last_reads, poll.last);
        for (index, &(line, _)) in lines[..reads].iter().enumerate() {
            if lines[..index].iter().all(|&(other, _)| other != line) {
                self.watch(line as usize, current, number);
            }
        }
        true
    }

    /// Tells whether a line of the latest turn has left the task's cache since.
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

    /// Lets the tasks that spin on a line look again, because it was written.
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

    /// Lets a parked task go on at its loop's next turn.
    pub(crate) fn unpark(&mut self, task: usize) {
        let now = self.now;
        let task_ = &mut self.tasks[task];
        // Its debt was passed when it was parked: up to the beginning of a turn.
        let begins = task_.poll.unpark(now);
        (task_.left, task_.scaled) = (begins - now, false);
        task_.began = now;
        task_.speed = 1.0;
        task_.planned = true;
        task_.number = task_.number.wrapping_add(1);
        let (left, number) = (task_.left, task_.number);
        self.announce(left, What::Passed(task as u32, number));
    }
}

//! How long the threads of a process stood ready without a processor.
//!
//! # Role
//! A thread that waits for a processor looks as if it computed, or held a lock, all the while. The
//! kernel counts that time for each thread, in `/proc/PID/task/TID/schedstat`, and forgets it when
//! the thread ends. So the command looks now and then, and keeps what it saw last: of a thread that
//! has ended since, the time up to the look before.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The time between two looks: each costs some ten microseconds for each thread.
const EVERY: Duration = Duration::from_millis(190);

/// The most threads of a process that are looked at, in the kernel's order.
const MOST: usize = 256;

/// What the looks have met.
#[derive(Default)]
pub(super) struct QueueDelays {
    next: Option<Instant>,
    /// The delay of each thread so far, in nanoseconds, by the thread's number.
    each: HashMap<u32, u64>,
    /// The delays of threads whose number another one has taken over.
    gone: u64,
}

impl QueueDelays {
    /// Looks at the threads of a process, if it is time to.
    pub(super) fn look(&mut self, pid: u32, now: Instant) {
        if self.next.is_some_and(|next| now < next) {
            return;
        }
        self.next = Some(now + EVERY);
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return };
        for task in tasks.flatten().take(MOST) {
            let tid = task.file_name().to_str().and_then(|tid| tid.parse::<u32>().ok());
            let text = std::fs::read_to_string(task.path().join("schedstat"));
            if let (Some(tid), Some(delay)) = (tid, text.ok().as_deref().and_then(delay)) {
                self.note(tid, delay);
            }
        }
    }

    fn note(&mut self, tid: u32, delay: u64) {
        let before = self.each.insert(tid, delay).unwrap_or(0);
        if delay < before {
            // A delay does not shrink: this is another thread.
            self.gone += before;
        }
    }

    /// Returns the sum of all threads, in nanoseconds; `None` if none was ever seen.
    pub(super) fn sum(&self) -> Option<u64> {
        (!self.each.is_empty()).then(|| self.gone + self.each.values().sum::<u64>())
    }
}

/// Returns the second of the three numbers of the file: the time spent waiting for a processor.
fn delay(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_delay_in_the_middle() {
        assert_eq!(delay("67263 1234 5\n"), Some(1234));
        assert_eq!(delay(""), None);
        assert_eq!(delay("1 x 3"), None);
    }

    #[test]
    fn threads_that_have_ended_and_whose_number_came_again_count() {
        let mut delays = QueueDelays::default();
        assert_eq!(delays.sum(), None, "nobody looked");
        delays.note(7, 100);
        delays.note(8, 50);
        delays.note(7, 130);
        assert_eq!(delays.sum(), Some(180));
        // The number 7 has gone to another.
        delays.note(7, 20);
        assert_eq!(delays.sum(), Some(200));
    }

    #[test]
    fn the_threads_of_this_process_are_seen_once_in_a_while() {
        let mut delays = QueueDelays::default();
        let now = Instant::now();
        delays.look(std::process::id(), now);
        if !std::path::Path::new("/proc/self/schedstat").exists() {
            return;
        }
        assert!(delays.sum().is_some());
        delays.each.clear();
        delays.look(std::process::id(), now + EVERY / 2);
        assert_eq!(delays.sum(), None, "it is too early");
        delays.look(std::process::id(), now + EVERY);
        assert!(delays.sum().is_some());
    }
}

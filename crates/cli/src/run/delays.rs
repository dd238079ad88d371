//! How long each thread of a process ran, and stood ready without a processor.
//!
//! # Role
//! A thread that waits for a processor looks as if it computed, or held a lock, all the while. The
//! kernel counts both times for each thread, in `/proc/PID/task/TID/schedstat`, and forgets it when
//! the thread ends. So the command looks now and then, and keeps what it saw last: of a thread that
//! has ended since, the time up to the look before.

use lockstead_inspect::report::ThreadTimes;
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
    /// The times of each thread so far, by the thread's number.
    each: HashMap<u32, ThreadTimes>,
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
            if let (Some(tid), Some(times)) = (tid, text.ok().as_deref().and_then(times)) {
                self.note(tid, times);
            }
        }
    }

    fn note(&mut self, tid: u32, times: ThreadTimes) {
        let before = self.each.insert(tid, times).unwrap_or_default();
        if times.queued_ns < before.queued_ns {
            // A delay does not shrink: this is another thread.
            self.gone += before.queued_ns;
        }
    }

    /// Returns the times of each thread, by its number: of one that has ended up to the last look.
    pub(super) fn each(&self) -> HashMap<u32, ThreadTimes> {
        self.each.clone()
    }

    /// Returns the sum of all threads, in nanoseconds; `None` if none was ever seen.
    pub(super) fn sum(&self) -> Option<u64> {
        (!self.each.is_empty())
            .then(|| self.gone + self.each.values().map(|times| times.queued_ns).sum::<u64>())
    }
}

/// Returns the first two of the three numbers of the file: the time on a processor, and that of
/// waiting for one.
fn times(text: &str) -> Option<ThreadTimes> {
    let mut numbers = text.split_ascii_whitespace().map(|number| number.parse().ok());
    Some(ThreadTimes { ran_ns: numbers.next()??, queued_ns: numbers.next()?? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_time_on_a_processor_and_then_the_delay() {
        let both = ThreadTimes { ran_ns: 67263, queued_ns: 1234 };
        assert_eq!(times("67263 1234 5\n"), Some(both));
        assert_eq!(times(""), None);
        assert_eq!(times("1 x 3"), None);
    }

    #[test]
    fn threads_that_have_ended_and_whose_number_came_again_count() {
        let mut delays = QueueDelays::default();
        assert_eq!(delays.sum(), None, "nobody looked");
        let of = |queued_ns| ThreadTimes { ran_ns: 1, queued_ns };
        delays.note(7, of(100));
        delays.note(8, of(50));
        delays.note(7, of(130));
        assert_eq!(delays.sum(), Some(180));
        // The number 7 has gone to another.
        delays.note(7, of(20));
        assert_eq!(delays.sum(), Some(200));
        assert_eq!(delays.each().get(&8), Some(&of(50)));
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

//! Waiters for lockstead's own locks that look at them from time to time.
//!
//! # Role
//! Such a thread goes from one short sleep to the next while its wait goes on, so two looks at it may
//! find two calls, or none. It is looked at again until it sleeps. That it slept from one reading of
//! a round to the other is proved by its count of switches, as of any other thread; what it
//! sleeps says that its wait has no end but the lock ([`OwnLock::lasting`]).

use super::capture::Looking;
use super::recognise::FoundWait;
use crate::proc::futex::FutexWait;
use crate::proc::task::{self, TaskDoing};
use crate::slots::{self, OwnLock, WordOwner};
use std::collections::BTreeSet;
use std::time::Duration;

/// How often a thread is looked at that may be between two sleeps.
const LOOKS: u32 = 10;
/// The time between two of these looks.
const PAUSE: Duration = Duration::from_micros(300);

impl Looking {
    /// Looks again at threads that ran, and that words of awaited locks name as owners: they may have
    /// been awake for a moment only.
    pub(super) fn catch_nappers(&mut self) {
        let mut asked = BTreeSet::new();
        loop {
            let owners = self.waits.values().filter_map(|known| match known.found {
                FoundWait::Own(OwnLock { owner: WordOwner::Thread(own), .. }) => {
                    self.numbers.get(&own).copied()
                }
                _ => None,
            });
            let new: Vec<u32> = owners.filter(|&tid| asked.insert(tid)).collect();
            let mut caught = BTreeSet::new();
            for tid in new {
                let runs = |task: &&mut task::TaskMoment| {
                    task.tid == tid && task.doing == TaskDoing::Running
                };
                let Some(task) = self.tasks.iter_mut().find(runs) else { continue };
                if let Some(doing) = next_sleep(self.pid, tid) {
                    (task.doing, task.state) = (doing, 'S');
                    caught.insert(tid);
                }
            }
            if caught.is_empty() {
                return;
            }
            self.find_waits(|tid| caught.contains(&tid));
        }
    }

    /// Reads anew those of the threads that were found waiting for one of lockstead's locks, and
    /// that sleep in another call by now, or are about to.
    pub(super) fn follow_nappers(&mut self, tids: &[u32]) {
        for &tid in tids {
            let naps = self.waits.get(&tid).is_some_and(|w| matches!(w.found, FoundWait::Own(_)));
            let Ok(at) = self.tasks.binary_search_by_key(&tid, |task| task.tid) else { continue };
            if !naps || task::doing(self.pid, tid).is_ok_and(|now| now == self.tasks[at].doing) {
                continue;
            }
            if let Some(doing) = next_sleep(self.pid, tid) {
                self.tasks[at].doing = doing;
                self.waits.remove(&tid);
                self.find_waits(|asked| asked == tid);
            }
        }
    }
}

/// Returns the call in which a thread sleeps for one of lockstead's locks: now, or as soon as it
/// sleeps again.
fn next_sleep(pid: u32, tid: u32) -> Option<TaskDoing> {
    for look in 0..LOOKS {
        if look != 0 {
            std::thread::sleep(PAUSE);
        }
        match task::doing(pid, tid).ok()? {
            TaskDoing::Running => {}
            TaskDoing::Call(call) => {
                let wait = FutexWait::decode(&call).filter(slots::is_for_owned);
                return wait.map(|_| TaskDoing::Call(call));
            }
            TaskDoing::Stopped { .. } | TaskDoing::Refused => return None,
        }
    }
    None
}

//! The threads of a ledger that stay in one wait.
//!
//! # Role
//! Called every few milliseconds while a program runs, so a thread that does
//! not wait, or waits as it did at the last look, costs one load. What is read
//! of the others is of one piece by the ledger's protocol
//! ([`lockstead_ledger::publish`]): a thread that was in the same episode at
//! two looks has been in it all the time between, and its held locks have not
//! changed but for those that others released in its place.

use lockstead_ledger::Ledger;
use lockstead_ledger::publish::{Episode, Holding, Waiting};
use std::sync::atomic::Ordering::Relaxed;

/// A thread that has been in one wait for at least two looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastingWaiter {
    /// The index of its record.
    pub thread: u32,
    /// The kernel's number, in the process's own namespace.
    pub tid: u32,
    /// The number of the wait among those of this thread.
    pub episode: Episode,
    /// The wait that the thread has published.
    pub waiting: Waiting,
    /// The locks that the thread holds meanwhile.
    pub held: Vec<Holding>,
}

#[derive(Debug, Default)]
enum SeenWait {
    #[default]
    Running,
    Once(Episode),
    Steady(Box<LastingWaiter>),
}

/// Looks at one ledger again and again.
#[derive(Debug, Default)]
pub struct Observer {
    seen: Vec<SeenWait>,
    fresh: bool,
}

impl Observer {
    /// Looks once. Says whether a thread has become a [`LastingWaiter`] since the last
    /// look, without which no cycle can have closed.
    pub fn look(&mut self, ledger: &Ledger<'_>) -> bool {
        let mut news = false;
        self.fresh = false;
        for (index, thread) in ledger.threads().enumerate() {
            if self.seen.len() <= index {
                self.seen.push(SeenWait::default());
            }
            let seen = &mut self.seen[index];
            let wait = &thread.record.wait;
            if let SeenWait::Steady(waiter) = seen
                && wait.is_still(waiter.episode)
            {
                continue;
            }
            let Some((episode, waiting)) = wait.read() else {
                *seen = SeenWait::Running;
                continue;
            };
            if !matches!(seen, SeenWait::Once(before) if *before == episode) {
                *seen = SeenWait::Once(episode);
                self.fresh = true;
                continue;
            }
            let stack = thread.stack();
            let held = (0..stack.depth()).filter_map(|at| stack.entry(at).read()).collect();
            let tid = thread.record.tid.load(Relaxed);
            if wait.is_still(episode) {
                let thread = index as u32;
                *seen = SeenWait::Steady(Box::new(LastingWaiter {
                    thread,
                    tid,
                    episode,
                    waiting,
                    held,
                }));
                news = true;
            }
        }
        news
    }

    /// Tells whether a thread was seen in a new wait at the last look, which the next
    /// look may find it in still.
    #[must_use]
    pub fn has_fresh(&self) -> bool {
        self.fresh
    }

    /// Returns the threads that wait as they did at the look before.
    pub fn waiters(&self) -> impl Iterator<Item = &LastingWaiter> {
        self.seen.iter().filter_map(|seen| match seen {
            SeenWait::Steady(waiter) => Some(&**waiter),
            _ => None,
        })
    }
}

//! Whether a cycle may be closing at this moment.
//!
//! # Role
//! An order that goes round is known before the threads that take it sleep: the
//! last edge is written before the thread asks. If it is a deadlock, the report of
//! that comes first and says all there is to say, so the guess waits for as long as
//! its locks are held in the way that a deadlock holds them.

use super::facts::OrderFacts;
use lockstead_ledger::Ledger;
use lockstead_ledger::thread::{ThreadPart, state};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering::Relaxed;

/// The locks that threads hold at the moment of a look at the process.
#[derive(Debug, Default)]
pub struct CurrentHolders {
    /// The indices of the threads that hold the lock at an address.
    of: HashMap<u64, HashSet<usize>>,
}

impl CurrentHolders {
    /// Reads the held locks of all threads that run.
    #[must_use]
    pub fn of(ledger: &Ledger<'_>) -> CurrentHolders {
        let mut of: HashMap<u64, HashSet<usize>> = HashMap::new();
        let runs = |thread: &ThreadPart<'_>| thread.record.state.load(Relaxed) == state::LIVE;
        for (index, thread) in ledger.threads().enumerate().filter(|(_, thread)| runs(thread)) {
            let stack = thread.stack();
            for at in 0..stack.depth() {
                let address = stack.entry(at).address();
                if address != 0 {
                    of.entry(address).or_default().insert(index);
                }
            }
        }
        CurrentHolders { of }
    }

    /// Tells whether for each step some thread holds the lock that it begins with and
    /// not the one that it asks for, and not one thread for all.
    #[must_use]
    pub fn may_close(&self, facts: &OrderFacts) -> bool {
        let none = HashSet::new();
        let holders = |address| self.of.get(&address).unwrap_or(&none);
        let mut who = HashSet::new();
        for step in &facts.steps {
            let mut waits =
                holders(step.from.address).difference(holders(step.to.address)).peekable();
            if waits.peek().is_none() {
                return false;
            }
            who.extend(waits.copied());
        }
        who.len() > 1
    }
}

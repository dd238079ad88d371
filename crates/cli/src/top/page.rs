//! One lock that the user looks at more closely: who waits for it and holds it now, by which stacks,
//! and where it was waited for and held since it was first used.

use super::screen::{ChosenLock, LockRow, Lookup};
use lockstead_inspect::report::OneLock;
use lockstead_inspect::report::live::{Lasting, Live};
use lockstead_inspect::stack::{Frame, Stack};

/// The threads of each kind whose stacks are shown: those that have waited or held longest.
const THREADS: usize = 32;

/// Returns the frames of a stack, innermost first, without those of the C library at its end, which
/// start every thread.
pub(super) fn frames(stack: &Stack) -> Vec<String> {
    let visible: Vec<&Frame> = stack.visible().collect();
    let end = visible.iter().rposition(|frame| !frame.is_libc()).unwrap_or(visible.len());
    visible.into_iter().take(end + 1).map(Frame::site).collect()
}

/// One thread with its stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PageThread {
    pub(super) thread: String,
    pub(super) time: Lasting,
    /// It holds the lock for reading.
    pub(super) reads: bool,
    /// The frames, innermost first.
    pub(super) stack: Vec<String>,
}

/// Threads with their stacks, and how many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PageThreads {
    pub(super) longest: Vec<PageThread>,
    pub(super) all: usize,
}

/// All that is shown of one lock.
#[derive(Clone, Debug)]
pub(super) struct LockPage {
    pub(super) name: String,
    /// What happened in the interval, if anything did.
    pub(super) row: Option<LockRow>,
    /// How often it was acquired up to now, and how often of that it was found taken.
    pub(super) acquisitions: Option<(u64, u64)>,
    pub(super) waiters: PageThreads,
    pub(super) holders: PageThreads,
    /// What it has come to; `None` if its life is over, and its record that of another lock.
    pub(super) one: Option<OneLock>,
}

impl LockPage {
    /// Looks at a lock. `acquisitions` are those up to now.
    pub(super) fn make(
        live: &Live,
        names: &mut dyn Lookup,
        lock: ChosenLock,
        acquisitions: Option<(u64, u64)>,
    ) -> LockPage {
        let waiting = live.waiters.iter().chain(&live.idle);
        let waiting: Vec<_> = waiting.filter(|waiter| waiter.lock == Some(lock.lock)).collect();
        let longest = waiting.iter().take(THREADS).map(|waiter| PageThread {
            thread: names.thread(waiter.tid, waiter.name.as_deref()),
            time: Lasting { ns: waiter.for_ns, exact: true },
            reads: false,
            stack: names.stack(waiter.stack),
        });
        let waiters = PageThreads { longest: longest.collect(), all: waiting.len() };
        let held: Vec<_> = live.holders.iter().filter(|holder| holder.lock == lock.lock).collect();
        let longest = held.iter().take(THREADS).map(|holder| PageThread {
            thread: names.thread(holder.tid, holder.name.as_deref()),
            time: holder.time,
            reads: holder.shared,
            stack: names.stack(holder.stack),
        });
        let holders = PageThreads { longest: longest.collect(), all: held.len() };
        let rate = live.locks.iter().find(|rate| lock.has(rate));
        let one = names.one(lock);
        LockPage {
            name: names.lock(lock.lock, Some(lock.generation)),
            row: rate.map(|rate| LockRow::of(rate, live, names)),
            // Who waits for the next lock at this address, and holds that, is of another life.
            acquisitions: acquisitions.filter(|_| one.is_some()),
            waiters: if one.is_some() { waiters } else { PageThreads::default() },
            holders: if one.is_some() { holders } else { PageThreads::default() },
            one,
        }
    }
}

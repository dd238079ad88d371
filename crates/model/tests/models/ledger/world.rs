//! A small world that keeps to the ledger's publication protocol: threads that
//! take and release real (modelled) locks, and a reader that judges them.

use lockstead_core::{Nanos, Platform, WaitBounds as Sleep, WaitOutcome};
use lockstead_ledger::publish::{
    Episode, Flags, HeldEntry, HeldStack, Holding, PublishedWait, WaitKind, Waiting,
};
use lockstead_model::{Model, Ordering, U32, U64};

/// Most locks that a thread of a model holds.
const HELD: usize = 3;
/// Most threads of a model besides the reader.
const THREADS: usize = 3;
/// The value of `World::claimed` when the reader has gone: whoever is stuck may leave.
pub(super) const OVER: u32 = 1 << 16;
/// The address of the condition variable.
const CONDITION: u64 = 1000;

/// How the threads keep to the protocol; a test of the tests breaks one rule.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// An entry goes before the real release.
    pub(super) pop_first: bool,
    /// A wait is published before the real call.
    pub(super) begin_first: bool,
    /// A wait is withdrawn before what was acquired is pushed.
    pub(super) end_first: bool,
    /// A handler records nothing while its thread waits.
    pub(super) handlers_pass: bool,
    /// Whether a thread that releases for another takes away the other's entry.
    pub(super) revoke: bool,
    /// A mutex is marked as lent during a wait on a condition.
    pub(super) lend: bool,
    /// The reader looks a second time at the waits.
    pub(super) confirm: bool,
    /// And before that at the holdings, which other threads may end while their holder waits.
    pub(super) hold_again: bool,
}

impl Rules {
    pub(super) const KEPT: Rules = Rules {
        pop_first: true,
        begin_first: true,
        end_first: true,
        handlers_pass: true,
        revoke: true,
        lend: true,
        confirm: true,
        hold_again: true,
    };
}

/// What a thread publishes, and its private flag.
pub(super) struct Party {
    wait: PublishedWait<Model>,
    top: U64,
    emptied: U64,
    held: [HeldEntry<Model>; HELD],
    busy: U32,
    /// What the kernel would say: it sleeps for a mutex inside a wait on a
    /// condition.
    reacquires: U32,
    /// It was told that it waits for ever, and makes no further step that others could notice.
    stuck: U32,
}

impl Party {
    pub(super) const fn new() -> Party {
        Party {
            wait: PublishedWait::NONE,
            top: U64::ZERO,
            emptied: U64::ZERO,
            held: [const { HeldEntry::NONE }; HELD],
            busy: U32::ZERO,
            reacquires: U32::ZERO,
            stuck: U32::ZERO,
        }
    }

    pub(super) fn wait(&self) -> &PublishedWait<Model> {
        &self.wait
    }

    pub(super) fn stack(&self) -> HeldStack<'_, Model> {
        HeldStack::new(&self.top, &self.emptied, &self.held)
    }

    /// Asserts that as many entries are empty as are counted; so it is while nothing happens to the stack.
    pub(super) fn counts_what_is_empty(&self) {
        let stack = self.stack();
        let empty = (0..stack.depth()).filter(|&index| stack.entry(index).address() == 0).count();
        assert_eq!(self.emptied.load(Ordering::Relaxed), empty as u64);
    }

    /// Returns the entries that can be read, in their order.
    pub(super) fn holds(&self) -> [Option<Holding>; HELD] {
        let stack = self.stack();
        let mut found = [None; HELD];
        let entries = (0..stack.depth()).filter_map(|index| stack.entry(index).read());
        for (place, holding) in found.iter_mut().zip(entries) {
            *place = Some(holding);
        }
        found
    }
}

/// How an acquisition ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Got {
    Held,
    TimedOut,
    /// The execution is over for this thread.
    Stuck,
}

/// Threads and locks. Lock `n` has the address `n + 1`.
pub(super) struct World {
    pub(super) parties: [Party; THREADS],
    locks: [U32; 3],
    /// Threads that the reader has said to be stuck for ever, and [`OVER`].
    claimed: U32,
    finished: U32,
    signalled: U32,
    rules: Rules,
}

pub(super) fn address(lock: usize) -> u64 {
    lock as u64 + 1
}

pub(super) fn holding(address: u64) -> Holding {
    Holding {
        address,
        lock: address as u32,
        stack: address as u32,
        tick: address as u32,
        flags: Flags::NONE,
        started: address,
    }
}

pub(super) fn waiting(how: WaitKind, target: u64, companion: u64) -> Waiting {
    Waiting { how, stack: target as u32, target, since: target, deadline: target, companion }
}

impl World {
    pub(super) fn new(rules: Rules) -> World {
        World {
            parties: [const { Party::new() }; THREADS],
            locks: [const { U32::ZERO }; 3],
            claimed: U32::ZERO,
            finished: U32::ZERO,
            signalled: U32::ZERO,
            rules,
        }
    }

    /// Acquires the real lock, without a word in the ledger.
    fn real_lock(&self, lock: usize, deadline: Option<Nanos>) -> Got {
        let word = &self.locks[lock];
        let how = Sleep { deadline, cancel: Some(&self.claimed), interruptible: false };
        loop {
            let taken = word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
            if taken.is_ok() {
                return Got::Held;
            }
            match Model::wait32(word, 1, &how) {
                WaitOutcome::TimedOut => return Got::TimedOut,
                WaitOutcome::Cancelled => return Got::Stuck,
                WaitOutcome::Woken | WaitOutcome::Changed | WaitOutcome::Interrupted => {}
            }
        }
    }

    fn real_unlock(&self, lock: usize) {
        self.locks[lock].store(0, Ordering::Release);
        Model::wake(Model::address32(&self.locks[lock]), 1);
    }

    /// Asserts that a thread that comes back from a wait was not stuck for ever.
    fn came_back(&self, me: usize, got: Got) {
        if got == Got::Stuck {
            self.parties[me].stuck.store(1, Ordering::Relaxed);
        } else {
            let claimed = self.claimed.fetch_add(0, Ordering::Relaxed);
            assert!(claimed & 1 << me == 0, "thread {me} was reported and is not stuck");
        }
    }

    pub(super) fn lock(&self, me: usize, lock: usize) -> Got {
        self.lock_until(me, lock, None)
    }

    pub(super) fn lock_until(&self, me: usize, lock: usize, deadline: Option<Nanos>) -> Got {
        let party = &self.parties[me];
        if self.rules.handlers_pass && party.busy.load(Ordering::Relaxed) != 0 {
            return self.real_lock(lock, deadline);
        }
        let entry = holding(address(lock));
        let word = &self.locks[lock];
        if word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            party.stack().push(&entry).expect("room");
            return Got::Held;
        }
        party.busy.store(1, Ordering::Relaxed);
        let how = if deadline.is_some() { WaitKind::MUTEX.timed() } else { WaitKind::MUTEX };
        let wait = waiting(how, address(lock), 0);
        if self.rules.begin_first {
            party.wait.begin(&wait);
        }
        let got = self.real_lock(lock, deadline);
        self.came_back(me, got);
        if !self.rules.begin_first {
            party.wait.begin(&wait);
        }
        if self.rules.end_first {
            party.wait.end();
        }
        if got == Got::Held {
            party.stack().push(&entry).expect("room");
        }
        party.wait.end();
        party.busy.store(0, Ordering::Relaxed);
        got
    }

    pub(super) fn unlock(&self, me: usize, lock: usize) {
        let party = &self.parties[me];
        if self.rules.handlers_pass && party.busy.load(Ordering::Relaxed) != 0 {
            return self.real_unlock(lock);
        }
        if !self.rules.pop_first {
            self.real_unlock(lock);
        }
        // Out of order: handlers must not see the entries on the move.
        let stack = party.stack();
        let top = stack.depth().checked_sub(1);
        let above = top.is_some_and(|top| stack.entry(top).address() != address(lock));
        if above {
            party.busy.store(1, Ordering::Relaxed);
        }
        stack.pop(address(lock));
        if above {
            party.busy.store(0, Ordering::Relaxed);
        }
        // A handler may have waited for ever in the middle.
        let stuck = party.stuck.load(Ordering::Relaxed) != 0;
        if self.rules.pop_first && !stuck {
            self.real_unlock(lock);
        }
    }

    /// Releases a lock that `holder` holds, in its place.
    pub(super) fn unlock_for(&self, holder: usize, lock: usize) {
        if self.rules.revoke {
            self.parties[holder].stack().revoke(address(lock));
        }
        self.real_unlock(lock);
    }

    /// Waits for the signal, with a mutex that is on top of the held stack.
    pub(super) fn wait_for_signal(&self, me: usize, mutex: usize) -> Got {
        let party = &self.parties[me];
        party.busy.store(1, Ordering::Relaxed);
        let stack = party.stack();
        let entry = stack.entry(stack.depth() - 1);
        if self.rules.lend {
            entry.set_flags(Flags::LENT);
        }
        party.wait.begin(&waiting(WaitKind::CONDITION, CONDITION, address(mutex)));
        self.real_unlock(mutex);
        let mut got = if self.await_signal() { Got::Held } else { Got::Stuck };
        if got == Got::Held {
            party.reacquires.store(1, Ordering::Relaxed);
            got = self.real_lock(mutex, None);
            self.came_back(me, got);
            party.reacquires.store(0, Ordering::Release);
        }
        party.wait.end();
        entry.restart(9, Flags::NONE, 9);
        party.busy.store(0, Ordering::Relaxed);
        got
    }

    pub(super) fn signal(&self) {
        self.signalled.store(1, Ordering::Release);
        Model::wake(Model::address32(&self.signalled), u32::MAX);
    }

    /// Sleeps until the signal. Returns false if there will be none.
    pub(super) fn await_signal(&self) -> bool {
        let how = Sleep { deadline: None, cancel: Some(&self.claimed), interruptible: false };
        while self.signalled.load(Ordering::Acquire) == 0 {
            if Model::wait32(&self.signalled, 0, &how) == WaitOutcome::Cancelled {
                return false;
            }
        }
        true
    }

    pub(super) fn finish(&self) {
        self.finished.fetch_add(1, Ordering::Release);
    }

    // The reader.

    /// Returns what thread `t` waits for, as far as it makes an edge.
    fn edge(&self, t: usize, waiting: &Waiting) -> Option<u64> {
        match waiting.how {
            WaitKind::MUTEX => Some(waiting.target),
            WaitKind::CONDITION => {
                let asleep = self.parties[t].reacquires.load(Ordering::Acquire) == 1;
                asleep.then_some(waiting.companion)
            }
            _ => None,
        }
    }

    /// Returns the threads of a closed cycle, as bits; 0 when none is found.
    pub(super) fn look(&self, threads: usize) -> u32 {
        let mut waits: [Option<(Episode, u64)>; THREADS] = [None; THREADS];
        let mut holds = [[None; HELD]; THREADS];
        for t in 0..threads {
            if let Some((episode, waiting)) = self.parties[t].wait.read() {
                waits[t] = self.edge(t, &waiting).map(|target| (episode, target));
                holds[t] = self.parties[t].holds();
            }
        }
        let holder = |lock: u64| {
            (0..threads).find(|&t| {
                let mut held = holds[t].iter().flatten();
                held.any(|h: &Holding| h.address == lock && !h.flags.has(Flags::LENT))
            })
        };
        for first in 0..threads {
            let (mut members, mut at) = (0, first);
            while let Some(next) = waits[at].and_then(|(_, lock)| holder(lock)) {
                if members & 1 << at != 0 {
                    break;
                }
                members |= 1 << at;
                at = next;
            }
            let closed = at == first && members != 0;
            // What the members before wait for is still theirs: whoever has released it in their
            // place had done so before it began a wait that was read.
            let holds = |t: usize| {
                waits[t].is_some_and(|(_, lock)| {
                    let held = holder(lock).map(|holder| self.parties[holder].holds());
                    held.is_some_and(|held| held.iter().flatten().any(|h| h.address == lock))
                })
            };
            let still = |t: usize| {
                waits[t].is_some_and(|(episode, _)| self.parties[t].wait.is_still(episode))
            };
            let all = |true_of: &dyn Fn(usize) -> bool| {
                (0..threads).all(|t| members & 1 << t == 0 || true_of(t))
            };
            if closed
                && (!self.rules.hold_again || all(&holds))
                && (!self.rules.confirm || all(&still))
            {
                return members;
            }
        }
        0
    }

    fn claim(&self, members: u32) {
        self.claimed.fetch_or(members, Ordering::Relaxed);
        Model::wake(Model::address32(&self.claimed), u32::MAX);
    }

    /// Looks until it finds a cycle or all threads have finished: a cycle that
    /// it never finds is a livelock.
    pub(super) fn watch(&self, threads: usize) {
        loop {
            let members = self.look(threads);
            if members != 0 {
                self.claim(members);
                return;
            }
            if self.finished.load(Ordering::Acquire) as usize == threads {
                return;
            }
            Model::relax();
        }
    }

    /// Looks once at any time, and then lets everybody go who is stuck.
    pub(super) fn glance(&self, threads: usize) {
        let members = self.look(threads);
        self.claim(members | OVER);
    }

    /// Tells whether a cycle was reported.
    pub(super) fn reported(&self) -> bool {
        self.claimed.load(Ordering::Relaxed) & (OVER - 1) != 0
    }
}

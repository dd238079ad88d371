//! Tells a condition that serves as a lock from one on which threads wait for work.
//!
//! # Role
//! The ledger's [`handing`](lockstead_ledger::handing) has the pattern; here each wait and
//! each signal is judged by what the same thread did before. Before the first
//! wait there are no statistics in the ledger; what the first signals show is kept in this
//! process until then, for a lock may be taken for long before two threads want it.
//!
//! # State
//! For each thread and condition the last call, and how often the thread had acquired the
//! mutex by then, in a table of this process. A thread counts its acquisitions of each lock
//! by heart ([`Known`](lockstead_ledger::known)); when it gives such a count up, the pair of
//! calls around that moment is not judged. A place that two threads want goes to the later
//! one, and the other begins anew. Two that write to one at the same moment may have one call
//! judged wrongly, which the pattern bears.

use crate::me::{Me, enter};
use crate::sys;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use lockstead_ledger::handing::Handing;
use lockstead_ledger::lock::{Extension, ObjectKind};

/// The number of pairs of threads and conditions that are remembered.
const PLACES: usize = 4096;

/// The last call of a thread on a condition.
#[repr(align(64))]
struct LastCall {
    /// The thread and its process, and the condition; 0: the place is nobody's.
    whose: AtomicU64,
    /// How often the thread had acquired the mutex, as far as it knows by heart.
    entered: AtomicU64,
    /// The acquisitions that it had given to the locks by then.
    given_up: AtomicU64,
    /// The time at which the last wait ended; 0: it has not, or that was long before.
    since: AtomicU64,
    /// The signals of the condition up to then.
    signals: AtomicU64,
    /// What the thread did last: [`NOTHING`], [`WAITED`] or [`SIGNALLED`].
    last: AtomicU32,
    /// The stack of its last wait.
    stack: AtomicU32,
}

const NOTHING: u32 = 0;
const WAITED: u32 = 1;
const SIGNALLED: u32 = 2;

#[allow(clippy::declare_interior_mutable_const, reason = "the pattern of a static's elements")]
const NOBODYS: LastCall = LastCall {
    whose: AtomicU64::new(0),
    entered: AtomicU64::new(0),
    given_up: AtomicU64::new(0),
    since: AtomicU64::new(0),
    signals: AtomicU64::new(0),
    last: AtomicU32::new(NOTHING),
    stack: AtomicU32::new(0),
};

static TABLE: [LastCall; PLACES] = [const { NOBODYS }; PLACES];

/// The number of conditions that are remembered before anybody waits for them, and of signals
/// of each that are looked at.
const CONDITIONS: usize = 512;
const SIGNALS: u64 = 256;

/// What the signals of a condition show before anybody waits for it.
struct Early {
    /// The condition and its process; 0: the place is free.
    whose: AtomicU64,
    handing: Handing,
}

#[allow(clippy::declare_interior_mutable_const, reason = "the pattern of a static's elements")]
const NONE: Early = Early { whose: AtomicU64::new(0), handing: Handing::new() };

static EARLY: [Early; CONDITIONS] = [const { NONE }; CONDITIONS];

fn mix(word: u64) -> u64 {
    word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
}

/// What the acquisitions of the mutex between two calls of a thread show.
enum Between {
    /// The thread has acquired it so many times.
    Number(u64),
    /// It is not known: the thread has given up a count, or this is its first call.
    Unknown,
}

impl Me {
    /// Returns what is kept of a condition before anybody waits for it; `None` if that is of
    /// another one, and nothing is to be kept.
    fn early(&self, condition: u64, make: bool) -> Option<&'static Early> {
        let process = u64::from(self.ledger.header().pid.load(Relaxed)) << 32;
        let whose = mix(mix(condition) ^ process) | 1;
        let early = &EARLY[(whose >> 8) as usize % CONDITIONS];
        let found = early.whose.load(Relaxed);
        let is_free = found == 0 && make;
        let is_its = found == whose
            || is_free && early.whose.compare_exchange(0, whose, Relaxed, Relaxed).is_ok();
        is_its.then_some(early)
    }

    /// Returns the mutex that the thread has locked last and holds.
    fn newest_mutex(&self) -> Option<u64> {
        let stack = self.thread.stack();
        let held = (0..stack.depth()).rev().filter_map(|index| stack.entry(index).read());
        let mut mutexes = held.filter(|holding| {
            let lock = self.ledger.lock(holding.lock);
            lock.is_some_and(|lock| lock.shape().0 == ObjectKind::Mutex)
        });
        mutexes.next().map(|holding| holding.address)
    }

    fn place_of(&self, condition: u64) -> &'static LastCall {
        let record = self.record();
        let process = u64::from(self.ledger.header().pid.load(Relaxed)) << 32;
        let whose = mix(mix(condition) ^ u64::from(record.serial.load(Relaxed)) ^ process) | 1;
        let place = &TABLE[(whose >> 8) as usize % PLACES];
        if place.whose.load(Relaxed) != whose {
            place.last.store(NOTHING, Relaxed);
            place.whose.store(whose, Relaxed);
        }
        place
    }

    /// Returns how often the thread has acquired this lock, as far as it knows by heart.
    fn entered(&self, mutex: u64) -> u64 {
        let lines = self.thread.cache.iter().map(|line| &line.known);
        lines
            .chain(self.thread.known_by_address(mutex))
            .filter(|known| known.address.load(Relaxed) == mutex)
            .map(|known| u64::from(known.count.load(Relaxed)))
            .sum()
    }

    /// Notes a call, and says what was before it: which call, and what was between.
    fn next(&self, place: &LastCall, mutex: u64, call: u32) -> (u32, Between) {
        let (entered, given_up) = (self.entered(mutex), self.record().acquisitions.load(Relaxed));
        let before = place.last.load(Relaxed);
        let between = match entered.checked_sub(place.entered.load(Relaxed)) {
            Some(number) if before != NOTHING && given_up == place.given_up.load(Relaxed) => {
                Between::Number(number)
            }
            _ => Between::Unknown,
        };
        place.entered.store(entered, Relaxed);
        place.given_up.store(given_up, Relaxed);
        place.last.store(call, Relaxed);
        (before, between)
    }

    /// Judges a wait of the thread for a condition, which is about to begin.
    pub fn waits_on(&self, condition: u64, mutex: u64, statistics: &Extension) {
        let handing = &statistics.handing;
        let known = handing.mutex.load(Relaxed);
        if known == 0 {
            handing.mutex.store(mutex, Relaxed);
            if let Some(early) = self.early(condition, false) {
                if early.handing.mutex.load(Relaxed) == mutex {
                    handing.absorb(&early.handing);
                }
                // From now on there are statistics; another condition may have the place.
                Handing::new().absorb(&early.handing);
                early.whose.store(0, Relaxed);
            }
        } else if known != mutex {
            handing.broken.fetch_add(1, Relaxed);
        }
        let place = self.place_of(condition);
        place.since.store(0, Relaxed);
        let (before, Between::Number(number)) = self.next(place, mutex, WAITED) else { return };
        let is_kept = match before {
            // It has looked, and waits again.
            WAITED if number == 0 => return,
            WAITED => {
                handing.ungiven.fetch_add(1, Relaxed);
                number % 2 == 0
            }
            _ => number % 2 == 1,
        };
        handing.judge(is_kept);
    }

    /// Notes that the wait is over, at `now`; `stack` is that of its call.
    pub fn has_waited_on(&self, condition: u64, now: u64, stack: u32, statistics: &Extension) {
        let place = self.place_of(condition);
        if place.last.load(Relaxed) == WAITED {
            place.signals.store(statistics.handing.signals.load(Relaxed), Relaxed);
            place.stack.store(stack, Relaxed);
            place.since.store(now, Relaxed);
        }
    }

    fn signals_on(&self, condition: u64, handing: &Handing, statistics: Option<&Extension>) {
        let place = self.place_of(condition);
        let so_far = handing.signals.fetch_add(1, Relaxed);
        let serial = self.record().serial.load(Relaxed);
        let by = handing.last.swap(serial, Relaxed);
        let (before, between) = self.next(place, handing.mutex.load(Relaxed), SIGNALLED);
        if before == WAITED {
            handing.after_wait.fetch_add(1, Relaxed);
        }
        let Between::Number(number) = between else { return };
        let is_kept = match before {
            WAITED => number % 2 == 1,
            _ => number % 2 == 0 && number != 0,
        };
        handing.judge(is_kept);
        if !is_kept {
            return;
        }
        if before == SIGNALLED {
            handing.again.fetch_add(u64::from(by == serial), Relaxed);
            return;
        }
        handing.taken.fetch_add(1, Relaxed);
        handing.overlapping.fetch_add(u64::from(place.signals.load(Relaxed) != so_far), Relaxed);
        // The lock was taken at the end of the wait if nothing came between.
        let since = place.since.load(Relaxed);
        if let Some(statistics) = statistics.filter(|_| number == 1 && since != 0) {
            let (held, stack) = (sys::now().saturating_sub(since), place.stack.load(Relaxed));
            statistics.hold.add(held, 1, stack);
            self.role(statistics).held(false, 1, held);
            statistics.timed.fetch_add(1, Relaxed);
            self.ledger.add_share(&statistics.held_at, stack, 1, held);
        }
    }
}

/// Judges a signal of a condition, which the caller is about to give.
pub fn signals(condition: u64) {
    let Some(me) = enter() else { return };
    let statistics = me
        .ledger
        .find_lock(condition)
        .and_then(|index| me.ledger.lock(index))
        .and_then(|lock| me.ledger.existing_extension(lock));
    if let Some(statistics) = statistics {
        me.role(statistics).gives.fetch_add(1, Relaxed);
        return me.signals_on(condition, &statistics.handing, Some(statistics));
    }
    let Some(Early { handing: early, .. }) = me.early(condition, true) else { return };
    if early.signals.load(Relaxed) >= SIGNALS {
        return;
    }
    if early.mutex.load(Relaxed) == 0 {
        let Some(mutex) = me.newest_mutex() else { return };
        early.mutex.store(mutex, Relaxed);
    }
    me.signals_on(condition, early, None);
}

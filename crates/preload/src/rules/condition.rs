//! Condition waits: with an unlocked mutex, with one that is held more than once, with a
//! changing mutex, while holding another lock that the signaller needs.
//!
//! # What a signaller needs
//! Every lock that was held at the first signal of the condition. If it was held at
//! each one since, the signaller needs it; if not at all of them, the violation is a
//! weak one. A signal by a handler, or a condition for which there is no room, makes
//! that nothing. If they all came from the thread that waits now, somebody else is
//! to signal this time, of whom nothing is known.

use super::note::Note;
use super::words::{LockWords, WordHolder};
use crate::call::{CallPlace, LockCall, Nature};
use crate::me::{Me, enter};
use crate::site::CallSite;
use crate::sys;
use core::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use lockstead_ledger::lock::{ObjectKind, RecordLife};
use lockstead_ledger::publish::{Flags, Holding, WaitKind};
use lockstead_ledger::violation::Rule;

/// Does this file's part of [`super::waits`].
pub fn waits<N: Nature>(me: &Me, call: &LockCall<'_, N>, place: CallPlace) {
    // The mutex of one that its library tells of has other words than glibc's.
    if call.how.kind() != WaitKind::CONDITION || call.nature.nature().0.is_told() {
        return;
    }
    unlocked(me, call, place);
    changing(me, call, place);
    holding(me, call, place);
}

fn unlocked<N: Nature>(me: &Me, call: &LockCall<'_, N>, place: CallPlace) {
    let mutex = call.companion;
    // SAFETY: RULES-PASSED: the program passes it to the function that it calls.
    let words = unsafe { LockWords::read(ObjectKind::Mutex, mutex) };
    let (tid, stack) = match words.holder() {
        WordHolder::Thread(number) if me.is(number) => return again(me, &words, call, place),
        WordHolder::Nobody => (0, 0),
        WordHolder::Thread(number) => match me.other_holder(mutex, Some(number)) {
            Some(other) => other,
            None => return,
        },
        _ => return,
    };
    me.use_lock(mutex, place.stack, (ObjectKind::Mutex, 0));
    let note = Note::new(Rule::ConditionUnlocked, mutex, place.stack).after(tid, stack);
    me.note(&note.with(place.lock));
}

/// Judges a wait on a condition whose mutex the caller holds, perhaps more than once: the wait
/// gives it back once.
fn again<N: Nature>(me: &Me, words: &LockWords, call: &LockCall<'_, N>, place: CallPlace) {
    let depth = words.depth();
    if depth > 1 {
        me.use_lock(call.companion, place.stack, (ObjectKind::Mutex, 0));
        let held = me.thread.stack().find(call.companion);
        let tid = me.record().tid.load(Relaxed);
        let note = Note::new(Rule::ConditionRecursive, call.companion, place.stack);
        let note = note.after(tid, held.map_or(0, |(_, holding)| holding.stack));
        me.note(&note.with(place.lock).number(u64::from(depth)));
    }
}

/// The condition and the mutex of the last wait that was looked at: their hash, by the condition's.
/// So only a wait with another mutex looks at the other threads.
static PAIRS: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];
/// The time at which a condition was last signalled, by its hash. A thread that waited before that
/// may not wait for the condition any more, but only for its mutex.
static SIGNALLED: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

fn changing<N: Nature>(me: &Me, call: &LockCall<'_, N>, place: CallPlace) {
    let pair = mix(call.target ^ mix(call.companion));
    let known = &PAIRS[mix(call.target) as usize % PAIRS.len()];
    if known.load(Relaxed) == pair {
        return;
    }
    known.store(pair, Relaxed);
    let own = me.record().tid.load(Relaxed);
    let signalled = SIGNALLED[mix(call.target) as usize % SIGNALLED.len()].load(Relaxed);
    let other = me.ledger.threads().find_map(|thread| {
        let tid = thread.record.tid.load(Relaxed);
        let (_, wait) = thread.record.wait.read()?;
        (tid != own
            && wait.how.kind() == WaitKind::CONDITION
            && wait.target == call.target
            && wait.companion != call.companion
            && wait.since > signalled)
            .then_some((tid, wait))
    });
    if let Some((tid, wait)) = other {
        let note = Note::new(Rule::ConditionMutexes, call.companion, place.stack);
        let mutex = me.ledger.find_lock(wait.companion).unwrap_or(0);
        me.note(&note.after(tid, wait.stack).with(mutex).number(call.target));
    }
}

fn mix(word: u64) -> u64 {
    word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31) | 1
}

/// The number of locks that are remembered of the signals of a condition: the first ones.
const LOCKS: usize = 4;

/// What the signals of one condition had in common.
struct ConditionSignals {
    /// The address of the condition, which the place keeps for ever; 0: the place is free.
    condition: AtomicU64,
    /// The generation of the condition at that address.
    generation: AtomicU32,
    /// The word that is not zero while a thread works on it; others pass it by.
    busy: AtomicU32,
    /// The thread of the first signal, and whether others have signalled.
    tid: AtomicU32,
    others: AtomicU32,
    /// The locks that were held at the first signal; zero beyond.
    locks: [Common; LOCKS],
}

struct Common {
    address: AtomicU64,
    generation: AtomicU32,
    stack: AtomicU32,
    /// The word that is not zero if the holder shared it with other readers.
    shared: AtomicU32,
    /// The word that is not zero if there were signals without the lock.
    sometimes: AtomicU32,
}

#[allow(clippy::declare_interior_mutable_const, reason = "the pattern of a static's elements")]
const NO_SIGNALS: ConditionSignals = ConditionSignals {
    condition: AtomicU64::new(0),
    generation: AtomicU32::new(0),
    busy: AtomicU32::new(0),
    tid: AtomicU32::new(0),
    others: AtomicU32::new(0),
    locks: [const {
        Common {
            address: AtomicU64::new(0),
            generation: AtomicU32::new(0),
            stack: AtomicU32::new(0),
            shared: AtomicU32::new(0),
            sometimes: AtomicU32::new(0),
        }
    }; LOCKS],
};

static SIGNALS: [ConditionSignals; 512] = [const { NO_SIGNALS }; 512];
/// The word that is not zero if any place is taken.
static ANY: AtomicU32 = AtomicU32::new(0);

/// The number of places that are looked at for one condition.
const TRIES: usize = 8;

/// Returns a condition's place; `None` if it has none.
fn signals_of(condition: u64, make: bool) -> Option<(&'static ConditionSignals, bool)> {
    let first = mix(condition) as usize;
    (0..TRIES).map(|i| &SIGNALS[(first + i) % SIGNALS.len()]).find_map(|place| {
        let found = place.condition.load(Relaxed);
        if found == condition {
            return Some((place, false));
        }
        (make
            && found == 0
            && place.condition.compare_exchange(0, condition, Relaxed, Relaxed).is_ok())
        .then_some((place, true))
    })
}

/// Runs `work` unless another thread is at it.
fn alone(place: &ConditionSignals, work: impl FnOnce()) {
    // ord: PRE-3 (acquire): what the one before has left.
    if place.busy.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
        work();
        // ord: PRE-3 (release): to the next one.
        place.busy.store(0, Release);
    }
}

/// Does this file's part of [`super::signals`].
pub fn signals(condition: u64, _: &CallSite) {
    SIGNALLED[mix(condition) as usize % SIGNALLED.len()].fetch_max(sys::now(), Relaxed);
    let Some(me) = enter() else {
        // By a handler, with who knows what locks.
        if let Some((place, _)) = signals_of(condition, true) {
            place.locks.iter().for_each(|lock| lock.address.store(0, Relaxed));
        }
        return;
    };
    let Some((place, is_new)) = signals_of(condition, true) else { return me.lose_fact() };
    let life = me.life_of(condition);
    let is_new = is_new || place.generation.load(Relaxed) != life;
    let nothing = || place.locks.iter().all(|lock| lock.address.load(Relaxed) == 0);
    if !is_new && nothing() {
        return;
    }
    let tid = me.record().tid.load(Relaxed);
    alone(place, || {
        let stack = me.thread.stack();
        let held = || (0..stack.depth()).filter_map(|index| stack.entry(index).read());
        if is_new {
            ANY.store(1, Relaxed);
            place.forget();
            place.generation.store(life, Relaxed);
            place.tid.store(tid, Relaxed);
            let locks = held().filter_map(|holding| Some((me.generation_held(&holding)?, holding)));
            for (common, (generation, holding)) in place.locks.iter().zip(locks) {
                common.generation.store(generation, Relaxed);
                common.stack.store(holding.stack, Relaxed);
                common.shared.store(u32::from(holding.flags.has(Flags::READ)), Relaxed);
                common.address.store(holding.address, Relaxed);
            }
            return;
        }
        if place.tid.load(Relaxed) != tid {
            place.others.store(1, Relaxed);
        }
        for common in place.locks.iter().filter(|common| common.address.load(Relaxed) != 0) {
            let address = common.address.load(Relaxed);
            let of_this = |holding: &Holding| {
                holding.address == address
                    && me.generation_held(holding) == Some(common.generation.load(Relaxed))
            };
            match held().find(of_this) {
                Some(holding) if holding.flags.has(Flags::READ) => common.shared.store(1, Relaxed),
                Some(_) => {}
                None => common.sometimes.store(1, Relaxed),
            }
        }
    });
}

impl ConditionSignals {
    fn forget(&self) {
        self.others.store(0, Relaxed);
        for lock in &self.locks {
            lock.address.store(0, Relaxed);
            lock.sometimes.store(0, Relaxed);
        }
    }
}

impl Me {
    /// Returns the generation of the condition that lives at this address, or will when it is
    /// waited for.
    fn life_of(&self, condition: u64) -> u32 {
        let lock = self.ledger.find_lock(condition).and_then(|index| self.ledger.lock(index));
        lock.map_or(1, |lock| {
            let is_over = !matches!(lock.shape().1, RecordLife::Live);
            lock.generation.load(Relaxed) + u32::from(is_over)
        })
    }

    /// Returns the generation of a lock that is held and has an owner.
    fn generation_held(&self, holding: &Holding) -> Option<u32> {
        let lock = self.ledger.lock(holding.lock)?;
        (lock.shape().0 != ObjectKind::Semaphore).then(|| lock.generation.load(Relaxed))
    }
}

fn holding<N: Nature>(me: &Me, call: &LockCall<'_, N>, place: CallPlace) {
    let stack = me.thread.stack();
    let held = || (0..stack.depth()).filter_map(|index| stack.entry(index).read());
    if held().count() < 2 {
        return;
    }
    let Some((signals, _)) = signals_of(call.target, false) else { return };
    if signals.generation.load(Relaxed) != me.life_of(call.target) {
        return;
    }
    let by = signals.tid.load(Relaxed);
    if by == me.record().tid.load(Relaxed) && signals.others.load(Relaxed) == 0 {
        return;
    }
    for holding in held().filter(|holding| holding.address != call.companion) {
        let needed = signals.locks.iter().find(|common| {
            common.address.load(Relaxed) == holding.address
                && me.generation_held(&holding) == Some(common.generation.load(Relaxed))
                && !(common.shared.load(Relaxed) != 0 && holding.flags.has(Flags::READ))
        });
        let Some(needed) = needed else { continue };
        let mutex = me.ledger.find_lock(call.companion).unwrap_or(0);
        let note = Note::new(Rule::ConditionHolding, holding.address, place.stack);
        let note = note.after(by, needed.stack.load(Relaxed)).with(mutex);
        let weak = needed.sometimes.load(Relaxed) != 0;
        me.note(&note.number(u64::from(holding.stack)).weak(weak));
    }
}

/// Forgets all signals, because a forked child knows nothing of its parent's threads.
pub fn forget() {
    if ANY.swap(0, Relaxed) == 0 {
        return;
    }
    for place in SIGNALS.iter().filter(|place| place.condition.load(Relaxed) != 0) {
        place.locks.iter().for_each(|lock| lock.address.store(0, Relaxed));
        place.busy.store(0, Relaxed);
    }
}

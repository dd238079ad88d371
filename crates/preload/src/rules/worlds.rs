//! Locks in signal handlers and outside.
//!
//! # Role
//! A lock that the handler of a signal waits for must not be held where that signal
//! may interrupt. Neither the handler nor the outside use needs to come at a bad
//! moment: each is remembered, and compared with the other when that is seen.
//!
//! # What is seen
//! Every acquisition in a handler, but by trylock, which does not wait. Outside,
//! the first acquisition of a lock by a thread at each place, with the signals that
//! are open then; of a lock that a handler has used, and that can carry a mark for it,
//! every one from then on. Of a handler that interrupts a call that blocks only this
//! is seen, and nothing of one that interrupts the library at work (see
//! [`me`]).
//!
//! A lock that nobody is seen to take outside of handlers is in nobody's way, and is used in a
//! handler all the same: whether a handler was the first to take it, and whether somebody has
//! taken it outside since, with whatever signals blocked, is left in the ledger for the end.
//!
//! Of more locks than there is room for the later ones are not compared.
//!
//! An order of locks may connect the two worlds. That is for the command to find, so
//! once a handler has used any lock all uses are left in the ledger, as [`SeenViolation`]es
//! that are none: without a second stack (`leave`).
//!
//! [`SeenViolation`]: lockstead_ledger::violation::SeenViolation

use super::cookie::Cookie;
use super::handlers;
use super::life;
use super::note::Note;
use crate::call::{CallPlace, LockCall, Nature};
use crate::me::{self, Me};
use core::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use lockstead_ledger::known::KnownLock;
use lockstead_ledger::lock::{ObjectKind, attribute};
use lockstead_ledger::order::EdgeMode;
use lockstead_ledger::publish::{Flags, WaitKind};
use lockstead_ledger::violation::{Rule, SeenViolation};

/// One use of a lock, in a handler or outside.
struct LockUse {
    /// The address of the lock xor generation, so that a later life is another lock; 0: free.
    /// Written last.
    lock: AtomicU64,
    signals: AtomicU64,
    stack: AtomicU32,
    thread: AtomicU32,
    tid: AtomicU32,
    /// The word that is not zero while it is being filled.
    claimed: AtomicU32,
    /// The index of the lock's record.
    index: AtomicU32,
    /// How it was taken, as [`EdgeMode`] has it.
    mode: AtomicU32,
    /// The word that is not zero if, for a use in a handler, nobody had taken the lock before, or,
    /// for another one, no handler was running.
    apart: AtomicU32,
    /// It was left in the ledger.
    left: AtomicU32,
}

/// A use that was read.
#[derive(Clone, Copy)]
struct SeenUse {
    stack: u32,
    thread: u32,
    tid: u32,
}

/// A table of uses of locks, by lock.
struct Uses<const N: usize>([LockUse; N]);

/// The number of places that are looked at for one lock.
const TRIES: usize = 32;

impl<const N: usize> Uses<N> {
    const fn new() -> Self {
        Uses(
            [const {
                LockUse {
                    lock: AtomicU64::new(0),
                    signals: AtomicU64::new(0),
                    stack: AtomicU32::new(0),
                    thread: AtomicU32::new(0),
                    tid: AtomicU32::new(0),
                    claimed: AtomicU32::new(0),
                    index: AtomicU32::new(0),
                    mode: AtomicU32::new(0),
                    apart: AtomicU32::new(0),
                    left: AtomicU32::new(0),
                }
            }; N],
        )
    }

    fn places(&self, lock: u64) -> impl Iterator<Item = &LockUse> {
        let first = lock.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        (0..TRIES).map(move |i| &self.0[(first as usize + i) % N])
    }

    /// Returns the signals of all uses of the lock.
    fn signals(&self, lock: u64) -> u64 {
        // ord: PRE-5 (acquire): the use.
        let all = self.places(lock).filter(|seen| seen.lock.load(Acquire) == lock);
        all.fold(0, |signals, seen| signals | seen.signals.load(Relaxed))
    }

    /// Tells whether there is a use of the lock that is apart.
    fn has_apart(&self, lock: u64) -> bool {
        // ord: PRE-5 (acquire): the use.
        let mut all = self.places(lock).filter(|seen| seen.lock.load(Acquire) == lock);
        all.any(|seen| seen.apart.load(Relaxed) != 0)
    }

    /// Returns a use of the lock with this signal.
    fn find(&self, lock: u64, signal: u64) -> Option<SeenUse> {
        // ord: PRE-5 (acquire): the use.
        let mut all = self.places(lock).filter(|seen| seen.lock.load(Acquire) == lock);
        let seen = all.find(|seen| seen.signals.load(Relaxed) & signal != 0)?;
        Some(SeenUse {
            stack: seen.stack.load(Relaxed),
            thread: seen.thread.load(Relaxed),
            tid: seen.tid.load(Relaxed),
        })
    }

    /// Remembers a use; counts it where there is no room.
    fn add(&self, me: &Me, lock: u64, signals: u64, apart: bool, place: CallPlace, mode: EdgeMode) {
        let free = |seen: &&LockUse| {
            seen.claimed.load(Relaxed) == 0
                && seen.claimed.compare_exchange(0, 1, Relaxed, Relaxed).is_ok()
        };
        let Some(used) = self.places(lock).find(free) else { return me.lose_fact() };
        ANY.store(1, Relaxed);
        let record = me.record();
        used.signals.store(signals, Relaxed);
        used.stack.store(place.stack, Relaxed);
        used.index.store(place.lock, Relaxed);
        used.mode.store(mode as u32, Relaxed);
        used.apart.store(u32::from(apart), Relaxed);
        used.left.store(0, Relaxed);
        used.thread.store(record.serial.load(Relaxed), Relaxed);
        used.tid.store(record.tid.load(Relaxed), Relaxed);
        // ord: PRE-5 (release): publishes the use.
        used.lock.store(lock, Release);
    }

    /// Returns all uses that are complete.
    fn all(&self) -> impl Iterator<Item = &LockUse> {
        // ord: PRE-5 (acquire): the use.
        self.0.iter().filter(|used| used.lock.load(Acquire) != 0)
    }

    fn forget(&self) {
        for seen in self.0.iter().filter(|seen| seen.claimed.load(Relaxed) != 0) {
            seen.lock.store(0, Relaxed);
            seen.claimed.store(0, Relaxed);
        }
    }
}

/// The uses in handlers, each with the signals that were handled.
static HANDLED: Uses<1024> = Uses::new();
/// The uses outside of handlers, each with the signals that were open then.
static OPEN: Uses<32768> = Uses::new();

/// The word that is not zero if there is any use in either table.
static ANY: AtomicU32 = AtomicU32::new(0);

/// Forgets all uses, because a forked child begins anew.
pub fn forget() {
    // Most never had any.
    if ANY.swap(0, Relaxed) != 0 {
        HANDLED_AT_ALL.store(0, Relaxed);
        HANDLED.forget();
        OPEN.forget();
    }
}

/// Notes the use for the order of signal handlers: see [`super::acquired`] and [`super::waits`].
pub fn uses<N: Nature>(me: &Me, call: &LockCall<'_, N>, place: CallPlace, how: Flags) {
    let installed = handlers::installed();
    let signal = me.record().context.load(Relaxed);
    if installed == 0 && signal == 0 && HANDLED_AT_ALL.load(Relaxed) == 0 {
        return;
    }
    let (kind, attributes) = call.nature.nature();
    if !matches!(kind, ObjectKind::Mutex | ObjectKind::RwLock | ObjectKind::Spin) {
        return;
    }
    let Some(record) = me.ledger.lock(place.lock) else { return };
    let lock = key(call.target, record.generation.load(Relaxed));
    if signal != 0 && !how.has(Flags::TRIED) {
        handled(me, call.target, lock, signal, place, mode(call, attributes));
        // SAFETY: RULES-PASSED: the program passes it to the function that it calls.
        if let Some(cookie) = unsafe { Cookie::of(call.target, kind, attributes) } {
            let _ = cookie.watch();
        }
    }
    let known = OPEN.signals(lock);
    let new = if known & installed == installed { 0 } else { handlers::open() & !known };
    let is_outside = signal == 0;
    if new != 0 || is_outside && is_news_that_outside(lock) {
        opened(me, call.target, lock, new, is_outside, place, mode(call, attributes));
    }
}

/// Tells whether a handler has used the lock, and nobody outside is known to have.
fn is_news_that_outside(lock: u64) -> bool {
    HANDLED_AT_ALL.load(Relaxed) != 0 && HANDLED.signals(lock) != 0 && !OPEN.has_apart(lock)
}

/// Does this file's part of [`super::passes`].
pub fn passes<N: Nature>(call: &LockCall<'_, N>, how: Flags) {
    if !how.has(Flags::TRIED) && call.companion == 0 {
        me::beside_wait(|me| {
            let place = me.place(call.target, call.site, || call.nature.nature());
            uses(me, call, place, how);
        });
    }
}

fn mode<N: Nature>(call: &LockCall<'_, N>, attributes: u16) -> EdgeMode {
    match call.how.kind() {
        WaitKind::READ if call.mode.has(Flags::RECURSIVE) => EdgeMode::ReadRecursive,
        WaitKind::READ if attributes & attribute::WRITERS_FIRST != 0 => EdgeMode::Read,
        WaitKind::READ => EdgeMode::ReadRecursive,
        _ => EdgeMode::Write,
    }
}

/// Leaves a use in the ledger: a violation without a second stack. Which world it is
/// of the other lock says: none for a handler's, whose signal is the number; the
/// first for one outside, and the number is a mask of signals. Who else was there
/// says the mode; that it is weak, that it is [apart](LockUse::apart).
fn leave(me: &Me, used: &LockUse, is_open: bool) {
    if used.left.swap(1, Relaxed) != 0 {
        return;
    }
    let lock = used.index.load(Relaxed);
    let Some(record) = me.ledger.lock(lock) else { return };
    let signals = used.signals.load(Relaxed);
    let signal = u64::from(signals.trailing_zeros()) + 1;
    let generation = record.generation.load(Relaxed);
    let address = record.address.load(Relaxed);
    if used.lock.load(Relaxed) != key(address, generation) {
        // Of a life that is over.
        return;
    }
    let _ = me.ledger.add_violation(&SeenViolation {
        rule: Rule::InHandler,
        lock,
        generation,
        address,
        stack: used.stack.load(Relaxed),
        thread: used.thread.load(Relaxed),
        tid: used.tid.load(Relaxed),
        other_tid: used.mode.load(Relaxed),
        other_stack: 0,
        other_lock: u32::from(is_open),
        number: if is_open { signals } else { signal },
        weak: used.apart.load(Relaxed) != 0,
    });
}

/// Leaves all uses that were not, if a handler uses locks.
fn leave_all(me: &Me, of: u64) {
    if HANDLED_AT_ALL.load(Relaxed) == 0 {
        return;
    }
    if HANDLED_AT_ALL.swap(2, Relaxed) == 1 {
        OPEN.all().for_each(|used| leave(me, used, true));
    }
    // ord: PRE-5 (acquire): the use.
    let of_this = |used: &&LockUse| used.lock.load(Acquire) == of;
    HANDLED.places(of).filter(of_this).for_each(|used| leave(me, used, false));
    OPEN.places(of).filter(of_this).for_each(|used| leave(me, used, true));
}

/// The word that is not zero when a handler has used any lock; 2 when all that was seen before that
/// is in the ledger.
static HANDLED_AT_ALL: AtomicU32 = AtomicU32::new(0);

fn key(address: u64, generation: u32) -> u64 {
    address ^ u64::from(generation) << 48
}

/// Tells whether nobody has had the lock yet. What a child has inherited its parent may have had.
fn is_untouched(me: &Me, address: u64, place: CallPlace) -> bool {
    let Some(record) = me.ledger.lock(place.lock).filter(|_| !life::is_forked()) else {
        return false;
    };
    let generation = record.generation.load(Relaxed);
    let has_had = |known: &KnownLock| {
        known.address.load(Relaxed) == address
            && known.generation.load(Relaxed) == generation
            && known.count.load(Relaxed) != 0
    };
    record.acquisitions.load(Relaxed) == 0
        && !me.ledger.threads().any(|thread| thread.known().any(has_had))
}

fn handled(me: &Me, address: u64, lock: u64, signal: u32, place: CallPlace, mode: EdgeMode) {
    let bit = handlers::bit(signal);
    if HANDLED.signals(lock) & bit != 0 {
        return;
    }
    HANDLED.add(me, lock, bit, is_untouched(me, address, place), place, mode);
    let _ = HANDLED_AT_ALL.compare_exchange(0, 1, Relaxed, Relaxed);
    leave_all(me, lock);
    if let Some(open) = OPEN.find(lock, bit) {
        let note = Note::new(Rule::InHandler, address, place.stack).after(open.tid, open.stack);
        me.note(&note.number(u64::from(signal)));
    }
}

fn opened(
    me: &Me,
    address: u64,
    lock: u64,
    signals: u64,
    is_outside: bool,
    place: CallPlace,
    mode: EdgeMode,
) {
    OPEN.add(me, lock, signals, is_outside, place, mode);
    leave_all(me, lock);
    let mut left = signals & HANDLED.signals(lock);
    while left != 0 {
        let signal = left.trailing_zeros() + 1;
        left &= left - 1;
        if let Some(handler) = HANDLED.find(lock, handlers::bit(signal)) {
            let tid = me.record().tid.load(Relaxed);
            let note = Note::new(Rule::InHandler, address, handler.stack).after(tid, place.stack);
            me.note(&note.by(handler.thread, handler.tid).number(u64::from(signal)));
        }
    }
}

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
//! every one from then on. A handler that interrupts the library at work is not
//! recorded at all (see [`me`](crate::me)).
//!
//! Of more locks than there is room for the later ones are not compared.

use super::cookie::Cookie;
use super::handlers;
use super::note::Note;
use crate::chain::{Nature, Place};
use crate::me::Me;
use crate::record::Call;
use core::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use lockstead_ledger::breach::Rule;
use lockstead_ledger::lock::Kind;
use lockstead_ledger::publish::Flags;

/// One use, in one of the worlds.
struct Use {
    /// Address of the lock xor generation, so that a later life is another lock;
    /// 0: free. Written last.
    lock: AtomicU64,
    signals: AtomicU64,
    stack: AtomicU32,
    thread: AtomicU32,
    tid: AtomicU32,
    /// Not zero while it is being filled.
    claimed: AtomicU32,
}

/// A use that was read.
#[derive(Clone, Copy)]
struct Seen {
    stack: u32,
    thread: u32,
    tid: u32,
}

/// Uses of locks, by lock.
struct Uses<const N: usize>([Use; N]);

/// Places that are looked at for one lock.
const TRIES: usize = 32;

impl<const N: usize> Uses<N> {
    const fn new() -> Self {
        Uses(
            [const {
                Use {
                    lock: AtomicU64::new(0),
                    signals: AtomicU64::new(0),
                    stack: AtomicU32::new(0),
                    thread: AtomicU32::new(0),
                    tid: AtomicU32::new(0),
                    claimed: AtomicU32::new(0),
                }
            }; N],
        )
    }

    fn places(&self, lock: u64) -> impl Iterator<Item = &Use> {
        let first = lock.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        (0..TRIES).map(move |i| &self.0[(first as usize + i) % N])
    }

    /// Signals of all uses of the lock.
    fn signals(&self, lock: u64) -> u64 {
        let all = self.places(lock).filter(|seen| seen.lock.load(Acquire) == lock);
        all.fold(0, |signals, seen| signals | seen.signals.load(Relaxed))
    }

    /// A use of the lock with this signal.
    fn find(&self, lock: u64, signal: u64) -> Option<Seen> {
        let mut all = self.places(lock).filter(|seen| seen.lock.load(Acquire) == lock);
        let seen = all.find(|seen| seen.signals.load(Relaxed) & signal != 0)?;
        Some(Seen {
            stack: seen.stack.load(Relaxed),
            thread: seen.thread.load(Relaxed),
            tid: seen.tid.load(Relaxed),
        })
    }

    /// Remembers a use, if there is room.
    fn add(&self, me: &Me, lock: u64, signals: u64, stack: u32) {
        let free = |seen: &&Use| {
            seen.claimed.load(Relaxed) == 0
                && seen.claimed.compare_exchange(0, 1, Relaxed, Relaxed).is_ok()
        };
        let Some(place) = self.places(lock).find(free) else { return };
        let record = me.record();
        place.signals.store(signals, Relaxed);
        place.stack.store(stack, Relaxed);
        place.thread.store(record.serial.load(Relaxed), Relaxed);
        place.tid.store(record.tid.load(Relaxed), Relaxed);
        place.lock.store(lock, Release);
    }

    fn forget(&self) {
        for seen in self.0.iter().filter(|seen| seen.claimed.load(Relaxed) != 0) {
            seen.lock.store(0, Relaxed);
            seen.claimed.store(0, Relaxed);
        }
    }
}

/// In handlers, of these signals.
static HANDLED: Uses<1024> = Uses::new();
/// With these signals open.
static OPEN: Uses<32768> = Uses::new();

/// A forked child begins anew.
pub fn forget() {
    HANDLED.forget();
    OPEN.forget();
}

/// See [`super::acquired`] and [`super::waits`].
pub fn uses<N: Nature>(me: &Me, call: &Call<'_, N>, place: Place, how: Flags) {
    let installed = handlers::installed();
    if installed == 0 {
        return;
    }
    let (kind, attributes) = call.nature.nature();
    if !matches!(kind, Kind::Mutex | Kind::RwLock | Kind::Spin) {
        return;
    }
    let Some(record) = me.ledger.lock(place.lock) else { return };
    let lock = call.target ^ u64::from(record.generation.load(Relaxed)) << 48;
    let signal = me.record().context.load(Relaxed);
    if signal != 0 && !how.has(Flags::TRIED) {
        handled(me, call.target, lock, signal, place.stack);
        // SAFETY: the program passes it to the function that it calls.
        if let Some(cookie) = unsafe { Cookie::of(call.target, kind, attributes) } {
            let _ = cookie.watch();
        }
    }
    let known = OPEN.signals(lock);
    if known & installed != installed {
        let new = handlers::open() & !known;
        if new != 0 {
            opened(me, call.target, lock, new, place.stack);
        }
    }
}

fn handled(me: &Me, address: u64, lock: u64, signal: u32, stack: u32) {
    let bit = handlers::bit(signal);
    if HANDLED.signals(lock) & bit != 0 {
        return;
    }
    HANDLED.add(me, lock, bit, stack);
    if let Some(open) = OPEN.find(lock, bit) {
        let note = Note::new(Rule::InHandler, address, stack).after(open.tid, open.stack);
        me.note(&note.number(u64::from(signal)));
    }
}

fn opened(me: &Me, address: u64, lock: u64, signals: u64, stack: u32) {
    OPEN.add(me, lock, signals, stack);
    let mut left = signals & HANDLED.signals(lock);
    while left != 0 {
        let signal = left.trailing_zeros() + 1;
        left &= left - 1;
        if let Some(handler) = HANDLED.find(lock, handlers::bit(signal)) {
            let tid = me.record().tid.load(Relaxed);
            let note = Note::new(Rule::InHandler, address, handler.stack).after(tid, stack);
            me.note(&note.by(handler.thread, handler.tid).number(u64::from(signal)));
        }
    }
}

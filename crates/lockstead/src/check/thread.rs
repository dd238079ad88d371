//! What a thread holds and wants, and which chains of locks are known to it.
//!
//! # Role
//! Every acquisition comes by here. Its chain, that is what the thread holds and
//! now asks for, and where, is hashed step by step; a chain that this thread has
//! been through costs a look into a set of its own. Only new ones go to the
//! [`engine`].
//!
//! # Invariants
//! - **K1** A lock is on the list of its holder's from after it was acquired
//!   until before it is released. Others read the list under its mutex.
//! - **K2** While `inside` is set, the thread is in here; a signal handler that
//!   interrupts it passes through, so that no mutex of ours is taken twice.

use super::lock::Lock;
use super::{cycles, engine};
use crate::{Access, LockId, Site};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Levels of a nesting that are told apart; a deeper one counts as the last.
pub(super) const LEVELS: u32 = 8;

/// Known chains a thread keeps before it begins anew: they cost a look at the
/// graph then, no more.
const CHAINS: usize = 1 << 16;

/// A lock on a thread's list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    /// The lock's number.
    pub(super) number: u32,
    /// Its place in a nesting.
    pub(super) level: u32,
    /// With other readers.
    pub(super) shared: bool,
    /// By a call that does not wait.
    pub(super) tried: bool,
    /// Where.
    pub(super) site: Site,
    /// The chain up to here.
    key: u64,
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Want {
    /// The lock's number.
    pub(super) number: u32,
    /// With other readers.
    pub(super) shared: bool,
    /// Where.
    pub(super) site: Site,
}

/// The part of a thread that others see.
#[derive(Debug)]
pub(super) struct Shared {
    /// Never another thread's.
    pub(super) id: u32,
    /// Its name, or the kernel's number.
    pub(super) name: String,
    held: Mutex<Vec<Held>>,
    /// Of a wait without end.
    wants: Mutex<Option<Want>>,
}

/// The guarded value: ours are left whole by whoever panics.
pub(super) fn inside<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// What it holds, the oldest first.
    pub(super) fn held(&self) -> Vec<Held> {
        inside(&self.held).clone()
    }

    /// What it waits for without end.
    pub(super) fn wants(&self) -> Option<Want> {
        *inside(&self.wants)
    }
}

/// Keys are hashes already.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are words");
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// An acquisition between its announcement and its end.
struct Asked {
    want: Want,
    level: u32,
    key: u64,
}

struct Me {
    shared: Arc<Shared>,
    asked: RefCell<Vec<Asked>>,
    known: RefCell<HashSet<u64, BuildHasherDefault<AsItIs>>>,
}

impl Drop for Me {
    fn drop(&mut self) {
        // The thread ends: what it holds now it holds for ever.
        INSIDE.with(|inside| inside.set(true));
        engine::leave(&self.shared);
    }
}

thread_local! {
    /// K2. Without a destructor: it is there until the thread's very end.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    static ME: Me = Me {
        shared: engine::join(|id| Shared {
            id,
            name: name(),
            held: Mutex::default(),
            wants: Mutex::default(),
        }),
        asked: RefCell::default(),
        known: RefCell::default(),
    };
}

/// What to call the calling thread.
fn name() -> String {
    let thread = std::thread::current();
    match thread.name() {
        Some(name) => format!("\"{name}\""),
        None => format!("{:?}", thread.id()),
    }
}

/// Does something with the thread's part, unless it is in here already or ends.
fn with<R>(work: impl FnOnce(&Me) -> R) -> Option<R> {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            INSIDE.with(|inside| inside.set(false));
        }
    }
    if INSIDE.with(|inside| inside.replace(true)) {
        return None;
    }
    let _leave = Leave;
    ME.try_with(work).ok()
}

/// Does something with the engine alone, on a thread that may be ending.
pub(super) fn outside(work: impl FnOnce()) {
    if !INSIDE.with(|inside| inside.replace(true)) {
        work();
        INSIDE.with(|inside| inside.set(false));
    }
}

/// Folds a step into the key of a chain; the multiplier is 2^64 divided by the
/// golden ratio.
fn fold(key: u64, step: u64) -> u64 {
    (key ^ step).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

/// The key of what is held.
fn before(held: &[Held]) -> u64 {
    held.last().map_or(u64::from(engine::is_alone()), |last| last.key)
}

fn key_after(before: u64, want: &Want, level: u32, tried: bool) -> u64 {
    let how = u64::from(level) << 2 | u64::from(want.shared) << 1 | u64::from(tried);
    let chain = fold(before, u64::from(want.number) << 8 | how);
    fold(chain, core::ptr::from_ref(want.site).addr() as u64)
}

#[track_caller]
pub(super) fn will_acquire(lock: &Lock, id: LockId, access: Access, level: u32, site: Site) {
    let shared = match access {
        Access::Alone => false,
        Access::Shared => true,
        Access::Unit => return,
    };
    let found = with(|me| {
        let want = Want { number: lock.number(id, site), shared, site };
        let level = level.min(LEVELS - 1);
        let key = key_after(before(&inside(&me.shared.held)), &want, level, false);
        me.asked.borrow_mut().push(Asked { want, level, key });
        let mut known = me.known.borrow_mut();
        if known.len() >= CHAINS {
            known.clear();
        }
        if !known.insert(key) {
            return Vec::new();
        }
        engine::ask(&me.shared, &me.shared.held(), &want, level)
    });
    conclude(found);
}

/// Prints what was found, and panics if that is wanted.
#[track_caller]
fn conclude(found: Option<Vec<super::Finding>>) {
    let found = found.unwrap_or_default();
    if !found.is_empty() && super::act(&found) {
        with(|me| me.asked.borrow_mut().pop());
        panic!("{}", found[0].text);
    }
}

#[track_caller]
pub(super) fn will_wait(lock: &Lock, endless: bool) {
    if !endless {
        return;
    }
    let found = with(|me| {
        let want = me.asked.borrow().last().map(|asked| asked.want);
        let want = want.filter(|want| Some(want.number) == lock.known_number())?;
        Some(cycles::close(&me.shared, || *inside(&me.shared.wants) = Some(want)))
    });
    conclude(found.flatten());
}

pub(super) fn acquired(lock: &Lock, id: LockId, access: Access, site: Site) {
    if access == Access::Unit {
        return;
    }
    with(|me| {
        *inside(&me.shared.wants) = None;
        let number = lock.number(id, site);
        let mut asked = me.asked.borrow_mut();
        let mut held = inside(&me.shared.held);
        if asked.last().is_some_and(|asked| asked.want.number == number) {
            let Asked { want, level, key } = asked.pop().expect("just seen");
            let Want { shared, site, .. } = want;
            held.push(Held { number, level, shared, tried: false, site, key });
            return;
        }
        let want = Want { number, shared: access == Access::Shared, site };
        let key = key_after(before(&held), &want, 0, true);
        held.push(Held { number, level: 0, shared: want.shared, tried: true, site, key });
    });
}

pub(super) fn abandoned(lock: &Lock) {
    with(|me| {
        *inside(&me.shared.wants) = None;
        let mut asked = me.asked.borrow_mut();
        if asked.last().is_some_and(|asked| Some(asked.want.number) == lock.known_number()) {
            asked.pop();
        }
    });
}

pub(super) fn releasing(lock: &Lock) {
    let Some(number) = lock.known_number() else { return };
    with(|me| {
        let mut held = inside(&me.shared.held);
        if let Some(at) = held.iter().rposition(|held| held.number == number) {
            // The keys above still have it in them: chains that are not known,
            // then, for as long as they are held.
            held.remove(at);
        }
    });
}

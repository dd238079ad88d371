//! What a thread holds and wants, and which chains of locks are known to it.
//!
//! # Role
//! Every acquisition comes by here. Its chain, that is what the thread holds and
//! now asks for, and where, is hashed step by step; a chain that this thread has
//! been through costs a look into a set of its own. Only new ones go to the
//! [`engine`].
//!
//! # Invariants
//! - **CHECK-HELD** A lock is on the list of its holder's from after it was acquired
//!   until before it is released. Others read the list under its mutex.

use super::engine::{self, VisibleThread};
use super::finding::{Finding, act};
use super::inside::{inside, locked, stay_inside};
use lockstead_core::{Access, Site};
use lockstead_lockdep::book::{BookHold, BookWant, LEVELS};
use std::cell::RefCell;
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// How many known chains a thread keeps before it begins anew: they cost a look at the graph then,
/// no more.
const CHAINS: usize = 1 << 16;

/// A hasher that leaves keys as they are, which are hashes already.
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
struct PendingRequest {
    want: BookWant<Site>,
    key: u64,
}

struct CheckedThread {
    shared: Arc<VisibleThread>,
    asked: RefCell<Vec<PendingRequest>>,
    /// The key of the chain up to each lock on the thread's list.
    keys: RefCell<Vec<u64>>,
    known: RefCell<HashSet<u64, BuildHasherDefault<AsItIs>>>,
}

impl Drop for CheckedThread {
    fn drop(&mut self) {
        // The thread ends: what it holds now it holds for ever.
        stay_inside();
        engine::leave(&self.shared);
    }
}

thread_local! {
    static ME: CheckedThread = CheckedThread {
        shared: engine::join(name()),
        asked: RefCell::default(),
        keys: RefCell::default(),
        known: RefCell::default(),
    };
}

/// Returns what to call the calling thread.
fn name() -> String {
    let thread = std::thread::current();
    match thread.name() {
        Some(name) => format!("\"{name}\""),
        None => format!("{:?}", thread.id()),
    }
}

/// Does something with the thread's part, unless it is in here already or ends.
fn with<R>(work: impl FnOnce(&CheckedThread) -> R) -> Option<R> {
    inside(|| ME.try_with(work).ok()).flatten()
}

/// Folds a step into the key of a chain; the multiplier is 2^64 divided by the
/// golden ratio.
fn fold(key: u64, step: u64) -> u64 {
    (key ^ step).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

impl CheckedThread {
    /// Returns the key of what is held and now asked for.
    fn key(&self, want: &BookWant<Site>, tried: bool) -> u64 {
        let held = self.keys.borrow().last().copied();
        let how = u64::from(want.level) << 2 | u64::from(want.shared) << 1 | u64::from(tried);
        let chain = held.unwrap_or(u64::from(engine::is_alone()));
        let chain = fold(chain, u64::from(want.number) << 8 | how);
        fold(chain, core::ptr::from_ref(want.site).addr() as u64)
    }

    /// Puts a lock on the thread's list.
    fn holds(&self, want: BookWant<Site>, key: u64, tried: bool) {
        let BookWant { number, level, shared, site } = want;
        locked(&self.shared.held).push(BookHold { number, level, shared, tried, site });
        self.keys.borrow_mut().push(key);
    }
}

/// Returns whether it is asked for with other readers; `None` of a unit, which has no owner.
fn is_shared(access: Access) -> Option<bool> {
    match access {
        Access::Alone => Some(false),
        Access::Shared => Some(true),
        Access::Unit => None,
    }
}

/// Checks what the thread asks for before it waits. `number` gives the lock its number.
#[track_caller]
pub(super) fn will_acquire(number: impl FnOnce() -> u32, access: Access, level: u32, site: Site) {
    let Some(shared) = is_shared(access) else { return };
    let found = with(|me| {
        let want = BookWant { number: number(), level: level.min(LEVELS - 1), shared, site };
        let key = me.key(&want, false);
        me.asked.borrow_mut().push(PendingRequest { want, key });
        let mut known = me.known.borrow_mut();
        if known.len() >= CHAINS {
            known.clear();
        }
        if known.insert(key) { engine::ask(&me.shared, &want) } else { Vec::new() }
    });
    conclude(&found.unwrap_or_default());
}

/// Prints what was found, and panics if that is wanted.
#[track_caller]
fn conclude(found: &[Finding]) {
    if !found.is_empty() && act(found) {
        with(|me| me.asked.borrow_mut().pop());
        panic!("{}", found[0].text);
    }
}

/// Looks for the deadlock that a wait closes.
#[track_caller]
pub(super) fn will_wait(number: Option<u32>, endless: bool) {
    if !endless {
        return;
    }
    let found = with(|me| {
        let want = me.asked.borrow().last().map(|asked| asked.want);
        let want = want.filter(|want| Some(want.number) == number)?;
        engine::wait(&me.shared, want)
    });
    conclude(found.flatten().as_slice());
}

/// Notes that the thread has the lock.
pub(super) fn acquired(number: impl FnOnce() -> u32, access: Access, site: Site) {
    let Some(shared) = is_shared(access) else { return };
    with(|me| {
        *locked(&me.shared.wants) = None;
        let number = number();
        let mut asked = me.asked.borrow_mut();
        if asked.last().is_some_and(|asked| asked.want.number == number) {
            let PendingRequest { want, key } = asked.pop().expect("just seen");
            me.holds(want, key, false);
        } else {
            let want = BookWant { number, level: 0, shared, site };
            me.holds(want, me.key(&want, true), true);
        }
    });
}

/// Notes that the thread has given the acquisition up.
pub(super) fn abandoned(number: Option<u32>) {
    with(|me| {
        *locked(&me.shared.wants) = None;
        let mut asked = me.asked.borrow_mut();
        if asked.last().is_some_and(|asked| Some(asked.want.number) == number) {
            asked.pop();
        }
    });
}

/// Takes a lock from the thread's list, before it is released.
pub(super) fn releasing(number: Option<u32>) {
    let Some(number) = number else { return };
    with(|me| {
        let mut held = locked(&me.shared.held);
        if let Some(at) = held.iter().rposition(|hold| hold.number == number) {
            // The keys above still have it in them: chains that are not known,
            // then, for as long as they are held.
            held.remove(at);
            me.keys.borrow_mut().remove(at);
        }
    });
}

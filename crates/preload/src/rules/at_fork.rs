//! Locks that other threads held at a fork: in the child nobody gives them back.
//!
//! # Protocol
//! Before the fork, the thread that forks copies what all others hold, for the child
//! has neither them nor its parent's ledger. The child keeps the copy. A lock in it
//! that the child waits for, and whose words still name that holder, is a violation;
//! one that was initialised in the child is not.
//!
//! What the processes share the parent's thread goes on holding.

use super::note::Note;
use super::words::{LockWords, WordHolder};
use crate::call::{CallPlace, LockCall, Nature};
use crate::me::Me;
use crate::{sys, tls};
use core::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use lockstead_ledger::lock::{ObjectKind, attribute};
use lockstead_ledger::publish::{Flags, Holding, WaitKind};
use lockstead_ledger::violation::Rule;

/// The number of return addresses that are kept of each acquisition.
const DEEPEST: usize = 32;

/// A lock that was held at the fork, in memory that begins as zeroes.
#[repr(C)]
struct LockAtFork {
    /// The lock's address; 0: there are no more locks.
    address: AtomicU64,
    tid: u32,
    end: u32,
    depth: usize,
    returns: [u64; DEEPEST],
}

#[repr(C)]
struct Copy {
    bytes: usize,
    count: usize,
}

/// The child's copy; 0: there is none.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// Does this file's part of [`super::forks`].
pub fn forks(me: &Me) {
    let own = me.record().index.load(Relaxed);
    let others = || {
        let threads = me.ledger.threads();
        let threads = threads.filter(move |thread| thread.record.index.load(Relaxed) != own);
        threads.flat_map(move |thread| {
            let tid = thread.record.tid.load(Relaxed);
            let stack = thread.stack();
            let held = (0..stack.depth()).filter_map(move |index| stack.entry(index).read());
            held.filter(|holding| is_private(me, holding)).map(move |holding| (tid, holding))
        })
    };
    // Whoever runs may take one more meanwhile.
    let room = match others().count() {
        0 => return,
        count => count + 64,
    };
    let bytes = (size_of::<Copy>() + room * size_of::<LockAtFork>()).next_multiple_of(4096);
    let Ok(memory) = sys::map_private(bytes) else { return };
    // SAFETY: new memory of this size, page-aligned; zeroes are valid for both.
    let (copy, left) = unsafe {
        let first = memory.add(size_of::<Copy>()).cast::<LockAtFork>();
        (&mut *memory.cast::<Copy>(), core::slice::from_raw_parts_mut(first, room))
    };
    copy.bytes = bytes;
    for (place, (tid, holding)) in left.iter_mut().zip(others()) {
        place.tid = tid;
        if let Some(stored) = me.ledger.stack(holding.stack) {
            place.end = stored.end;
            place.depth = stored.returns().len().min(DEEPEST);
            for (word, address) in place.returns.iter_mut().zip(stored.returns()) {
                *word = address;
            }
        }
        place.address.store(holding.address, Relaxed);
        copy.count += 1;
    }
    tls::words().left.store(memory as usize, Relaxed);
}

fn is_private(me: &Me, holding: &Holding) -> bool {
    let Some(lock) = me.ledger.lock(holding.lock) else { return false };
    let (kind, _, attributes) = lock.shape();
    attributes & attribute::SHARED == 0
        && !holding.flags.has(Flags::LENT)
        && matches!(kind, ObjectKind::Mutex | ObjectKind::RwLock | ObjectKind::Spin)
}

/// Does this file's part of [`super::has_forked`].
pub fn in_parent() {
    let memory = tls::own().map_or(0, |words| words.left.swap(0, Relaxed));
    if memory != 0 {
        // SAFETY: `forks` has mapped the memory, with its size in front, and nobody uses it any
        // more.
        unsafe { sys::unmap(memory as *mut u8, (*(memory as *const Copy)).bytes) };
    }
}

/// Publishes the copy in a forked child, which has one thread.
pub fn in_child() {
    let memory = tls::own().map_or(0, |words| words.left.swap(0, Relaxed));
    if memory != 0 {
        // ord: PRE-6 (release): the copy.
        LEFT.store(memory, Release);
    }
}

/// Returns the copy's entry for this lock.
fn left(address: u64) -> Option<&'static LockAtFork> {
    // ord: PRE-6 (acquire): the copy.
    let memory = LEFT.load(Acquire);
    if memory == 0 {
        return None;
    }
    // SAFETY: `forks` filled the copy before the fork; the child keeps it for good, and changes
    // addresses alone.
    let all = unsafe {
        let copy = &*(memory as *const Copy);
        let first = (memory as *const u8).add(size_of::<Copy>()).cast::<LockAtFork>();
        core::slice::from_raw_parts(first, copy.count)
    };
    all.iter().find(|left| left.address.load(Relaxed) == address)
}

/// Forgets that the parent held the lock, which is initialised anew.
pub fn initialises(address: u64) {
    if let Some(left) = left(address) {
        left.address.store(0, Relaxed);
    }
}

/// Does this file's part of [`super::waits`].
pub fn waits<N: Nature>(me: &Me, call: &LockCall<'_, N>, place: CallPlace) {
    let kind = match call.how.kind() {
        // Its words are not glibc's.
        _ if call.nature.nature().0.is_told() => return,
        WaitKind::MUTEX => ObjectKind::Mutex,
        WaitKind::READ | WaitKind::WRITE => ObjectKind::RwLock,
        WaitKind::SPIN => ObjectKind::Spin,
        _ => return,
    };
    let Some(left) = left(call.target) else { return };
    // SAFETY: RULES-PASSED: the program passes it to the function that it calls.
    let words = unsafe { LockWords::read(kind, call.target) };
    let is_held = match words.holder() {
        WordHolder::Thread(number) => number == left.tid,
        WordHolder::Readers(_) | WordHolder::Somebody => true,
        WordHolder::Nobody | WordHolder::Unknown => false,
    };
    if is_held {
        let returns = &left.returns[..left.depth.min(DEEPEST)];
        me.note_modules(returns);
        let stack = me.ledger.intern_stack(returns, left.end);
        me.note(&Note::new(Rule::HeldAtFork, call.target, place.stack).after(left.tid, stack));
    }
}

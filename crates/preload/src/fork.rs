//! Gives a forked child a ledger of its own, with what it inherits.
//!
//! # Protocol
//! Before the fork the thread that forks copies what it holds, for the child
//! does not get its parent's ledger. In the child, which has that one thread,
//! the parent's pointers are forgotten, a ledger is made, and the copy becomes
//! the child's first held locks: they are held there too.
//!
//! The handlers are registered first of all, so that in the child they run
//! before those of the program.
//!
//! A signal handler may have forked, in the middle of the library's work, which
//! the child then comes back to. For that it finds empty memory where its
//! parent's ledger was. (Not so the child of a `_Fork`, or of a `clone` that libc
//! knows nothing of, in a handler: nobody asks us.)

use crate::grow;
use crate::me::{self, Me};
use crate::real;
use crate::rules;
use crate::start;
use crate::state;
use crate::sys;
use crate::tls::{self, ThreadStage};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::lock::{ObjectKind, attribute};
use lockstead_ledger::publish::{Flags, Holding};
use lockstead_ledger::{Birth, ledger::LedgerPart};

/// The most locks that a child takes over; a thread that holds more when it forks is
/// beyond all we know of, and its child knows the newest of them.
const MOST: usize = 120;
/// The most return addresses that are taken over of each.
const DEEPEST: usize = 32;

/// A held lock, as the parent describes it to the child.
#[repr(C)]
struct Inherited {
    address: u64,
    kind: ObjectKind,
    attributes: u16,
    flags: Flags,
    started: u64,
    end: u32,
    depth: usize,
    returns: [u64; DEEPEST],
}

#[repr(C)]
struct Inheritance {
    /// The thread that forks.
    from: u32,
    count: usize,
    held: [Inherited; MOST],
}

const BYTES: usize = size_of::<Inheritance>().next_multiple_of(4096);

/// Has libc call us around every fork.
pub fn watch() {
    // SAFETY: `start` has resolved the real functions; ours stay for good. libc has room for the
    // first few handlers and allocates for them only when there are dozens.
    unsafe {
        real::call::__register_atfork()(Some(prepare), Some(in_parent), Some(in_child), handle());
    }
}

/// The handlers, for whoever has to know that none is about to be called.
pub const HANDLERS: [unsafe extern "C" fn(); 3] = [prepare, in_parent, in_child];

/// Has libc forget the handlers.
pub fn unwatch() {
    // SAFETY: `start` has resolved the real functions. By this handle nothing is registered but the
    // handlers: the function calls nothing, and takes them out.
    unsafe { real::call::__cxa_finalize()(handle()) };
}

/// Returns what the handlers are registered by: an address of the library's own.
fn handle() -> *mut core::ffi::c_void {
    (&raw const state::STATE).cast_mut().cast()
}

/// Copies what the calling thread holds, before it forks.
///
/// # Safety
/// None; `extern "C"` for libc.
pub unsafe extern "C" fn prepare() {
    let Some(me) = me::enter() else { return };
    rules::forks(&me);
    if me.thread.stack().depth() == 0 {
        return;
    }
    let Ok(memory) = sys::map_private(BYTES) else { return };
    let inheritance = memory.cast::<Inheritance>();
    // SAFETY: `map_private` has just made the memory, large enough and page-aligned; zeros are
    // an `Inheritance`.
    me.bequeath(unsafe { &mut *inheritance });
    tls::words().inheritance.store(memory as usize, Relaxed);
}

/// Gives the copy back, in the parent.
///
/// # Safety
/// As [`prepare`].
pub unsafe extern "C" fn in_parent() {
    rules::has_forked();
    give_back();
}

/// Makes the child a ledger, with the copy as its first held locks.
///
/// # Safety
/// As [`prepare`]; the process has one thread.
pub unsafe extern "C" fn in_child() {
    let Some(words) = tls::own() else { return };
    words.record.store(null_mut(), Relaxed);
    words.stage.store(ThreadStage::New as usize, Relaxed);
    rules::forked();
    // SAFETY: the C library calls this in a child, which has one thread and no ledger yet.
    let parents = unsafe { state::of_parent() };
    let parents = parents.filter(|ledger| grow::map_empty(ledger.base(), ledger.layout()));
    let reached = grow::reached();
    start::begin_child();
    if let Some(parents) = parents.filter(|_| state::ledger().is_none()) {
        grow::set(&reached);
        // SAFETY: `map_empty` has mapped empty memory where the parent's ledger was; it stays.
        unsafe { state::set_aside(parents) };
    }
    let inheritance = words.inheritance.load(Relaxed) as *const Inheritance;
    if !inheritance.is_null()
        && let Some(me) = me::enter()
    {
        // SAFETY: `prepare` has set and filled it; it is this thread's until `give_back`.
        me.inherit(unsafe { &*inheritance });
    }
    give_back();
}

fn give_back() {
    let memory = tls::own().map_or(0, |words| words.inheritance.swap(0, Relaxed));
    if memory != 0 {
        // SAFETY: `prepare` has mapped it, and no other reference to it is left.
        unsafe { sys::unmap(memory as *mut u8, BYTES) };
    }
}

impl Me {
    fn bequeath(&self, to: &mut Inheritance) {
        let stack = self.thread.stack();
        let newest_first = (0..stack.depth()).rev();
        let mut held = newest_first.filter(|&index| stack.entry(index).address() != 0);
        let first = held.nth(MOST - 1).unwrap_or(0);
        let all = (first..stack.depth()).filter_map(|index| stack.entry(index).read());
        to.from = self.record().tid.load(Relaxed);
        for holding in all {
            let lock = self.ledger.lock(holding.lock);
            let (kind, _, attributes) = lock.map_or_else(
                || (ObjectKind::Unknown, lockstead_ledger::lock::RecordLife::Live, 0),
                lockstead_ledger::lock::LockRecord::shape,
            );
            // What the processes share, the parent goes on holding.
            if attributes & attribute::SHARED != 0 {
                continue;
            }
            let place = &mut to.held[to.count];
            place.address = holding.address;
            (place.kind, place.attributes) = (kind, attributes);
            (place.flags, place.started) = (holding.flags, holding.started);
            if let Some(stored) = self.ledger.stack(holding.stack) {
                place.end = stored.end;
                place.depth = stored.returns().len().min(DEEPEST);
                for (word, address) in place.returns.iter_mut().zip(stored.returns()) {
                    *word = address;
                }
            }
            to.count += 1;
        }
    }

    fn inherit(&self, from: &Inheritance) {
        self.record().forked_by.store(from.from, Relaxed);
        for held in &from.held[..from.count.min(MOST)] {
            let returns = &held.returns[..held.depth.min(DEEPEST)];
            self.note_modules(returns);
            let stack = self.ledger.intern_stack(returns, held.end);
            let lock = self.ledger.use_lock(&Birth {
                address: held.address,
                kind: held.kind,
                attributes: held.attributes,
                init_stack: 0,
                first_stack: stack,
                module: self.module_of(held.address),
            });
            let holding = Holding {
                address: held.address,
                lock: lock.unwrap_or(0),
                stack,
                tick: lockstead_ledger::header::tick_of(sys::now()),
                flags: held.flags.untimed().and(Flags::INHERITED),
                started: held.started,
            };
            self.push(&holding);
        }
        debug_assert!(self.ledger.used(LedgerPart::Threads) == 1, "a child begins with one thread");
    }
}

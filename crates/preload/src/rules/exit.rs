//! Ends: a thread, or the process, ends while it holds a lock.
//!
//! # What is no violation
//! - Robust mutexes: they are made to be left behind; the next owner learns it.
//! - What was acquired before a fork, in the child: it ends without ever having
//!   touched the lock, as a child does that could not execute.
//! - At the process's end, the locks of other threads: these do not end it.
//! - What a handler of `atexit` or a destructor still gives back: the look is the
//!   last of them.
//! - Semaphores: nobody owns them.
//!
//! A program that calls `exit` deep inside, while it holds a lock of its own,
//! mostly does so on purpose, also where other threads wait for that lock: they
//! end with it (redis parks its threads so). A weak violation.

#![allow(non_snake_case, reason = "the exported names are C's")]

use super::note::Note;
use super::words::LockWords;
use crate::me::{Me, enter};
use crate::order::stack;
use crate::real::{self, REAL};
use crate::site::CallSite;
use crate::sys;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use lockstead_ledger::lock::{ObjectKind, attribute};
use lockstead_ledger::publish::Flags;
use lockstead_ledger::violation::Rule;

crate::passing! {
    exit(1) => by_exit;
    quick_exit(1) => by_quick_exit;
    _exit(1) => by_exit_at_once;
    _Exit(1) => by_exit_at_once_too;
}

/// The stack that led to the call of `exit`.
static EXIT: AtomicU32 = AtomicU32::new(0);

/// Does this file's part of [`super::thread_ends`].
pub fn thread_ends(me: &Me) {
    check(me, Rule::ThreadExit, 0);
}

unsafe extern "C" fn by_exit(_: c_int, site: &CallSite) -> usize {
    real::resolve();
    if let Some(me) = enter().filter(holds) {
        EXIT.store(me.stack(site), Relaxed);
    }
    REAL.exit.address()
}

unsafe extern "C" fn by_quick_exit(_: c_int, site: &CallSite) -> usize {
    real::resolve();
    at_once(site);
    REAL.quick_exit.address()
}

unsafe extern "C" fn by_exit_at_once(_: c_int, site: &CallSite) -> usize {
    real::resolve();
    at_once(site);
    REAL._exit.address()
}

unsafe extern "C" fn by_exit_at_once_too(_: c_int, site: &CallSite) -> usize {
    real::resolve();
    at_once(site);
    REAL._Exit.address()
}

fn at_once(site: &CallSite) {
    if let Some(me) = enter().filter(holds) {
        process_ends(&me, me.stack(site));
    }
}

fn holds(me: &Me) -> bool {
    me.thread.stack().depth() != 0
}

/// Runs last in the process, by `exit` or the end of `main`.
pub extern "C" fn at_end() {
    if let Some(me) = enter().filter(holds) {
        process_ends(&me, EXIT.load(Relaxed));
    }
}

/// The dynamic loader runs this after the program's own destructors.
#[cfg(feature = "shared-object")]
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = at_end;

fn process_ends(me: &Me, stack: u32) {
    // A child by `vfork` ends itself alone.
    if sys::getpid() == me.ledger.header().pid.load(Relaxed) {
        check(me, Rule::ProcessExit, stack);
    }
}

fn check(me: &Me, rule: Rule, at: u32) {
    let stack = me.thread.stack();
    for holding in (0..stack.depth()).filter_map(|index| stack.entry(index).read()) {
        let Some(lock) = me.ledger.lock(holding.lock) else { continue };
        let (kind, _, attributes) = lock.shape();
        if attributes & (attribute::ROBUST | attribute::HAND_OFF) != 0
            || holding.flags.has(Flags::INHERITED)
            || !matches!(kind.plain(), ObjectKind::Mutex | ObjectKind::RwLock | ObjectKind::Spin)
        {
            continue;
        }
        // Its memory may be gone. On the stack of the thread that ends it may be written over,
        // for the frame was left: the entry alone says that nobody has given the lock back.
        // So does that of a lock that its library tells of.
        let is_left = rule == Rule::ThreadExit && stack::is_own(holding.address) || kind.is_told();
        let words = LockWords::read_if_there(kind, holding.address);
        if is_left || words.is_some_and(|words| me.may_hold(&words, holding.flags)) {
            let tid = me.record().tid.load(Relaxed);
            // Without a call of the program's, `main` has returned.
            let weak = rule == Rule::ProcessExit && at != 0 && attributes & attribute::SHARED == 0;
            me.note(&Note::new(rule, holding.address, at).after(tid, holding.stack).weak(weak));
        }
    }
}

//! Listens to lock libraries that tell of their own locks: Rust's, lockstead's and others, whose
//! calls nobody interposes.
//!
//! # Role
//! Exports the table of `lockstead-told`, by which such a library finds these functions. What they
//! are told goes into the ledger as if glibc's functions had been called, but for two things: the
//! words of these locks are not glibc's, so that no rule looks at them ([`ObjectKind::is_told`]);
//! and the end of a wait does not mean that something is held, for that is told by itself.

use crate::call::{CallOutcome, LockCall};
use crate::interpose::SavedErrno;
use crate::me::{self, Me, enter, resume};
use crate::real;
use crate::record;
use crate::site::CallSite;
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::lock::{ObjectKind, attribute};
use lockstead_ledger::publish::{Flags, WaitKind};
use lockstead_told::{CHECKS, Listener, ToldLock, ending, flag, kind, way};

crate::thunk! {
    lockstead_told_wait_begins(5) => wait_begins;
    lockstead_told_wait_ends(3) => wait_ends;
    lockstead_told_acquired(2) => acquired;
    lockstead_told_releases(1) => releases;
    lockstead_told_dies(1) => dies;
}

/// What lock libraries find under this name.
#[cfg_attr(feature = "shared-object", unsafe(no_mangle))]
#[allow(non_upper_case_globals, reason = "the exported name is C's")]
// SAFETY: each thunk goes on to the function of its kind below.
pub static lockstead_listener_1: Listener = unsafe {
    Listener::of(
        if cfg!(feature = "check") { CHECKS } else { 0 },
        [
            lockstead_told_wait_begins,
            lockstead_told_wait_ends,
            lockstead_told_acquired,
            lockstead_told_releases,
            lockstead_told_dies,
        ],
    )
};

type ToldCall<'a> = LockCall<'a, (ObjectKind, u16)>;

/// Returns the call that a library tells of; `None` for a kind of a later version.
fn described<'a>(
    lock: &ToldLock,
    how: u32,
    (deadline, companion): (u64, u64),
    site: &'a CallSite,
) -> Option<ToldCall<'a>> {
    let reads = how & way::READ != 0;
    let recursive = if how & way::RECURSIVE != 0 { Flags::RECURSIVE } else { Flags::NONE };
    let (kind, wait) = match lock.kind {
        kind::MUTEX => (ObjectKind::ToldMutex, WaitKind::MUTEX),
        kind::RWLOCK if reads && how & way::UPGRADABLE != 0 => {
            (ObjectKind::ToldRwLock, WaitKind::READ.upgradable())
        }
        kind::RWLOCK if reads => (ObjectKind::ToldRwLock, WaitKind::READ),
        kind::RWLOCK => (ObjectKind::ToldRwLock, WaitKind::WRITE),
        kind::SEMAPHORE => (ObjectKind::ToldSemaphore, WaitKind::SEMAPHORE),
        kind::CONDITION => (ObjectKind::ToldCondition, WaitKind::CONDITION),
        kind::ONCE => (ObjectKind::ToldOnce, WaitKind::MUTEX),
        _ => return None,
    };
    let attributes = [
        (flag::SLOT, attribute::SLOT),
        (flag::FOLLOWED, attribute::FOLLOWED),
        (flag::INHERIT, attribute::INHERIT),
        (flag::RECURSIVE, attribute::RECURSIVE),
        (flag::WRITERS_FIRST, attribute::WRITERS_FIRST),
        (flag::SHARED, attribute::SHARED),
        (flag::BIASED, attribute::BIASED),
    ]
    .iter()
    .filter(|(bit, _)| lock.flags & bit != 0)
    .fold(attribute::KNOWN, |all, (_, named)| all | named);
    Some(LockCall {
        target: lock.address,
        nature: (kind, attributes),
        how: if deadline == 0 && how & way::TIMED == 0 { wait } else { wait.timed() },
        mode: if reads { Flags::READ.and(recursive) } else { Flags::NONE },
        deadline,
        companion,
        site,
    })
}

/// Tells whether the lock is one of those that a thread holds, as far as is told.
fn is_held(call: &ToldCall<'_>) -> bool {
    matches!(call.nature.0, ObjectKind::ToldMutex | ObjectKind::ToldRwLock | ObjectKind::ToldOnce)
}

unsafe extern "C" fn wait_begins(
    lock: &ToldLock,
    how: u32,
    deadline: u64,
    companion: u64,
    frame: usize,
    site: &CallSite,
) -> u32 {
    real::resolve();
    let _errno = SavedErrno::keep();
    let Some(call) = described(lock, how, (deadline, companion), site) else { return 0 };
    if !lock.name.is_null() {
        note_name(&call, lock);
    }
    let begun = record::wait_begins(&call);
    if begun {
        me::waits_in(frame);
    }
    u32::from(begun)
}

unsafe extern "C" fn wait_ends(lock: &ToldLock, how: u32, ended: u32, site: &CallSite) {
    real::resolve();
    let _errno = SavedErrno::keep();
    let Some(call) = described(lock, how, (0, 0), site) else { return };
    let outcome = match ended {
        ending::GRANTED => CallOutcome::Acquired,
        ending::TIMED_OUT => CallOutcome::TimedOut,
        ending::INTERRUPTED => CallOutcome::Interrupted,
        _ => CallOutcome::Failed,
    };
    // TOLD-PAIRS: the thread is in that very wait, or has left it by `longjmp` and begun another.
    let Some(me) = resume(None) else { return };
    let companion = me.record().wait.read().map_or(0, |(_, waiting)| waiting.companion);
    let call = LockCall { companion, ..call };
    if let Some(me) = record::waited(me, &call, outcome)
        && !is_followed(&me, call.target)
    {
        // Its release will not be told, so that it is not to be found among what is held.
        me.counts(me.known_lock(call.target, call.site, call.nature));
    }
}

unsafe extern "C" fn acquired(lock: &ToldLock, how: u32, site: &CallSite) {
    real::resolve();
    let _errno = SavedErrno::keep();
    let Some(call) = described(lock, how, (0, 0), site).filter(is_held) else { return };
    let flags = match how {
        how if how & way::TRIED != 0 => Flags::TRIED,
        how if how & way::WAITED != 0 => Flags::CONTENDED,
        _ => Flags::NONE,
    };
    record::acquired(&call, flags);
    if !lock.name.is_null() {
        note_name(&call, lock);
    }
}

unsafe extern "C" fn releases(lock: &ToldLock, site: &CallSite) {
    real::resolve();
    let _errno = SavedErrno::keep();
    let Some(call) = described(lock, way::ALONE, (0, 0), site).filter(is_held) else { return };
    let release = record::release(call.target, &call.nature, site);
    if release.was_held {
        release.done(site);
    } else {
        record::release_of_others(call.target, site);
    }
}

unsafe extern "C" fn dies(address: u64, site: &CallSite) {
    real::resolve();
    let _errno = SavedErrno::keep();
    let Some(me) = enter() else { return };
    let known = me.ledger.find_lock(address).and_then(|index| me.ledger.lock(index));
    // Most locks that die were never used, or only where nobody looked.
    if let Some((kind, ..)) = known.map(|lock| lock.shape()).filter(|(kind, ..)| kind.is_told()) {
        // Who has leaked a guard of the lock holds nothing now, and not the next lock at its place. That
        // one is held by nobody yet: nothing of it is told before this returns.
        for thread in me.ledger.threads() {
            while thread.stack().revoke(address).is_some() {}
        }
        me.destroyed(address, kind, site);
    }
}

/// Tells whether each acquisition of a lock is told, as was said when it was first told of.
fn is_followed(me: &Me, address: u64) -> bool {
    let lock = me.ledger.find_lock(address).and_then(|index| me.ledger.lock(index));
    lock.is_some_and(|lock| lock.shape().2 & attribute::FOLLOWED != 0)
}

/// Notes the name of a lock, once, beside its statistics.
fn note_name(call: &ToldCall<'_>, lock: &ToldLock) {
    let Some(me) = enter() else { return };
    let place = me.place(call.target, call.site, call.nature);
    let Some(statistics) = me.ledger.extension(place.lock) else { return };
    if statistics.name[0].load(Relaxed) == 0 {
        // SAFETY: the library that tells of the lock passes so many bytes, which live until this
        // call returns.
        let name = unsafe { core::slice::from_raw_parts(lock.name, lock.name_length as usize) };
        statistics.note_name(name);
    }
}

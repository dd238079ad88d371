//! Recursion: a thread asks for a lock that it holds, which it will never get, or
//! not before a deadline; noted before it waits.

use super::note::Note;
use super::words::{LockWords, WordHolder};
use crate::call::{CallPlace, LockCall, Nature};
use crate::me::Me;
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::lock::{ObjectKind, attribute};
use lockstead_ledger::publish::{Flags, WaitKind};
use lockstead_ledger::violation::Rule;

/// Does this file's part of [`super::waits`].
pub fn waits<N: Nature>(me: &Me, call: &LockCall<'_, N>, place: CallPlace) {
    if call.nature.nature().0.is_told() {
        return told(me, call, place);
    }
    let kind = match call.how.kind() {
        WaitKind::MUTEX => ObjectKind::Mutex,
        WaitKind::READ | WaitKind::WRITE => ObjectKind::RwLock,
        WaitKind::SPIN => ObjectKind::Spin,
        _ => return,
    };
    let Some((_, holding)) = me.thread.stack().find(call.target) else { return };
    if holding.flags.has(Flags::LENT) {
        return;
    }
    // SAFETY: RULES-PASSED: the program passes the lock to the function that it calls.
    let words = unsafe { LockWords::read(kind, call.target) };
    let own = match words.holder() {
        WordHolder::Thread(number) => me.is(number),
        // Another read lock waits for writers, not for the caller.
        WordHolder::Readers(_) => {
            call.how.kind() == WaitKind::WRITE && holding.flags.has(Flags::READ)
        }
        WordHolder::Somebody => true,
        WordHolder::Nobody | WordHolder::Unknown => false,
    };
    if own && !words.is_recursive() {
        let tid = me.record().tid.load(Relaxed);
        me.note(&Note::new(Rule::Recursion, call.target, place.stack).after(tid, holding.stack));
    }
}

/// Judges a wait for a lock that its library tells of. What it tells is all that is known: the
/// held stack alone decides.
fn told<N: Nature>(me: &Me, call: &LockCall<'_, N>, place: CallPlace) {
    let Some((_, holding)) = me.thread.stack().find(call.target) else { return };
    let both_read = call.how.kind() == WaitKind::READ && holding.flags.has(Flags::READ);
    let recursive = call.nature.nature().1 & attribute::RECURSIVE != 0;
    if !both_read && !recursive && !holding.flags.has(Flags::LENT) {
        let tid = me.record().tid.load(Relaxed);
        me.note(&Note::new(Rule::Recursion, call.target, place.stack).after(tid, holding.stack));
    }
}

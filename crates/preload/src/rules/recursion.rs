//! Recursion: a thread asks for a lock that it holds, which it will never get, or
//! not before a deadline; noted before it waits.

use super::note::Note;
use super::words::{Holder, Words};
use crate::call::{Call, Nature, Place};
use crate::me::Me;
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::lock::Kind;
use lockstead_ledger::publish::{Flags, How};
use lockstead_ledger::violation::Rule;

/// Does this file's part of [`super::waits`].
pub fn waits<N: Nature>(me: &Me, call: &Call<'_, N>, place: Place) {
    let kind = match call.how.kind() {
        How::MUTEX => Kind::Mutex,
        How::READ | How::WRITE => Kind::RwLock,
        How::SPIN => Kind::Spin,
        _ => return,
    };
    let Some((_, holding)) = me.thread.stack().find(call.target) else { return };
    if holding.flags.has(Flags::LENT) {
        return;
    }
    // SAFETY: RULES-PASSED: the program passes the lock to the function that it calls.
    let words = unsafe { Words::read(kind, call.target) };
    let own = match words.holder() {
        Holder::Thread(number) => me.is(number),
        // Another read lock waits for writers, not for the caller.
        Holder::Readers(_) => call.how.kind() == How::WRITE && holding.flags.has(Flags::READ),
        Holder::Somebody => true,
        Holder::Nobody | Holder::Unknown => false,
    };
    if own && !words.is_recursive() {
        let tid = me.record().tid.load(Relaxed);
        me.note(&Note::new(Rule::Recursion, call.target, place.stack).after(tid, holding.stack));
    }
}

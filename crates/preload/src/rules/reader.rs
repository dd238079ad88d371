//! A read lock that is taken again by a thread that has it: with writers first, a
//! writer that comes in between is waited for, and waits itself.

use super::note::Note;
use crate::call::{CallPlace, LockCall, Nature};
use crate::me::Me;
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::lock::attribute;
use lockstead_ledger::publish::{Flags, WaitKind};
use lockstead_ledger::violation::Rule;

/// Judges an acquisition for reading: see [`super::acquired`] and [`super::waits`].
pub fn reads<N: Nature>(me: &Me, call: &LockCall<'_, N>, place: CallPlace, how: Flags) {
    if call.how.kind() != WaitKind::READ
        || how.has(Flags::TRIED)
        || call.mode.has(Flags::RECURSIVE)
        || call.nature.nature().1 & attribute::WRITERS_FIRST == 0
    {
        return;
    }
    if let Some((_, earlier)) = me.thread.stack().find(call.target)
        && earlier.flags.has(Flags::READ)
    {
        let tid = me.record().tid.load(Relaxed);
        let note = Note::new(Rule::RecursiveRead, call.target, place.stack);
        me.note(&note.after(tid, earlier.stack));
    }
}

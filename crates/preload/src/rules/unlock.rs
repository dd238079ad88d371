//! Releases: unlock by another thread, unlock of an unlocked lock, a held lock
//! overwritten, or released by another process.
//!
//! # What tells them apart
//! | held stack of the caller | words of the lock | violation |
//! |---|---|---|
//! | has it | the caller holds it | none |
//! | has it | it is shared, and they are those of a lock that is free, or another's | released by another process |
//! | has it | they do not say so | overwritten |
//! | lacks it | the caller holds it | none: acquired before the library came, or unrecorded |
//! | lacks it | nobody holds it | unlock of an unlocked lock |
//! | lacks it | somebody else holds it, whom the ledger knows | unlock by another thread |
//! | lacks it | somebody else holds it | none: a thread of another process, or of the parent |
//!
//! Of readers and of spinners the words do not say who they are; there the ledger
//! alone decides, and not for a thread of which some calls went unrecorded.

use super::note::Note;
use super::words::{LockWords, WordHolder};
use super::{hush, life};
use crate::call::{CallPlace, LockCall, Nature};
use crate::me::Me;
use crate::site::CallSite;
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::lock::ObjectKind;
use lockstead_ledger::publish::{Flags, Holding};
use lockstead_ledger::thread::state;
use lockstead_ledger::violation::Rule;

/// Does this file's part of [`super::releases`].
pub fn releases<N: Nature>(me: &Me, address: u64, nature: &N, site: &CallSite) {
    let (kind, attributes) = nature.nature();
    if !matches!(kind, ObjectKind::Mutex | ObjectKind::RwLock | ObjectKind::Spin) {
        return;
    }
    // SAFETY: RULES-PASSED: the program passes the lock to the function that it calls.
    let words = unsafe { LockWords::read(kind, address) };
    let stack = me.thread.stack();
    match stack.find(address) {
        Some((_, holding)) => owned(me, &words, &holding, site),
        None => {
            if !life::used(me, address, nature, me.stack(site)) {
                foreign(me, address, &words, (kind, attributes), site);
            }
        }
    }
}

/// Judges the release of a lock that the caller has acquired.
fn owned(me: &Me, words: &LockWords, holding: &Holding, site: &CallSite) {
    // A robust mutex names nobody while it is to be repaired; a forked child may begin
    // in any way anew what it has inherited.
    if words.is_robust() || holding.flags.has(Flags::INHERITED) || me.may_hold(words, holding.flags)
    {
        return;
    }
    if hush::BROKEN.take(holding.address) {
        return;
    }
    let tid = me.record().tid.load(Relaxed);
    let stack = me.stack(site);
    me.note(&Note::new(lost(words), holding.address, stack).after(tid, holding.stack));
}

/// Returns the rule that was broken if a lock's words do not say any more that the caller holds it.
fn lost(words: &LockWords) -> Rule {
    match words.holder() {
        WordHolder::Nobody | WordHolder::Thread(_) if words.is_between_processes() => {
            Rule::ReleasedElsewhere
        }
        _ => Rule::Overwritten,
    }
}

/// Does this file's part of [`super::acquired`].
pub fn acquired<N: Nature>(me: &Me, call: &LockCall<'_, N>, place: CallPlace) {
    let stack = me.thread.stack();
    let Some((_, earlier)) = stack.find(call.target) else { return };
    let (kind, _) = call.nature.nature();
    if kind != ObjectKind::Mutex || earlier.flags.has(Flags::LENT) {
        return;
    }
    // SAFETY: RULES-PASSED: the program has just passed it to the function that it called.
    let words = unsafe { LockWords::read(kind, call.target) };
    if words.is_recursive() || words.is_robust() {
        return;
    }
    // Such a mutex can be had twice only if it has lost its words meanwhile, or another process has
    // unlocked it.
    let rule =
        if words.is_between_processes() { Rule::ReleasedElsewhere } else { Rule::Overwritten };
    let _ = stack.revoke(call.target);
    let tid = me.record().tid.load(Relaxed);
    if !earlier.flags.has(Flags::INHERITED) && !hush::BROKEN.take(call.target) {
        me.note(&Note::new(rule, call.target, place.stack).after(tid, earlier.stack));
    }
}

/// Judges the release of a lock that the caller has not acquired, as far as is recorded.
fn foreign(me: &Me, address: u64, words: &LockWords, nature: (ObjectKind, u16), site: &CallSite) {
    let by = |rule, tid, other_stack| {
        let place = me.place(address, site, nature);
        me.note(&Note::new(rule, address, place.stack).after(tid, other_stack));
    };
    match words.holder() {
        WordHolder::Unknown => {}
        WordHolder::Nobody if hush::BROKEN.take(address) => {}
        WordHolder::Nobody => by(Rule::UnlockOfUnlocked, 0, 0),
        WordHolder::Thread(number) if me.is(number) => {}
        WordHolder::Thread(number) => {
            if let Some((tid, stack)) = me.other_holder(address, Some(number))
                && !me.is_handed_off(address)
            {
                by(Rule::UnlockByAnother, tid, stack);
            }
        }
        WordHolder::Readers(_) | WordHolder::Somebody => {
            if !me.has_unrecorded()
                && let Some((tid, stack)) = me.other_holder(address, None)
                && !me.is_handed_off(address)
            {
                by(Rule::UnlockByAnother, tid, stack);
            }
        }
    }
}

impl Me {
    /// Tells whether `number` is the calling thread's: its own, or that of the thread whose fork it
    /// is.
    #[must_use]
    pub fn is(&self, number: u32) -> bool {
        let record = self.record();
        number == record.tid.load(Relaxed)
            || number != 0 && number == record.forked_by.load(Relaxed)
    }

    /// Tells whether the words of a lock that the calling thread holds do not contradict.
    #[must_use]
    pub fn may_hold(&self, words: &LockWords, flags: Flags) -> bool {
        match words.holder() {
            WordHolder::Thread(number) => self.is(number) && !flags.has(Flags::READ),
            WordHolder::Readers(_) => flags.has(Flags::READ),
            WordHolder::Somebody => true,
            WordHolder::Nobody => false,
            // A mutex that nobody can have taken meanwhile.
            WordHolder::Unknown => flags.has(Flags::READ),
        }
    }

    /// Returns the number of another thread that has acquired the lock, and the stack of that; with
    /// `number` only that thread, and without a stack if its acquisition was not recorded.
    #[must_use]
    pub fn other_holder(&self, address: u64, number: Option<u32>) -> Option<(u32, u32)> {
        let own = self.record().tid.load(Relaxed);
        self.ledger.threads().find_map(|thread| {
            let tid = thread.record.tid.load(Relaxed);
            if tid == own || number.is_some_and(|number| number != tid) {
                return None;
            }
            match thread.stack().find(address) {
                Some((_, holding)) => Some((tid, holding.stack)),
                None => (number.is_some() && thread.record.state.load(Relaxed) == state::LIVE)
                    .then_some((tid, 0)),
            }
        })
    }

    /// Tells whether some calls of the thread, which may have acquired, were not recorded.
    #[must_use]
    pub fn has_unrecorded(&self) -> bool {
        let record = self.record();
        record.skipped.load(Relaxed) != 0 || record.held_dropped.load(Relaxed) != 0
    }
}

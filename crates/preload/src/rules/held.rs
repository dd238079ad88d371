//! Held locks that are initialised or destroyed, or whose memory goes.

use super::hush;
use super::note::Note;
use super::words::{LockWords, WordHolder};
use crate::me::{Me, enter};
use crate::site::CallSite;
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::lock::ObjectKind;
use lockstead_ledger::publish::{Flags, Holding};
use lockstead_ledger::violation::Rule;

/// The ways in which memory goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gone {
    /// The memory is freed or reallocated.
    Freed,
    /// It is reallocated, and may stay.
    Moved,
    /// It is unmapped, or another mapping takes its place.
    Unmapped,
    /// A frame was left, or the thread whose stack it is has ended.
    StackLeft,
}

/// Does this file's part of [`super::initialises`].
pub fn initialises(address: u64, kind: ObjectKind, site: &CallSite) {
    begins_or_ends(Rule::InitialisedHeld, address, kind, site);
}

/// Does this file's part of [`super::destroys`].
pub fn destroys(address: u64, kind: ObjectKind, site: &CallSite) {
    begins_or_ends(Rule::DestroyedHeld, address, kind, site);
}

fn begins_or_ends(rule: Rule, address: u64, kind: ObjectKind, site: &CallSite) {
    let Some(me) = enter() else { return };
    if me.ledger.find_lock(address).is_none() {
        return;
    }
    // SAFETY: RULES-PASSED: the program passes the lock to the function that it calls.
    let words = unsafe { LockWords::read(kind, address) };
    let Some((tid, holding)) = me.holder(address, &words) else { return };
    me.note(&Note::new(rule, address, me.stack(site)).after(tid, holding.stack));
    // Who holds it will give it back.
    let later = if rule == Rule::InitialisedHeld { &hush::BROKEN } else { &hush::DESTROYED };
    later.add(address);
}

/// Reports what threads hold in the memory from `low` to below `high`, before it goes. `stack` is
/// that of the call, or 0.
pub fn memory_gone(me: &Me, low: u64, high: u64, how: Gone, stack: u32) {
    for thread in me.ledger.threads() {
        let held = thread.stack();
        let tid = thread.record.tid.load(Relaxed);
        for index in (0..held.depth()).rev() {
            let Some(holding) = held.entry(index).read() else { continue };
            if !(low..high).contains(&holding.address) {
                continue;
            }
            let kind =
                me.ledger.lock(holding.lock).map_or(ObjectKind::Unknown, |lock| lock.shape().0);
            // What lies in a frame that was left may be overwritten: the entry
            // alone says that nobody has given the lock back.
            let is_held = how == Gone::StackLeft && kind != ObjectKind::Semaphore
                || LockWords::read_if_there(kind, holding.address)
                    .is_some_and(|words| agrees(&words, tid, &holding));
            if is_held && !holding.flags.has(Flags::INHERITED) {
                let rule = match how {
                    Gone::Freed | Gone::Moved => Rule::Freed,
                    Gone::Unmapped => Rule::Unmapped,
                    Gone::StackLeft => Rule::StackLeft,
                };
                me.note(&Note::new(rule, holding.address, stack).after(tid, holding.stack));
                if rule == Rule::Freed {
                    // Who holds it will give it back, in freed memory.
                    hush::BROKEN.add(holding.address);
                }
            }
            let _ = held.revoke(holding.address);
        }
    }
}

/// Tells whether these words are those of a lock that the thread holds so.
fn agrees(words: &LockWords, tid: u32, holding: &Holding) -> bool {
    match words.holder() {
        WordHolder::Thread(number) => number == tid,
        WordHolder::Readers(_) => holding.flags.has(Flags::READ),
        WordHolder::Somebody => true,
        WordHolder::Nobody | WordHolder::Unknown => false,
    }
}

impl Me {
    /// Returns the thread that holds the lock, by its number, and how: if the words of the lock say
    /// the same.
    fn holder(&self, address: u64, words: &LockWords) -> Option<(u32, Holding)> {
        if matches!(words.holder(), WordHolder::Nobody | WordHolder::Unknown) {
            return None;
        }
        self.ledger.threads().find_map(|thread| {
            let tid = thread.record.tid.load(Relaxed);
            let (_, holding) = thread.stack().find(address)?;
            agrees(words, tid, &holding).then_some((tid, holding))
        })
    }
}

//! Which thread gets which record of the ledger.
//!
//! # Protocol
//! Whoever changes a record's state from [`life::ENDED`] or [`life::FREE`] to [`life::CLAIMED`] has it
//! (PRE-10); nothing else gives one away. The slots of [`StatePage::spare`](crate::state::StatePage::spare)
//! only say where to look: one may name a record that somebody has claimed since. A record that finds no
//! slot is counted, and found by a look at all records.

use crate::state::STATE;
use crate::sys;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use lockstead_ledger::Ledger;
use lockstead_ledger::ledger::LedgerPart;
use lockstead_ledger::thread::{KEPT_ENDED, ThreadPart, ThreadRecord, state as life};

/// Claims a record for a thread that is not running yet, or not recorded. Returns `None` when there
/// is none left: a loss if the thread ever uses a lock.
#[must_use]
pub fn claim(ledger: &Ledger<'static>) -> Option<ThreadPart<'static>> {
    let kept = ledger.used(LedgerPart::Threads) < KEPT_ENDED;
    let thread = if kept { fresh(ledger) } else { None };
    let thread = thread.or_else(|| spare(ledger)).or_else(|| fresh(ledger))?;
    let record = thread.record;
    record.serial.store(ledger.header().serials.fetch_add(1, Relaxed) + 1, Relaxed);
    record.dice.store(sys::now() | 1, Relaxed);
    thread.first_sets();
    Some(thread)
}

/// Returns a record that no thread has had.
fn fresh(ledger: &Ledger<'static>) -> Option<ThreadPart<'static>> {
    let index = ledger.claim(LedgerPart::Threads, 1)?;
    let thread = ledger.thread(index)?;
    thread.record.state.store(life::CLAIMED, Relaxed);
    // ord: PRE-10 (release): that it is claimed; `takes` asks for the number first.
    thread.record.generation.fetch_add(1, Release);
    thread.record.index.store(index as u32, Relaxed);
    thread.record.mark.store(1 << (index % 32), Relaxed);
    Some(thread)
}

/// Returns the record of a thread that has ended, emptied.
fn spare(ledger: &Ledger<'static>) -> Option<ThreadPart<'static>> {
    let noted = STATE.spare.iter().find_map(|slot| {
        let seen = slot.load(Relaxed);
        let index = seen.checked_sub(1)?;
        // ord: PRE-10 (acquire): that it is spare.
        slot.compare_exchange(seen, 0, Acquire, Relaxed).ok()?;
        takes(ledger, index as usize)
    });
    let thread = noted.or_else(|| look_for(ledger))?;
    // First: who has found the record by its last thread's handle, and sees the number changed, leaves alone
    // what is emptied from here on.
    // ord: PRE-10 (release): that the record is claimed.
    thread.record.generation.fetch_add(1, Release);
    thread.retire(&ledger.header().retired);
    Some(thread)
}

/// Looks for a spare record that has found no slot, behind the one that was found so before.
#[cold]
fn look_for(ledger: &Ledger<'static>) -> Option<ThreadPart<'static>> {
    // ord: PRE-10 (acquire): that the records which are counted are spare.
    let counted = STATE.spare_unnoted.load(Acquire);
    if counted == STATE.spare_sought.load(Relaxed) {
        return None;
    }
    let used = ledger.used(LedgerPart::Threads);
    let first = STATE.spare_next.load(Relaxed) as usize;
    let found = (0..used).map(|i| (first + i) % used).find_map(|index| takes(ledger, index));
    match &found {
        Some(thread) => STATE.spare_next.store(thread.record.index.load(Relaxed) + 1, Relaxed),
        None => STATE.spare_sought.store(counted, Relaxed),
    }
    found
}

/// Claims the record with this index if it is spare.
fn takes(ledger: &Ledger<'static>, index: usize) -> Option<ThreadPart<'static>> {
    let thread = ledger.thread(index)?;
    let record = thread.record;
    let state = record.state.load(Relaxed);
    // A record that was never claimed is free, too: it is for whom the ledger gives it to.
    // ord: PRE-10 (acquire): a number other than zero brings along that the record was claimed.
    if !matches!(state, life::ENDED | life::FREE) || record.generation.load(Acquire) == 0 {
        return None;
    }
    // ord: PRE-10 (acquire): all that the record's last thread has written to it.
    let claimed = record.state.compare_exchange(state, life::CLAIMED, Acquire, Relaxed);
    claimed.is_ok().then_some(thread)
}

/// Gives a claimed record up: it is that of no thread after all.
pub fn abandon(record: &ThreadRecord) {
    record.began.store(0, Relaxed);
    becomes_spare(record, life::FREE);
}

/// Lets the record of a thread that has ended be used again. From here on nothing in it is the thread's.
pub fn ends(record: &ThreadRecord) {
    becomes_spare(record, life::ENDED);
}

fn becomes_spare(record: &ThreadRecord, state: u32) {
    let index = record.index.load(Relaxed) + 1;
    // ord: PRE-10 (release): all that was written to the record.
    record.state.store(state, Release);
    // ord: PRE-10 (release): that it is spare.
    let note = |slot: &AtomicU32| slot.compare_exchange(0, index, Release, Relaxed).is_ok();
    if !STATE.spare.iter().any(note) {
        // ord: PRE-10 (release): as above.
        STATE.spare_unnoted.fetch_add(1, Release);
    }
}

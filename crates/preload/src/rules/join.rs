//! Join while holding a lock that the joined thread takes.
//!
//! # What is known of the other thread
//! Its acquisition cache: the locks that it has taken and that have not lost their
//! place to others. If it took the lock at some time, it may do so again or not: a
//! weak violation. If it waits for it at this moment, and not just tries for a short
//! time, it is one; and without a deadline the two are a deadlock, which is reported
//! as that.

use super::note::Note;
use crate::me::Me;
use crate::site::CallSite;
use crate::sys;
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::lock::ObjectKind;
use lockstead_ledger::publish::{Flags, Holding};
use lockstead_ledger::thread::{ThreadPart, state};
use lockstead_ledger::violation::Rule;

/// A wait with a deadline that lasts so long, in nanoseconds, is more than a try.
const PATIENT: u64 = 10_000_000;

/// Does this file's part of [`super::joins`].
pub fn joins(me: &Me, other: ThreadPart<'_>, site: &CallSite) {
    let stack = me.thread.stack();
    for holding in (0..stack.depth()).filter_map(|index| stack.entry(index).read()) {
        let Some((taken, weak)) = taken(me, &other, &holding) else { continue };
        let tid = other.record.tid.load(Relaxed);
        let note = Note::new(Rule::JoinHolding, holding.address, me.stack(site));
        me.note(&note.after(tid, taken).number(u64::from(holding.stack)).weak(weak));
    }
}

/// Returns the stack at which the thread takes a lock that the caller holds, and whether it did so
/// at some time only.
fn taken(me: &Me, other: &ThreadPart<'_>, holding: &Holding) -> Option<(u32, bool)> {
    let lock = me.ledger.lock(holding.lock)?;
    if lock.shape().0 == ObjectKind::Semaphore || holding.flags.has(Flags::LENT) {
        return None;
    }
    if let Some((_, wait)) = other.record.wait.read()
        && wait.target == holding.address
    {
        let is_patient = sys::now().saturating_sub(wait.since) >= PATIENT;
        return (wait.how.is_timed() && is_patient).then_some((wait.stack, false));
    }
    let generation = lock.generation.load(Relaxed);
    // Of a thread that has ended, or is about to, the counts have been given to the locks.
    let record = other.record;
    let ends = || record.ended.load(Relaxed) != 0 || record.state.load(Relaxed) != state::LIVE;
    other
        .known()
        .find(|known| {
            known.address.load(Relaxed) == holding.address
                && known.generation.load(Relaxed) == generation
                && (known.count.load(Relaxed) != 0 || ends())
        })
        .map(|known| (known.stack.load(Relaxed), true))
}

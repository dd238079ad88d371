//! Taking turns: a thread that uses a contended lock lets others have its processor now and then.
//!
//! # Role
//! Where threads outnumber processors, most of those that wait for a lock wait for a processor. A
//! lock that keeps its users running until the scheduler preempts them, some milliseconds each, has
//! the others wait for as many such times as there are threads. [`Policy::BATCH`] bounds the time
//! for which a thread keeps its processor while others wait, and [`Policy::YIELDS`] has a waiter
//! queue for a processor, by the scheduler's own queue, before it sleeps: the shipped policy for
//! throughput does neither.
//!
//! # Protocol
//! ```text
//!   acquiring, past the fast path ──▶ batch over? ── yes ──▶ give way, a new batch
//!   spun in vain ──▶ give way, look ──▶ mark *unreleased*, give way, look ──▶ … ──▶ sleep
//!   released, and somebody had marked or slept ──▶ batch over? ── yes ──▶ give way, a new batch
//! ```
//! A waiter that gives way again marks the word (*unreleased*, as one that is barged past does), so
//! that the release asks whether its thread's batch is over.
//!
//! Where the processor comes back at once, nobody else wanted it: the waiter goes to sleep, for the one
//! that it waits for runs elsewhere, and the next batch is four times as long. So on a machine with
//! processors to spare nobody marks, and few calls are made.
//!
//! # Invariants
//! - **BATCH-HINT** Nothing here changes what a lock promises: a thread that gives way is one that
//!   was preempted. A wake-up that it has consumed stays its own to pass on, and it comes back by
//!   itself.
//! - **BATCH-OWN** The time at which a batch began is read and written by its thread alone, and
//!   after a release nothing else is touched (SLEEP-LAST-TOUCH).
//!
//! # Progress
//! A waiter gives way [`Policy::YIELDS`] times at most between two sleeps, and not past its bound.
//! A hand-off waiter's sleep and a back-off sleep begin no batch: who comes from there gives way after
//! its next release for which others wait. A thread that holds another lock gives way all the same; who waits for that lock waits for the
//! turn, too.
//!
//! # Source
//! parking_lot's waiters yield before they sleep, and it hands a lock over each half millisecond or
//! so; tbb's yield. A length of the turn rather than of a single hold: lock cohorts (Dice, Marathe and
//! Shavit, 2012) bound batches so, by a count.

use crate::atomic::{Atomic64, Ordering};
use crate::exchange::exchange;
use crate::platform::{Nanos, Platform};
use crate::policy::Policy;
use crate::slot::Slot;
use crate::word::{Subject, Word};
use core::marker::PhantomData;

/// A processor that comes back within so many nanoseconds was wanted by nobody else: two switches
/// take longer.
const ALONE: u64 = 1_500;

/// How many batches the one after a call in vain is longer.
const SPARED: u64 = 3;

/// Gives way if the calling thread, whose slot is `me`, has kept its processor for longer than a batch.
#[inline]
pub(super) fn end_if_long<P: Platform, Y: Policy>(me: impl FnOnce() -> Slot) {
    if Y::BATCH == 0 {
        return;
    }
    let me = me();
    let began = Nanos(P::participant(me).attached.batch.load(Ordering::Relaxed));
    let now = P::now();
    if now.since(began) > Y::BATCH {
        give_way::<P, Y>(me, now);
    }
}

/// Does the same after a release that found `erased` in the low half of the word, if somebody waits.
/// Where the thread `gave_way` with the release already, its next batch begins.
#[inline]
pub(crate) fn released<P: Platform, Y: Policy>(erased: Word, gave_way: bool) {
    if gave_way && Y::BATCH != 0 {
        begin::<P>(P::me(), P::now());
    } else if erased.unreleased() || erased.waiters() || erased.handoff_asleep() {
        end_if_long::<P, Y>(P::me);
    }
}

/// Lets others have the processor, `now`. When the thread has it again a batch begins. Returns whether
/// somebody else had it.
fn give_way<P: Platform, Y: Policy>(me: Slot, now: Nanos) -> bool {
    P::give_way();
    let back = P::now();
    let is_wanted = back.since(now) >= ALONE;
    begin::<P>(me, if is_wanted { back } else { back.after(SPARED * Y::BATCH) });
    is_wanted
}

fn begin<P: Platform>(me: Slot, at: Nanos) {
    P::participant(me).attached.batch.store(at.0, Ordering::Relaxed);
}

/// The times that a waiter may still give way before it sleeps.
pub(super) struct Yields<P: Platform, K: Subject, Y: Policy> {
    given: u32,
    world: PhantomData<(P, K, Y)>,
}

impl<P: Platform, K: Subject, Y: Policy> Yields<P, K, Y> {
    /// Begins with a waiter that has not given way yet.
    pub(super) fn new() -> Self {
        Yields { given: 0, world: PhantomData }
    }

    /// Begins anew, as a batch does, with the waiter `me` whose sleep has ended `now`.
    pub(super) fn after_sleep(me: Slot, now: Nanos) -> Self {
        if Y::BATCH > 0 {
            begin::<P>(me, now);
        }
        Self::new()
    }

    /// Tells whether the waiter may give way.
    pub(super) fn left(&self) -> bool {
        self.given < Y::YIELDS
    }

    /// Gives way `now`. If the waiter `me` has done so before, it first marks the lock in `word`,
    /// which it has `seen` taken; if that has changed, it looks again at once.
    pub(super) fn give_way(&mut self, word: &P::U64, me: Slot, seen: Word, now: Nanos) {
        let goes = self.given == 0
            || !K::OWNED
            || seen.unreleased()
            || exchange::<P, K>(word, seen, seen.with_unreleased()).is_ok();
        if goes {
            let is_wanted = give_way::<P, Y>(me, now);
            self.given = if is_wanted { self.given + 1 } else { Y::YIELDS };
        }
    }
}

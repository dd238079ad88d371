//! The witnesses of edges.
//!
//! # Role
//! Keeps for each arc a few of those who were seen to take it, such that they
//! prove as much as all of them would.
//!
//! # Which are kept
//! A witness is worth nothing beside another one of the same thread that held no
//! more, was as little alone, had no deadline or has one too, and whose kind
//! allows as much. Of the others [`ENOUGH`] are kept: those of different threads
//! first, then those that held least; those without a deadline are looked at
//! first. Where an arc has that many of different threads, none of which was
//! alone or held another lock, then no cycle of up to that many arcs can want a
//! further one.

use crate::kinds::Kinds;
use crate::net::NONE;
use crate::sets::{self, HeldLock, Sets};
use crate::types::{Mode, OrderEdge, SiteId, ThreadId};
use alloc::vec::Vec;

/// How many witnesses an arc keeps.
pub(crate) const ENOUGH: usize = 4;

/// One witness of an arc. Where the arc is one of classes, it says which locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ArcWitness<L = ()> {
    pub(crate) thread: ThreadId,
    pub(crate) from_site: SiteId,
    pub(crate) to_site: SiteId,
    /// All that was held, if that was more than the lock itself; else [`NONE`].
    pub(crate) held: u32,
    /// The locks, if the arc does not say.
    pub(crate) locks: L,
    /// The next witness of the same arc.
    next: u32,
    how: u8,
}

const TO_SHIFT: u8 = 2;
const ALONE: u8 = 1 << 4;
const TRIED: u8 = 1 << 5;
const TIMED: u8 = 1 << 6;

const fn mode(bits: u8) -> Mode {
    match bits & 3 {
        0 => Mode::Write,
        1 => Mode::Read,
        _ => Mode::ReadRecursive,
    }
}

impl<L> ArcWitness<L> {
    pub(crate) fn of(edge: &OrderEdge<'_>, held: u32, locks: L) -> ArcWitness<L> {
        let bits = |mode| match mode {
            Mode::Write => 0,
            Mode::Read => 1,
            Mode::ReadRecursive => 2,
        };
        let how = bits(edge.from_mode)
            | bits(edge.to_mode) << TO_SHIFT
            | if edge.alone { ALONE } else { 0 }
            | if edge.tried_from { TRIED } else { 0 }
            | if edge.timed_to { TIMED } else { 0 };
        let OrderEdge { thread, from_site, to_site, .. } = *edge;
        ArcWitness { thread, from_site, to_site, held, locks, next: NONE, how }
    }

    pub(crate) const fn holds(&self) -> Mode {
        mode(self.how)
    }

    pub(crate) const fn asks(&self) -> Mode {
        mode(self.how >> TO_SHIFT)
    }

    pub(crate) const fn kinds(&self) -> Kinds {
        Kinds::of(self.holds(), self.asks())
    }

    pub(crate) const fn alone(&self) -> bool {
        self.how & ALONE != 0
    }

    pub(crate) const fn tried(&self) -> bool {
        self.how & TRIED != 0
    }

    pub(crate) const fn timed(&self) -> bool {
        self.how & TIMED != 0
    }

    /// Returns all that was held, if the lock itself was held as `from` says.
    pub(crate) fn all<'a>(&self, from: &'a [HeldLock; 1], sets: &'a Sets) -> &'a [HeldLock] {
        if self.held == NONE { from } else { sets.locks(self.held) }
    }

    /// Returns whether `other` proves nothing that this one does not.
    fn covers(&self, other: &ArcWitness<L>, sets: &Sets) -> bool {
        self.thread == other.thread
            && self.kinds().covers(other.kinds())
            && (!self.alone() || other.alone())
            && (!self.timed() || other.timed())
            && self.holds().is_shared() == other.holds().is_shared()
            && match (self.held, other.held) {
                (a, b) if a == b => true,
                (NONE, _) => true,
                (_, NONE) => false,
                (a, b) => sets::within(sets.locks(a), sets.locks(b)),
            }
    }
}

/// What became of a witness that was offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Offer {
    /// The witness proves nothing new.
    Known,
    /// The witness is kept from now on.
    Kept,
    /// It is kept, and another one is not any more, which proved something.
    Displaced,
    /// It is not kept though it proves something.
    Refused,
}

/// The witnesses of all arcs, by their numbers.
#[derive(Debug)]
pub(crate) struct Witnesses<L = ()> {
    first: Vec<ArcWitness<L>>,
    more: Vec<ArcWitness<L>>,
    free: Vec<u32>,
}

impl<L> Default for Witnesses<L> {
    fn default() -> Witnesses<L> {
        Witnesses { first: Vec::new(), more: Vec::new(), free: Vec::new() }
    }
}

impl<L: Copy> Witnesses<L> {
    /// Keeps the first witness of a new arc.
    pub(crate) fn begin(&mut self, arc: u32, seen: ArcWitness<L>) {
        if self.first.len() == arc as usize {
            self.first.push(seen);
        } else {
            self.first[arc as usize] = seen;
        }
    }

    /// Returns all witnesses of an arc.
    pub(crate) fn of(&self, arc: u32) -> impl Iterator<Item = &ArcWitness<L>> + Clone + '_ {
        let mut next = Some(&self.first[arc as usize]);
        core::iter::from_fn(move || {
            let this = next?;
            next = (this.next != NONE).then(|| &self.more[this.next as usize]);
            Some(this)
        })
    }

    /// Returns the arc's first witness.
    pub(crate) fn first(&self, arc: u32) -> &ArcWitness<L> {
        &self.first[arc as usize]
    }

    /// Lets go of all witnesses of an arc.
    pub(crate) fn end(&mut self, arc: u32, sets: &mut Sets) {
        let mut this = self.first[arc as usize];
        sets.release(this.held);
        while this.next != NONE {
            self.free.push(this.next);
            this = self.more[this.next as usize];
            sets.release(this.held);
        }
    }

    /// Offers a further witness of an arc. The user of a set that it is goes over to the arc or is
    /// released.
    pub(crate) fn offer(&mut self, arc: u32, new: ArcWitness<L>, sets: &mut Sets) -> Offer {
        if self.of(arc).any(|old| old.covers(&new, sets)) {
            sets.release(new.held);
            return Offer::Known;
        }
        let mut all: Vec<ArcWitness<L>> = self.of(arc).copied().collect();
        // Who is covered by the new one leaves without a trace.
        all.retain(|old| {
            let covered = new.covers(old, sets);
            if covered {
                sets.release(old.held);
            }
            !covered
        });
        all.push(new);
        let mut offer = Offer::Kept;
        if all.len() > ENOUGH {
            let worst = worst(&all, sets);
            let gone = all.remove(worst);
            sets.release(gone.held);
            if worst == ENOUGH {
                return if plenty(&all, &gone) { Offer::Known } else { Offer::Refused };
            }
            offer = Offer::Displaced;
        }
        all.sort_by_key(ArcWitness::timed);
        self.write(arc, &all);
        offer
    }

    /// Makes these the witnesses of an arc.
    fn write(&mut self, arc: u32, all: &[ArcWitness<L>]) {
        let mut places = Vec::with_capacity(all.len());
        let mut next = self.first[arc as usize].next;
        while next != NONE {
            places.push(next);
            next = self.more[next as usize].next;
        }
        while places.len() + 1 > all.len() {
            self.free.extend(places.pop());
        }
        while places.len() + 1 < all.len() {
            places.push(match self.free.pop() {
                Some(place) => place,
                None => {
                    self.more.push(all[0]);
                    self.more.len() as u32 - 1
                }
            });
        }
        for (number, seen) in all.iter().enumerate() {
            let next = places.get(number).copied().unwrap_or(NONE);
            let seen = ArcWitness { next, ..*seen };
            match number.checked_sub(1) {
                None => self.first[arc as usize] = seen,
                Some(number) => self.more[places[number] as usize] = seen,
            }
        }
    }
}

/// Returns the one that proves least, and is not the only one of its kind.
fn worst<L>(all: &[ArcWitness<L>], sets: &Sets) -> usize {
    let rank = |index: usize| {
        let this = &all[index];
        let others = || all.iter().enumerate().filter(move |&(other, _)| other != index);
        let kinds = others().fold(Kinds::default(), |kinds, (_, seen)| kinds.with(seen.kinds()));
        let again = others().filter(|(_, seen)| seen.thread == this.thread);
        // Of two of one thread, the one whose kind allows less.
        let weaker = again.clone().any(|(_, seen)| seen.kinds().covers(this.kinds()));
        let again = again.count() > 0;
        let held = if this.held == NONE { 0 } else { sets.locks(this.held).len() };
        (kinds.covers(this.kinds()), this.alone(), weaker, again, held, index)
    };
    (0..all.len()).max_by_key(|&index| rank(index)).unwrap_or(0)
}

/// Returns whether nobody could want another one like `gone`.
fn plenty<L>(all: &[ArcWitness<L>], gone: &ArcWitness<L>) -> bool {
    all.iter().enumerate().all(|(index, seen)| {
        seen.held == NONE
            && !seen.alone()
            && seen.kinds().covers(gone.kinds())
            && all[..index].iter().all(|other| other.thread != seen.thread)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::LockId;

    fn seen(thread: u32, held: u32, alone: bool) -> ArcWitness {
        let edge = OrderEdge {
            from: LockId(0),
            to: LockId(1),
            from_mode: Mode::Write,
            to_mode: Mode::Write,
            from_site: SiteId(0),
            to_site: SiteId(0),
            thread: ThreadId(thread),
            gates: &[],
            alone,
            tried_from: false,
            timed_to: false,
        };
        ArcWitness::of(&edge, held, ())
    }

    fn set(sets: &mut Sets, locks: &[u32]) -> u32 {
        let held = |&lock: &u32| HeldLock { life: lock, lock: LockId(lock), shared: false };
        let locks: Vec<HeldLock> = locks.iter().map(held).collect();
        sets.intern(&locks)
    }

    fn threads(witnesses: &Witnesses) -> Vec<u32> {
        witnesses.of(0).map(|seen| seen.thread.0).collect()
    }

    #[test]
    fn the_same_thread_with_more_gates_or_alone_proves_nothing_new() {
        let (mut witnesses, mut sets) = (Witnesses::default(), Sets::default());
        witnesses.begin(0, seen(1, NONE, false));
        let gates = set(&mut sets, &[7, 8]);
        assert_eq!(witnesses.offer(0, seen(1, gates, false), &mut sets), Offer::Known);
        assert_eq!(witnesses.offer(0, seen(1, NONE, true), &mut sets), Offer::Known);
        assert_eq!(sets.len(), 0, "the set was let go of");
        assert_eq!(witnesses.of(0).count(), 1);
    }

    #[test]
    fn who_held_less_replaces_who_held_more() {
        let (mut witnesses, mut sets) = (Witnesses::default(), Sets::default());
        let gates = set(&mut sets, &[7, 8]);
        witnesses.begin(0, seen(1, gates, true));
        let fewer = set(&mut sets, &[7]);
        assert_eq!(witnesses.offer(0, seen(1, fewer, false), &mut sets), Offer::Kept);
        assert_eq!(witnesses.of(0).count(), 1);
        assert_eq!(sets.len(), 1);
        assert_eq!(witnesses.of(0).next().map(|seen| seen.held), Some(fewer));
    }

    #[test]
    fn of_many_the_most_useful_stay() {
        let (mut witnesses, mut sets) = (Witnesses::default(), Sets::default());
        witnesses.begin(0, seen(1, NONE, true));
        let gates = set(&mut sets, &[7]);
        assert_eq!(witnesses.offer(0, seen(2, gates, false), &mut sets), Offer::Kept);
        assert_eq!(witnesses.offer(0, seen(3, NONE, false), &mut sets), Offer::Kept);
        assert_eq!(witnesses.offer(0, seen(4, NONE, false), &mut sets), Offer::Kept);
        assert_eq!(witnesses.offer(0, seen(5, NONE, false), &mut sets), Offer::Displaced);
        assert_eq!(threads(&witnesses), [2, 3, 4, 5], "who was alone goes first");
        assert_eq!(witnesses.offer(0, seen(6, NONE, true), &mut sets), Offer::Refused);
        assert_eq!(witnesses.offer(0, seen(6, NONE, false), &mut sets), Offer::Displaced);
        assert_eq!(threads(&witnesses), [3, 4, 5, 6], "then who held more");
        assert_eq!(sets.len(), 0);
        assert_eq!(witnesses.offer(0, seen(7, NONE, false), &mut sets), Offer::Known);
        witnesses.end(0, &mut sets);
        witnesses.begin(0, seen(8, NONE, false));
        assert_eq!(threads(&witnesses), [8]);
    }
}

//! Orders between classes that are meant for all locks of the two.
//!
//! # Role
//! Two orders of two classes, each seen with locks that the other one was not seen with,
//! deadlock only if they come to the same locks one day. That is a guess, unless each of them
//! is what the program does with whichever locks it has at hand. So a cycle of two classes is
//! called a potential deadlock on this evidence, and on no less:
//!
//! - **HABIT-PAIRS** Each order was taken with [`ENOUGH`] pairs of locks or more.
//! - **HABIT-THREADS** Two threads did it that can do it at the same time: not while the process
//!   had one thread, with no lock in common, and with no two locks of one class: where each list
//!   has the lock of its directory above it, two lists have two gates.
//! - **HABIT-CODE** The code is not the same. What takes two locks by their addresses has both
//!   orders, with never the same locks; so the call that takes the first lock is another one.
//! - **HABIT-TREES** Nothing looks like a tree. Where a directory is locked before its list and the
//!   list before the files, which are directories again, one lock stands between two of the other
//!   class. A list that many files come before, and that comes before many, is none: it is
//!   the same files that come before and after.
//!
//! Of cycles of more classes nothing is said: what the pairs would have to have in common is
//! not known.

use crate::classes::{ArcLocks, Classes};
use crate::kinds::{asked, held, waits};
use crate::net::{ArcDirection, NONE, Net};
use crate::seen::ArcWitness;
use crate::sets::{HeldLock, Sets};
use crate::types::LockId;
use alloc::vec::Vec;
use hashbrown::HashMap;

/// How many pairs of locks make an order a habit, and how many are kept of each.
const ENOUGH: usize = 2;
const KEPT: usize = 4;
/// How many locks between two of another class are kept, and how many edges of a lock are looked
/// at.
const BETWEEN: usize = 8;
const EDGES: usize = 32;

/// What is known of the orders of classes beyond their first witnesses.
#[derive(Debug, Default)]
pub(crate) struct Habits {
    /// The witnesses of each arc that had other locks than its first witness.
    further: HashMap<u32, Vec<ArcWitness<ArcLocks>>>,
    /// The locks that stand between two of the other class, for each two classes, the lower one
    /// first.
    between: HashMap<(u32, u32), Vec<LockId>>,
}

/// What can be asked of locks.
pub(crate) struct LockQuestions<'a> {
    pub(crate) net: &'a Net,
    pub(crate) sets: &'a Sets,
    /// The node of a lock that lives.
    pub(crate) node: &'a dyn Fn(LockId) -> Option<u32>,
    /// The class of a node.
    pub(crate) class: &'a dyn Fn(u32) -> u32,
}

fn both(a: u32, b: u32) -> (u32, u32) {
    (a.min(b), a.max(b))
}

impl Habits {
    /// Notes a pair of locks of an arc that has witnesses. Returns whether it was kept: then it is
    /// a user of its set.
    pub(crate) fn note(&mut self, arc: u32, classes: &Classes, seen: ArcWitness<ArcLocks>) -> bool {
        let is_it = |other: &ArcWitness<ArcLocks>| other.locks == seen.locks;
        if classes.witnesses.of(arc).any(is_it) {
            return false;
        }
        let further = self.further.entry(arc).or_default();
        let is_kept = further.len() < KEPT && !further.iter().any(is_it);
        if is_kept {
            further.push(seen);
        }
        is_kept
    }

    /// Notes a new edge between locks of two classes that have both orders by now.
    pub(crate) fn edge(&mut self, (from, to): (LockId, LockId), world: &LockQuestions<'_>) {
        let (Some(a), Some(b)) = ((world.node)(from), (world.node)(to)) else { return };
        let (class_a, class_b) = ((world.class)(a), (world.class)(b));
        for (lock, node, other) in [(from, a, class_b), (to, b, class_a)] {
            if world.stands_between(node, other) {
                let known = self.between.entry(both(class_a, class_b)).or_default();
                if known.len() < BETWEEN && !known.contains(&lock) {
                    known.push(lock);
                }
            }
        }
    }

    /// Returns witnesses of the arc and of the one back that are habits of threads which can meet.
    pub(crate) fn meet(
        &self,
        (arc, back): (u32, u32),
        classes: &Classes,
        world: &LockQuestions<'_>,
    ) -> Option<[ArcWitness<ArcLocks>; 2]> {
        let ends = &classes.net.arcs[arc as usize];
        let between = self.between.get(&both(ends.from, ends.to));
        let is_tree = |&lock: &LockId| {
            // Of one that is no more nobody knows what else it stood between.
            let Some(node) = (world.node)(lock) else { return true };
            let own = (world.class)(node);
            let other = if own == ends.from { ends.to } else { ends.from };
            world.stands_between(node, other)
        };
        if between.is_some_and(|locks| locks.len() == BETWEEN || locks.iter().any(is_tree)) {
            return None;
        }
        let all = |arc| {
            let further = self.further.get(&arc).map_or(&[][..], Vec::as_slice);
            classes
                .witnesses
                .of(arc)
                .chain(further)
                .filter(|seen: &&ArcWitness<ArcLocks>| !seen.alone())
        };
        let pairs = |arc| {
            let mut locks: Vec<ArcLocks> = all(arc).map(|seen| seen.locks).collect();
            locks.sort_unstable();
            locks.dedup();
            locks.len()
        };
        if pairs(arc) < ENOUGH || pairs(back) < ENOUGH {
            return None;
        }
        all(arc).find_map(|one| {
            let other = all(back).find(|other| {
                one.thread != other.thread
                    && one.from_site != other.from_site
                    && waits(asked(one.asks()), held(other.holds()))
                    && waits(asked(other.asks()), held(one.holds()))
                    && !world.share_a_gate(one, other)
            })?;
            Some([*one, *other])
        })
    }
}

impl LockQuestions<'_> {
    /// Returns whether a lock stands between locks of another class as one of a tree does: some on
    /// each of its sides, and on one of them only one.
    fn stands_between(&self, node: u32, other: u32) -> bool {
        let [before, after] =
            [ArcDirection::Back, ArcDirection::Forth].map(|way| self.beside(node, way, other));
        before.min(after) == 1
    }

    /// Returns how many locks of a class lie on one side of a lock, as far as counts.
    fn beside(&self, node: u32, way: ArcDirection, class: u32) -> usize {
        let mut count = 0;
        let mut arc = self.net.first(node, way);
        for _ in 0..EDGES {
            if arc == NONE || count == ENOUGH {
                return count;
            }
            let ends = &self.net.arcs[arc as usize];
            let there = if way == ArcDirection::Forth { ends.to } else { ends.from };
            count += usize::from((self.class)(there) == class);
            arc = self.net.after(arc, way);
        }
        // There may be one among the rest.
        count.max(1)
    }

    /// Returns whether both held a lock, or locks of one class, beside those of the order.
    fn share_a_gate(&self, one: &ArcWitness<ArcLocks>, other: &ArcWitness<ArcLocks>) -> bool {
        let gates = |seen: &ArcWitness<ArcLocks>| {
            let all = if seen.held == NONE { &[] } else { self.sets.locks(seen.held) };
            let from = seen.locks.0;
            all.iter().filter(move |held| held.lock != from).copied().collect::<Vec<HeldLock>>()
        };
        let class = |held: &HeldLock| (self.node)(held.lock).map(|node| (self.class)(node));
        let theirs = gates(other);
        gates(one).iter().any(|mine| {
            theirs.iter().any(|held| {
                // Of what is no more nobody knows of which class it was.
                held.lock == mine.lock || class(held).is_none() || class(held) == class(mine)
            })
        })
    }
}

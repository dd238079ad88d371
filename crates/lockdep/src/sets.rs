//! Sets of locks that are held at the same time, each stored once.
//!
//! # Role
//! Whether two threads can be where they were seen at the same time depends on
//! what they held. A thread that asks for a lock while it holds several leaves
//! an edge from each, all with the same set; so do all threads that pass there.

use crate::net::NONE;
use crate::types::LockId;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::hash::BuildHasher;
use hashbrown::{DefaultHashBuilder, HashTable};

/// A lock that is held. A lock's life has a number, so that a later lock with the
/// same [`LockId`] is another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct HeldLock {
    /// The number of the lock's life; 0 if it is not known.
    pub(crate) life: u32,
    pub(crate) lock: LockId,
    pub(crate) shared: bool,
}

#[derive(Debug)]
struct HeldSet {
    locks: Box<[HeldLock]>,
    /// How many witnesses have it; none while it is free.
    users: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Sets {
    sets: Vec<HeldSet>,
    free: Vec<u32>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

/// Puts a set into the form in which it is stored.
pub(crate) fn normalise(locks: &mut Vec<HeldLock>) {
    locks.sort_unstable();
    // Of a lock that is held twice, the exclusive hold counts: it stands first.
    locks.dedup_by_key(|held| (held.life, held.lock));
}

/// Returns a lock that cannot be held by both at the same time.
pub(crate) fn conflict(a: &[HeldLock], b: &[HeldLock]) -> Option<LockId> {
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        match (a[i].life, a[i].lock).cmp(&(b[j].life, b[j].lock)) {
            Ordering::Less => i += 1,
            Ordering::Greater => j += 1,
            Ordering::Equal if a[i].shared && b[j].shared => {
                i += 1;
                j += 1;
            }
            Ordering::Equal => return Some(a[i].lock),
        }
    }
    None
}

/// Returns whether nothing conflicts with `a` that does not conflict with `b`.
pub(crate) fn within(a: &[HeldLock], b: &[HeldLock]) -> bool {
    let mut rest = b.iter();
    a.iter().all(|held| {
        rest.by_ref().find(|other| (other.life, other.lock) >= (held.life, held.lock)).is_some_and(
            |other| {
                (other.life, other.lock) == (held.life, held.lock) && (held.shared || !other.shared)
            },
        )
    })
}

impl Sets {
    /// Returns the number of a set in normal form, and counts one user more.
    pub(crate) fn intern(&mut self, locks: &[HeldLock]) -> u32 {
        let hash = self.hasher.hash_one(locks);
        let same = |&set: &u32| *self.sets[set as usize].locks == *locks;
        if let Some(&set) = self.index.find(hash, same) {
            self.sets[set as usize].users += 1;
            return set;
        }
        let new = HeldSet { locks: locks.into(), users: 1 };
        let set = match self.free.pop() {
            Some(set) => {
                self.sets[set as usize] = new;
                set
            }
            None => {
                self.sets.push(new);
                self.sets.len() as u32 - 1
            }
        };
        let (sets, hasher) = (&self.sets, &self.hasher);
        let hash = |&set: &u32| hasher.hash_one(&*sets[set as usize].locks);
        self.index.insert_unique(hash(&set), set, hash);
        set
    }

    /// Counts one user more of a set; does nothing for [`NONE`].
    pub(crate) fn keep(&mut self, set: u32) {
        if set != NONE {
            self.sets[set as usize].users += 1;
        }
    }

    /// Counts one user less of a set; does nothing for [`NONE`].
    pub(crate) fn release(&mut self, set: u32) {
        if set == NONE {
            return;
        }
        let place = &mut self.sets[set as usize];
        place.users -= 1;
        if place.users == 0 {
            let hash = self.hasher.hash_one(&*place.locks);
            place.locks = Box::default();
            if let Ok(entry) = self.index.find_entry(hash, |&other| other == set) {
                entry.remove();
            }
            self.free.push(set);
        }
    }

    /// Returns the locks of a set.
    pub(crate) fn locks(&self, set: u32) -> &[HeldLock] {
        &self.sets[set as usize].locks
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(locks: &[(u32, bool)]) -> Vec<HeldLock> {
        let held = |&(lock, shared)| HeldLock { life: lock, lock: LockId(lock), shared };
        let mut set: Vec<HeldLock> = locks.iter().map(held).collect();
        normalise(&mut set);
        set
    }

    #[test]
    fn two_readers_do_not_exclude_each_other() {
        let (read, write) = (set(&[(1, true), (2, false)]), set(&[(1, false)]));
        assert_eq!(conflict(&read, &set(&[(1, true), (3, false)])), None);
        assert_eq!(conflict(&read, &write), Some(LockId(1)));
        assert_eq!(conflict(&write, &read), Some(LockId(1)));
        assert_eq!(conflict(&read, &[]), None);
    }

    #[test]
    fn who_holds_less_conflicts_less() {
        let (less, more) = (set(&[(2, true)]), set(&[(1, false), (2, false), (3, true)]));
        assert!(within(&less, &more));
        assert!(!within(&more, &less));
        assert!(!within(&set(&[(3, false)]), &more));
        assert!(within(&[], &less));
    }

    #[test]
    fn a_lock_that_is_held_twice_is_held_exclusively() {
        assert_eq!(set(&[(1, true), (1, false)]), set(&[(1, false)]));
    }

    #[test]
    fn sets_live_as_long_as_their_users() {
        let mut sets = Sets::default();
        let one = sets.intern(&set(&[(1, false)]));
        assert_eq!(sets.intern(&set(&[(1, false)])), one);
        let two = sets.intern(&set(&[(2, false)]));
        assert_ne!(one, two);
        sets.release(one);
        assert_eq!(sets.locks(one).len(), 1);
        sets.release(one);
        assert_eq!(sets.len(), 1);
        assert_eq!(sets.intern(&set(&[(3, false)])), one, "its number is used again");
        assert_eq!(sets.locks(two), set(&[(2, false)]));
    }
}

//! Which kinds of threads do what with a lock.
//!
//! # Role
//! Threads that began with the same function are of one kind: the consumers of a queue, say, and
//! its producer. Who waits for whom, and who reads what others write, shows in what each kind has done.
//! A thread adds to the counts of its kind where it counts anyway: with each wait that ends, each
//! hold that was timed, and each wake-up that it gives.
//!
//! # State
//! The first [`KINDS`] kinds of an object have counts of their own. The last place is that of all
//! others.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of kinds of threads that have counts of their own.
pub const KINDS: usize = 7;

/// The kind of threads that stands for all that found no place.
pub const OTHERS: u64 = u64::MAX;

/// What one kind of threads has done.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct RoleCounts {
    /// The [kind](kind_of) of threads; 0: the place is free.
    pub kind: AtomicU64,
    /// The number of holds that nobody else may have at the same time. Those that were timed stand
    /// for their like, as in [`Extension::hold`](crate::lock::Extension::hold).
    pub holds: AtomicU64,
    /// The sum of their times, in nanoseconds.
    pub held: AtomicU64,
    /// The number of holds as one reader among others, likewise.
    pub shared_holds: AtomicU64,
    /// The sum of their times, in nanoseconds.
    pub shared: AtomicU64,
    /// The number of waits.
    pub waits: AtomicU64,
    /// The sum of their times, in nanoseconds.
    pub waited: AtomicU64,
    /// The number of signals, broadcasts and posts, since the object was first waited for.
    pub gives: AtomicU64,
}

const _: () = assert!(size_of::<RoleCounts>() == 64);

/// What all kinds of threads have done with one object.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Roles([RoleCounts; KINDS + 1]);

/// Returns the kind of the threads that began with the function at this address; 0: the first thread
/// of a process, and threads that nobody saw begin.
#[must_use]
pub const fn kind_of(start_routine: u64) -> u64 {
    start_routine.wrapping_add(1)
}

/// Returns the function with which threads of a kind began.
#[must_use]
pub const fn start_of(kind: u64) -> u64 {
    kind.wrapping_sub(1)
}

impl Roles {
    /// Returns the counts of a kind, or those of all that found no place.
    pub fn of(&self, kind: u64) -> &RoleCounts {
        let others = &self.0[KINDS];
        let mine = self.0[..KINDS].iter().find(|counts| {
            let found = counts.kind.load(Relaxed);
            found == kind
                || found == 0
                    && match counts.kind.compare_exchange(0, kind, Relaxed, Relaxed) {
                        Ok(_) => true,
                        Err(other) => other == kind,
                    }
        });
        mine.unwrap_or_else(|| {
            others.kind.store(OTHERS, Relaxed);
            others
        })
    }

    /// Returns all kinds that did anything.
    pub fn all(&self) -> impl Iterator<Item = &RoleCounts> {
        self.0.iter().filter(|counts| counts.kind.load(Relaxed) != 0)
    }

    /// Takes over all of `other`, which is empty afterwards.
    pub fn absorb(&self, other: &Roles) {
        for from in other.all() {
            let to = self.of(from.kind.swap(0, Relaxed));
            for (mine, theirs) in [
                (&to.holds, &from.holds),
                (&to.held, &from.held),
                (&to.shared_holds, &from.shared_holds),
                (&to.shared, &from.shared),
                (&to.waits, &from.waits),
                (&to.waited, &from.waited),
                (&to.gives, &from.gives),
            ] {
                mine.fetch_add(theirs.swap(0, Relaxed), Relaxed);
            }
        }
    }
}

impl RoleCounts {
    /// Adds a hold that stands for `weight` of its like.
    pub fn held(&self, is_shared: bool, weight: u64, total: u64) {
        let (count, sum) = match is_shared {
            true => (&self.shared_holds, &self.shared),
            false => (&self.holds, &self.held),
        };
        count.fetch_add(weight, Relaxed);
        sum.fetch_add(total, Relaxed);
    }

    /// Adds a wait.
    pub fn waited(&self, ns: u64) {
        self.waits.fetch_add(1, Relaxed);
        self.waited.fetch_add(ns, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_kept_apart_as_far_as_there_are_places() {
        let roles = Roles::default();
        for start in 0..KINDS as u64 + 3 {
            roles.of(kind_of(start)).waited(10);
            roles.of(kind_of(start)).held(start == 0, 4, 100);
        }
        let each = || roles.all().map(|c| (c.kind.load(Relaxed), c.waits.load(Relaxed)));
        assert_eq!((each().count(), each().next()), (KINDS + 1, Some((1, 1))));
        assert_eq!(each().last(), Some((OTHERS, 3)));
        assert_eq!(roles.of(kind_of(0)).shared_holds.load(Relaxed), 4);
        assert_eq!(roles.of(kind_of(1)).held.load(Relaxed), 100);
        let heir = Roles::default();
        heir.of(kind_of(1)).waited(5);
        heir.absorb(&roles);
        assert_eq!(roles.all().count(), 0);
        assert_eq!(heir.of(kind_of(1)).waited.load(Relaxed), 15);
        assert_eq!(start_of(kind_of(77)), 77);
    }
}

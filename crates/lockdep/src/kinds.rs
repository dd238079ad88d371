//! What a request waits behind, as kinds of edges.
//!
//! # Role
//! An edge holds one lock and asks for the next. What matters of its two modes
//! is whether it holds *exclusively* or *shared*, and whether it asks *normally*
//! (waits behind everybody) or *recursively* (passes readers). A cycle is strong
//! if no recursive request meets a shared hold.
//!
//! # State
//! A search that goes along the edges must remember how it arrived at a lock,
//! one that goes against them how the lock is held by the edge it came from.
//! Either is one bit, and one value of it allows all that the other allows: a
//! search need only remember the better one.

use crate::types::Mode;

/// A set of kinds of edges.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Kinds(u8);

/// The kind that holds exclusively and asks normally, as all edges between locks without
/// readers do; the other three follow.
const EXCLUSIVE_NORMAL: u8 = 1;
const EXCLUSIVE_RECURSIVE: u8 = 2;
const SHARED_NORMAL: u8 = 4;
const SHARED_RECURSIVE: u8 = 8;

/// The lock is arrived at by a normal request: any hold is in its way.
pub(crate) const NORMAL: u32 = 0;
/// The lock is arrived at by a recursive request: only an exclusive hold is in its way.
pub(crate) const RECURSIVE: u32 = 1;
/// The lock is held exclusively, in the way of any request.
pub(crate) const EXCLUSIVE: u32 = 0;
/// The lock is held shared, in the way of a normal request only.
pub(crate) const SHARED: u32 = 1;

/// Returns whether a request of kind `asked` waits behind a hold of kind `held`.
pub(crate) const fn waits(asked: u32, held: u32) -> bool {
    asked == NORMAL || held == EXCLUSIVE
}

/// Returns how a request in this mode arrives.
pub(crate) const fn asked(mode: Mode) -> u32 {
    match mode {
        Mode::Write | Mode::Read => NORMAL,
        Mode::ReadRecursive => RECURSIVE,
    }
}

/// Returns how a lock in this mode is held.
pub(crate) const fn held(mode: Mode) -> u32 {
    if mode.is_shared() { SHARED } else { EXCLUSIVE }
}

impl Kinds {
    /// Returns the kind of an edge with these modes.
    pub(crate) const fn of(from: Mode, to: Mode) -> Kinds {
        Kinds(1 << (2 * held(from) + asked(to)))
    }

    pub(crate) const fn with(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns how a walk arrives at the end that came to the beginning as `arrived`: the best way.
    pub(crate) const fn forth(self, arrived: u32) -> Option<u32> {
        let usable = match arrived {
            NORMAL => self.0,
            _ => self.0 & (EXCLUSIVE_NORMAL | EXCLUSIVE_RECURSIVE),
        };
        if usable & (EXCLUSIVE_NORMAL | SHARED_NORMAL) != 0 {
            Some(NORMAL)
        } else if usable != 0 {
            Some(RECURSIVE)
        } else {
            None
        }
    }

    /// Returns how the beginning is held if the end is held as `held`: the best way.
    pub(crate) const fn back(self, held: u32) -> Option<u32> {
        let usable = match held {
            EXCLUSIVE => self.0,
            _ => self.0 & (EXCLUSIVE_NORMAL | SHARED_NORMAL),
        };
        if usable & (EXCLUSIVE_NORMAL | EXCLUSIVE_RECURSIVE) != 0 {
            Some(EXCLUSIVE)
        } else if usable != 0 {
            Some(SHARED)
        } else {
            None
        }
    }

    /// Returns whether one kind among these allows all that `other`, one kind, allows.
    pub(crate) const fn covers(self, other: Kinds) -> bool {
        let better = match other.0 {
            EXCLUSIVE_NORMAL => EXCLUSIVE_NORMAL,
            EXCLUSIVE_RECURSIVE => EXCLUSIVE_NORMAL | EXCLUSIVE_RECURSIVE,
            SHARED_NORMAL => EXCLUSIVE_NORMAL | SHARED_NORMAL,
            _ => EXCLUSIVE_NORMAL | EXCLUSIVE_RECURSIVE | SHARED_NORMAL | SHARED_RECURSIVE,
        };
        self.0 & better != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODES: [Mode; 3] = [Mode::Write, Mode::Read, Mode::ReadRecursive];

    fn sets() -> impl Iterator<Item = Kinds> {
        (0..16).map(Kinds)
    }

    fn singles(set: Kinds) -> impl Iterator<Item = (u32, u32)> {
        [(EXCLUSIVE, NORMAL), (EXCLUSIVE, RECURSIVE), (SHARED, NORMAL), (SHARED, RECURSIVE)]
            .into_iter()
            .filter(move |&(h, a)| set.0 & 1 << (2 * h + a) != 0)
    }

    #[test]
    fn a_request_waits_as_the_table_says() {
        let table = MODES.map(|held_as| MODES.map(|mode| waits(asked(mode), held(held_as))));
        assert_eq!(table, [[true, true, true], [true, true, false], [true, true, false]]);
    }

    /// The best arrival is one that some kind gives, and if any gives a normal
    /// one, it is normal. The same against the edges.
    #[test]
    fn searches_remember_the_best_of_all_kinds() {
        for set in sets() {
            for arrived in [NORMAL, RECURSIVE] {
                let all = singles(set).filter(|&(h, _)| waits(arrived, h)).map(|(_, a)| a);
                assert_eq!(set.forth(arrived), all.min(), "{set:?} {arrived}");
            }
            for held in [EXCLUSIVE, SHARED] {
                let all = singles(set).filter(|&(_, a)| waits(a, held)).map(|(h, _)| h);
                assert_eq!(set.back(held), all.min(), "{set:?} {held}");
            }
        }
    }

    #[test]
    fn a_kind_is_covered_by_one_that_is_no_weaker_on_either_side() {
        for set in sets() {
            for from in MODES {
                for to in MODES {
                    let covered = singles(set).any(|(h, a)| h <= held(from) && a <= asked(to));
                    assert_eq!(set.covers(Kinds::of(from, to)), covered);
                }
            }
        }
    }
}

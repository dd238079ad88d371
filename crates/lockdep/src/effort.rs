//! How much is spent on looking for what is known already.
//!
//! # Role
//! Where thousands of locks of a few classes are taken in any order, nearly every
//! new edge closes cycles, and all of them say what was said before. Searches that
//! end so make further ones between the same classes cheaper: each [`HALVES`]
//! steps in vain halve what the next may take. One that finds something new gives
//! all back.

use hashbrown::HashMap;

/// What a search may take at first.
const FIRST: usize = 1 << 20;
/// How many steps in vain halve that.
const HALVES: usize = 1 << 16;

/// What a search is for: the classes of an edge's locks, and whether the cycle
/// must be proven.
pub(crate) type Purpose = (u32, u32, bool);

#[derive(Debug, Default)]
pub(crate) struct Efforts {
    wasted: HashMap<Purpose, usize>,
}

impl Efforts {
    /// Returns how many steps a search may take.
    pub(crate) fn allowed(&self, purpose: Purpose) -> usize {
        let halved = self.wasted.get(&purpose).map_or(0, |wasted| wasted / HALVES);
        FIRST >> halved.min(FIRST.ilog2() as usize)
    }

    /// Notes that a search took so many steps and found something new, or not.
    pub(crate) fn note(&mut self, purpose: Purpose, steps: usize, new: bool) {
        if new {
            self.wasted.remove(&purpose);
        } else if steps > 0 {
            *self.wasted.entry(purpose).or_default() += steps;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wasted_is_bounded_until_something_is_found() {
        let mut efforts = Efforts::default();
        let purpose = (1, 2, true);
        let mut total = 0;
        for _ in 0..100_000 {
            let steps = efforts.allowed(purpose);
            efforts.note(purpose, steps, false);
            total += steps;
        }
        assert!(total < 4 * FIRST, "{total}");
        assert_eq!(efforts.allowed((2, 1, true)), FIRST, "others do not pay");
        efforts.note(purpose, 1, true);
        assert_eq!(efforts.allowed(purpose), FIRST);
    }
}

//! How what locks of one row come to is spread among them.

pub(super) mod model;

pub use model::{LockSpread, SpreadLock, SpreadOf};

use super::model::percent;
use std::cmp::Reverse;

/// The locks that are told one by one.
pub(super) const WORST: usize = 16;
/// The part of the whole, in per cent, that the worst are counted up to.
const MOST: u64 = 80;

/// Returns how many locks have the most of something together, the part that they have, and
/// whether that is spread evenly. `parts`: of each record how much, and for how many locks it
/// stands.
pub(super) fn most(mut parts: Vec<(u64, u64)>) -> LockSpread {
    parts.sort_unstable_by_key(|&(part, locks)| Reverse(part / locks.max(1)));
    let whole = parts.iter().fold(0, |sum: u64, &(part, _)| sum.saturating_add(part));
    let all = parts.iter().fold(0, |sum: u64, &(_, locks)| sum.saturating_add(locks));
    let (mut sum, mut most) = (0_u64, 0_u64);
    for (part, locks) in parts {
        if u128::from(sum) * 100 >= u128::from(whole) * u128::from(MOST) {
            break;
        }
        sum = sum.saturating_add(part);
        most = most.saturating_add(locks);
    }
    let even = most.saturating_mul(2) >= all;
    LockSpread { most, most_percent: percent(sum, whole), even, ..LockSpread::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(parts: &[(u64, u64)]) -> (u64, f64, bool) {
        let LockSpread { most, most_percent, even, .. } = most(parts.to_vec());
        (most, most_percent, even)
    }

    #[test]
    fn a_hot_lock_is_told_from_an_even_load() {
        let mut hot = vec![(1, 1); 63];
        hot.push((937, 1));
        assert_eq!(spread(&hot), (1, 93.7, false));
        assert_eq!(spread(&[(10, 1); 10]), (8, 80.0, true));
        assert_eq!(spread(&[(0, 1), (0, 1), (5, 1), (5, 1)]), (2, 100.0, true));
        // A record of many counts whole, and each of its locks for little.
        assert_eq!(spread(&[(600, 600), (150, 1), (250, 1)]), (602, 100.0, true));
        assert_eq!(spread(&[(100, 600), (450, 1), (450, 1)]), (2, 90.0, false));
        assert_eq!(spread(&[(u64::MAX, 1), (u64::MAX, 1)]).0, 1, "nothing overflows");
    }
}

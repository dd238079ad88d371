//! Whom a lock is compared with.

use lockstead_bench::LockName;

/// Tells whether the lock called `name` is lockstead's own; the others, also those
/// that only a later version knows, are its peers.
pub(crate) fn ours(name: &str) -> bool {
    name.parse().is_ok_and(|lock: LockName| !lock.is_peer())
}

/// Returns the best peer's figure of one run, more being better; without any peer the
/// best figure.
pub(crate) fn best<'a>(figures: impl Iterator<Item = (&'a str, f64)> + Clone) -> f64 {
    let largest = |figures: &mut dyn Iterator<Item = (&'a str, f64)>| {
        figures.map(|(_, figure)| figure).reduce(f64::max)
    };
    largest(&mut figures.clone().filter(|(name, _)| !ours(name)))
        .or_else(|| largest(&mut figures.clone()))
        .unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_a_peer_if_there_is_one() {
        let figures = [("lockstead", 9.0), ("std", 2.0), ("pthread", 3.0)];
        assert_eq!(best(figures.into_iter()), 3.0);
        assert_eq!(best(figures[..1].iter().copied()), 9.0);
        assert!(best(std::iter::empty()).is_nan());
    }
}

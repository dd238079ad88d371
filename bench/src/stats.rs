//! The few statistics that the reports use.

/// Returns the middle value, or the mean of the two middle ones of an even number.
///
/// # Panics
/// If `values` is empty or holds a NaN.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    assert!(!values.is_empty(), "the median of nothing");
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.partial_cmp(b).expect("no NaN among measurements"));
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    }
}

/// Returns the smallest and the largest value.
///
/// # Panics
/// If `values` is empty.
#[must_use]
pub fn spread(values: &[f64]) -> (f64, f64) {
    assert!(!values.is_empty(), "the spread of nothing");
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &value| {
        (low.min(value), high.max(value))
    })
}

/// Returns the geometric mean, the right one for ratios.
///
/// # Panics
/// If `values` is empty or one is not positive.
#[must_use]
pub fn geometric_mean(values: &[f64]) -> f64 {
    assert!(!values.is_empty(), "the geometric mean of nothing");
    assert!(values.iter().all(|&value| value > 0.0), "a geometric mean takes positive numbers");
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}

/// Returns Jain's fairness index of what each of n parties got: 1 when all got the same, 1/n when
/// one got everything. 1 when nobody got anything, for nobody was preferred.
///
/// # Panics
/// If `shares` is empty.
#[must_use]
pub fn jain(shares: &[u64]) -> f64 {
    assert!(!shares.is_empty(), "the fairness of nothing");
    let sum: f64 = shares.iter().map(|&share| share as f64).sum();
    let squares: f64 = shares.iter().map(|&share| (share as f64).powi(2)).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(spread(&[3.0, 1.0, 2.0]), (1.0, 3.0));
        assert!((geometric_mean(&[1.0, 4.0]) - 2.0).abs() < 1e-12);
        assert_eq!(jain(&[5, 5, 5, 5]), 1.0);
        assert_eq!(jain(&[7, 0, 0, 0]), 0.25);
        assert_eq!(jain(&[0, 0]), 1.0);
    }

    proptest! {
        #[test]
        fn half_of_the_values_lie_on_each_side_of_the_median(
            values in prop::collection::vec(-1e9f64..1e9, 1..50)
        ) {
            let m = median(&values);
            let below = values.iter().filter(|&&v| v < m).count();
            let above = values.iter().filter(|&&v| v > m).count();
            prop_assert!(below <= values.len() / 2);
            prop_assert!(above <= values.len() / 2);
        }

        #[test]
        fn the_spread_encloses_the_median(values in prop::collection::vec(-1e9f64..1e9, 1..50)) {
            let (low, high) = spread(&values);
            prop_assert!(low <= median(&values) && median(&values) <= high);
        }

        #[test]
        fn jain_lies_between_one_nth_and_one(shares in prop::collection::vec(0u64..1_000_000, 1..64)) {
            let index = jain(&shares);
            prop_assert!(index <= 1.0 + 1e-9);
            prop_assert!(index >= 1.0 / shares.len() as f64 - 1e-9);
        }

        #[test]
        fn jain_ignores_the_unit(shares in prop::collection::vec(0u64..1_000_000, 1..64)) {
            let doubled: Vec<u64> = shares.iter().map(|share| share * 2).collect();
            prop_assert!((jain(&shares) - jain(&doubled)).abs() < 1e-9);
        }

        #[test]
        fn the_geometric_mean_of_a_ratio_and_its_inverse_is_one(ratio in 1e-6f64..1e6) {
            prop_assert!((geometric_mean(&[ratio, 1.0 / ratio]) - 1.0).abs() < 1e-9);
        }
    }
}

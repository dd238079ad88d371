//! Whether two sets of values differ by more than noise.
//!
//! The rank test of Mann and Whitney (H. B. Mann and D. R. Whitney, "On a test of whether one of two
//! random variables is stochastically larger than the other", 1947), one-sided and exact: it asks
//! for nothing but that runs which do not differ come in any order with the same chance.

use serde::Serialize;

/// Returns the rule of the verdict, as the help and the page say it.
macro_rules! rule {
    () => {
        "\
Worse or better is what several runs of each side show: by the rank test of Mann and Whitney
the chance that runs which do not differ come out so far on that side is 5 % at most. Three
runs of each side are the fewest that can show that. With fewer the change is shown without
a verdict, and --fail-on goes by the change alone. Of twenty locks that are the same one may
seem worse, and one better."
    };
}
pub(super) use rule;

/// The rule of the verdict.
pub(super) const RULE: &str = rule!();

/// What several runs show of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ChangeVerdict {
    /// It got worse, by more than noise.
    Worse,
    /// It got better, by more than noise.
    Better,
    /// The runs before and after are not told from each other.
    Noise,
    /// There are too few runs to tell a change from noise.
    TooFewRuns,
}

/// The chance that is taken for none.
const CHANCE: f64 = 0.05;

/// The bounds of a value: a lock that a report does not list waited no longer than all of those.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ValueBounds {
    pub(super) least: u64,
    pub(super) most: u64,
}

impl ValueBounds {
    /// Creates the bounds of a value that is known.
    pub(super) fn exactly(value: u64) -> Self {
        ValueBounds { least: value, most: value }
    }
}

/// Tells whether more than noise is between the values before and after, of which less is better.
pub(super) fn judge(before: &[ValueBounds], after: &[ValueBounds]) -> ChangeVerdict {
    let all_apart = chance(before.len(), after.len(), before.len() * after.len());
    // Rounding must not take the smallest chance of three and three runs, which is 5 %, for more.
    let is_none = |chance: f64| chance <= CHANCE * (1.0 + 1e-9);
    if !is_none(all_apart) {
        return ChangeVerdict::TooFewRuns;
    }
    let chance_of = |lower: &[ValueBounds], higher: &[ValueBounds]| {
        let pairs = lower.iter().flat_map(|a| higher.iter().map(move |b| (a, b)));
        let grown = pairs.filter(|(a, b)| b.least > a.most).count();
        chance(lower.len(), higher.len(), grown)
    };
    if is_none(chance_of(before, after)) {
        ChangeVerdict::Worse
    } else if is_none(chance_of(after, before)) {
        ChangeVerdict::Better
    } else {
        ChangeVerdict::Noise
    }
}

/// Returns the chance that of the pairs of `n` and `m` values which do not differ at least `grown`
/// have the greater one among the `m`.
fn chance(n: usize, m: usize, grown: usize) -> f64 {
    // Of all orders of n and m values with u such pairs, by whose value is the greatest: one of the
    // m is greater than all n, and one of the n is in no such pair.
    let pairs = n * m;
    let mut with_m: Vec<Vec<f64>> = vec![vec![0.0; pairs + 1]; m + 1];
    for orders in &mut with_m {
        orders[0] = 1.0;
    }
    for of_n in 1..=n {
        for of_m in 1..=m {
            let (total, share) = ((of_n + of_m) as f64, of_m as f64);
            for u in (0..=pairs).rev() {
                let greatest_is_of_m = if u >= of_n { with_m[of_m - 1][u - of_n] } else { 0.0 };
                let greatest_is_of_n = with_m[of_m][u];
                with_m[of_m][u] =
                    (share * greatest_is_of_m + (total - share) * greatest_is_of_n) / total;
            }
        }
    }
    with_m[m][grown.min(pairs)..].iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exactly(values: &[u64]) -> Vec<ValueBounds> {
        values.iter().map(|&value| ValueBounds::exactly(value)).collect()
    }

    /// Returns the same chance by going through all orders.
    fn counted(n: usize, m: usize, grown: usize) -> f64 {
        let (mut all, mut such) = (0, 0);
        for order in 0_u32..1 << (n + m) {
            if order.count_ones() as usize != m {
                continue;
            }
            let (mut of_n, mut pairs) = (0, 0);
            for at in 0..n + m {
                if order >> at & 1 == 1 { pairs += of_n } else { of_n += 1 }
            }
            all += 1;
            such += u32::from(pairs >= grown);
        }
        f64::from(such) / f64::from(all)
    }

    #[test]
    fn chances_are_those_of_all_orders() {
        for (n, m) in [(1, 1), (3, 3), (2, 5), (5, 4), (1, 7)] {
            for grown in 0..=n * m {
                let (quick, slow) = (chance(n, m, grown), counted(n, m, grown));
                assert!((quick - slow).abs() < 1e-12, "{n} {m} {grown}: {quick} {slow}");
            }
        }
    }

    #[test]
    fn three_runs_that_fall_apart_are_the_fewest_that_show_something() {
        let judged = |before: &[u64], after: &[u64]| judge(&exactly(before), &exactly(after));
        assert_eq!(judged(&[1], &[100]), ChangeVerdict::TooFewRuns);
        assert_eq!(judged(&[1, 2], &[100, 101]), ChangeVerdict::TooFewRuns);
        assert_eq!(judged(&[1, 2, 3], &[4, 5, 6]), ChangeVerdict::Worse);
        assert_eq!(judged(&[4, 5, 6], &[1, 2, 3]), ChangeVerdict::Better);
        assert_eq!(judged(&[1, 2, 4], &[3, 5, 6]), ChangeVerdict::Noise);
        assert_eq!(judged(&[7, 7, 7], &[7, 7, 7]), ChangeVerdict::Noise, "equal is not more");
        assert_eq!(judged(&[1, 2, 3, 4, 9], &[5, 6, 7, 8, 10]), ChangeVerdict::Worse);
    }

    #[test]
    fn what_may_be_noise_is() {
        let unknown = ValueBounds { least: 0, most: 5 };
        let before = [unknown, unknown, unknown];
        assert_eq!(judge(&before, &exactly(&[4, 6, 7])), ChangeVerdict::Noise);
        assert_eq!(judge(&before, &exactly(&[6, 6, 7])), ChangeVerdict::Worse);
    }
}

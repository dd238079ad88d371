//! Times by powers of two: where a histogram puts a duration, and what can be
//! said of it afterwards.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of buckets: bucket 0 is "below 2 ns", bucket `b` is `2^b ..2^(b+1)` ns, the
/// last (two days and more) has no upper end.
pub const BUCKETS: usize = 48;

/// Returns the bucket of a duration in nanoseconds.
#[inline(always)]
#[must_use]
pub const fn bucket(ns: u64) -> usize {
    let log = (63 - (ns | 1).leading_zeros()) as usize;
    if log < BUCKETS { log } else { BUCKETS - 1 }
}

/// A histogram in a ledger. Threads add to it with relaxed atomics, for the counts are
/// independent of each other.
#[repr(C)]
#[derive(Debug)]
pub struct Histogram {
    counts: [AtomicU64; BUCKETS],
    total: AtomicU64,
    max: AtomicU64,
    max_stack: AtomicU64,
}

impl Histogram {
    /// Adds a duration that stands for `weight` of its like.
    pub fn add(&self, ns: u64, weight: u64, stack: u32) {
        self.counts[bucket(ns)].fetch_add(weight, Relaxed);
        self.total.fetch_add(ns.saturating_mul(weight), Relaxed);
        if self.max.load(Relaxed) < ns && self.max.fetch_max(ns, Relaxed) < ns {
            // Two maxima at the same time may leave the stack of the smaller:
            // both were maxima when they were measured.
            self.max_stack.store(u64::from(stack), Relaxed);
        }
    }

    /// Adds all of `other` to this one and empties `other`.
    pub fn absorb(&self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter().zip(&other.counts) {
            mine.fetch_add(theirs.swap(0, Relaxed), Relaxed);
        }
        self.total.fetch_add(other.total.swap(0, Relaxed), Relaxed);
        let max = other.max.swap(0, Relaxed);
        let stack = other.max_stack.swap(0, Relaxed);
        if self.max.fetch_max(max, Relaxed) < max {
            self.max_stack.store(stack, Relaxed);
        }
    }

    /// Returns the sum of all durations in nanoseconds, for callers that need no more.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total.load(Relaxed)
    }

    /// Returns a copy to compute with.
    #[must_use]
    pub fn read(&self) -> Times {
        let mut times = Times {
            total: self.total.load(Relaxed),
            max: self.max.load(Relaxed),
            max_stack: self.max_stack.load(Relaxed) as u32,
            ..Times::default()
        };
        for (copy, count) in times.counts.iter_mut().zip(&self.counts) {
            *copy = count.load(Relaxed);
        }
        times
    }
}

/// The content of a [`Histogram`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// The number of durations in each bucket.
    pub counts: [u64; BUCKETS],
    /// The sum of all durations in nanoseconds.
    pub total: u64,
    /// The longest duration in nanoseconds.
    pub max: u64,
    /// Id of the stack at which the longest was measured.
    pub max_stack: u32,
}

impl Default for Times {
    fn default() -> Self {
        Times { counts: [0; BUCKETS], total: 0, max: 0, max_stack: 0 }
    }
}

impl Times {
    /// Returns the number of durations. The counts of a damaged ledger may be any, so this
    /// and all sums below stop at the largest number.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum: u64, &count| sum.saturating_add(count))
    }

    /// Returns an upper estimate of the quantile `q` (0.5 is the median) in nanoseconds: the
    /// geometric middle of the bucket in which it lies, never more than the maximum. Returns
    /// zero if there are no durations.
    #[must_use]
    pub fn quantile(&self, q: f64) -> u64 {
        let count = self.count();
        if count == 0 {
            return 0;
        }
        // The rank counts from one; a fraction of a duration is one more.
        let scaled = q.clamp(0.0, 1.0) * count as f64;
        let rank = (scaled as u64 + u64::from(scaled > (scaled as u64) as f64)).clamp(1, count);
        let mut seen: u64 = 0;
        for (bucket, &here) in self.counts.iter().enumerate() {
            seen = seen.saturating_add(here);
            if seen >= rank {
                let low = 1u64 << bucket;
                return (low + low * 2 / 5).min(self.max);
            }
        }
        self.max
    }

    /// Adds the content of another histogram.
    pub fn absorb(&mut self, other: &Times) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine = mine.saturating_add(*theirs);
        }
        self.total = self.total.saturating_add(other.total);
        if other.max > self.max {
            (self.max, self.max_stack) = (other.max, other.max_stack);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_powers_of_two() {
        assert_eq!([0, 1, 2, 3, 4, 7, 8].map(bucket), [0, 0, 1, 1, 2, 2, 3]);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        for b in 1..BUCKETS - 1 {
            assert_eq!((bucket(1 << b), bucket((1 << b) - 1)), (b, b - 1));
        }
    }

    #[test]
    fn quantiles_lie_in_their_bucket_and_below_the_maximum() {
        let mut times = Times::default();
        assert_eq!(times.quantile(0.5), 0);
        times.counts[10] = 99;
        times.counts[20] = 1;
        times.max = 1 << 20;
        for (q, bucket) in [(0.0, 10), (0.5, 10), (0.99, 10), (0.991, 20), (1.0, 20)] {
            let value = times.quantile(q);
            assert!(super::bucket(value) == bucket, "{q}: {value}");
        }
        assert_eq!(times.quantile(1.0), 1 << 20);
    }
}

//! Sets of processors.

use std::ops::Range;

/// A set of processors: a bit for each.
pub(crate) struct Cpus(Vec<u64>);

impl Cpus {
    /// Makes a set of none of `count`.
    pub(crate) fn none(count: usize) -> Self {
        Cpus(vec![0; count.div_ceil(64)])
    }

    /// Makes a set of all of `count`.
    pub(crate) fn all(count: usize) -> Self {
        let mut set = Cpus::none(count);
        (0..count).for_each(|cpu| set.set(cpu, true));
        set
    }

    /// Adds one, or takes it out.
    #[inline]
    pub(crate) fn set(&mut self, cpu: usize, there: bool) {
        let bit = 1 << (cpu % 64);
        if there {
            self.0[cpu / 64] |= bit;
        } else {
            self.0[cpu / 64] &= !bit;
        }
    }

    #[inline]
    pub(crate) fn has(&self, cpu: usize) -> bool {
        self.0[cpu / 64] >> (cpu % 64) & 1 != 0
    }

    /// Lists the members within a range, in their order.
    pub(crate) fn within(&self, range: Range<usize>) -> impl Iterator<Item = usize> + '_ {
        let words = range.start / 64..range.end.div_ceil(64);
        words.flat_map(move |word| {
            let mut bits = self.0[word];
            if word == range.start / 64 {
                bits &= u64::MAX << (range.start % 64);
            }
            if range.end < (word + 1) * 64 {
                bits &= (1 << (range.end % 64)) - 1;
            }
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros() as usize);
                bits &= bits.wrapping_sub(1);
                bit.map(|bit| word * 64 + bit)
            })
        })
    }
}

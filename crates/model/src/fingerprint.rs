//! Fingerprints: 64-bit summaries by which two equal states are recognised.
//!
//! A collision would merge two different states and could hide an execution.
//! With `n` states its probability is about `n² / 2⁶⁵`: three in a million for
//! ten million states.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Combines two words into one; not commutative.
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b ^ 0xd6e8_feb8_6659_fd93);
    let folded = (product as u64) ^ ((product >> 64) as u64);
    // The multiplication alone forgets one factor when the other is zero.
    let x = folded ^ a.rotate_left(23) ^ b.rotate_left(41).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let x = (x ^ (x >> 32)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 29)
}

/// Tables by fingerprints, or other words that are as good as random, or few.
pub(crate) type FingerprintMap<V> = HashMap<u64, V, BuildHasherDefault<Through>>;

/// Fingerprints need no hashing.
#[derive(Default)]
pub(crate) struct Through(u64);

impl Hasher for Through {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("fingerprints are words");
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}

/// A sequence of words, by which random searches choose: splitmix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Returns a number below `n`, which is not zero.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn small_and_equal_words_do_not_collide() {
        let mut seen = HashSet::new();
        for a in 0..300 {
            for b in 0..300 {
                assert!(seen.insert(mix(a, b)), "{a} {b}");
            }
        }
    }
}

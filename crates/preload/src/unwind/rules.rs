//! Remembers how the frame of an address is left, in one word.
//!
//! # State
//! A table of words, direct-mapped by address. A word holds a rule and the part
//! of the address that its place does not say, so it is read and written whole:
//! no reader can pair one address with another's rule, and no order between
//! words matters. 0 is an empty word, so zero-filled memory is an empty table.
//!
//! Its lower 30 bits are the rule, as the processor's [`leaving`](crate::arch::leaving) packs it; the others
//! are the upper bits of the address, whose lower ones follow from the place.
//!
//! # Staleness
//! A rule outlives its module if nobody calls [`Rules::forget`] when a module is
//! unloaded. A stale rule leaves a frame the wrong way: the walk gives addresses
//! that called nobody, or ends early. It cannot fault, since the stack is read
//! with checks whatever the rule says.

use crate::arch::leaving::{ALIGNED, BITS as KEY, FrameRule, KEYED};
use core::sync::atomic::{AtomicU64, Ordering};

/// The binary logarithm of the number of words.
const ORDER: u32 = 13;
const PLACES: usize = 1 << ORDER;

const _: () = assert!(KEY + KEYED - ORDER == 64);

/// The rules that a process has learned. Shared by all threads.
///
/// Zero-filled memory is a valid table without rules.
#[derive(Debug)]
#[repr(transparent)]
pub struct Rules([AtomicU64; PLACES]);

impl Rules {
    /// Makes a table without rules.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a large table: made in place, never moved")]
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; PLACES])
    }

    /// Forgets all rules, after a module was unloaded.
    pub fn forget(&self) {
        for word in &self.0 {
            word.store(0, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn get(&self, pc: u64) -> Option<FrameRule> {
        let (place, key) = split(pc)?;
        let word = self.0[place].load(Ordering::Relaxed);
        if word >> KEY == key { FrameRule::unpack(word) } else { None }
    }

    /// Remembers `rule` in place of what was there, if it fits.
    pub(crate) fn learn(&self, pc: u64, rule: FrameRule) {
        if let (Some((place, key)), Some(bits)) = (split(pc), rule.pack()) {
            self.0[place].store(key << KEY | bits, Ordering::Relaxed);
        }
    }
}

/// Returns the place of an address, and the rest of it, from which both it follows.
fn split(pc: u64) -> Option<(usize, u64)> {
    let address = pc >> ALIGNED;
    if address >> KEYED != 0 || address << ALIGNED != pc {
        return None;
    }
    let key = address >> ORDER;
    // Modules start at the same low bits: the high ones stir the place.
    let place = (address ^ key ^ (key >> ORDER)) & (PLACES as u64 - 1);
    Some((place as usize, key))
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::{boxed::Box, collections::HashSet, vec::Vec};

    #[test]
    fn an_address_never_gets_the_rule_of_another() {
        // All that share the place of one address, by brute force over the low
        // bits of neighbouring blocks, plus far ones.
        let home = 0x7f12_3456_789c_u64;
        let (place, _) = split(home).unwrap();
        let rivals: Vec<u64> = (0..1 << (ORDER + 5))
            .map(|low| (home & !0x3_ffff) | low)
            .chain((0..1 << 20).map(|n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 17))
            // As code is aligned.
            .map(|pc| pc >> ALIGNED << ALIGNED)
            .filter(|&pc| pc != home && split(pc).unwrap().0 == place)
            .collect();
        assert!(rivals.len() > 100, "only {} rivals", rivals.len());
        let keys: HashSet<u64> = rivals.iter().map(|&pc| split(pc).unwrap().1).collect();
        assert_eq!(keys.len(), rivals.iter().collect::<HashSet<_>>().len());
        let rules = Box::new(Rules::new());
        rules.learn(home, FrameRule::Bottom);
        for pc in rivals {
            assert_eq!(rules.get(pc), None, "{pc:#x}");
        }
    }
}

//! Remembers how the frame of an address is left, in one word.
//!
//! # State
//! A table of words, direct-mapped by address. A word holds a rule and the part
//! of the address that its place does not say, so it is read and written whole:
//! no reader can pair one address with another's rule, and no order between
//! words matters. 0 is an empty word, so zero-filled memory is an empty table.
//!
//! | bits | meaning |
//! |---|---|
//! | 0..2 | base of the frame address: 0 empty, 1 rsp, 2 rbp, 3 the word that lies below rbp |
//! | 2..20 | distance in words; with base 1, 0 says that there is no caller |
//! | 20..30 | where rbp is saved, in words below the frame address: 0 it is kept, 1023 it is lost |
//! | 30..64 | bits 13..47 of the address; its lower bits follow from the place |
//!
//! # Staleness
//! A rule outlives its module if nobody calls [`Rules::forget`] when a module is
//! unloaded. A stale rule leaves a frame the wrong way: the walk gives addresses
//! that called nobody, or ends early. It cannot fault, since the stack is read
//! with checks whatever the rule says.

use core::sync::atomic::{AtomicU64, Ordering};
use lockstead_unwind::{Cfa, Followed, FoundRow, ModuleImage, RBP, RSP, Saved};

/// The binary logarithm of the number of words.
const ORDER: u32 = 13;
/// The number of bits of a user-space address.
const ADDRESS: u32 = 47;
const PLACES: usize = 1 << ORDER;

const KIND: u32 = 2;
const DISTANCE: u32 = 18;
const SAVED: u32 = 10;
/// The place where the rest of the address starts.
const KEY: u32 = KIND + DISTANCE + SAVED;
const LOST: u64 = (1 << SAVED) - 1;

const _: () = assert!(KEY + ADDRESS - ORDER == 64);

/// The value that the frame address is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameBase {
    Rsp = 1,
    Rbp = 2,
    /// The word at this distance below rbp, as in functions that realign.
    BelowRbp = 3,
}

/// The place of the caller's rbp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallersRbp {
    Kept,
    Lost,
    /// It is in memory, that many bytes below the frame address.
    Below(u64),
}

/// How a frame is left whose return address lies right below its frame address,
/// as all do but those of signal handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameRule {
    /// The frame is of the outermost function: it has no caller.
    Bottom,
    Frame {
        base: FrameBase,
        /// The distance from the base in bytes.
        distance: u64,
        rbp: CallersRbp,
    },
}

impl FrameRule {
    /// Returns the rule that was found in `image`, if it is of the common kind.
    pub(super) fn of<F: Followed>(found: &FoundRow<F>, image: &impl ModuleImage) -> Option<Self> {
        let (mut followed, row) = (found.row.followed, found.row);
        let (base, distance) = match (row.ra, row.cfa) {
            (Saved::Lost, _) => return Some(Self::Bottom),
            (Saved::At(-8), Cfa::Register(RSP, distance)) => (FrameBase::Rsp, distance),
            (Saved::At(-8), Cfa::Register(RBP, distance)) => (FrameBase::Rbp, distance),
            (Saved::At(-8), Cfa::Expression(place)) => {
                let (at, len) = found.place(place);
                (FrameBase::BelowRbp, below_rbp(image.bytes(at, len)?)?)
            }
            _ => return None,
        };
        let rbp = match *followed.rule(RBP)? {
            Saved::Same => CallersRbp::Kept,
            Saved::Lost => CallersRbp::Lost,
            Saved::At(distance) if distance < 0 => {
                CallersRbp::Below(u64::from(distance.unsigned_abs()))
            }
            _ => return None,
        };
        Some(Self::Frame { base, distance: u64::try_from(distance).ok()?, rbp })
    }

    /// Returns the rule as bits, if it fits.
    fn pack(self) -> Option<u64> {
        let Self::Frame { base, distance, rbp } = self else { return Some(FrameBase::Rsp as u64) };
        let rbp = match rbp {
            CallersRbp::Kept => 0,
            CallersRbp::Lost => LOST,
            CallersRbp::Below(bytes) => words(bytes).filter(|&words| words < LOST)?,
        };
        let distance = words(distance).filter(|&words| words < 1 << DISTANCE)?;
        Some(base as u64 | distance << KIND | rbp << (KIND + DISTANCE))
    }

    /// Returns the rule in a word that is not empty.
    #[inline]
    fn unpack(word: u64) -> Option<Self> {
        let distance = ((word >> KIND) & ((1 << DISTANCE) - 1)) * 8;
        let base = match word & ((1 << KIND) - 1) {
            1 if distance == 0 => return Some(Self::Bottom),
            1 => FrameBase::Rsp,
            2 => FrameBase::Rbp,
            3 => FrameBase::BelowRbp,
            _ => return None,
        };
        let rbp = match (word >> (KIND + DISTANCE)) & LOST {
            0 => CallersRbp::Kept,
            LOST => CallersRbp::Lost,
            words => CallersRbp::Below(words * 8),
        };
        Some(Self::Frame { base, distance, rbp })
    }
}

/// Returns `bytes` in words, unless it is none or not a whole number of them.
fn words(bytes: u64) -> Option<u64> {
    (bytes != 0 && bytes.is_multiple_of(8)).then_some(bytes / 8)
}

/// Returns n, of the expression that says "the word at rbp - n", which is how compilers
/// describe functions that realign their stack. Its distance has one byte.
fn below_rbp(expression: &[u8]) -> Option<i32> {
    const RBP_PLUS: u8 = 0x76;
    const DEREFERENCE: u8 = 0x06;
    match *expression {
        // A signed LEB128 of one byte: bit 6 is the sign, and below 0 here.
        [RBP_PLUS, distance @ 0x40..=0x7f, DEREFERENCE] => Some(0x80 - i32::from(distance)),
        _ => None,
    }
}

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
    pub(super) fn get(&self, pc: u64) -> Option<FrameRule> {
        let (place, key) = split(pc)?;
        let word = self.0[place].load(Ordering::Relaxed);
        if word >> KEY == key { FrameRule::unpack(word) } else { None }
    }

    /// Remembers `rule` in place of what was there, if it fits.
    pub(super) fn learn(&self, pc: u64, rule: FrameRule) {
        if let (Some((place, key)), Some(bits)) = (split(pc), rule.pack()) {
            self.0[place].store(key << KEY | bits, Ordering::Relaxed);
        }
    }
}

/// Returns the place of an address, and the rest of it, from which both it follows.
fn split(pc: u64) -> Option<(usize, u64)> {
    if pc >> ADDRESS != 0 {
        return None;
    }
    let key = pc >> ORDER;
    // Modules start at the same low bits: the high ones stir the place.
    let place = (pc ^ key ^ (key >> ORDER)) & (PLACES as u64 - 1);
    Some((place as usize, key))
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::{boxed::Box, collections::HashSet, vec::Vec};

    fn frame(base: FrameBase, distance: u64, rbp: CallersRbp) -> FrameRule {
        FrameRule::Frame { base, distance, rbp }
    }

    #[test]
    fn a_rule_that_fits_comes_back_as_it_was() {
        let rules = Box::new(Rules::new());
        let mut kept = 0;
        for base in [FrameBase::Rsp, FrameBase::Rbp, FrameBase::BelowRbp] {
            for distance in [8, 16, 4096, ((1 << DISTANCE) - 1) * 8] {
                for rbp in [
                    CallersRbp::Kept,
                    CallersRbp::Lost,
                    CallersRbp::Below(8),
                    CallersRbp::Below((LOST - 1) * 8),
                ] {
                    let rule = frame(base, distance, rbp);
                    for pc in [0x40_1000, 0x7fff_ffff_ffff] {
                        rules.learn(pc, rule);
                        assert_eq!(rules.get(pc), Some(rule));
                        kept += 1;
                    }
                }
            }
        }
        assert_eq!(kept, 3 * 4 * 4 * 2);
        rules.learn(0x1234, FrameRule::Bottom);
        assert_eq!(rules.get(0x1234), Some(FrameRule::Bottom));
    }

    #[test]
    fn what_does_not_fit_is_not_kept() {
        let rules = Box::new(Rules::new());
        for rule in [
            frame(FrameBase::Rsp, 0, CallersRbp::Kept),
            frame(FrameBase::Rsp, 12, CallersRbp::Kept),
            frame(FrameBase::Rsp, (1 << DISTANCE) * 8, CallersRbp::Kept),
            frame(FrameBase::Rbp, 16, CallersRbp::Below(LOST * 8)),
            frame(FrameBase::Rbp, 16, CallersRbp::Below(12)),
        ] {
            rules.learn(0x40_1000, rule);
            assert_eq!(rules.get(0x40_1000), None, "{rule:?}");
        }
        rules.learn(1 << ADDRESS, FrameRule::Bottom);
        assert_eq!(rules.get(1 << ADDRESS), None);
    }

    #[test]
    fn an_address_never_gets_the_rule_of_another() {
        // All that share the place of one address, by brute force over the low
        // bits of neighbouring blocks, plus far ones.
        let home = 0x7f12_3456_789a_u64;
        let (place, _) = split(home).unwrap();
        let rivals: Vec<u64> = (0..1 << (ORDER + 5))
            .map(|low| (home & !0x3_ffff) | low)
            .chain((0..1 << 20).map(|n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 17))
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

    #[test]
    fn a_word_of_noise_is_a_rule_or_none() {
        for n in 0..100_000_u64 {
            let word = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            if let Some(rule) = FrameRule::unpack(word)
                && let Some(bits) = rule.pack()
            {
                assert_eq!(FrameRule::unpack(bits), Some(rule));
            }
        }
    }

    #[test]
    fn the_expression_of_a_realigned_frame_is_recognised() {
        assert_eq!(below_rbp(&[0x76, 0x78, 0x06]), Some(8));
        assert_eq!(below_rbp(&[0x76, 0x50, 0x06]), Some(48));
        assert_eq!(below_rbp(&[0x76, 0x08, 0x06]), None);
        assert_eq!(below_rbp(&[0x77, 0x78, 0x06]), None);
        assert_eq!(below_rbp(&[0x76, 0xf8, 0x7e, 0x06]), None);
    }
}

//! How a frame is left on x86-64, in what a word of [`Rules`](crate::unwind::Rules) has room for.
//!
//! | bits | meaning |
//! |---|---|
//! | 0..2 | base of the frame address: 0 empty, 1 rsp, 2 rbp, 3 the word that lies below rbp |
//! | 2..20 | distance in words; with base 1, 0 says that there is no caller |
//! | 20..30 | where rbp is saved, in words below the frame address: 0 it is kept, 1023 it is lost |

use crate::unwind::{LeftFrame, LoadedModules, StackMemory, WalkEnd, WalkFrame};
use lockstead_unwind::{Cfa, FP, Followed, FoundRow, ModuleImage, SP, Saved};

/// The number of bits of an address that a word's key has room for, and how many lower ones of an address of
/// code are zero.
pub(crate) const KEYED: u32 = 47;
pub(crate) const ALIGNED: u32 = 0;

const KIND: u32 = 2;
const DISTANCE: u32 = 18;
const SAVED: u32 = 10;
/// The number of bits of a rule.
pub(crate) const BITS: u32 = KIND + DISTANCE + SAVED;
const LOST: u64 = (1 << SAVED) - 1;

/// The value that the frame address is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameBase {
    Rsp = 1,
    Rbp = 2,
    /// The word at this distance below rbp, as in functions that realign.
    BelowRbp = 3,
}

/// The place of the caller's rbp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallersRbp {
    Kept,
    Lost,
    /// It is in memory, that many bytes below the frame address.
    Below(u64),
}

/// How a frame is left whose return address lies right below its frame address,
/// as all do but those of signal handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameRule {
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
    pub(crate) fn of<F: Followed>(found: &FoundRow<F>, image: &impl ModuleImage) -> Option<Self> {
        let (mut followed, row) = (found.row.followed, found.row);
        let (base, distance) = match (row.ra, row.cfa) {
            (Saved::Lost, _) => return Some(Self::Bottom),
            (Saved::At(-8), Cfa::Register(SP, distance)) => (FrameBase::Rsp, distance),
            (Saved::At(-8), Cfa::Register(FP, distance)) => (FrameBase::Rbp, distance),
            (Saved::At(-8), Cfa::Expression(place)) => {
                let (at, len) = found.place(place);
                (FrameBase::BelowRbp, below_rbp(image.bytes(at, len)?)?)
            }
            _ => return None,
        };
        let rbp = match *followed.rule(FP)? {
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
    pub(crate) fn pack(self) -> Option<u64> {
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
    pub(crate) fn unpack(word: u64) -> Option<Self> {
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

    /// Leaves the frame by this rule.
    #[inline(always)]
    pub(crate) fn leave(
        self,
        frame: &WalkFrame,
        memory: &impl StackMemory,
    ) -> Result<LeftFrame, WalkEnd> {
        let Self::Frame { base, distance, rbp } = self else { return Err(WalkEnd::Bottom) };
        let address = match base {
            FrameBase::Rsp => frame.sp.wrapping_add(distance),
            FrameBase::Rbp => frame.bp.ok_or(WalkEnd::Unknown)?.wrapping_add(distance),
            FrameBase::BelowRbp => {
                let place = frame.bp.ok_or(WalkEnd::Unknown)?.wrapping_sub(distance);
                memory.word(place).ok_or(WalkEnd::OffStack)?
            }
        };
        if address <= frame.sp {
            return Err(WalkEnd::OffStack);
        }
        let slot = address - 8;
        let pc = memory.word(slot).ok_or(WalkEnd::OffStack)?;
        let bp = match rbp {
            CallersRbp::Kept => frame.bp,
            CallersRbp::Lost => None,
            CallersRbp::Below(distance) => {
                Some(memory.word(address.wrapping_sub(distance)).ok_or(WalkEnd::OffStack)?)
            }
        };
        LeftFrame::arrive(WalkFrame::called(pc, address, bp), Some(slot))
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

/// What else is known of a frame: nothing here.
#[derive(Clone, Copy)]
pub(crate) struct Beside;

impl Beside {
    /// What is known of a frame that called, and whose extent is known.
    pub(crate) const CALLED: Self = Beside;
    /// What is known of a frame that was found by the frame pointer.
    pub(crate) const POINTED: Self = Beside;

    /// Returns what is in the register of the return address: on x86-64 that is none, and what expressions
    /// call the instruction pointer.
    pub(crate) fn ra(self, pc: u64) -> Option<u64> {
        Some(pc)
    }

    /// Tells whether the stack pointer is known, rather than something below it.
    pub(crate) fn has_stack_pointer(self) -> bool {
        true
    }
}

/// Returns the address in a word that a function has saved of its return address.
#[inline(always)]
pub(crate) fn return_address(word: u64) -> u64 {
    word
}

/// Returns what a signal has interrupted, if the frame is what its handler returns to, and only its
/// instructions say so: here tables do.
#[inline(always)]
pub(crate) fn signal_return(
    _: &impl LoadedModules,
    _: &WalkFrame,
    _: &mut impl StackMemory,
) -> Option<Result<LeftFrame, WalkEnd>> {
    None
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::unwind::Rules;
    use std::boxed::Box;

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
        rules.learn(1 << KEYED, FrameRule::Bottom);
        assert_eq!(rules.get(1 << KEYED), None);
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

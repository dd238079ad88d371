//! How a frame is left on aarch64, in what a word of [`Rules`](crate::unwind::Rules) has room for.
//!
//! A function that calls others saves the return address, nearly always above the frame pointer.
//!
//! | bits | meaning |
//! |---|---|
//! | 0..2 | base of the frame address: 0 empty, 1 and 3 the stack pointer, 2 the frame pointer |
//! | 2..20 | distance in words; 0 says that there is no caller |
//! | 20..30 | in words below the frame address: with 1 and 2 where the pair of frame pointer and return address is saved, with 3 where the return address alone is, and the frame pointer is kept |

use crate::unwind::{LeftFrame, LoadedModules, StackMemory, WalkEnd, WalkFrame};
use lockstead_unwind::arch::{SIGNAL_RETURN, signal_frame};
use lockstead_unwind::{Cfa, FP, Followed, FoundRow, ModuleImage, SP, Saved};

pub(crate) use super::without_signature as return_address;

/// The number of bits of an address that a word's key has room for, and how many lower ones of an address of
/// code are zero: 49 bits together. Code that lies above, where a program must have asked for it, is looked
/// up each time.
pub(crate) const KEYED: u32 = 47;
pub(crate) const ALIGNED: u32 = 2;

const KIND: u32 = 2;
const DISTANCE: u32 = 18;
const SAVED: u32 = 10;
/// The number of bits of a rule.
pub(crate) const BITS: u32 = KIND + DISTANCE + SAVED;

/// How a frame is left whose return address lies in it, as all do but those of signal handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameRule {
    /// The frame is of the outermost function: it has no caller.
    Bottom,
    /// The frame address is so far from the base, and so far below it something is saved.
    Frame { base: FrameBase, distance: u64, below: u64 },
}

/// The value that the frame address is counted from, and what is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameBase {
    /// The stack pointer; the pair.
    SpPair = 1,
    /// The frame pointer; the pair.
    FpPair = 2,
    /// The stack pointer; the return address, and the frame pointer is kept.
    SpAlone = 3,
}

impl FrameRule {
    /// Returns the rule that was found, if it is of a common kind.
    pub(crate) fn of<F: Followed>(found: &FoundRow<F>, _: &impl ModuleImage) -> Option<Self> {
        let (mut followed, row) = (found.row.followed, found.row);
        let Saved::At(ra) = row.ra else {
            return matches!(row.ra, Saved::Lost).then_some(Self::Bottom);
        };
        let Cfa::Register(register, distance) = row.cfa else { return None };
        let (base, place) = match (*followed.rule(FP)?, register) {
            (Saved::At(fp), SP) if fp.checked_add(8) == Some(ra) => (FrameBase::SpPair, fp),
            (Saved::At(fp), FP) if fp.checked_add(8) == Some(ra) => (FrameBase::FpPair, fp),
            (Saved::Same, SP) => (FrameBase::SpAlone, ra),
            _ => return None,
        };
        let below = u64::try_from(place.checked_neg()?).ok()?;
        Some(Self::Frame { base, distance: u64::try_from(distance).ok()?, below })
    }

    /// Returns the rule as bits, if it fits.
    pub(crate) fn pack(self) -> Option<u64> {
        let Self::Frame { base, distance, below } = self else {
            return Some(FrameBase::SpPair as u64);
        };
        let below = words(below).filter(|&words| words < 1 << SAVED)?;
        let distance = words(distance).filter(|&words| words < 1 << DISTANCE)?;
        Some(base as u64 | distance << KIND | below << (KIND + DISTANCE))
    }

    /// Returns the rule in a word that is not empty.
    #[inline]
    pub(crate) fn unpack(word: u64) -> Option<Self> {
        let distance = ((word >> KIND) & ((1 << DISTANCE) - 1)) * 8;
        let base = match word & ((1 << KIND) - 1) {
            1 if distance == 0 => return Some(Self::Bottom),
            1 => FrameBase::SpPair,
            2 => FrameBase::FpPair,
            3 => FrameBase::SpAlone,
            _ => return None,
        };
        let below = ((word >> (KIND + DISTANCE)) & ((1 << SAVED) - 1)) * 8;
        Some(Self::Frame { base, distance, below })
    }

    /// Leaves the frame by this rule.
    #[inline(always)]
    pub(crate) fn leave(
        self,
        frame: &WalkFrame,
        memory: &impl StackMemory,
    ) -> Result<LeftFrame, WalkEnd> {
        let Self::Frame { base, distance, below } = self else { return Err(WalkEnd::Bottom) };
        let by_pair = base == FrameBase::SpPair && !frame.beside.has_stack_pointer();
        let address = match base {
            // Found by the frame pointer, which leads to the pair.
            FrameBase::SpPair if by_pair => frame.bp.ok_or(WalkEnd::Unknown)?.wrapping_add(below),
            FrameBase::SpPair => frame.sp.wrapping_add(distance),
            FrameBase::FpPair => frame.bp.ok_or(WalkEnd::Unknown)?.wrapping_add(distance),
            FrameBase::SpAlone if frame.beside.has_stack_pointer() => {
                frame.sp.wrapping_add(distance)
            }
            FrameBase::SpAlone => return Err(WalkEnd::Unknown),
        };
        if address <= frame.sp {
            return Err(WalkEnd::OffStack);
        }
        let place = address.wrapping_sub(below);
        let word = |at: u64| memory.word(at).ok_or(WalkEnd::OffStack);
        let (slot, bp) = match base {
            FrameBase::SpAlone => (place, frame.bp),
            _ => (place.wrapping_add(8), Some(word(place)?)),
        };
        let pc = return_address(word(slot)?);
        LeftFrame::arrive(WalkFrame::called(pc, address, bp), Some(slot))
    }
}

/// Returns `bytes` in words, unless it is none or not a whole number of them.
fn words(bytes: u64) -> Option<u64> {
    (bytes != 0 && bytes.is_multiple_of(8)).then_some(bytes / 8)
}

/// What else is known of a frame.
#[derive(Clone, Copy)]
pub(crate) struct Beside {
    /// What is in the register of the return address: of a function that a signal has interrupted.
    ra: Option<u64>,
    has_stack_pointer: bool,
}

impl Beside {
    /// What is known of a frame that called, and whose extent is known: what was in the register of the
    /// return address is lost.
    pub(crate) const CALLED: Self = Beside { ra: None, has_stack_pointer: true };
    /// What is known of a frame that was found by the frame pointer, which may point anywhere in it.
    pub(crate) const POINTED: Self = Beside { ra: None, has_stack_pointer: false };

    /// Returns what is in the register of the return address, if that is known.
    pub(crate) fn ra(self, _pc: u64) -> Option<u64> {
        self.ra
    }

    /// Tells whether the stack pointer is known, rather than something below it.
    pub(crate) fn has_stack_pointer(self) -> bool {
        self.has_stack_pointer
    }
}

/// Returns what a signal has interrupted, if the frame is what its handler returns to: the kernel's page of
/// code, which is known by its instructions.
pub(crate) fn signal_return(
    modules: &impl LoadedModules,
    frame: &WalkFrame,
    memory: &mut impl StackMemory,
) -> Option<Result<LeftFrame, WalkEnd>> {
    if !frame.beside.has_stack_pointer || modules.code(frame.pc)? != SIGNAL_RETURN {
        return None;
    }
    let sp = frame.sp;
    Some((|| {
        let saved = |distance| memory.word(sp.wrapping_add(distance)).ok_or(WalkEnd::OffStack);
        let (bp, ra) = (saved(signal_frame::FP)?, saved(signal_frame::RA)?);
        let (stack, slot) = (saved(signal_frame::SP)?, sp.wrapping_add(signal_frame::PC));
        let pc = saved(signal_frame::PC)?;
        // The handler may have had a stack of its own.
        if (stack <= sp || memory.word(stack & !7).is_none()) && !memory.enter(stack) {
            return Err(WalkEnd::OffStack);
        }
        let beside = Beside { ra: Some(ra), has_stack_pointer: true };
        let called = WalkFrame::called(pc, stack, Some(bp));
        LeftFrame::arrive(WalkFrame { interrupted: true, beside, ..called }, Some(slot))
    })())
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::unwind::Rules;
    use std::boxed::Box;

    fn frame(base: FrameBase, distance: u64, below: u64) -> FrameRule {
        FrameRule::Frame { base, distance, below }
    }

    #[test]
    fn a_rule_that_fits_comes_back_as_it_was() {
        let rules = Box::new(Rules::new());
        for base in [FrameBase::SpPair, FrameBase::FpPair, FrameBase::SpAlone] {
            for distance in [8, 16, 4096, ((1 << DISTANCE) - 1) * 8] {
                for below in [8, 16, ((1 << SAVED) - 1) * 8] {
                    let rule = frame(base, distance, below);
                    for pc in [0x40_1000, 0x7fff_ffff_fffc, 0xffff_ffff_fffc] {
                        rules.learn(pc, rule);
                        assert_eq!(rules.get(pc), Some(rule));
                    }
                }
            }
        }
        rules.learn(0x1234, FrameRule::Bottom);
        assert_eq!(rules.get(0x1234), Some(FrameRule::Bottom));
    }

    #[test]
    fn what_does_not_fit_is_not_kept() {
        let rules = Box::new(Rules::new());
        for rule in [
            frame(FrameBase::SpPair, 0, 16),
            frame(FrameBase::SpPair, 12, 16),
            frame(FrameBase::SpAlone, (1 << DISTANCE) * 8, 16),
            frame(FrameBase::FpPair, 16, 8 << SAVED),
            frame(FrameBase::FpPair, 16, 12),
        ] {
            rules.learn(0x40_1000, rule);
            assert_eq!(rules.get(0x40_1000), None, "{rule:?}");
        }
        for pc in [1 << 49, 0x40_1002] {
            rules.learn(pc, FrameRule::Bottom);
            assert_eq!(rules.get(pc), None);
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
    fn a_signature_is_taken_off() {
        let code = tests::a_signature_is_taken_off as fn() as usize as u64;
        assert_eq!(return_address(code), code);
        let signed: u64;
        // SAFETY: the instruction signs a register; processors without signatures pass it over.
        unsafe {
            core::arch::asm!("hint #25", inlateout("x30") code => signed, options(nomem, nostack));
        }
        assert_eq!(return_address(signed), code);
    }
}

//! The word of a shared lock, and who is named in it.
//!
//! # State
//! | bits | name | meaning |
//! |---|---|---|
//! | 31 | [`WAITERS`] | somebody may sleep, or is about to |
//! | 30 | [`INCONSISTENT`] | an owner died; what it left has not been declared consistent |
//! | 29 | [`RESERVED`] | reserved for the hand-off waiter that the lock's other word names |
//! | 28 | [`UNTOUCHED`] | the owner has not touched what the lock protects |
//! | 27..14 | generation | of the owner |
//! | 13..0 | slot | of the owner; 0: nobody |
//!
//! All ones: not recoverable, for good.

use core::num::NonZeroU32;

/// Bits of a slot of a segment.
pub const SLOT_BITS: u32 = 14;
/// Bits of a generation.
pub const GENERATION_BITS: u32 = 14;
/// The largest slot: 16,382. The next one would be that of
/// [`NOT_RECOVERABLE`].
pub const LAST_SLOT: u32 = (1 << SLOT_BITS) - 2;
/// The largest generation. A slot that has it is worn out.
pub const LAST_GENERATION: u32 = (1 << GENERATION_BITS) - 1;

/// Somebody may sleep.
pub const WAITERS: u32 = 1 << 31;
/// An owner died.
pub const INCONSISTENT: u32 = 1 << 30;
/// Reserved for the hand-off waiter.
pub const RESERVED: u32 = 1 << 29;
/// Its owner has changed nothing.
pub const UNTOUCHED: u32 = 1 << 28;
/// Who owns it.
pub const OWNER: u32 = (1 << (SLOT_BITS + GENERATION_BITS)) - 1;
/// The lock is of no use any more.
pub const NOT_RECOVERABLE: u32 = u32::MAX;

/// A participant of a segment: its slot, and how often the slot had belonged to
/// somebody that died.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Identity(NonZeroU32);

impl Identity {
    /// The participant in this slot in this generation.
    #[inline]
    #[must_use]
    pub const fn new(slot: u32, generation: u32) -> Option<Identity> {
        if slot == 0 || slot > LAST_SLOT || generation > LAST_GENERATION {
            return None;
        }
        Identity::from_bits(generation << SLOT_BITS | slot)
    }

    /// The owner named in a word; `None`: nobody. Any bits are accepted: the slot may
    /// be one that the segment does not have.
    #[inline(always)]
    #[must_use]
    pub const fn from_bits(word: u32) -> Option<Identity> {
        match NonZeroU32::new(word & OWNER) {
            Some(bits) => Some(Identity(bits)),
            None => None,
        }
    }

    /// As it stands in a word.
    #[inline(always)]
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0.get()
    }

    /// Its slot.
    #[inline]
    #[must_use]
    pub const fn slot(self) -> u32 {
        self.bits() & ((1 << SLOT_BITS) - 1)
    }

    /// Its generation.
    #[inline]
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.bits() >> SLOT_BITS
    }
}

//! The word of a lock between processes, and whom it names.
//!
//! # State
//! ```text
//!   31        30             29         28          27 ─────── 14   13 ─── 0
//!  ┌─────────┬──────────────┬──────────┬───────────┬──────────────┬─────────┐
//!  │ WAITERS │ INCONSISTENT │ RESERVED │ UNTOUCHED │ generation   │ slot    │
//!  └─────────┴──────────────┴──────────┴───────────┴──────────────┴─────────┘
//! ```
//!
//! | bits | name | meaning | who sets it | who clears it |
//! |---|---|---|---|---|
//! | 31 | [`WAITERS`] | somebody may sleep, or is about to | a waiter | the release |
//! | 30 | [`INCONSISTENT`] | an owner died, and nobody has declared consistent what it left | the next owner | that owner, when it declares so |
//! | 29 | [`RESERVED`] | the next owner is the hand-off waiter that the lock's other word names | that waiter | the same |
//! | 28 | [`UNTOUCHED`] | the owner has not touched what the lock protects | the owner, as it takes the lock | the same |
//! | 27..14 | generation | of the owner | the owner | the release |
//! | 13..0 | slot | of the owner; 0: nobody | the owner | the release |
//!
//! All ones: the lock is not recoverable, for good.

use core::num::NonZeroU32;

/// The number of bits that name a slot.
pub const SLOT_BITS: u32 = 14;
/// The number of bits that a generation has.
pub const GENERATION_BITS: u32 = 14;
/// The largest slot, 16,382. The next one would be that of [`NOT_RECOVERABLE`].
pub const LAST_SLOT: u32 = (1 << SLOT_BITS) - 2;
/// The largest generation. A slot that has it is worn out.
pub const LAST_GENERATION: u32 = (1 << GENERATION_BITS) - 1;

/// The flag which says that somebody may sleep.
pub const WAITERS: u32 = 1 << 31;
/// The flag which says that an owner died.
pub const INCONSISTENT: u32 = 1 << 30;
/// The flag which says that the lock is reserved for the hand-off waiter.
pub const RESERVED: u32 = 1 << 29;
/// The flag which says that the owner has changed nothing yet.
pub const UNTOUCHED: u32 = 1 << 28;
/// The mask of the bits that name the owner.
pub const OWNER: u32 = (1 << (SLOT_BITS + GENERATION_BITS)) - 1;
/// The word of a lock that is of no use any more.
pub const NOT_RECOVERABLE: u32 = u32::MAX;

/// The name of a participant of a segment: its slot, and how many owners of that slot died
/// before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Identity(NonZeroU32);

impl Identity {
    /// Names the participant in this slot in this generation. Returns `None` if one of the two is
    /// out of range.
    #[inline]
    #[must_use]
    pub const fn new(slot: u32, generation: u32) -> Option<Identity> {
        if slot == 0 || slot > LAST_SLOT || generation > LAST_GENERATION {
            return None;
        }
        Identity::from_bits(generation << SLOT_BITS | slot)
    }

    /// Reads the owner that a word names; `None`: nobody. Accepts any bits: the segment need
    /// not have the slot.
    #[inline(always)]
    #[must_use]
    pub const fn from_bits(word: u32) -> Option<Identity> {
        match NonZeroU32::new(word & OWNER) {
            Some(bits) => Some(Identity(bits)),
            None => None,
        }
    }

    /// Returns the bits that name this participant in a word.
    #[inline(always)]
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0.get()
    }

    /// Returns the number of the participant's slot.
    #[inline]
    #[must_use]
    pub const fn slot(self) -> u32 {
        self.bits() & ((1 << SLOT_BITS) - 1)
    }

    /// Returns the generation of the participant's slot.
    #[inline]
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.bits() >> SLOT_BITS
    }
}

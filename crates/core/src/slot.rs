//! The numbers by which locks name threads.

use core::num::NonZeroU32;

/// The number of bits of a slot number.
pub const SLOT_BITS: u32 = 20;

/// The largest number of participants of a domain: 1,048,575.
pub const MAX_SLOTS: u32 = (1 << SLOT_BITS) - 1;

/// The number of a participant, from 1 to [`MAX_SLOTS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Slot(NonZeroU32);

impl Slot {
    /// Returns the slot with this number; `None` for 0 and for numbers too large.
    #[inline(always)]
    #[must_use]
    pub const fn new(number: u32) -> Option<Self> {
        if number > MAX_SLOTS {
            return None;
        }
        match NonZeroU32::new(number) {
            Some(n) => Some(Slot(n)),
            None => None,
        }
    }

    /// Returns the number of the slot.
    #[inline(always)]
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

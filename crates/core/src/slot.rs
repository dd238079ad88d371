//! The numbers by which locks name threads.

use core::num::NonZeroU32;

/// Bits of a slot number.
pub const SLOT_BITS: u32 = 20;

/// The largest number of participants of a domain: 1,048,575.
pub const MAX_SLOTS: u32 = (1 << SLOT_BITS) - 1;

/// The number of a participant, from 1 to [`MAX_SLOTS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Slot(NonZeroU32);

impl Slot {
    /// The slot with this number; `None` for 0 and for numbers too large.
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

    /// The number.
    #[inline(always)]
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

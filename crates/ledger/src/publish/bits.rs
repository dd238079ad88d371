//! The bits of a published wait and of a held entry.

/// The binary logarithm of the most holds that one stands for that is timed.
pub const RAREST: u32 = 8;

/// How a thread waits, in the bits that the ledger stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct How(pub u32);

impl How {
    /// Sleeps until it owns a mutex.
    pub const MUTEX: How = How(1);
    /// Until it holds a reader-writer lock for writing.
    pub const WRITE: How = How(2);
    /// Until it holds a reader-writer lock for reading.
    pub const READ: How = How(3);
    /// Spins until it owns a spin lock.
    pub const SPIN: How = How(4);
    /// Until another thread has ended; the target is its `pthread_t`.
    pub const JOIN: How = How(5);
    /// On a condition variable.
    pub const CONDITION: How = How(6);
    /// On a semaphore.
    pub const SEMAPHORE: How = How(7);
    /// At a barrier.
    pub const BARRIER: How = How(8);

    const KIND: u32 = 0xff;
    const TIMED: u32 = 1 << 8;
    const REALTIME: u32 = 1 << 9;

    /// The same wait with a deadline on `CLOCK_MONOTONIC`.
    #[must_use]
    pub const fn timed(self) -> How {
        How(self.0 | Self::TIMED)
    }

    /// The same wait with a deadline on `CLOCK_REALTIME`.
    #[must_use]
    pub const fn timed_realtime(self) -> How {
        How(self.0 | Self::TIMED | Self::REALTIME)
    }

    /// What is waited for, without the deadline: one of the constants.
    #[must_use]
    pub const fn kind(self) -> How {
        How(self.0 & Self::KIND)
    }

    /// Whether the wait ends by itself at a deadline.
    #[must_use]
    pub const fn is_timed(self) -> bool {
        self.0 & Self::TIMED != 0
    }

    /// Whether the deadline is one of `CLOCK_REALTIME`.
    #[must_use]
    pub const fn is_realtime(self) -> bool {
        self.0 & Self::REALTIME != 0
    }
}

/// What is special about a held lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Flags(pub u32);

impl Flags {
    /// Held exclusively, nothing special.
    pub const NONE: Flags = Flags(0);
    /// Held for reading.
    pub const READ: Flags = Flags(1);
    /// Its time of holding is measured, and counts for [`Flags::weight`] of its like.
    pub const TIMED: Flags = Flags(2);
    /// Given back for the time of a wait on a condition variable: not held.
    pub const LENT: Flags = Flags(4);
    /// Acquired by a trylock.
    pub const TRIED: Flags = Flags(8);
    /// Acquired after waiting.
    pub const CONTENDED: Flags = Flags(16);
    /// Acquired before the fork that made this process.
    pub const INHERITED: Flags = Flags(32);

    const RARITY_SHIFT: u32 = 6;
    const RARITY: u32 = 15 << Self::RARITY_SHIFT;

    /// [`Flags::TIMED`], and so are one in `2^rarity` of its like.
    #[must_use]
    pub const fn timed(rarity: u32) -> Flags {
        let rarity = if rarity < RAREST { rarity } else { RAREST };
        Flags(Self::TIMED.0 | rarity << Self::RARITY_SHIFT)
    }

    /// How many holds one that is timed stands for.
    #[must_use]
    pub const fn weight(self) -> u64 {
        1 << ((self.0 & Self::RARITY) >> Self::RARITY_SHIFT)
    }

    /// These without what says that it is timed.
    #[must_use]
    pub const fn untimed(self) -> Flags {
        Flags(self.0 & !(Self::TIMED.0 | Self::RARITY))
    }

    /// Both.
    #[must_use]
    pub const fn and(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// These without `other`.
    #[must_use]
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// Whether all of `other` are set.
    #[must_use]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

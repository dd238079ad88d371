//! The bits of a published wait and of a held entry.

/// The binary logarithm of the most holds for which one timed hold stands.
pub const RAREST: u32 = 8;

/// How a thread waits, in the bits that the ledger stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct WaitKind(pub u32);

impl WaitKind {
    /// Sleeps until it owns a mutex.
    pub const MUTEX: WaitKind = WaitKind(1);
    /// Sleeps until it holds a reader-writer lock for writing.
    pub const WRITE: WaitKind = WaitKind(2);
    /// Sleeps until it holds a reader-writer lock for reading.
    pub const READ: WaitKind = WaitKind(3);
    /// Spins until it owns a spin lock.
    pub const SPIN: WaitKind = WaitKind(4);
    /// Sleeps until another thread has ended; the target is its `pthread_t`.
    pub const JOIN: WaitKind = WaitKind(5);
    /// Sleeps on a condition variable.
    pub const CONDITION: WaitKind = WaitKind(6);
    /// Sleeps on a semaphore.
    pub const SEMAPHORE: WaitKind = WaitKind(7);
    /// Sleeps at a barrier.
    pub const BARRIER: WaitKind = WaitKind(8);
    /// Sleeps on a futex word for a lock or an event of another library; the target is the word,
    /// the companion the lock where it was found beside the word.
    pub const FUTEX: WaitKind = WaitKind(9);

    const KIND: u32 = 0xff;
    const TIMED: u32 = 1 << 8;
    const REALTIME: u32 = 1 << 9;
    const UPGRADABLE: u32 = 1 << 10;

    /// Returns the same wait with a deadline on `CLOCK_MONOTONIC`.
    #[must_use]
    pub const fn timed(self) -> WaitKind {
        WaitKind(self.0 | Self::TIMED)
    }

    /// Returns the same wait with a deadline on `CLOCK_REALTIME`.
    #[must_use]
    pub const fn timed_realtime(self) -> WaitKind {
        WaitKind(self.0 | Self::TIMED | Self::REALTIME)
    }

    /// Returns the same wait for the right to become the writer, too.
    #[must_use]
    pub const fn upgradable(self) -> WaitKind {
        WaitKind(self.0 | Self::UPGRADABLE)
    }

    /// Tells whether the thread wants the right to become the writer, too.
    #[must_use]
    pub const fn is_upgradable(self) -> bool {
        self.0 & Self::UPGRADABLE != 0
    }

    /// Returns what is waited for, without the deadline: one of the constants.
    #[must_use]
    pub const fn kind(self) -> WaitKind {
        WaitKind(self.0 & Self::KIND)
    }

    /// Tells whether the wait ends by itself at a deadline.
    #[must_use]
    pub const fn is_timed(self) -> bool {
        self.0 & Self::TIMED != 0
    }

    /// Tells whether the deadline is one of `CLOCK_REALTIME`.
    #[must_use]
    pub const fn is_realtime(self) -> bool {
        self.0 & Self::REALTIME != 0
    }
}

/// What is special about a held lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Flags(pub u32);

impl Flags {
    /// The lock is held exclusively, and nothing is special.
    pub const NONE: Flags = Flags(0);
    /// The lock is held for reading.
    pub const READ: Flags = Flags(1);
    /// The time of holding is measured, and counts for [`Flags::weight`] of its like.
    pub const TIMED: Flags = Flags(2);
    /// The lock is given back for the time of a wait on a condition variable: it is not held.
    pub const LENT: Flags = Flags(4);
    /// The lock was acquired by a trylock.
    pub const TRIED: Flags = Flags(8);
    /// The lock was acquired after waiting.
    pub const CONTENDED: Flags = Flags(16);
    /// The lock was acquired before the fork that made this process.
    pub const INHERITED: Flags = Flags(32);

    /// The lock was asked for with other readers, past a writer that waits.
    pub const RECURSIVE: Flags = Flags(1 << 11);

    /// No entry of a held stack has this: a reader has found the holder in the lock's word.
    pub const BY_WORD: Flags = Flags(1 << 10);

    const RARITY_SHIFT: u32 = 6;
    const RARITY: u32 = 15 << Self::RARITY_SHIFT;

    /// Returns [`Flags::TIMED`] for a hold that is one in `2^rarity` of its like.
    #[must_use]
    pub const fn timed(rarity: u32) -> Flags {
        let rarity = if rarity < RAREST { rarity } else { RAREST };
        Flags(Self::TIMED.0 | rarity << Self::RARITY_SHIFT)
    }

    /// Returns for how many holds one that is timed stands.
    #[must_use]
    pub const fn weight(self) -> u64 {
        1 << ((self.0 & Self::RARITY) >> Self::RARITY_SHIFT)
    }

    /// Returns these flags without what says that the hold is timed.
    #[must_use]
    pub const fn untimed(self) -> Flags {
        Flags(self.0 & !(Self::TIMED.0 | Self::RARITY))
    }

    /// Returns all flags that are set in either.
    #[must_use]
    pub const fn and(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Returns these flags without those of `other`.
    #[must_use]
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// Tells whether all of `other` are set.
    #[must_use]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

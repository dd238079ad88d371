//! The state word: 64 bits that say all there is to say about a lock.
//!
//! ```text
//!  63            44 43            24 23 22 21 20 19             0
//! ┌────────────────┬────────────────┬─────┬──┬──┬────────────────┐
//! │      tail      │      heir      │  0  │H │W │    subject     │
//! └────────────────┴────────────────┴─────┴──┴──┴────────────────┘
//!                                  low half: what sleepers compare
//! ```
//!
//! | field | meaning | who changes it |
//! |---|---|---|
//! | subject | a mutex: the owner's slot, 0 = free; a semaphore: free permits | the acquirer, the releaser |
//! | W (waiters) | somebody may sleep on the low half | set by a thread about to sleep, or that was woken and acquires; cleared by the releaser that wakes one |
//! | H (handed) | the lock was handed to an heir: waiters past the bound may sleep, so the next release wakes one whoever spins | set by the releaser that hands over; cleared by the next release |
//! | heir | the slot that is handed the lock at the next release | set and cleared by the heir itself; cleared by the releaser that hands over |
//! | tail | the last node of the queue of spinners, 0 = no queue | a spinner that joins; the last one, leaving |
//!
//! One word and not two, so that each of these is one compare-exchange with no
//! state between: acquire and leave the queue; leave the queue and announce a
//! sleeper; release and learn whether a spinner, an heir or a sleeper exists;
//! hand over to the heir that is *still* the heir.
//!
//! # Invariants
//! - **W1** All zeros is a free mutex with nobody near it.
//! - **W2** heir ≠ 0 ⇒ the lock is not free: an heir registers only on a taken
//!   lock, and the release hands over.
//! - **W3** tail ≠ 0 ⇒ a thread inside an acquiring call stands at the head of
//!   the queue, and looks at the word again before it leaves. So a release that
//!   sees tail ≠ 0 may skip the wake-up.
//! - **W4** somebody sleeps on the word ⇒ W is set, or a thread that was woken
//!   for them is on its way and has not yet acquired or slept again.
//!
//! W is advisory in one direction: it may be set with no sleeper (costs one
//! idle wake-up), it must never be clear with a sleeper and nobody on the way.

use crate::participant::{MAX_SLOTS, SLOT_BITS, Slot};

const FIELD: u64 = (1 << SLOT_BITS) - 1;
const WAITERS: u64 = 1 << 20;
const HANDED: u64 = 1 << 21;
const HEIR_SHIFT: u32 = 24;
const TAIL_SHIFT: u32 = 44;

/// A value of the state word. Pure: nothing here touches memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Word(pub u64);

impl Word {
    /// Free, nobody near (W1).
    pub const IDLE: Word = Word(0);

    /// A mutex held by `owner` with nobody near.
    #[inline(always)]
    #[must_use]
    pub const fn held(owner: u32) -> Self {
        Word(owner as u64)
    }

    /// The subject field: owner or permits.
    #[inline(always)]
    #[must_use]
    pub const fn subject(self) -> u32 {
        (self.0 & FIELD) as u32
    }

    /// The owner of a mutex.
    #[must_use]
    pub const fn owner(self) -> Option<Slot> {
        Slot::new(self.subject())
    }

    /// Somebody may sleep on the word.
    #[must_use]
    pub const fn waiters(self) -> bool {
        self.0 & WAITERS != 0
    }

    /// The lock was handed over, not taken.
    #[must_use]
    pub const fn handed(self) -> bool {
        self.0 & HANDED != 0
    }

    /// Who is handed the lock at the next release.
    #[must_use]
    pub const fn heir(self) -> Option<Slot> {
        Slot::new((self.0 >> HEIR_SHIFT & FIELD) as u32)
    }

    /// The last spinner in the queue.
    #[must_use]
    pub const fn tail(self) -> Option<Slot> {
        Slot::new((self.0 >> TAIL_SHIFT) as u32)
    }

    /// What sleepers compare: the low half.
    #[must_use]
    pub const fn low(self) -> u32 {
        self.0 as u32
    }

    /// The same with another subject.
    #[must_use]
    pub const fn with_subject(self, subject: u32) -> Self {
        Word(self.0 & !FIELD | subject as u64)
    }

    /// The same with sleepers announced.
    #[must_use]
    pub const fn with_waiters(self) -> Self {
        Word(self.0 | WAITERS)
    }

    /// The same with no sleepers announced.
    #[must_use]
    pub const fn without_waiters(self) -> Self {
        Word(self.0 & !WAITERS)
    }

    /// The same, marked as handed over.
    #[must_use]
    pub const fn with_handed(self) -> Self {
        Word(self.0 | HANDED)
    }

    /// The same, not marked as handed over.
    #[must_use]
    pub const fn without_handed(self) -> Self {
        Word(self.0 & !HANDED)
    }

    /// The same with an heir.
    #[must_use]
    pub const fn with_heir(self, heir: Slot) -> Self {
        Word(self.without_heir().0 | (heir.get() as u64) << HEIR_SHIFT)
    }

    /// The same with no heir.
    #[must_use]
    pub const fn without_heir(self) -> Self {
        Word(self.0 & !(FIELD << HEIR_SHIFT))
    }

    /// The same with another last spinner.
    #[must_use]
    pub const fn with_tail(self, tail: Slot) -> Self {
        Word(self.without_tail().0 | (tail.get() as u64) << TAIL_SHIFT)
    }

    /// The same with an empty queue.
    #[must_use]
    pub const fn without_tail(self) -> Self {
        Word(self.0 & !(FIELD << TAIL_SHIFT))
    }
}

impl core::fmt::Debug for Word {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{{{}", self.subject())?;
        if self.waiters() {
            f.write_str(" waiters")?;
        }
        if self.handed() {
            f.write_str(" handed")?;
        }
        if let Some(heir) = self.heir() {
            write!(f, " heir={}", heir.get())?;
        }
        if let Some(tail) = self.tail() {
            write!(f, " tail={}", tail.get())?;
        }
        f.write_str("}")
    }
}

/// What tells a mutex from a semaphore: the rules of the subject field. The
/// spin queue, the sleep and the hand-over are the same code for both.
pub trait Kind: 'static {
    /// Whether a newcomer may take.
    fn free(word: Word) -> bool;
    /// `word` after `me` takes. Only for a free word.
    fn take(word: Word, me: Slot) -> Word;
    /// Whether a release has no room for what it gives back.
    fn full(word: Word) -> bool;
    /// `word` after one release to nobody in particular. Not for a full word.
    fn release(word: Word) -> Word;
    /// `word` after a release to its heir. Only for a word with an heir.
    fn hand_over(word: Word, heir: Slot) -> Word;
    /// Whether `me`, which registered as the heir, has been handed the lock.
    fn granted(word: Word, me: Slot) -> bool;
    /// Whose running is worth waiting for, if that can be known.
    fn holder(word: Word) -> Option<Slot>;
}

/// The subject is the owner.
#[derive(Clone, Copy, Debug)]
pub struct Exclusive;

impl Kind for Exclusive {
    #[inline(always)]
    fn free(word: Word) -> bool {
        word.subject() == 0
    }
    fn take(word: Word, me: Slot) -> Word {
        word.with_subject(me.get())
    }
    fn full(_word: Word) -> bool {
        false
    }
    fn release(word: Word) -> Word {
        word.with_subject(0)
    }
    fn hand_over(word: Word, heir: Slot) -> Word {
        word.without_heir().with_subject(heir.get())
    }
    fn granted(word: Word, me: Slot) -> bool {
        word.subject() == me.get()
    }
    fn holder(word: Word) -> Option<Slot> {
        word.owner()
    }
}

/// The subject is the number of free permits.
#[derive(Clone, Copy, Debug)]
pub struct Counting;

impl Kind for Counting {
    #[inline(always)]
    fn free(word: Word) -> bool {
        word.subject() != 0
    }
    fn take(word: Word, _me: Slot) -> Word {
        Word(word.0 - 1)
    }
    fn full(word: Word) -> bool {
        word.subject() == MAX_SLOTS
    }
    fn release(word: Word) -> Word {
        Word(word.0 + 1)
    }
    fn hand_over(word: Word, _heir: Slot) -> Word {
        word.without_heir()
    }
    fn granted(word: Word, me: Slot) -> bool {
        word.heir() != Some(me)
    }
    fn holder(_word: Word) -> Option<Slot> {
        None
    }
}

//! The state word: the 64 bits that hold the whole state of a mutex or a tuned semaphore.
//!
//! # Role
//! Pure functions from one value of the word to the next. Nothing here touches memory; the
//! fast paths, `spin` and `sleep` exchange the values.
//!
//! # State
//! ```text
//!  63      44 43   35 34               32 31                     20 19       0
//! ┌──────────┬───────┬──────────────────┬─────────────────────────┬──────────┐
//! │   tail   │   0   │ 34 contexts      │ 31    unreleased        │ subject  │
//! │          │       │ 33 hand-off      │ 24–30 slow unlocks      │          │
//! │          │       │ 32 covered       │ 23    reserved          │          │
//! │          │       │                  │ 22    hand-off asleep   │          │
//! │          │       │                  │ 21    preparing         │          │
//! │          │       │                  │ 20    waiters           │          │
//! └──────────┴───────┴──────────────────┴─────────────────────────┴──────────┘
//!  high half: survives the release       low half: a release leaves only
//!                                        reserved and slow unlocks
//! ```
//!
//! | field | meaning | who changes it |
//! |---|---|---|
//! | subject | a mutex: the owner's slot, 0 = free; a semaphore: the number of free permits | the acquirer, the releaser |
//! | waiters | a thread may sleep on the low half: the release wakes one | set by a thread that is about to sleep, or that was woken and acquires; erased by the release |
//! | preparing | a thread prepares to sleep because of *covered* | set by that thread; erased by the release, so that the thread notices it |
//! | hand-off asleep | the hand-off waiter sleeps: the release wakes it | set by the hand-off waiter; erased by the release |
//! | reserved | *hand-off* or *contexts* is set: an acquirer looks at the high half first | set and cleared with them |
//! | slow unlocks | a mutex: the number of unlocks to come that stay off the fast path | set to its most with *waiters*, *hand-off asleep* and *reserved*; counted down by acquisitions that find nobody near |
//! | unreleased | a mutex: not released since a waiter set it (`spin/barging.rs`) | set by that waiter; erased by the release |
//! | covered | a thread may sleep, and a running thread, spinner or hand-off waiter, covers it: the release wakes nobody | *waiters* becomes *covered* when such a thread comes; *covered* becomes *waiters* when the last of them goes |
//! | hand-off | a hand-off waiter is registered: nobody else takes the lock when it comes free | set by the hand-off waiter; cleared by it when it takes or withdraws, or by a waiter that finds it too slow |
//! | contexts | a wait/wound mutex: contexts wait, and an acquirer looks for them (`ww`) | set by the oldest of them, cleared by a holder; every other change keeps it |
//! | tail | the last node of the queue of spinners, 0 = no queue | a spinner that joins; the last one, leaving |
//!
//! The fast paths of a mutex know the low half only. The acquisition replaces zero by the
//! owner: queued spinners do not hold it up, and *reserved* does, where a hand-off waiter or a
//! context must. The release erases the low half if it holds nothing but the owner
//! ([`Halves::erase_low`](crate::atomic::Halves::erase_low)). What a release must act on is
//! therefore in the low half, and what must outlive it in the high half. Every other step is
//! one compare-exchange of all 64 bits, with no state between: acquire and leave the queue;
//! register for a hand-off and take over the sleepers; close the queue and leave the sleepers
//! to the owner.
//!
//! # The release that loses news
//! `erase_low` may be a look and a plain store, which some processors do in half the time of a
//! locked instruction. A flag that another thread sets in the low half between the two is lost.
//! A thread that sets a flag there while another one holds the lock, and relies on the release
//! to see it, therefore calls
//! [`Platform::restart_releases`](crate::platform::Platform::restart_releases) and looks whether
//! the flag is still there. Until it has looked the flag is *loose*, and that thread answers for
//! every thread that sleeps because of it. Afterwards the flag *stands*: every release finds
//! it. No thread relies on a release to see *preparing*, only on its being gone after one, and
//! none on its seeing *unreleased*. Semaphores count up by an exchange, which loses nothing.
//!
//! Restarting costs more than an exchange, so a lock that was fought over goes through about
//! a hundred *slow unlocks*: a release that finds some to come keeps them and loses nothing. A
//! thread that finds slow unlocks when it sets *waiters* need not restart:
//! - The count stands. Then every release until it is used up is slow, and sees the flag.
//! - The count is loose, and so is the *waiters* of the thread that set both, which answers for
//!   it. A release that lost the second *waiters* would lose the first, because one thread owns
//!   the lock all the while. The count cannot be a hand-off waiter's: while there is one,
//!   *covered* is set in the place of *waiters*.
//! - The count is a context's, which wakes a sleeper if it finds *reserved* gone.
//!
//! The threads that set *hand-off asleep* and *reserved* are the only ones to answer for them; for
//! *hand-off asleep* to all that sleep because of it (`sleep/handoff.rs`).
//!
//! # Invariants
//! - **WORD-IDLE** All zeros is a free mutex with nobody near it.
//! - **WORD-HANDOFF** hand-off ⇒ a thread registered as hand-off waiter is inside an acquiring
//!   call, and takes the lock when it finds it available; or another waiter past the bound
//!   does so in its place and clears *hand-off*.
//! - **WORD-TAIL** tail ≠ 0 ⇒ a thread inside an acquiring call stands at the head of the
//!   queue, and looks at the word again before it leaves.
//! - **WORD-SLEEPERS** A thread sleeps on the word ⇒ *waiters*, which stands or whose setter has
//!   not yet looked; or *covered*, and then tail ≠ 0 or *hand-off*; or a thread that was woken
//!   for the sleepers is on its way and has not yet acquired or slept again.
//! - **WORD-HELD** A mutex: *waiters* ⇒ it is held. So its next release sees *waiters*, if that
//!   stands.
//! - **WORD-RESERVED** reserved ⇒ *hand-off* or *contexts*. Either of these ⇒ *reserved*, or the
//!   thread that set it has not yet seen that *reserved* stands.
//!
//! *waiters* is advisory in one direction: it may be set with no sleeper, which costs one idle
//! wake-up; it must never be clear with a sleeper and nobody on the way. (After `fork` a child
//! may see *covered*, *hand-off* and a tail of threads that do not exist there: the bound on
//! waiting clears *hand-off*, and a stale tail is not trusted.)

use crate::slot::{MAX_SLOTS, SLOT_BITS, Slot};

const FIELD: u64 = (1 << SLOT_BITS) - 1;
const WAITERS: u64 = 1 << 20;
const PREPARING: u64 = 1 << 21;
const HANDOFF_ASLEEP: u64 = 1 << 22;
const RESERVED: u64 = 1 << 23;
const SLOW_UNLOCKS: u64 = 0x7f << 24;
const ONE_SLOW_UNLOCK: u64 = 1 << 24;
const UNRELEASED: u64 = 1 << 31;
const COVERED: u64 = 1 << 32;
const HANDOFF: u64 = 1 << 33;
const CONTEXTS: u64 = 1 << 34;
const TAIL_SHIFT: u32 = 44;
const HIGH: u64 = !0 << 32;

/// A value of the state word. Pure: nothing here touches memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Word(pub u64);

impl Word {
    /// A free lock with nobody near it (WORD-IDLE).
    pub const IDLE: Word = Word(0);

    /// Returns the word of a mutex that `owner` holds, with nobody near.
    #[inline(always)]
    #[must_use]
    pub const fn held(owner: u32) -> Self {
        Word(owner as u64)
    }

    /// Returns the subject: the owner of a mutex, the permits of a semaphore.
    #[inline(always)]
    #[must_use]
    pub const fn subject(self) -> u32 {
        (self.0 & FIELD) as u32
    }

    /// Returns the owner of a mutex.
    #[must_use]
    pub const fn owner(self) -> Option<Slot> {
        Slot::new(self.subject())
    }

    /// The bits of the low half that a release leaves.
    pub const LEFT_BY_RELEASE: u32 = (RESERVED | SLOW_UNLOCKS) as u32;

    /// Tells whether the release wakes a sleeper.
    #[must_use]
    pub const fn waiters(self) -> bool {
        self.0 & WAITERS != 0
    }

    /// Tells whether a thread prepares to sleep because a running thread covers it.
    #[must_use]
    pub const fn preparing(self) -> bool {
        self.0 & PREPARING != 0
    }

    /// Tells whether the hand-off waiter sleeps, so that the release wakes it.
    #[must_use]
    pub const fn handoff_asleep(self) -> bool {
        self.0 & HANDOFF_ASLEEP != 0
    }

    /// Tells whether a running thread, a spinner or the hand-off waiter, covers the sleepers.
    #[must_use]
    pub const fn covered(self) -> bool {
        self.0 & COVERED != 0
    }

    /// Tells whether a hand-off waiter is registered.
    #[inline(always)]
    #[must_use]
    pub const fn handoff(self) -> bool {
        self.0 & HANDOFF != 0
    }

    /// Tells whether the lock is reserved: the high half says which threads may take it.
    #[must_use]
    pub const fn reserved(self) -> bool {
        self.0 & RESERVED != 0
    }

    /// Tells whether contexts wait for a wait/wound mutex.
    #[must_use]
    pub const fn contexts(self) -> bool {
        self.0 & CONTEXTS != 0
    }

    /// Returns the word after contexts have begun to wait.
    #[must_use]
    pub const fn with_contexts(self) -> Self {
        Word(self.0 | CONTEXTS | RESERVED)
    }

    /// Returns the word after no context waits any more.
    #[must_use]
    pub const fn without_contexts(self) -> Self {
        Word(self.0 & !CONTEXTS).unless_still_reserved()
    }

    /// Returns the last spinner in the queue.
    #[must_use]
    pub const fn tail(self) -> Option<Slot> {
        Slot::new((self.0 >> TAIL_SHIFT) as u32)
    }

    /// Returns the low half, which sleepers compare.
    #[must_use]
    pub const fn low(self) -> u32 {
        self.0 as u32
    }

    /// Returns the word with another subject.
    #[must_use]
    pub const fn with_subject(self, subject: u32) -> Self {
        Word(self.0 & !FIELD | subject as u64)
    }

    /// Returns the word after a spinner has joined the queue, which covers the sleepers from
    /// now on.
    #[must_use]
    pub const fn joined(self, me: Slot) -> Self {
        let first = self.tail().is_none();
        let word = Word(self.0 & !(FIELD << TAIL_SHIFT) | (me.get() as u64) << TAIL_SHIFT);
        if first { word.cover() } else { word }
    }

    /// Returns the word after the last spinner has left. The next release wakes a sleeper,
    /// unless a hand-off waiter covers them.
    #[must_use]
    pub fn closed(self) -> Self {
        let word = Word(self.0 & !(FIELD << TAIL_SHIFT));
        let stays = word.handoff() || fault!(last_spinner_forgets_sleepers);
        if stays { word } else { word.uncover() }
    }

    /// Returns the word after a waiter has registered for a hand-off. It covers the sleepers.
    #[must_use]
    pub const fn with_handoff(self) -> Self {
        Word(self.0 | HANDOFF | RESERVED).cover()
    }

    /// Returns the word as the hand-off waiter takes the lock from it. Even if others spin, its
    /// release wakes a sleeper, which may be past the bound and register next.
    #[must_use]
    pub fn handoff_taken(self) -> Self {
        let word = Word(self.0 & !HANDOFF).unless_still_reserved();
        let opens = fault!(ww_handoff_waiter_lets_newcomers_in);
        let word = if opens { Word(word.0 & !RESERVED) } else { word };
        if fault!(handoff_waiter_forgets_sleepers) { word } else { word.uncover() }
    }

    /// Returns the word after the hand-off waiter has withdrawn. The next release wakes a
    /// sleeper, unless spinners cover them.
    #[must_use]
    pub fn handoff_withdrawn(self) -> Self {
        let word = Word(self.0 & !(HANDOFF | HANDOFF_ASLEEP)).unless_still_reserved();
        let stays = word.tail().is_some() || fault!(handoff_waiter_leaves_sleepers_behind);
        if stays { word } else { word.uncover() }
    }

    /// Returns the word in which the hand-off waiter asks the release to wake it.
    #[must_use]
    pub const fn with_handoff_asleep(self) -> Self {
        Word(self.0 | HANDOFF_ASLEEP)
    }

    /// Returns the word that announces a sleeper: a thread that is about to sleep, or those for
    /// which it was woken. `trusted`: a queue that exists is seen to be alive.
    #[must_use]
    pub fn announced(self, trusted: bool) -> Self {
        if self.handoff() || trusted && self.tail().is_some() {
            let preparing = if fault!(sleeper_trusts_silently) { 0 } else { PREPARING };
            Word(self.0 | COVERED | preparing)
        } else {
            Word(self.0 | WAITERS)
        }
    }

    /// Returns the word after a release that erases the low half, but for what it leaves.
    #[must_use]
    pub const fn erased(self) -> Self {
        Word(self.0 & (HIGH | RESERVED | SLOW_UNLOCKS))
    }

    /// Returns the word after a release that counts up, and erases what it acts on.
    #[must_use]
    pub const fn counted(self) -> Self {
        Word((self.0 & !(WAITERS | PREPARING | HANDOFF_ASLEEP)) + 1)
    }

    /// Tells whether the lock was not released since a waiter set this.
    #[must_use]
    pub const fn unreleased(self) -> bool {
        self.0 & UNRELEASED != 0
    }

    /// Returns the word in which the next release will be noticed.
    #[must_use]
    pub const fn with_unreleased(self) -> Self {
        Word(self.0 | UNRELEASED)
    }

    /// Tells whether the unlocks to come stay off the fast path.
    #[must_use]
    pub const fn unlocks_slowly(self) -> bool {
        self.0 & SLOW_UNLOCKS != 0
    }

    /// Returns the word with no slow unlocks to come.
    #[must_use]
    pub const fn without_slow_unlocks(self) -> Self {
        Word(self.0 & !SLOW_UNLOCKS)
    }

    /// Returns the word with `count` slow unlocks to come, if there is anything in the low half
    /// that a release must see.
    #[must_use]
    pub const fn with_slow_unlocks(self, count: u32) -> Self {
        if self.0 & (WAITERS | HANDOFF_ASLEEP | RESERVED) == 0 {
            return self;
        }
        Word(self.0 & !SLOW_UNLOCKS | (count as u64 * ONE_SLOW_UNLOCK) & SLOW_UNLOCKS)
    }

    /// Returns the word with one slow unlock less to come, if nobody is near.
    #[must_use]
    pub const fn one_slow_unlock_less(self) -> Self {
        let near = WAITERS | COVERED | HANDOFF | CONTEXTS | FIELD << TAIL_SHIFT;
        if self.0 & near == 0 && self.unlocks_slowly() {
            Word(self.0 - ONE_SLOW_UNLOCK)
        } else {
            self
        }
    }

    /// Returns the word without *reserved*, unless there is still a reason for it.
    const fn unless_still_reserved(self) -> Self {
        if self.0 & (HANDOFF | CONTEXTS) != 0 { self } else { Word(self.0 & !RESERVED) }
    }

    /// Turns *waiters* into *covered*.
    const fn cover(self) -> Self {
        if self.waiters() { Word(self.0 & !WAITERS | COVERED | PREPARING) } else { self }
    }

    /// Turns *covered* into *waiters*.
    pub(crate) const fn uncover(self) -> Self {
        if self.covered() { Word(self.0 & !(COVERED | PREPARING) | WAITERS) } else { self }
    }
}

impl core::fmt::Debug for Word {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{{{}", self.subject())?;
        for (set, name) in [
            (self.waiters(), " waiters"),
            (self.preparing(), " preparing"),
            (self.handoff_asleep(), " hand-off-asleep"),
            (self.reserved(), " reserved"),
            (self.unlocks_slowly(), " slow-unlocks"),
            (self.unreleased(), " unreleased"),
            (self.covered(), " covered"),
            (self.handoff(), " hand-off"),
            (self.contexts(), " contexts"),
        ] {
            if set {
                f.write_str(name)?;
            }
        }
        if let Some(tail) = self.tail() {
            write!(f, " tail={}", tail.get())?;
        }
        f.write_str("}")
    }
}

/// The rules of the subject field, which tell a mutex from a semaphore. Spinning, sleeping and
/// the hand-off are the same code for both.
pub trait Subject: 'static {
    /// Whether the subject is an owner.
    const OWNED: bool;
    /// Tells whether the hand-off waiter may take.
    fn available(word: Word) -> bool;
    /// Tells whether a newcomer may take.
    #[inline(always)]
    fn free(word: Word) -> bool {
        let overtakes = fault!(newcomer_overtakes_the_hand_off_waiter);
        Self::available(word) && (!word.handoff() || overtakes)
    }
    /// Returns `word` after `me` has taken. Only for an available word.
    fn take(word: Word, me: Slot) -> Word;
    /// Whether a release may lose what other threads write into the low half meanwhile.
    const RELEASE_LOSES: bool;
    /// Returns `word` as it is written: with slow unlocks to come, where releases may lose
    /// something.
    #[inline(always)]
    fn written(word: Word, slow_unlocks: u32) -> Word {
        if Self::RELEASE_LOSES { word.with_slow_unlocks(slow_unlocks) } else { word }
    }
    /// Returns the thread whose running is worth waiting for, if that can be known.
    fn holder(word: Word) -> Option<Slot>;
}

/// The subject is the owner.
#[derive(Clone, Copy, Debug)]
pub struct Exclusive;

impl Subject for Exclusive {
    const OWNED: bool = true;
    const RELEASE_LOSES: bool = true;
    #[inline(always)]
    fn available(word: Word) -> bool {
        word.subject() == 0
    }
    fn take(word: Word, me: Slot) -> Word {
        word.with_subject(me.get()).one_slow_unlock_less()
    }
    fn holder(word: Word) -> Option<Slot> {
        word.owner()
    }
}

/// The subject is the number of free permits.
#[derive(Clone, Copy, Debug)]
pub struct Counting;

impl Counting {
    /// Tells whether there is no room for one more permit.
    #[must_use]
    pub const fn full(word: Word) -> bool {
        word.subject() == MAX_SLOTS
    }
}

impl Subject for Counting {
    const OWNED: bool = false;
    const RELEASE_LOSES: bool = false;
    #[inline(always)]
    fn available(word: Word) -> bool {
        word.subject() != 0
    }
    fn take(word: Word, _me: Slot) -> Word {
        Word(word.0 - 1)
    }
    fn holder(_word: Word) -> Option<Slot> {
        None
    }
}

//! The state word: 64 bits that say all there is to say about a lock.
//!
//! ```text
//!  63            44 43     35 34 33 32 31 30  24 23 22 21 20 19             0
//! ┌────────────────┬─────────┬──┬──┬──┬──┬──────┬──┬──┬──┬──┬────────────────┐
//! │      tail      │    0    │C │E │V │M │ heat │K │R │Z │W │    subject     │
//! └────────────────┴─────────┴──┴──┴──┴──┴──────┴──┴──┴──┴──┴────────────────┘
//!  high half: who queues                low half: a release erases M, W, Z, R, subject
//! ```
//!
//! | field | meaning | who changes it |
//! |---|---|---|
//! | subject | a mutex: the owner's slot, 0 = free; a semaphore: free permits | the acquirer, the releaser |
//! | W (waiters) | somebody may sleep on the low half: the release wakes one | set by a thread about to sleep, or that was woken and acquires; erased by the release |
//! | Z (dozing) | a thread is about to sleep on the strength of V | set by that thread; erased by the release, so that the thread notices it |
//! | R (ring) | the heir sleeps: the release wakes it | set by the heir; erased by the release |
//! | K (kept) | E or C: whoever wants the lock looks at the high half first | set and cleared with them |
//! | heat | a mutex: not 0, the fast paths are not for it now | set to its most with W, R and K; taken down by acquisitions that find nobody near |
//! | M (mark) | a mutex: not released since a waiter has marked it (`spin/barging.rs`) | set by that waiter; erased by the release |
//! | V (vouched) | somebody may sleep, and a thread on its feet answers for them: the queue of spinners, or the heir | W becomes V when such a thread comes, V becomes W when the last of them goes |
//! | E (heir) | an heir is registered: nobody else takes the lock when it comes free | set by the heir; cleared by it when it takes or withdraws, or by a waiter that finds it too slow |
//! | C (contexts) | a wait/wound mutex: contexts wait, and who acquires looks for them (`ww`) | set by the oldest of them, cleared by a holder; whoever else changes the word keeps it |
//! | tail | the last node of the queue of spinners, 0 = no queue | a spinner that joins; the last one, leaving |
//!
//! The halves exist for the fast paths of a mutex, which know the low half only.
//! The acquisition replaces zero by the owner: spinners that queue do not hold it up,
//! and K does where an heir or a context must. The release erases the low half if
//! there is nothing in it but the owner
//! ([`Halves::erase_low`](crate::atomic::Halves::erase_low)); what it must act on
//! is in the low half, what must outlive it is in the high half. Otherwise the word
//! is one: each other step is one compare-exchange of all of it, with no state
//! between. Acquire and leave the queue; become heir and take over the sleepers;
//! close the queue and hand the sleepers to the owner.
//!
//! # The release that loses news
//! `erase_low` may be a look and a plain store, where a processor does that in half
//! the time of a locked instruction. A flag that somebody sets in the low half
//! between the two is lost. So whoever sets one there while another thread holds the
//! lock, and relies on its being seen, calls
//! [`Platform::restart_releases`](crate::platform::Platform::restart_releases) and
//! looks whether it still stands; until then it is *loose*, and the thread that set it
//! answers for whoever sleeps on the strength of it. From then on the flag *stands*:
//! every release finds it. Nobody relies on Z's being seen by the release, only on its
//! being gone after one, nor on M's being seen by anything. Semaphores count up by one exchange, which loses nothing.
//!
//! Restarting costs more than an exchange, so a lock that was fought over stays *hot*
//! for a hundred acquisitions or so: a release that sees heat keeps it and loses nothing.
//! Whoever finds heat when it sets W need not restart. For either the heat stands; or
//! it is loose, and so is the W of the thread that set both, which answers for W: the
//! release that would lose the second W would lose the first, and one thread holds the
//! lock all the while. Or it is a context's, which wakes a sleeper if it finds K gone. (An
//! heir's it is never: while there is one, V is set in the place of W. Nobody answers for
//! R and K but who set them.)
//!
//! # Invariants
//! - **W1** All zeros is a free mutex with nobody near it.
//! - **W2** E ⇒ a thread registered as heir is inside an acquiring call, and
//!   takes the lock when it finds it available; or another waiter past the bound
//!   does so in its place and clears E.
//! - **W3** tail ≠ 0 ⇒ a thread inside an acquiring call stands at the head of
//!   the queue, and looks at the word again before it leaves.
//! - **W4** somebody sleeps on the word ⇒ W, which stands or whose setter has not
//!   yet looked; or V, and then tail ≠ 0 or E; or a thread that was woken for them is
//!   on its way and has not yet acquired or slept again.
//! - **W5** a mutex: W ⇒ it is held. So its next release sees W, if W stands.
//! - **W6** K ⇒ E or C. E or C ⇒ K, or the thread that set E or C has not yet seen
//!   that K stands.
//!
//! W is advisory in one direction: it may be set with no sleeper (costs one
//! idle wake-up), it must never be clear with a sleeper and nobody on the way.
//! (After `fork` a child may see E, V and tail of threads that do not exist
//! there: the bound on waiting clears E, a stale tail is not trusted.)

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

    /// What a release leaves of the low half.
    pub const LEFT_BY_RELEASE: u32 = (RESERVED | SLOW_UNLOCKS) as u32;

    /// W: the release wakes a sleeper.
    #[must_use]
    pub const fn waiters(self) -> bool {
        self.0 & WAITERS != 0
    }

    /// Z: a thread is about to sleep on the strength of V.
    #[must_use]
    pub const fn preparing(self) -> bool {
        self.0 & PREPARING != 0
    }

    /// R: the release wakes the heir.
    #[must_use]
    pub const fn handoff_asleep(self) -> bool {
        self.0 & HANDOFF_ASLEEP != 0
    }

    /// V: somebody on their feet answers for the sleepers.
    #[must_use]
    pub const fn covered(self) -> bool {
        self.0 & COVERED != 0
    }

    /// E: an heir is registered.
    #[inline(always)]
    #[must_use]
    pub const fn handoff(self) -> bool {
        self.0 & HANDOFF != 0
    }

    /// K: the high half says who may take it.
    #[must_use]
    pub const fn reserved(self) -> bool {
        self.0 & RESERVED != 0
    }

    /// C: contexts wait for a wait/wound mutex.
    #[must_use]
    pub const fn contexts(self) -> bool {
        self.0 & CONTEXTS != 0
    }

    /// With C.
    #[must_use]
    pub const fn with_contexts(self) -> Self {
        Word(self.0 | CONTEXTS | RESERVED)
    }

    /// Without C.
    #[must_use]
    pub const fn without_contexts(self) -> Self {
        Word(self.0 & !CONTEXTS).unless_still_reserved()
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

    /// A spinner joins the queue: from now on the queue answers for sleepers.
    #[must_use]
    pub const fn joined(self, me: Slot) -> Self {
        let first = self.tail().is_none();
        let word = Word(self.0 & !(FIELD << TAIL_SHIFT) | (me.get() as u64) << TAIL_SHIFT);
        if first { word.cover() } else { word }
    }

    /// The last spinner leaves: unless an heir does, the next release answers
    /// for sleepers.
    #[must_use]
    pub const fn closed(self) -> Self {
        let word = Word(self.0 & !(FIELD << TAIL_SHIFT));
        if word.handoff() { word } else { word.uncover() }
    }

    /// A waiter becomes the heir, and answers for sleepers.
    #[must_use]
    pub const fn with_handoff(self) -> Self {
        Word(self.0 | HANDOFF | RESERVED).cover()
    }

    /// The heir takes: whoever spins, its release wakes a sleeper, which may
    /// be past the bound and the next heir.
    #[must_use]
    pub const fn handoff_taken(self) -> Self {
        Word(self.0 & !HANDOFF).unless_still_reserved().uncover()
    }

    /// The heir withdraws: unless spinners do, the next release answers.
    #[must_use]
    pub const fn handoff_withdrawn(self) -> Self {
        let word = Word(self.0 & !(HANDOFF | HANDOFF_ASLEEP)).unless_still_reserved();
        if word.tail().is_some() { word } else { word.uncover() }
    }

    /// The heir is about to sleep.
    #[must_use]
    pub const fn with_handoff_asleep(self) -> Self {
        Word(self.0 | HANDOFF_ASLEEP)
    }

    /// A thread is about to sleep, or others sleep that it was woken for.
    /// `trusted`: a queue that exists is seen to be alive.
    #[must_use]
    pub const fn announced(self, trusted: bool) -> Self {
        if self.handoff() || trusted && self.tail().is_some() {
            Word(self.0 | COVERED | PREPARING)
        } else {
            Word(self.0 | WAITERS)
        }
    }

    /// After a release by erasing the low half, but for what stays.
    #[must_use]
    pub const fn erased(self) -> Self {
        Word(self.0 & (HIGH | RESERVED | SLOW_UNLOCKS))
    }

    /// After a release by counting up: what it acts on is erased.
    #[must_use]
    pub const fn counted(self) -> Self {
        Word((self.0 & !(WAITERS | PREPARING | HANDOFF_ASLEEP)) + 1)
    }

    /// M: not released since it was marked.
    #[must_use]
    pub const fn unreleased(self) -> bool {
        self.0 & UNRELEASED != 0
    }

    /// With M.
    #[must_use]
    pub const fn with_unreleased(self) -> Self {
        Word(self.0 | UNRELEASED)
    }

    /// Whether the fast paths are not for it now.
    #[must_use]
    pub const fn unlocks_slowly(self) -> bool {
        self.0 & SLOW_UNLOCKS != 0
    }

    /// Without heat.
    #[must_use]
    pub const fn without_slow_unlocks(self) -> Self {
        Word(self.0 & !SLOW_UNLOCKS)
    }

    /// With so much heat, if there is anything in the low half that a release must see.
    #[must_use]
    pub const fn with_slow_unlocks(self, count: u32) -> Self {
        if self.0 & (WAITERS | HANDOFF_ASLEEP | RESERVED) == 0 {
            return self;
        }
        Word(self.0 & !SLOW_UNLOCKS | (count as u64 * ONE_SLOW_UNLOCK) & SLOW_UNLOCKS)
    }

    /// With less heat, if there is nobody near.
    #[must_use]
    pub const fn one_slow_unlock_less(self) -> Self {
        let near = WAITERS | COVERED | HANDOFF | CONTEXTS | FIELD << TAIL_SHIFT;
        if self.0 & near == 0 && self.unlocks_slowly() {
            Word(self.0 - ONE_SLOW_UNLOCK)
        } else {
            self
        }
    }

    /// Without K, unless there is still a reason for it.
    const fn unless_still_reserved(self) -> Self {
        if self.0 & (HANDOFF | CONTEXTS) != 0 { self } else { Word(self.0 & !RESERVED) }
    }

    /// W becomes V.
    const fn cover(self) -> Self {
        if self.waiters() { Word(self.0 & !WAITERS | COVERED | PREPARING) } else { self }
    }

    /// V becomes W.
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
            (self.handoff_asleep(), " handoff-asleep"),
            (self.reserved(), " reserved"),
            (self.unlocks_slowly(), " slow-unlocks"),
            (self.unreleased(), " unreleased"),
            (self.covered(), " covered"),
            (self.handoff(), " handoff"),
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

/// What tells a mutex from a semaphore: the rules of the subject field. The
/// spin queue, the sleep and the inheritance are the same code for both.
pub trait Subject: 'static {
    /// Whether the subject is an owner.
    const OWNED: bool;
    /// Whether the heir may take.
    fn available(word: Word) -> bool;
    /// Whether a newcomer may take.
    #[inline(always)]
    fn free(word: Word) -> bool {
        Self::available(word) && !word.handoff()
    }
    /// `word` after `me` takes. Only for an available word.
    fn take(word: Word, me: Slot) -> Word;
    /// Whether a release may lose what others write into the low half meanwhile.
    const RELEASE_LOSES: bool;
    /// `word` as it is written: with heat, where releases may lose something.
    #[inline(always)]
    fn written(word: Word, slow_unlocks: u32) -> Word {
        if Self::RELEASE_LOSES { word.with_slow_unlocks(slow_unlocks) } else { word }
    }
    /// Whose running is worth waiting for, if that can be known.
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
    /// Whether there is no room for one more permit.
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

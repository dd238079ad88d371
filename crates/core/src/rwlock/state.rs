//! The state word of the reader-writer lock, as pure functions.
//!
//! ```text
//!  63       52 51             32 31  24        23       22       21   20 19         0
//! ┌───────────┬─────────────────┬──────┬──────────┬────────┬────────┬────┬────────────┐
//! │     0     │      next       │  0   │next reads│promised│ asleep │read│  subject   │
//! └───────────┴─────────────────┴──────┴──────────┴────────┴────────┴────┴────────────┘
//!                                 low half: what sleeping readers compare
//! ```
//!
//! | field | meaning | who changes it |
//! |---|---|---|
//! | read, subject | without *read*: the writer's slot, 0 = free; with *read*: how many readers hold the lock, at least 1 | the acquirer, the releaser |
//! | asleep | readers may sleep on the low half | set by a reader about to sleep; cleared by the thread that makes the lock admit readers, which wakes them all |
//! | next | the slot of the thread that sleeps for the lock as the first of those in the waiting room | set and cleared by that thread; cleared by the releaser that calls it |
//! | next reads | *next* wants to read, not to write | with *next* |
//! | promised | the lock goes to *next* as soon as it can: newcomers are held off | set by *next* past the bound; cleared with *next* |

use crate::hooks::Access;
use crate::slot::{MAX_SLOTS, SLOT_BITS, Slot};

const FIELD: u64 = (1 << SLOT_BITS) - 1;
const READ: u64 = 1 << 20;
const ASLEEP: u64 = 1 << 21;
const PROMISED: u64 = 1 << 22;
const NEXT_READS: u64 = 1 << 23;
const NEXT_SHIFT: u32 = 32;

/// The way in which a thread wants the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RwLockMode {
    Read,
    Write,
}

impl RwLockMode {
    /// Returns the access that the hooks are told of.
    pub(crate) fn access(self) -> Access {
        match self {
            RwLockMode::Read => Access::Shared,
            RwLockMode::Write => Access::Alone,
        }
    }
}

/// A value of the state word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct RwLockState(pub(crate) u64);

/// The threads that must be told of a change of the word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct RwLockCalls {
    /// The thread that was *next*, to be called.
    pub(crate) next: Option<Slot>,
    /// Whether the readers that sleep on the word are to be woken.
    pub(crate) readers: bool,
}

impl RwLockState {
    /// A free lock with nobody near it.
    pub(crate) const IDLE: Self = RwLockState(0);

    /// Returns the word of a lock that `writer` holds, with nobody near it.
    #[inline(always)]
    pub(crate) const fn written(writer: u32) -> Self {
        RwLockState(writer as u64)
    }

    const fn subject(self) -> u64 {
        self.0 & FIELD
    }

    const fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    /// Returns the low half, which sleeping readers compare.
    pub(crate) const fn low(self) -> u32 {
        self.0 as u32
    }

    /// Tells whether nobody holds the lock.
    pub(crate) const fn free(self) -> bool {
        self.subject() == 0
    }

    /// Returns the writer that holds the lock.
    pub(crate) const fn writer(self) -> Option<Slot> {
        if self.has(READ) { None } else { Slot::new(self.subject() as u32) }
    }

    /// Returns how many readers hold the lock.
    #[inline(always)]
    pub(crate) const fn readers(self) -> u32 {
        if self.has(READ) { self.subject() as u32 } else { 0 }
    }

    /// Returns the first of those in the waiting room, if it sleeps.
    pub(crate) const fn next(self) -> Option<Slot> {
        Slot::new((self.0 >> NEXT_SHIFT & FIELD) as u32)
    }

    const fn next_mode(self) -> RwLockMode {
        if self.has(NEXT_READS) { RwLockMode::Read } else { RwLockMode::Write }
    }

    /// Tells whether the lock is promised to *next*, and newcomers are held off.
    pub(crate) const fn promised(self) -> bool {
        self.has(PROMISED)
    }

    /// Tells whether the holders leave room for one more.
    #[inline(always)]
    fn allows(self, mode: RwLockMode) -> bool {
        match mode {
            RwLockMode::Write => self.free(),
            RwLockMode::Read => {
                self.free()
                    || self.has(READ) && self.subject() < MAX_SLOTS as u64
                    || fault!(rwlock_admits_readers_to_writers)
            }
        }
    }

    /// Tells whether a newcomer may take the lock.
    #[inline(always)]
    pub(crate) fn admits(self, mode: RwLockMode) -> bool {
        let promised = self.promised() && !fault!(rwlock_newcomer_overtakes_the_promised);
        !promised && self.allows(mode)
    }

    /// Tells whether a reader may take the lock that may have it already, past a promise.
    #[inline(always)]
    pub(crate) fn admits_beside(self) -> bool {
        let waits = self.promised() && fault!(rwlock_recursive_reader_waits_for_next);
        !waits && self.allows(RwLockMode::Read)
    }

    /// Returns the word after `me` takes the lock. Only where the holders leave room.
    #[inline(always)]
    pub(crate) const fn take(self, mode: RwLockMode, me: Slot) -> Self {
        match mode {
            RwLockMode::Write => RwLockState(self.0 | me.get() as u64),
            RwLockMode::Read => self.read(),
        }
    }

    /// Returns the word after a reader takes the lock. Only where the holders leave room.
    #[inline(always)]
    pub(crate) const fn read(self) -> Self {
        RwLockState((self.0 | READ) + 1)
    }

    /// Returns the word after a reader leaves, if nobody needs to be told of that: the reader is
    /// the only one and nobody is near, or it is one of several.
    #[inline(always)]
    pub(crate) fn quietly_left(self) -> Option<Self> {
        let blind = fault!(rwlock_reader_overlooks_next) && self.readers() == 1;
        if self.0 == READ | 1 || blind {
            Some(Self::IDLE)
        } else if 1 < self.readers() {
            Some(RwLockState(self.0 - 1))
        } else {
            None
        }
    }

    /// Returns the word after a holder leaves, not yet [settled](Self::settled).
    pub(crate) const fn left(self) -> Self {
        if self.readers() > 1 {
            RwLockState(self.0 - 1)
        } else {
            RwLockState(self.0 & !(FIELD | READ))
        }
    }

    /// Returns the word after the writer becomes a reader, not yet [settled](Self::settled).
    pub(crate) const fn downgraded(self) -> Self {
        RwLockState(self.0 & !FIELD | READ | 1)
    }

    /// Returns the word that says that readers sleep.
    pub(crate) const fn with_readers_asleep(self) -> Self {
        RwLockState(self.0 | ASLEEP)
    }

    /// Returns the word with `next` as *next*, to which nothing is promised.
    pub(crate) const fn with_next(self, next: Slot, mode: RwLockMode) -> Self {
        let reads = match mode {
            RwLockMode::Read => NEXT_READS,
            RwLockMode::Write => 0,
        };
        RwLockState(self.without_next().0 | reads | (next.get() as u64) << NEXT_SHIFT)
    }

    /// Returns the word with the lock promised to *next*.
    pub(crate) const fn with_promise(self) -> Self {
        RwLockState(self.0 | PROMISED)
    }

    /// Returns the word without a *next*, and so without a promise.
    pub(crate) const fn without_next(self) -> Self {
        RwLockState(self.0 & !(FIELD << NEXT_SHIFT | NEXT_READS | PROMISED))
    }

    /// Draws the consequences of a change that may have made room: hands the lock to *next* if it
    /// was promised, and says which threads can take it now and must be told.
    pub(crate) fn settled(self) -> (Self, RwLockCalls) {
        let mut after = self;
        let mut calls = RwLockCalls::default();
        if let Some(next) = self.next()
            && self.allows(self.next_mode())
        {
            after = self.without_next();
            if self.promised() {
                after = after.take(self.next_mode(), next);
            }
            calls.next = Some(next);
        }
        if after.has(ASLEEP) && after.admits(RwLockMode::Read) {
            after = RwLockState(after.0 & !ASLEEP);
            calls.readers = true;
        }
        (after, calls)
    }
}

impl core::fmt::Debug for RwLockState {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.writer() {
            Some(writer) => write!(f, "{{writer={}", writer.get())?,
            None => write!(f, "{{readers={}", self.readers())?,
        }
        if self.has(ASLEEP) {
            f.write_str(" asleep")?;
        }
        if let Some(next) = self.next() {
            let promised = if self.promised() { " promised" } else { "" };
            write!(f, " next={}:{:?}{promised}", next.get(), self.next_mode())?;
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests;

//! The state word of the reader-writer lock, as pure functions.
//!
//! ```text
//!  63       52 51             32 31  24 23 22 21 20 19             0
//! ┌───────────┬─────────────────┬──────┬──┬──┬──┬──┬────────────────┐
//! │     0     │      next       │  0   │N │P │R │S │    subject     │
//! └───────────┴─────────────────┴──────┴──┴──┴──┴──┴────────────────┘
//!                                 low half: what sleeping readers compare
//! ```
//!
//! | field | meaning | who changes it |
//! |---|---|---|
//! | S, subject | S clear: the writer's slot, 0 = free; S set: how many readers hold it, at least 1 | the acquirer, the releaser |
//! | R (readers asleep) | readers may sleep on the low half | set by a reader about to sleep; cleared by whoever makes the lock admit readers, and wakes them all |
//! | next | the slot of the thread that sleeps for the lock as the first of those in the waiting room | set and cleared by itself; cleared by the releaser that rings for it |
//! | N | *next* wants to read, not to write | with *next* |
//! | P (promised) | the lock goes to *next* as soon as it can: newcomers are held off | set by *next* past the bound; cleared with *next* |

use crate::hooks::Access;
use crate::slot::{MAX_SLOTS, SLOT_BITS, Slot};

const FIELD: u64 = (1 << SLOT_BITS) - 1;
const SHARED: u64 = 1 << 20;
const READERS: u64 = 1 << 21;
const PROMISED: u64 = 1 << 22;
const NEXT_READS: u64 = 1 << 23;
const NEXT_SHIFT: u32 = 32;

/// How a thread wants the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Read,
    Write,
}

impl Mode {
    /// As the hooks are told.
    pub(crate) fn access(self) -> Access {
        match self {
            Mode::Read => Access::Shared,
            Mode::Write => Access::Alone,
        }
    }
}

/// A value of the state word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct State(pub(crate) u64);

/// Whom a change of the word concerns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Calls {
    /// Ring for this one.
    pub(crate) next: Option<Slot>,
    /// Wake the readers that sleep on the word.
    pub(crate) readers: bool,
}

impl State {
    /// Free, nobody near.
    pub(crate) const IDLE: Self = State(0);

    /// Held by this writer, nobody near.
    #[inline(always)]
    pub(crate) const fn written(writer: u32) -> Self {
        State(writer as u64)
    }

    const fn subject(self) -> u64 {
        self.0 & FIELD
    }

    const fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    /// What sleeping readers compare.
    pub(crate) const fn low(self) -> u32 {
        self.0 as u32
    }

    /// Nobody holds it.
    pub(crate) const fn free(self) -> bool {
        self.subject() == 0
    }

    /// The writer that holds it.
    pub(crate) const fn writer(self) -> Option<Slot> {
        if self.has(SHARED) { None } else { Slot::new(self.subject() as u32) }
    }

    /// How many readers hold it.
    #[inline(always)]
    pub(crate) const fn readers(self) -> u32 {
        if self.has(SHARED) { self.subject() as u32 } else { 0 }
    }

    /// The first of those in the waiting room, asleep.
    pub(crate) const fn next(self) -> Option<Slot> {
        Slot::new((self.0 >> NEXT_SHIFT & FIELD) as u32)
    }

    const fn next_mode(self) -> Mode {
        if self.has(NEXT_READS) { Mode::Read } else { Mode::Write }
    }

    /// Newcomers are held off.
    pub(crate) const fn promised(self) -> bool {
        self.has(PROMISED)
    }

    /// Whether the holders leave room for one more.
    #[inline(always)]
    fn allows(self, mode: Mode) -> bool {
        match mode {
            Mode::Write => self.free(),
            Mode::Read => {
                self.free()
                    || self.has(SHARED) && self.subject() < MAX_SLOTS as u64
                    || fault!(rwlock_admits_readers_to_writers)
            }
        }
    }

    /// Whether a newcomer may take it.
    #[inline(always)]
    pub(crate) fn admits(self, mode: Mode) -> bool {
        !self.promised() && self.allows(mode)
    }

    /// After `me` takes it. Only where the holders leave room.
    #[inline(always)]
    pub(crate) const fn take(self, mode: Mode, me: Slot) -> Self {
        match mode {
            Mode::Write => State(self.0 | me.get() as u64),
            Mode::Read => self.read(),
        }
    }

    /// After a reader takes it. Only where the holders leave room.
    #[inline(always)]
    pub(crate) const fn read(self) -> Self {
        State((self.0 | SHARED) + 1)
    }

    /// After a reader leaves, if that concerns nobody else: it is the only one
    /// and nobody is near, or one of several, unless it makes room for more.
    #[inline(always)]
    pub(crate) fn quietly_left(self) -> Option<Self> {
        let blind = fault!(rwlock_reader_overlooks_next) && self.readers() == 1;
        if self.0 == SHARED | 1 || blind {
            Some(Self::IDLE)
        } else if 1 < self.readers() && self.readers() < MAX_SLOTS {
            Some(State(self.0 - 1))
        } else {
            None
        }
    }

    /// After a holder leaves. Not settled.
    pub(crate) const fn left(self) -> Self {
        if self.readers() > 1 { State(self.0 - 1) } else { State(self.0 & !(FIELD | SHARED)) }
    }

    /// After the writer becomes a reader. Not settled.
    pub(crate) const fn downgraded(self) -> Self {
        State(self.0 & !FIELD | SHARED | 1)
    }

    /// With readers asleep.
    pub(crate) const fn with_readers(self) -> Self {
        State(self.0 | READERS)
    }

    /// With a *next*, to whom nothing is promised.
    pub(crate) const fn with_next(self, next: Slot, mode: Mode) -> Self {
        let reads = match mode {
            Mode::Read => NEXT_READS,
            Mode::Write => 0,
        };
        State(self.without_next().0 | reads | (next.get() as u64) << NEXT_SHIFT)
    }

    /// With the lock promised to *next*.
    pub(crate) const fn with_promise(self) -> Self {
        State(self.0 | PROMISED)
    }

    /// Without a *next*, and so without a promise.
    pub(crate) const fn without_next(self) -> Self {
        State(self.0 & !(FIELD << NEXT_SHIFT | NEXT_READS | PROMISED))
    }

    /// Draws the consequences of a change that may have made room: the lock is
    /// handed to *next* if it was promised, and whoever can take it now is
    /// called.
    pub(crate) fn settled(self) -> (Self, Calls) {
        let mut after = self;
        let mut calls = Calls::default();
        if let Some(next) = self.next()
            && self.allows(self.next_mode())
        {
            after = self.without_next();
            if self.promised() {
                after = after.take(self.next_mode(), next);
            }
            calls.next = Some(next);
        }
        if after.has(READERS) && after.admits(Mode::Read) {
            after = State(after.0 & !READERS);
            calls.readers = true;
        }
        (after, calls)
    }
}

impl core::fmt::Debug for State {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.writer() {
            Some(writer) => write!(f, "{{writer={}", writer.get())?,
            None => write!(f, "{{readers={}", self.readers())?,
        }
        if self.has(READERS) {
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

//! What threads leave in their [rings](crate::ring): one event each of what has happened to them.
//!
//! # Role
//! Of a run that is recorded each thread leaves its waits, its holds of locks that are waited for,
//! its calls that wake others, and its own life. An event is of the past when it is left, with its
//! beginning and its length: one that is lost leaves no other without its other half.

/// What an event tells of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum EventKind {
    /// A wait that has ended.
    Wait = 1,
    /// A hold of a lock that was waited for, by this thread before it or by others meanwhile.
    Hold = 2,
    /// A call that wakes others and gives nothing back: a signal of a condition, a token of a
    /// semaphore, a wake-up of a futex word.
    Wake = 3,
    /// The life of a thread that has ended.
    Thread = 4,
}

/// The bit of a wait's kind that says of a futex word: the wait counts as one for a lock until the
/// command knows better.
pub const FOR_LOCK: u8 = 0x80;

/// The facts of a hold, a bit each.
pub mod hold {
    /// The lock is held for reading.
    pub const READ: u8 = 1;
    /// Its beginning is an estimate by the coarse clock.
    pub const COARSE: u8 = 2;
    /// The thread had waited for it.
    pub const AFTER_WAIT: u8 = 4;
    /// Others were waiting when it ended.
    pub const WAITED_FOR: u8 = 8;
    /// It ended in a wait on a condition, which gives the mutex back.
    pub const LENT: u8 = 16;
}

/// How a wait ended, by number.
pub mod ending {
    /// The thread has what it waited for.
    pub const GRANTED: u8 = 0;
    /// Its deadline has passed.
    pub const TIMED_OUT: u8 = 1;
    /// A handler has interrupted it.
    pub const INTERRUPTED: u8 = 2;
    /// It was refused, or came to nothing for another reason.
    pub const REFUSED: u8 = 3;
    /// The thread was cancelled, or left the wait by an exception.
    pub const ABANDONED: u8 = 4;
}

/// One event, as its thread leaves it and the command finds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// What it tells of.
    pub kind: EventKind,
    /// The time at which it began, in nanoseconds of `CLOCK_MONOTONIC`.
    pub began: u64,
    /// How long it lasted, in nanoseconds; at most [`Event::LONGEST`].
    pub lasted: u64,
    /// What it was like: of a wait the number of its [`WaitKind`](crate::publish::WaitKind), perhaps with
    /// [`FOR_LOCK`], of a hold its facts ([`hold`]).
    pub how: u8,
    /// How it ended, if it was a wait ([`ending`]).
    pub ending: u8,
    /// The index of the lock's record; 0: none. Of a wait for the end of a thread, and of a life,
    /// the serial number of that thread, or of the creator; 0 where it is not known.
    pub lock: u32,
    /// The low bits of the lock's generation, which tell lives at one address apart.
    pub generation: u8,
    /// Id of the stack of the call, of a hold that of its acquisition.
    pub stack: u32,
    /// The serial number of the thread.
    pub thread: u32,
    /// The kernel's number of the thread, if it is a life.
    pub tid: u32,
}

impl Event {
    /// The longest time that an event can say: three days.
    pub const LONGEST: u64 = (1 << 48) - 1;
    /// The bits of an index in the word of a lock; a ledger has no more locks.
    const INDEX: u32 = 27;
    /// The number of generations that are told apart.
    pub const GENERATIONS: u32 = 1 << (32 - Self::INDEX);

    /// Returns the part of a lock's generation that is in events.
    #[inline]
    #[must_use]
    pub const fn life(generation: u32) -> u8 {
        (generation % Self::GENERATIONS) as u8
    }

    /// Returns the words in which it travels.
    #[inline]
    #[must_use]
    pub fn to_words(&self) -> [u64; 4] {
        let lock = match self.kind {
            EventKind::Thread => self.lock,
            _ => self.lock & ((1 << Self::INDEX) - 1) | u32::from(self.generation) << Self::INDEX,
        };
        [
            self.began,
            self.lasted.min(Self::LONGEST)
                | (self.kind as u64) << 48
                | u64::from(self.ending) << 52
                | u64::from(self.how) << 56,
            u64::from(lock) | u64::from(self.stack) << 32,
            u64::from(self.thread) | u64::from(self.tid) << 32,
        ]
    }

    /// Reads the words of an event. Returns `None` for what no thread of this version leaves.
    #[must_use]
    pub fn from_words([began, what, place, thread]: [u64; 4]) -> Option<Event> {
        let kind = match what >> 48 & 15 {
            1 => EventKind::Wait,
            2 => EventKind::Hold,
            3 => EventKind::Wake,
            4 => EventKind::Thread,
            _ => return None,
        };
        let lock = place as u32;
        let is_life = kind == EventKind::Thread;
        Some(Event {
            kind,
            began,
            lasted: what & Self::LONGEST,
            how: (what >> 56) as u8,
            ending: (what >> 52 & 15) as u8,
            lock: if is_life { lock } else { lock & ((1 << Self::INDEX) - 1) },
            generation: if is_life { 0 } else { (lock >> Self::INDEX) as u8 },
            stack: (place >> 32) as u32,
            thread: thread as u32,
            tid: (thread >> 32) as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_comes_out_of_its_words_as_it_went_in() {
        let event = Event {
            kind: EventKind::Wait,
            began: 1 << 60,
            lasted: Event::LONGEST,
            how: 9,
            ending: ending::ABANDONED,
            lock: (1 << 27) - 1,
            generation: 31,
            stack: u32::MAX,
            thread: u32::MAX,
            tid: 7,
        };
        assert_eq!(Event::from_words(event.to_words()), Some(event));
        let long = Event { lasted: u64::MAX, ..event };
        assert_eq!(Event::from_words(long.to_words()), Some(event));
        let life = Event { kind: EventKind::Thread, lock: u32::MAX, generation: 0, ..event };
        assert_eq!(Event::from_words(life.to_words()), Some(life));
        assert_eq!(Event::from_words([0; 4]), None);
        assert_eq!(Event::from_words([0, 15 << 48, 0, 0]), None);
    }
}

//! What a thread holds and waits for, as others may read it.
//!
//! # Role
//! Each thread writes its own [`PublishedWait`] and its own stack of [`HeldEntry`] locks; the
//! command, in another process, reads them at any time and concludes that a
//! set of threads can never run again. Writers never wait for readers.
//!
//! # Protocol
//! Writer, one thread (and its signal handlers, which are balanced):
//! 1. *Acquired*: [`HeldStack::push`]: raise `top`, fill the entry, store its
//!    address last. A handler that interrupts in between pushes above.
//! 2. *Releases*: [`HeldStack::pop`] **before** the real release: clear the
//!    address, lower `top`. So an entry that can be read means: held.
//! 3. *Waits*: [`PublishedWait::begin`] before the real blocking call: the fields, then
//!    the episode, odd. [`PublishedWait::end`] when the call has returned: even; then
//!    [`HeldStack::push`]. From before `begin` until after `end` the thread's signal
//!    handlers record nothing: they would change what the episode promises.
//! 4. *Another thread releases* in the holder's place: [`HeldStack::revoke`] before
//!    the real release. That leaves a gap, which the holder drops later (`publish/held.rs`).
//!
//! Reader: for every thread [`PublishedWait::read`], which gives an [`Episode`], then the
//! held stack; when all have been read, for each of them [`PublishedWait::is_still`].
//!
//! # Invariants
//! - **LEDGER-EPISODE** While an episode lasts, its thread is inside one real blocking call
//!   (or about to make it, or just back) and changes neither its held stack nor
//!   the fields of its wait.
//! - **LEDGER-STILL** If `is_still` says yes, all that was read between `read` and
//!   `is_still` belongs to that one episode. Hence if a set of threads is read
//!   first and confirmed afterwards, there was an instant at which all of them
//!   were in those waits and held those locks: a cycle among them is closed,
//!   and none of them can leave it, but by a deadline or by a third thread that
//!   releases a lock it does not own.
//! - **LEDGER-HELD** An entry is readable only while its thread has acquired the lock and
//!   neither it nor anybody in its place has begun to release it. Of a thread
//!   that waits, the whole entry can be relied on; of one that runs, the
//!   address, and that the other fields are not older than it: they may be
//!   those of a later acquisition that uses the same entry.
//!
//! `docs/ledger.md` says what may be concluded from these, `crates/model` checks
//! them.
//!
//! # Ordering
//! Labels LED-1 to LED-5 and LED-18 in `docs/memory-ordering.md`. A sequence lock without
//! fences: every word of the ledger that a reader uses is stored with release and loaded with
//! acquire, which costs nothing on x86-64. Two fences (LED-17) order it with lock words, which
//! the program's locks store as they like and the reader gets from the kernel.
//!
//! # Progress
//! A push and a pop of the newest entry have no loop. What else the writer does looks at each entry once or
//! twice: the search for an entry that is not on top, and the dropping of gaps. `revoke` may search again
//! each time that an entry has moved down, so that it is bounded by the square of their number.

mod bits;
mod held;

pub use bits::{Flags, RAREST, WaitKind};
pub use held::{Full, HeldEntry, HeldStack, Holding};

use crate::cells::Cells;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::fence;
use lockstead_core::{Atomic64, fault};

/// What a thread waits for; one per thread, all zero at first.
#[repr(C)]
#[derive(Debug)]
pub struct PublishedWait<C: Cells> {
    /// Odd while the thread waits; goes up by one at each begin and end.
    episode: C::Word,
    /// [`Waiting`] without its address: `how | stack << 32`.
    how: C::Word,
    /// The address of the lock, or the joined thread's `pthread_t`.
    target: C::Word,
    /// The time at which the wait began, in nanoseconds of `CLOCK_MONOTONIC`.
    since: C::Word,
    /// The time at which the wait will time out, in nanoseconds of the clock that `how` names;
    /// meaningless for an untimed wait.
    deadline: C::Word,
    /// The mutex that a wait on a condition variable gives back meanwhile.
    companion: C::Word,
}

/// A wait, as a thread publishes it and as a reader sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// The kind of the wait.
    pub how: WaitKind,
    /// Id of the stack of return addresses that leads to the wait.
    pub stack: u32,
    /// The address of the lock, or `pthread_t` of the joined thread.
    pub target: u64,
    /// The time at which the wait began, in nanoseconds of `CLOCK_MONOTONIC`.
    pub since: u64,
    /// The deadline in nanoseconds of its clock; zero for an untimed wait.
    pub deadline: u64,
    /// The mutex that a wait on a condition variable gives back, else zero.
    pub companion: u64,
}

/// The number of one wait of one thread; never used twice by it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct Episode(pub u64);

impl<C: Cells> PublishedWait<C> {
    /// A thread that waits for nothing.
    pub const NONE: Self = PublishedWait {
        episode: C::Word::ZERO,
        how: C::Word::ZERO,
        target: C::Word::ZERO,
        since: C::Word::ZERO,
        deadline: C::Word::ZERO,
        companion: C::Word::ZERO,
    };

    /// Publishes a wait. The thread itself calls this before it may block. A wait that was
    /// never ended (its thread left it by `longjmp`) is replaced.
    pub fn begin(&self, waiting: &Waiting) {
        let episode = self.episode.load(Relaxed);
        let even = episode + (episode & 1);
        if even != episode {
            self.episode.store(even, Release); // ord: LED-1 (release): the wait that was left
        }
        // ord: LED-1 (release): after the even episode, so that a reader of a
        // field of this wait cannot confirm the one before.
        self.how.store(u64::from(waiting.how.0) | u64::from(waiting.stack) << 32, Release);
        self.target.store(waiting.target, Release); // ord: LED-1
        self.since.store(waiting.since, Release); // ord: LED-1
        self.deadline.store(waiting.deadline, Release); // ord: LED-1
        self.companion.store(waiting.companion, Release); // ord: LED-1
        // ord: LED-2 (release): publishes the fields and the held stack.
        self.episode.store(even + 1, Release);
    }

    /// Withdraws the wait. The thread itself calls this after the blocking call and before
    /// its held stack changes. Does nothing if none is published.
    pub fn end(&self) {
        let episode = self.episode.load(Relaxed);
        if episode & 1 != 0 && !fault!(ledger_forgets_to_end) {
            // Relaxed: nothing is published, and what comes after in the ledger is stored with release
            // (LED-1, LED-3), so that it cannot be seen earlier.
            let next = if fault!(ledger_counts_no_episodes) { episode - 1 } else { episode + 1 };
            self.episode.store(next, Relaxed);
            // ord: LED-17 (release): lock words that the thread changes from here on, which are read, too.
            fence(Release);
        }
    }

    /// Tells whether the thread has a wait published, for its own use.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.episode.load(Relaxed) & 1 != 0
    }

    /// Reads the wait, if there is one. Any thread of any process may call this.
    #[must_use]
    pub fn read(&self) -> Option<(Episode, Waiting)> {
        // ord: LED-2 (acquire): the fields and the held stack of this episode.
        let episode = self.episode.load(Acquire);
        if episode & 1 == 0 {
            return None;
        }
        // ord: LED-1 (acquire): a field of a later wait brings its episode along.
        let how = self.how.load(Acquire);
        let waiting = Waiting {
            how: WaitKind(how as u32),
            stack: (how >> 32) as u32,
            target: self.target.load(Acquire),       // ord: LED-1
            since: self.since.load(Acquire),         // ord: LED-1
            deadline: self.deadline.load(Acquire),   // ord: LED-1
            companion: self.companion.load(Acquire), // ord: LED-1
        };
        self.is_still(Episode(episode)).then_some((Episode(episode), waiting))
    }

    /// Tells whether the thread is in the same wait still, so that all that was read since
    /// [`PublishedWait::read`] is of one piece (LEDGER-STILL).
    #[must_use]
    pub fn is_still(&self, episode: Episode) -> bool {
        // ord: LED-17 (acquire): lock words and frames that were read before, by calls of the kernel.
        fence(Acquire);
        fault!(ledger_takes_every_wait_for_still) || self.episode.load(Relaxed) == episode.0
    }
}

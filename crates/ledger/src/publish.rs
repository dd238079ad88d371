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
//!    the real release.
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
//! Labels LED-1 to LED-5 in `docs/memory-ordering.md`. A sequence lock without
//! fences: every word of the ledger that a reader uses is stored with release and loaded with
//! acquire, which costs nothing on x86-64. Two fences (LED-17) order it with lock words, which
//! the program's locks store as they like and the reader gets from the kernel.
//!
//! # Progress
//! No loop on the writer's side but the search for an entry that is not on
//! top, bounded by the locks held; in `revoke` by the square of that, for each
//! new search means that an entry has moved down.

mod bits;

pub use bits::{Flags, RAREST, WaitKind};

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

/// An entry of the held stack: one lock.
#[repr(C)]
#[derive(Debug)]
pub struct HeldEntry<C: Cells> {
    /// The address of the lock; zero: the entry is empty.
    address: C::Word,
    /// `lock index | stack id << 32`.
    place: C::Word,
    /// `tick | flags << 32 | timed << 63`: the coarse time of acquisition,
    /// [`Flags`], and whether the exact one is known.
    how: C::Word,
    /// The exact time of acquisition in nanoseconds; left over from an earlier use of the
    /// entry if `how` says that it is not known.
    started: C::Word,
}

/// The bit of [`HeldEntry`]'s `how` above all flags.
const TIMED: u64 = 1 << 63;

/// A held lock, as a thread publishes it and as a reader sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Holding {
    /// The address of the lock.
    pub address: u64,
    /// The index of its record.
    pub lock: u32,
    /// Id of the stack of return addresses at the acquisition.
    pub stack: u32,
    /// The coarse time of the acquisition, in [ticks](crate::header::tick_of).
    pub tick: u32,
    /// What is special about the hold.
    pub flags: Flags,
    /// The exact time of the acquisition in nanoseconds, or zero.
    pub started: u64,
}

impl<C: Cells> HeldEntry<C> {
    /// An entry without a lock.
    pub const NONE: Self = HeldEntry {
        address: C::Word::ZERO,
        place: C::Word::ZERO,
        how: C::Word::ZERO,
        started: C::Word::ZERO,
    };

    #[inline(always)]
    fn fill(&self, holding: &Holding) {
        if fault!(ledger_stores_the_address_first) {
            self.address.store(holding.address, Release); // ord: LED-4
        }
        // ord: LED-3 (release): after the episode that ended (even), so that a
        // reader who sees any of this cannot confirm a wait that is over.
        self.place.store(u64::from(holding.lock) | u64::from(holding.stack) << 32, Release);
        self.write_how(holding.tick, holding.flags, holding.started);
        // ord: LED-4 (release): an address that is seen has its fields.
        self.address.store(holding.address, Release);
    }

    #[inline(always)]
    fn clear(&self) {
        // ord: LED-3 (release), as in `fill`.
        self.address.store(0, Release);
    }

    /// Clears the entry if it is still that of `address`; says whether it was.
    fn take(&self, address: u64) -> bool {
        // ord: LED-3 (release), as in `fill`; also when another thread than
        // the holder clears: what comes after is the real release.
        self.address.compare_exchange(address, 0, Release, Relaxed).is_ok()
    }

    /// Reads the entry. Returns `None` if it is empty. For a thread that runs, the fields may
    /// belong to a later acquisition than the address.
    #[must_use]
    pub fn read(&self) -> Option<Holding> {
        // ord: LED-4 (acquire): the fields; and, as LED-3, the episode.
        let address = self.address.load(Acquire);
        if address == 0 {
            return None;
        }
        // ord: LED-3 (acquire): a field of a later acquisition brings along that
        // the episode has ended.
        let place = self.place.load(Acquire);
        let how = self.how.load(Acquire); // ord: LED-3
        let is_timed = how & TIMED != 0;
        let started = if is_timed { self.started.load(Acquire) } else { 0 }; // ord: LED-3
        Some(Holding {
            address,
            lock: place as u32,
            stack: (place >> 32) as u32,
            tick: how as u32,
            flags: Flags(((how & !TIMED) >> 32) as u32),
            started,
        })
    }

    /// Returns the address alone; zero if the entry is empty.
    #[inline(always)]
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address.load(Acquire) // ord: LED-4 (acquire), as in `read`
    }

    /// Changes the flags. Only the holder calls this.
    pub fn set_flags(&self, flags: Flags) {
        let how = self.how.load(Relaxed);
        // ord: LED-3 (release), as in `fill`.
        self.how.store(how & (TIMED | 0xffff_ffff) | u64::from(flags.0) << 32, Release);
    }

    /// Begins a new time of holding. The holder calls this after a wait on a condition
    /// variable.
    pub fn restart(&self, tick: u32, flags: Flags, started: u64) {
        self.write_how(tick, flags, started);
    }

    /// Writes `how`, and the exact time only if there is one: one store less for most.
    #[inline(always)]
    fn write_how(&self, tick: u32, flags: Flags, started: u64) {
        let mut how = u64::from(tick) | u64::from(flags.0) << 32;
        if started != 0 {
            // ord: LED-3 (release), as in `fill`.
            self.started.store(started, Release);
            how |= TIMED;
        }
        self.how.store(how, Release); // ord: LED-3
    }
}

/// The held locks of one thread, oldest first. The entries lie apart from the
/// count, which is why this is a view of both.
#[derive(Debug)]
pub struct HeldStack<'a, C: Cells> {
    top: &'a C::Word,
    entries: &'a [HeldEntry<C>],
}

impl<C: Cells> Clone for HeldStack<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Cells> Copy for HeldStack<'_, C> {}

impl<'a, C: Cells> HeldStack<'a, C> {
    /// Makes the view of a thread's count and entries.
    #[inline(always)]
    #[must_use]
    pub fn new(top: &'a C::Word, entries: &'a [HeldEntry<C>]) -> Self {
        HeldStack { top, entries }
    }

    /// Returns the number of entries in use, empty ones included.
    #[inline(always)]
    #[must_use]
    pub fn depth(&self) -> usize {
        // ord: LED-5 (acquire): the entries below it.
        (self.top.load(Acquire) as usize).min(self.entries.len())
    }

    /// Returns the entry at `index`.
    #[inline(always)]
    #[must_use]
    pub fn entry(&self, index: usize) -> &'a HeldEntry<C> {
        &self.entries[index]
    }

    /// Records an acquisition. The thread itself calls this after it.
    ///
    /// # Errors
    /// [`Full`] when there is no entry left: nothing was recorded.
    #[inline(always)]
    pub fn push(&self, holding: &Holding) -> Result<(), Full> {
        let top = self.top.load(Relaxed) as usize;
        let Some(entry) = self.entries.get(top) else { return Err(Full) };
        // ord: LED-5 (release): as LED-3. The entry is empty still: a reader
        // finds nothing in it, a handler pushes above it.
        if fault!(ledger_raises_the_top_last) {
            entry.fill(holding);
            self.top.store(top as u64 + 1, Release); // ord: LED-5
        } else {
            self.top.store(top as u64 + 1, Release); // ord: LED-5
            entry.fill(holding);
        }
        Ok(())
    }

    /// Removes the newest entry of `address` and returns it. The thread itself calls this
    /// before the real release. Returns `None` if it holds no such lock.
    #[inline(always)]
    pub fn pop(&self, address: u64) -> Option<Holding> {
        let top = self.top.load(Relaxed) as usize;
        let newest = self.entries.get(top.wrapping_sub(1))?;
        if newest.address.load(Relaxed) == address {
            let holding = newest.read();
            newest.clear();
            // ord: LED-5 (release): as LED-3.
            self.top.store(top as u64 - 1, Release);
            return holding;
        }
        self.pop_below(address)
    }

    /// Removes the newest entry of `address` on behalf of the thread that holds it, and
    /// returns what was held. A thread that releases a lock in the holder's place calls this
    /// before the real release. The entry stays as an empty one until its own thread comes
    /// across it.
    ///
    /// The thread may move its entries down meanwhile (`pop_below`).
    /// Then the search begins anew, once for each move; a copy that has been
    /// made already is cleared by the thread that made it.
    pub fn revoke(&self, address: u64) -> Option<Holding> {
        loop {
            let (index, holding) = self.find(address)?;
            if fault!(ledger_clears_whatever_is_there) {
                self.entries[index].clear();
                return Some(holding);
            }
            if self.entries[index].take(address) {
                return Some(holding);
            }
        }
    }

    /// Returns the newest entry of `address`, without removing it.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<(usize, Holding)> {
        (0..self.depth()).rev().find_map(|index| {
            let holding = self.entries[index].read()?;
            (holding.address == address).then_some((index, holding))
        })
    }

    /// Removes an entry that is not on top. The entries above move down, or hand-over-hand
    /// locking would climb for ever. Readers of a running thread may miss an entry meanwhile
    /// or see it twice; of a waiting one never (LEDGER-EPISODE). No handler of this thread
    /// may record meanwhile: the caller has marked it busy. Others may revoke entries: hence
    /// the exchange.
    #[cold]
    #[inline(never)]
    fn pop_below(&self, address: u64) -> Option<Holding> {
        let mut top = self.depth();
        while top > 0 && self.entries[top - 1].address() == 0 {
            // `revoke` has left the empty entry behind.
            top -= 1;
            self.top.store(top as u64, Release); // ord: LED-5 (release): as LED-3
        }
        let (index, holding) = self.find(address)?;
        self.entries[index].clear();
        for above in index + 1..top {
            if let Some(moved) = self.entries[above].read() {
                self.entries[above - 1].fill(&moved);
                if fault!(ledger_moves_what_was_revoked) {
                    self.entries[above].clear();
                } else if !self.entries[above].take(moved.address) {
                    // Another thread has revoked the entry since it was read.
                    self.entries[above - 1].clear();
                }
            }
        }
        self.top.store(top as u64 - 1, Release); // ord: LED-5 (release): as LED-3
        Some(holding)
    }
}

/// There is no entry left to record a held lock in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

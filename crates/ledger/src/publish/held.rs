//! The locks that a thread holds, as others may read them.
//!
//! # Role
//! The half of the [publication](super) that outlasts waits: each thread writes its own stack of
//! [`HeldEntry`], the command reads it.
//!
//! # Gaps
//! [`HeldStack::revoke`] leaves an empty entry among the others, a gap, and counts it in `emptied`. Its thread
//! drops gaps from the top ([`HeldStack::tidy`], and a pop that is not of the top), closes the others where they
//! are more than half, and fills them when there is no room above. It does so only while no more entries are
//! empty than are counted. Where more are, one may be about to be filled, or to go: the caller may be a signal
//! handler that has interrupted a push or a pop, whose entry has to stay where it is. (Or another thread
//! has emptied one and not counted it yet: the next look finds it.) Then a release leaves what is below
//! that entry where it is.
//!
//! That is the second line of defence. The first: calls that the C library lets handlers make, which are those
//! of `sem_post`, only revoke. A handler that locks mutexes nevertheless and drops a gap between two
//! instructions of a push, or that leaves such a push by a jump, leaves an entry that is empty and never
//! counted: from then on gaps stay until its thread ends.
//!
//! The fast paths count nothing: one that releases what another thread releases at the same time leaves a count
//! too many. It is corrected by the next look that finds more counted than empty.

use super::Flags;
use crate::cells::Cells;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use lockstead_core::{Atomic64, fault};

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
    /// How many gaps there are; lower for a moment while another thread counts one.
    emptied: &'a C::Word,
    entries: &'a [HeldEntry<C>],
}

impl<C: Cells> Clone for HeldStack<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Cells> Copy for HeldStack<'_, C> {}

impl<'a, C: Cells> HeldStack<'a, C> {
    /// Makes the view of a thread's entries: `top` is their number, `emptied` that of the gaps.
    #[inline(always)]
    #[must_use]
    pub fn new(top: &'a C::Word, emptied: &'a C::Word, entries: &'a [HeldEntry<C>]) -> Self {
        HeldStack { top, emptied, entries }
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

    /// Records an acquisition, and returns the index of its entry. The thread itself calls this after it.
    ///
    /// # Errors
    /// [`Full`] when there is no entry left: nothing was recorded.
    #[inline(always)]
    pub fn push(&self, holding: &Holding) -> Result<usize, Full> {
        let top = self.top.load(Relaxed) as usize;
        let Some(entry) = self.entries.get(top) else { return self.fill_gap(holding) };
        // ord: LED-5 (release): as LED-3. The entry is empty still: a reader
        // finds nothing in it, a handler pushes above it.
        if fault!(ledger_raises_the_top_last) {
            entry.fill(holding);
            self.top.store(top as u64 + 1, Release); // ord: LED-5
        } else {
            self.top.store(top as u64 + 1, Release); // ord: LED-5
            entry.fill(holding);
        }
        Ok(top)
    }

    /// Removes the newest entry of `address` and returns it. The thread itself calls this
    /// before the real release. Returns `None` if it holds no such lock.
    #[inline(always)]
    pub fn pop(&self, address: u64) -> Option<Holding> {
        let top = self.top.load(Relaxed) as usize;
        let newest = self.entries.get(top.wrapping_sub(1))?;
        if newest.address.load(Relaxed) == address {
            let holding = newest.read();
            if !newest.take(address) {
                // It was counted by whoever has taken it away, or will be.
                self.emptied.fetch_sub(1, Relaxed);
            }
            // ord: LED-5 (release): as LED-3.
            self.top.store(top as u64 - 1, Release);
            return holding;
        }
        self.pop_below(address)
    }

    /// Removes the newest entry of `address` on behalf of the thread that holds it, and
    /// returns what was held. A thread that releases a lock in the holder's place calls this
    /// before the real release; so does a signal handler that releases what its own thread holds, since it
    /// may have interrupted a push or a pop. The entry stays as an empty one until its own thread comes
    /// across it.
    ///
    /// The thread may move its entries down meanwhile (`moves`).
    /// Then the search begins anew, once for each move; a copy that has been
    /// made already is cleared by the thread that made it.
    pub fn revoke(&self, address: u64) -> Option<Holding> {
        loop {
            let (index, holding) = self.find(address)?;
            if fault!(ledger_clears_whatever_is_there) {
                self.entries[index].address.store(0, Release); // ord: LED-3
                return Some(holding);
            }
            if self.entries[index].take(address) {
                // ord: LED-18 (release): that the entry is empty.
                self.emptied.fetch_add(1, Release);
                return Some(holding);
            }
        }
    }

    /// Returns how many gaps there are, unless more entries are empty. The thread itself calls this.
    fn gaps(&self) -> Option<usize> {
        // ord: LED-18 (acquire): before the entries, so that each that is counted is seen to be empty.
        let counted = self.emptied.load(Acquire).cast_signed();
        let entries = &self.entries[..self.depth()];
        let empty = entries.iter().filter(|entry| entry.address() == 0).count();
        if fault!(ledger_takes_each_empty_entry_for_a_gap) {
            return Some(empty);
        }
        let too_many = counted - empty as i64;
        if too_many > 0 {
            self.emptied.fetch_sub(too_many as u64, Relaxed);
        }
        (too_many >= 0).then_some(empty)
    }

    /// Drops gaps. The thread itself calls this. Returns whether entries have moved.
    #[inline(always)]
    pub fn tidy(&self) -> bool {
        self.emptied.load(Relaxed) != 0 && self.trim().is_some_and(|gaps| self.close(gaps))
    }

    /// Drops gaps from the top, and returns how many are left; `None` if others are empty, too.
    #[cold]
    #[inline(never)]
    fn trim(&self) -> Option<usize> {
        let gaps = self.gaps()?;
        let depth = self.depth();
        let mut top = depth;
        // A handler that forks has the child find all empty.
        while top > 0 && depth - top < gaps && self.entries[top - 1].address() == 0 {
            top -= 1;
            self.top.store(top as u64, Release); // ord: LED-5 (release): as LED-3
        }
        if top != depth {
            self.emptied.fetch_sub((depth - top) as u64, Relaxed);
        }
        Some(gaps - (depth - top))
    }

    /// Moves the entries down over the gaps where these are more than half. Returns whether it did.
    #[cold]
    #[inline(never)]
    fn close(&self, gaps: usize) -> bool {
        let top = self.depth();
        if gaps * 2 <= top {
            return false;
        }
        let (mut to, mut closed) = (0, 0);
        for from in 0..top {
            let stays = to == from && self.entries[from].address() != 0;
            if stays || self.moves(from, to) {
                to += 1;
            } else {
                closed += 1;
            }
        }
        self.top.store(to as u64, Release); // ord: LED-5 (release): as LED-3
        self.emptied.fetch_sub(closed, Relaxed);
        true
    }

    /// Moves an entry down to an empty one. Others may revoke it meanwhile: hence the exchanges. Returns
    /// whether it is there.
    fn moves(&self, from: usize, to: usize) -> bool {
        let Some(moved) = self.entries[from].read() else { return false };
        self.entries[to].fill(&moved);
        if fault!(ledger_moves_what_was_revoked) {
            self.entries[from].address.store(0, Release); // ord: LED-3
            return true;
        }
        if self.entries[from].take(moved.address) {
            return true;
        }
        // Another thread has revoked it since it was read, and counted that, or will. If it has found the copy as
        // well, that is counted twice.
        if !self.entries[to].take(moved.address) {
            self.emptied.fetch_sub(1, Relaxed);
        }
        false
    }

    /// Records an acquisition in the newest gap, since there is no room above: it is out of its order.
    #[cold]
    #[inline(never)]
    fn fill_gap(&self, holding: &Holding) -> Result<usize, Full> {
        if self.gaps().is_none_or(|gaps| gaps == 0) {
            return Err(Full);
        }
        let gap = self.entries.iter().rposition(|entry| entry.address() == 0).ok_or(Full)?;
        self.entries[gap].fill(holding);
        self.emptied.fetch_sub(1, Relaxed);
        Ok(gap)
    }

    /// Empties the stack of a thread that has ended and holds nothing.
    pub fn reset(&self) {
        self.top.store(0, Release); // ord: LED-5 (release): as LED-3
        self.emptied.store(0, Relaxed);
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
    /// may record meanwhile: the caller has marked it busy.
    #[cold]
    #[inline(never)]
    fn pop_below(&self, address: u64) -> Option<Holding> {
        let is_whole = self.trim().is_some();
        let (index, holding) = self.find(address)?;
        let from_here = self.entries.get(index..self.depth()).unwrap_or_default();
        if !is_whole && from_here.iter().any(|entry| entry.address() == 0) {
            // One of these may have to stay where it is.
            return self.revoke(address);
        }
        if !self.entries[index].take(address) {
            return self.revoke(address);
        }
        let top = self.depth();
        for above in index + 1..top {
            self.moves(above, above - 1);
        }
        // A handler that forks has the child find all empty.
        self.top.store((top as u64).saturating_sub(1), Release); // ord: LED-5 (release): as LED-3
        Some(holding)
    }
}

/// There is no entry left to record a held lock in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

//! Locks that keep who waits in a line: a mutex that is granted in the order of asking, and a
//! condition variable that wakes exactly whom it notifies.
//!
//! # Role
//! The other locks of the crate keep no list of their waiters: the kernel's queue is theirs, and
//! whoever looks first may be first. That is faster, but two promises cannot be kept so: *strictly in
//! turn*, and *nobody returns who was not notified*. This module keeps them, for more bytes and a
//! dearer slow path.
//!
//! # State
//! A line is a list of its waiters, each in a place on its own stack, and a mutex, the *gate*, that threads
//! hold while they change the list, never while they wait or hold a lock.
//!
//! ```text
//!  gate ─▶ last ──▶ first ──▶ second ──▶ ... ──▶ last      (a ring: one pointer finds both ends)
//! ```
//!
//! # Protocol
//! Waiter: joins the end under the gate; sleeps until its place is *granted*. If it gives up it takes the
//! gate and looks whether it is still in the line: then it leaves it; otherwise it has been called,
//! and the grant is under way: it waits for that, and has not given up.
//!
//! Caller: takes the first (or all) out of the line under the gate, leaves the gate, then grants and
//! wakes.
//!
//! # Invariants
//! - **LINE-GATE** The list, and whether a waiter is in it, change under the gate alone.
//! - **LINE-ALIVE** A waiter's place is not left before it is out of the line and, if a caller
//!   took it out, *granted* is set in it. After that the caller touches nothing of it: it wakes by
//!   address alone.
//!
//! # Ordering
//! Labels `LINE-*` in `docs/memory-ordering.md`.
//!
//! # Progress
//! The gate is a mutex with its bound. A waiter is called after those before it.
//!
//! # Lifetime
//! A caller leaves the gate before it grants. So a thread that has been granted may free the line.
//! A child of `fork` must not use a line in which threads waited that it does not have: their
//! stacks may have been given to others.
//!
//! # Source
//! parking_lot's queues, without its table: each lock has its own.

mod condvar;
mod mutex;

pub use condvar::RawExactCondvar;
pub use mutex::RawFifoMutex;

use crate::atomic::{Atomic32, Atomic64, Ordering};
use crate::give_up::Reasons;
use crate::hooks::Off;
use crate::mutex::RawMutex;
use crate::platform::{AwaitedUse, LockError, Platform, ShownSleep, WaitBounds};
use crate::policy::{Policy, Standard};
use crate::slot::Slot;
use core::ptr;

/// It stands in the line.
const WAITING: u32 = 0;
/// A caller has taken it out, and is about to grant.
const CALLED: u32 = 1;
/// It may go on.
const GRANTED: u32 = 2;

/// Where a thread stands in a line: on its stack, unless the caller has another place for it.
pub struct Place<P: Platform> {
    /// The address of the one behind it in the ring; of those that a caller has taken out, of the
    /// next to grant.
    behind: P::U64,
    slot: P::U32,
    state: P::U32,
}

impl<P: Platform> Place<P> {
    /// Makes a place outside of any line.
    #[must_use]
    pub const fn new() -> Self {
        Place { behind: P::U64::ZERO, slot: P::U32::ZERO, state: P::U32::ZERO }
    }

    fn slot(&self) -> u32 {
        self.slot.load(Ordering::Relaxed)
    }

    fn state(&self) -> u32 {
        // ord: LINE-1 acquire, pairs with LINE-2.
        self.state.load(Ordering::Acquire)
    }
}

impl<P: Platform> Default for Place<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> core::fmt::Debug for Place<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Place{{slot={} state={}}}", self.slot(), self.state.load(Ordering::Relaxed))
    }
}

/// Reads the address of a place.
fn place_at<P: Platform>(word: &P::U64) -> *const Place<P> {
    ptr::with_exposed_provenance(word.load(Ordering::Relaxed) as usize)
}

/// Writes the address of a place. The caller is at the gate.
fn set_place<P: Platform>(word: &P::U64, place: *const Place<P>) {
    word.store(place.expose_provenance() as u64, Ordering::Relaxed);
}

/// The waiters of one lock, in the order of their coming.
struct Line<P: Platform, Y: Policy = Standard> {
    gate: RawMutex<P, Off, Y>,
    /// The address of the last place in the ring, 0 if the line is empty. Changed under the gate.
    last: P::U64,
}

impl<P: Platform, Y: Policy> Line<P, Y> {
    const fn new() -> Self {
        Line { gate: RawMutex::new(), last: P::U64::ZERO }
    }

    /// Tells whether nobody stood in the line at some moment during the call.
    fn is_empty(&self) -> bool {
        self.last().is_null()
    }

    fn last(&self) -> *const Place<P> {
        place_at(&self.last)
    }

    /// Does something under the gate.
    ///
    /// # Errors
    /// Those of [`RawMutex::lock`]: a signal handler has interrupted its own thread under the gate,
    /// or `fork` has left the thread behind that was there.
    fn at_the_gate<R>(&self, inside: impl FnOnce() -> R) -> Result<R, LockError> {
        let gate = ptr::from_ref(&self.gate).addr();
        let shown = ShownSleep { lock: gate, wants: AwaitedUse::Mutex, is_endless: true };
        // A part of waiting for the lock, or of its release: no observer is told of a wait of its own.
        self.gate.lock_within(&WaitBounds::FOREVER, &shown)?;
        let result = inside();
        // SAFETY: this thread has locked the gate above.
        unsafe { self.gate.unlock() };
        Ok(result)
    }

    /// Joins the end as `me`. The caller is at the gate, and keeps the place as LINE-ALIVE says.
    fn join(&self, place: &Place<P>, me: Slot) {
        place.slot.store(me.get(), Ordering::Relaxed);
        place.state.store(WAITING, Ordering::Relaxed);
        let last = self.last();
        if last.is_null() {
            set_place(&place.behind, ptr::from_ref(place));
        } else {
            // SAFETY: LINE-ALIVE: `last` stands in the line, and the caller is at the gate.
            let last = unsafe { &*last };
            set_place(&place.behind, place_at::<P>(&last.behind));
            set_place(&last.behind, ptr::from_ref(place));
            if fault!(line_newcomer_stands_first) {
                return;
            }
        }
        set_place(&self.last, place);
    }

    /// Takes the first out, if there is one. The caller is at the gate, and grants afterwards.
    fn take_first(&self) -> Option<*const Place<P>> {
        let last = self.last();
        // SAFETY: LINE-ALIVE: what is in the line lives, and the caller is at the gate.
        let first = place_at(&unsafe { last.as_ref() }?.behind);
        // SAFETY: LINE-ALIVE: both stand in the line, and the caller is at the gate.
        unsafe { self.take_behind(&*last, &*first) };
        Some(first)
    }

    /// Takes `place` out, which stands behind `ahead`. The caller is at the gate.
    fn take_behind(&self, ahead: &Place<P>, place: &Place<P>) {
        place.state.store(CALLED, Ordering::Relaxed);
        if ptr::eq(ahead, place) {
            set_place::<P>(&self.last, ptr::null());
            return;
        }
        set_place(&ahead.behind, place_at::<P>(&place.behind));
        if ptr::eq(self.last(), place) {
            set_place(&self.last, ahead);
        }
    }

    /// Takes `place` out if it still stands in the line, and returns whether it did. The caller is at
    /// the gate.
    fn take_out(&self, place: &Place<P>) -> bool {
        if place.state() != WAITING {
            return false;
        }
        let mut ahead = self.last();
        loop {
            // SAFETY: LINE-ALIVE: the ring of the line, in which `place` stands, and the caller is
            // at the gate.
            let here = unsafe { &*ahead };
            let behind = place_at(&here.behind);
            if ptr::eq(behind, place) {
                self.take_behind(here, place);
                return true;
            }
            ahead = behind;
        }
    }

    /// Waits until the place, at which the caller stands in the line, is granted.
    ///
    /// # Errors
    /// The reasons in `how`, and [`LockError::OwnerLost`] after `fork`.
    fn wait(
        &self,
        place: &Place<P>,
        how: &WaitBounds<'_, P>,
        shown: &ShownSleep,
    ) -> Result<(), LockError> {
        let mut reasons = Reasons::new(how);
        loop {
            let state = place.state();
            if state == GRANTED {
                return Ok(());
            }
            if let Some(error) = reasons.given_up() {
                if self.at_the_gate(|| self.take_out(place))? || fault!(line_leaver_ignores_a_call)
                {
                    return Err(error);
                }
                // Called: the caller is about to grant.
                while place.state() != GRANTED {
                    P::wait32_shown(&place.state, CALLED, &WaitBounds::FOREVER, shown);
                }
                return Ok(());
            }
            P::begin_sleep();
            let outcome = P::wait32_shown(&place.state, state, how, shown);
            P::end_sleep();
            reasons.heard(outcome);
        }
    }
}

/// Lets the thread at `place` go on.
///
/// # Safety
/// LINE-ALIVE: the caller has taken the place out of its line, and has not granted it.
unsafe fn grant<P: Platform>(place: *const Place<P>) {
    // SAFETY: LINE-ALIVE: the place is not left before it is granted, which is below.
    let state = unsafe { &(*place).state };
    let address = P::address32(state);
    // ord: LINE-2 release, pairs with LINE-1: what the caller did before.
    state.store(GRANTED, Ordering::Release);
    P::wake(address, 1);
}

//! The wait/wound mutex: any set of locks, in any order, without deadlock.
//!
//! # Role
//! A thread that needs several locks acquires them in a [`Context`]. Where two
//! contexts would wait for each other, the younger is told so instead of waiting
//! ([`WwError::Deadlock`]): it releases all it holds, waits for the lock that it
//! was refused, and begins again, as old as before. So the oldest context never
//! backs off, and each becomes the oldest in time.
//!
//! # State
//! Twenty-four bytes, all zeros when free:
//!
//! | word | holds | written by |
//! |---|---|---|
//! | `base` | a mutex, as it ships: who holds the lock | as there |
//! | `holder` | the ticket of the holder's context; *mortal* alone: it has none; 0: free, or the holder has not said yet | the holder, after it has acquired and before it releases |
//! | `first` | the ticket of the oldest context that waits; 0: none does | contexts that wait |
//!
//! A [ticket](self#tickets) names a context by stamp and slot. Other threads reach a
//! context by a record in its thread's slot: they wound it there, by a compare-exchange against
//! the ticket, and tell it to look again, by a store. A context's own memory is touched by its
//! thread alone.
//!
//! ```text
//!  newcomers without a context ────────────────────────────▶ base
//!  the oldest context that waits ── first ─────────────────▶ base
//!  younger contexts that hold nothing ── sleep on `first`, one woken when it leaves
//! ```
//!
//! # Protocol
//! Fast path: the context takes `base` and stores its ticket in `holder`. Release: it stores 0
//! there and releases `base`. Nothing else.
//!
//! A context that waits:
//! 1. It becomes the first, unless an older one is: then it sleeps behind that one, or, if it
//!    holds other locks, backs off. A younger first is deposed, and told.
//! 2. It sets *contexts* in the word of `base`. From here on nobody acquires by the fast path,
//!    and every context that acquires looks at `first`.
//! 3. It judges the holder. Wait-die: if the holder is older, and the context holds other locks,
//!    the context backs off. Wound-wait: if the holder is younger, the context wounds it. If the
//!    holder has not said who it is, the context asks again a little later.
//! 4. It waits for `base` as for any mutex, spinning, sleeping, with a hand-off. When it is told
//!    to look again, it begins again at 1.
//!
//! A context that has acquired past the fast path stores its ticket and looks at `first`:
//! - It is the first itself: it leaves that place, and wakes one of those behind it.
//! - Another is first: it judges itself. Wound-wait: if the first is older, it wounds itself.
//!   Wait-die: if the first is younger and holds other locks, it tells the first.
//! - None is first: it clears *contexts*, looks again, and sets *contexts* again if one has come.
//!
//! # Invariants
//! - **WW-HOLDER** `holder` is 0 whenever `base` is free: a thread that finds a ticket there
//!   after it saw `base` held has that of this holder or of a later one.
//! - **WW-CONTEXTS** *contexts* is clear ⇒ no context relies on being first: it has not set
//!   *contexts* yet (and will judge the holder once it has), or it has left. Only a holder clears
//!   *contexts*, and looks at `first` again afterwards; nobody can acquire in between.
//! - **WW-JUDGED** A first that has set *contexts* has judged, or is about to, the holder of `base`
//!   at that moment; all later holders with a context judge themselves by it.
//! - **WW-BEHIND** A context that sleeps behind the first holds nothing, and has set *followed*
//!   in the first's ticket. The thread that takes a followed ticket out of `first`, but to put an
//!   older one with *followed* there, wakes one. That one sets *followed* again: in its own
//!   ticket, or in that of the first that it finds; or if it gives up and finds none, it wakes
//!   another.
//! - **WW-NO-CYCLE** A context that holds others waits for a holder alone, as the first, not
//!   behind one. In wait-die that is no older one (WW-JUDGED). In wound-wait it is a younger one
//!   only while that is wounded; the wounded one does not wait, or is about to find out that it is
//!   wounded. Hence no cycle of waits.
//! - **WW-BARE** A context that holds nothing never backs off.
//! - **WW-ENDED** The slot of a thread that ended with a lock of these, or with a context that had
//!   not ended, is lost (SLOT-LOST): `base` names it for ever, and says so to who waits. Contexts
//!   that sleep are told to look again ([`look_again`]); who waits without one looks every second.
//! - **WW-LAST-TOUCH** After the atomic that releases, nothing here touches the lock.
//!
//! # Ordering
//! Labels `WW-*` in `docs/memory-ordering.md`. WW-CONTEXTS and WW-JUDGED rest on the word of
//! `base` alone: either the first's step 2 comes before an acquisition, which then
//! sees `first`, or after it, and then the first sees the holder. The store to
//! `holder` needs no fence: a first that comes too early finds 0, and asks again.
//!
//! # Progress
//! The first is older than all that stood in line while it was first, and as a waiter of
//! `base` it is handed the lock past the bound. Waiters without a context are waiters of
//! `base`, which begin anew every second (WW-ENDED), their bound too. Three may go before an older context: one that tries
//! ([`RawWwMutex::try_lock`]), one that comes while those behind a former first are on
//! their way, and one that is woken while the older sleeps on, which holds nothing then.
//!
//! In wound-wait a context that holds locks could wait behind an older one, too. Then all of those
//! behind must be woken whenever a first leaves: otherwise one among them sleeps on, with locks,
//! and does not wound the younger one that was woken and acquires; with one woken threads stood
//! still within seconds. So it was, and was up to 17 times slower (`docs/notes-benchmarks.md`):
//! whoever sleeps with locks has others sleep for those, and such a convoy does not dissolve. To
//! wake the oldest alone takes a list that is sorted by age and from which its members may leave
//! at any time; that is a lock, or a second queue.
//!
//! A wound heals when a context that holds nothing waits, or takes the lock that it was
//! refused. Some wounds make a context back off once for nothing: one that comes late, one that
//! was meant for a context of another class with the same stamp, and one that outlasts the
//! release of the lock that was wanted.
//!
//! Those behind the first compare half of its ticket. For a change to be missed, a
//! thread must be kept between its look and its sleep while exactly a multiple of
//! 2³⁰ contexts of the class begin.
//!
//! # Tickets
//! See `ticket.rs`.
//!
//! # Source
//! Rosenkrantz, Stearns and Lewis, "System level concurrency control for
//! distributed database systems" (1978), for both schemes; the calls and their
//! errors are those of the kernel's `ww_mutex`. The kernel keeps a sorted list of
//! waiters under a spinlock; one first with others behind it is ours, since a
//! release must not touch two words.

mod context;
mod ticket;
mod wait;

pub use crate::attached::CONTEXTS_PER_THREAD;
pub use context::{Class, Context, Scheme, look_again};

use crate::atomic::{Atomic32, Atomic64, Ordering};
use crate::hooks::{Off, Site};
use crate::mutex::RawMutex;
use crate::platform::{LockError, Platform, WaitBounds};
use crate::policy::{Policy, Standard};
use crate::slot::Slot;
use crate::word::Word;
use ticket::Ticket;

/// The reason why a context did not acquire a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WwError {
    /// The context must back off, because to wait might be to wait for ever: release everything
    /// that it holds, then take this lock by [`RawWwMutex::lock_slow`]. The kernel's `-EDEADLK`.
    Deadlock,
    /// The context holds this lock. The kernel's `-EALREADY`.
    Already,
    /// The wait ended as that for any mutex may. [`LockError::Recursive`]: the calling thread holds
    /// the lock in another context or in none, or a signal handler has interrupted
    /// this thread's own wait for it.
    Lock(LockError),
}

/// The reasons for a context to stop waiting, besides having to back off.
#[derive(Clone, Copy, Debug, Default)]
pub struct ContextPatience {
    /// The time at which the context gives up.
    pub deadline: Option<crate::platform::Nanos>,
    /// Whether the context gives up when a signal handler ran during the sleep.
    pub interruptible: bool,
}

impl ContextPatience {
    /// The patience to wait as long as it takes.
    pub const ENDLESS: Self = ContextPatience { deadline: None, interruptible: false };
}

/// Counts the locks that the calling thread holds without a context: while there are any its slot
/// goes to nobody else, since they name it.
#[inline(always)]
fn count_alone<P: Platform>(count: impl FnOnce(u32) -> u32) {
    let alone = &P::participant(P::me()).attached.alone;
    // A signal handler in between gives back what it takes.
    alone.store(count(alone.load(Ordering::Relaxed)), Ordering::Relaxed);
}

/// A wait/wound mutex without data. See the module documentation.
#[repr(C)]
pub struct RawWwMutex<P: Platform, Y: Policy = Standard> {
    base: RawMutex<P, Off, Y>,
    holder: P::U64,
    first: P::U64,
}

impl<P: Platform, Y: Policy> RawWwMutex<P, Y> {
    /// Makes a free lock.
    #[must_use]
    pub const fn new() -> Self {
        Self { base: RawMutex::new(), holder: P::U64::ZERO, first: P::U64::ZERO }
    }

    /// Acquires in a context, waiting as long as it takes and is safe.
    ///
    /// # Errors
    /// See [`WwError`].
    #[inline(always)]
    pub fn lock(&self, context: &Context<P>, site: Site) -> Result<(), WwError> {
        self.lock_how(context, &ContextPatience::ENDLESS, site)
    }

    /// Acquires in a context unless `patience` ends first.
    ///
    /// # Errors
    /// See [`WwError`].
    #[inline(always)]
    pub fn lock_how(
        &self,
        context: &Context<P>,
        patience: &ContextPatience,
        site: Site,
    ) -> Result<(), WwError> {
        if self.base.lock_fast() || self.base.lock_warm() {
            self.held_by(context.ticket());
            context.gained();
            return Ok(());
        }
        self.lock_contended(context, patience, site)
    }

    /// Acquires the lock that a context was refused, once it has released all
    /// others. Does what [`RawWwMutex::lock_how`] does, but then never returns
    /// [`WwError::Deadlock`].
    ///
    /// # Errors
    /// See [`WwError`].
    pub fn lock_slow(
        &self,
        context: &Context<P>,
        patience: &ContextPatience,
        site: Site,
    ) -> Result<(), WwError> {
        // The fast path does not look at wounds, and one that is left would have the
        // context refused a lock that it may wait for.
        if !context.mortal() {
            context.heal();
        }
        self.lock_how(context, patience, site)
    }

    /// Acquires without a context, like any mutex, unless `how` ends the wait.
    ///
    /// # Errors
    /// As [`RawMutex::lock_how`].
    #[inline]
    pub fn lock_alone(&self, how: &WaitBounds<'_, P>, site: Site) -> Result<(), LockError> {
        if self.base.lock_fast() || self.base.lock_warm() {
            self.held_by(Ticket::ALONE);
        } else {
            self.lock_alone_contended(how, site)?;
        }
        count_alone::<P>(|held| held + 1);
        Ok(())
    }

    /// Acquires if that needs no waiting, in a context or without one.
    #[inline]
    pub fn try_lock(&self, context: Option<&Context<P>>, site: Site) -> bool {
        if self.base.lock_fast() || self.base.lock_warm() {
            self.held_by(context.map_or(Ticket::ALONE, Context::ticket));
        } else if self.base.try_lock(site) {
            if fault!(ww_try_does_not_settle) {
                self.held_by(context.map_or(Ticket::ALONE, Context::ticket));
            } else {
                self.settle(context);
            }
        } else {
            return false;
        }
        match context {
            Some(context) => context.gained(),
            None => count_alone::<P>(|held| held + 1),
        }
        true
    }

    /// Releases the lock, which the caller holds.
    ///
    /// # Safety
    /// The calling thread holds the lock, and acquired it in this context, which
    /// has not ended; or without one.
    #[inline(always)]
    pub unsafe fn unlock(&self, context: Option<&Context<P>>) {
        match context {
            Some(context) => context.lost(),
            // One too many, of a lock that another thread took, is no reason to count on.
            None => count_alone::<P>(|held| held.saturating_sub(1)),
        }
        if fault!(ww_release_touches_the_lock_again) {
            // SAFETY: the caller holds the lock, as it promises to hold it in `unlock`.
            unsafe { self.base.unlock() };
        }
        self.holder.store(Ticket::NONE.0, Ordering::Relaxed);
        if fault!(ww_release_touches_the_lock_again) {
            return;
        }
        // SAFETY: the caller promises that this thread holds the lock. `holder` was erased above,
        // before the release publishes that (WW-HOLDER).
        unsafe { self.base.unlock() }
    }

    /// Does the rest of [`RawWwMutex::unlock`] for a fast path in another language, which
    /// has erased the holder, and has not released.
    ///
    /// # Safety
    /// As [`RawWwMutex::unlock`].
    #[cold]
    pub unsafe fn unlock_slow(&self) {
        // SAFETY: the caller promises that this thread holds the lock, and has erased `holder`.
        unsafe { self.base.unlock_slow() };
    }

    /// Tells whether anybody holds it, at some moment during the call.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.base.is_locked()
    }

    /// Tells whether the calling thread holds it.
    #[must_use]
    pub fn is_mine(&self) -> bool {
        self.base.is_mine()
    }

    /// Tells whether the calling thread holds it in this context, which is its own.
    #[must_use]
    pub fn is_held_in(&self, context: &Context<P>) -> bool {
        // The calling thread alone writes and erases this ticket here, and sees what it wrote last.
        self.holder(Ordering::Relaxed).is(context.ticket())
    }

    /// Returns the owner at some moment during the call.
    #[must_use]
    pub fn owner(&self) -> Option<Slot> {
        self.base.owner()
    }

    /// Returns the word of `base`, for reports.
    #[must_use]
    pub fn peek(&self) -> Word {
        self.base.peek()
    }

    /// Returns the [stamp](Context::stamp) of the oldest context that waits, for reports.
    #[must_use]
    pub fn first_stamp(&self) -> Option<u64> {
        let first = self.first();
        first.slot().map(|_| first.stamp())
    }

    #[inline(always)]
    fn held_by(&self, ticket: Ticket) {
        // ord: WW-1 release, pairs with the load by a thread that judges: the context's
        // record is there before its ticket is seen.
        self.holder.store(ticket.0, Ordering::Release);
    }

    fn holder(&self, order: Ordering) -> Ticket {
        Ticket(self.holder.load(order))
    }

    #[cold]
    #[inline(never)]
    fn lock_contended(
        &self,
        context: &Context<P>,
        patience: &ContextPatience,
        site: Site,
    ) -> Result<(), WwError> {
        if self.base.is_mine() {
            let already = self.is_held_in(context);
            let recursive = WwError::Lock(LockError::Recursive);
            return Err(if already { WwError::Already } else { recursive });
        }
        let result = self.wait(context, patience, site);
        match result {
            Ok(()) => {
                if fault!(ww_context_does_not_settle) {
                    self.held_by(context.ticket());
                } else {
                    self.settle(Some(context));
                }
                context.gained();
            }
            Err(_) => self.step_down(context),
        }
        result
    }

    #[cold]
    #[inline(never)]
    fn lock_alone_contended(&self, how: &WaitBounds<'_, P>, site: Site) -> Result<(), LockError> {
        self.wait_alone(how, site)?;
        if fault!(ww_one_alone_does_not_settle) {
            self.held_by(Ticket::ALONE);
        } else {
            self.settle(None);
        }
        Ok(())
    }
}

impl<P: Platform, Y: Policy> Default for RawWwMutex<P, Y> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform, Y: Policy> core::fmt::Debug for RawWwMutex<P, Y> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "RawWwMutex{:?}", self.base.peek())
    }
}

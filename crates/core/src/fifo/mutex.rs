//! The FIFO mutex: granted in the order in which threads asked for it.
//!
//! # State
//! ```text
//!  63           33 32 31      20 19             0
//! ┌───────────────┬──┬──────────┬────────────────┐
//! │       0       │q │     0    │     owner      │
//! └───────────────┴──┴──────────┴────────────────┘
//! ```
//! - *owner*: the slot of the holder, 0 = free.
//! - *q*, queued: threads stand in the line, or have left it since the latest release. Set and cleared
//!   under the gate.
//!
//! # Protocol
//! Acquirer: takes a free mutex by one exchange. Otherwise, under the gate, it sets *queued*
//! and joins the line.
//!
//! Releaser: without *queued*, one exchange to 0. Otherwise it names the first of the line as
//! owner, under the gate, and grants; where all have left, the mutex is free.
//!
//! # Invariants
//! - **FAIR-QUEUED** The line is not empty ⇒ *queued*, but under the gate. *queued* ⇒ there is an
//!   owner. So a mutex is free only when nobody stands in the line, and no newcomer passes one who
//!   does.

use super::{Line, Place, grant};
use crate::atomic::{Atomic64, Ordering};
use crate::awaited::telling;
use crate::hooks::LockId;
use crate::platform::{Awaited, AwaitedUse, LockError, Platform, WaitBounds};
use crate::policy::{Policy, Standard};
use crate::slot::{MAX_SLOTS, Slot};

const QUEUED: u64 = 1 << 32;

/// A mutex without data that is granted strictly in turn. See the source's module documentation. 24
/// bytes; all zeros are a free mutex.
#[repr(C)]
pub struct RawFifoMutex<P: Platform, Y: Policy = Standard> {
    word: P::U64,
    line: Line<P, Y>,
}

impl<P: Platform, Y: Policy> RawFifoMutex<P, Y> {
    /// Makes a free mutex.
    #[must_use]
    pub const fn new() -> Self {
        Self { word: P::U64::ZERO, line: Line::new() }
    }

    /// Returns the identity of this mutex in reports.
    pub fn id(&self) -> LockId {
        LockId(core::ptr::from_ref(self).addr())
    }

    /// Acquires unless `how` ends the wait first. `how` is asked for only past the fast path.
    ///
    /// # Errors
    /// [`LockError::Recursive`] if the caller holds it already, or a signal handler has interrupted
    /// the caller's own call for it; [`LockError::OwnerLost`] if the owner was left behind by
    /// `fork`; and the reasons in `how`.
    #[inline]
    pub fn lock_lazily<'a>(
        &self,
        how: impl FnOnce() -> WaitBounds<'a, P>,
    ) -> Result<(), LockError> {
        if self.take(P::me_or_zero()) { Ok(()) } else { self.lock_at(&Place::new(), &how()) }
    }

    /// Acquires if that needs no waiting.
    #[inline]
    pub fn try_lock(&self) -> bool {
        self.take(P::me().get())
    }

    /// Releases the mutex: grants it to the first of those who wait.
    ///
    /// # Safety
    /// The caller answers for the hold.
    #[inline]
    pub unsafe fn unlock(&self) {
        let owner = self.word.load(Ordering::Relaxed) & !QUEUED;
        // ord: FAIR-2 release, pairs with FAIR-1.
        if self.word.compare_exchange(owner, 0, Ordering::Release, Ordering::Relaxed).is_err() {
            self.unlock_slow();
        }
    }

    /// Tells whether anybody holds it, at some moment during the call.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.owner().is_some()
    }

    /// Returns the owner at some moment during the call.
    #[must_use]
    pub fn owner(&self) -> Option<Slot> {
        Slot::new(self.word.load(Ordering::Relaxed) as u32 & MAX_SLOTS)
    }

    #[inline(always)]
    fn take(&self, me: u32) -> bool {
        if me == 0 {
            return false;
        }
        // ord: FAIR-1 acquire, pairs with FAIR-2.
        self.word.compare_exchange(0, me.into(), Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Acquires like [`lock_lazily`](Self::lock_lazily), standing at `place` if it has to wait. Nothing
    /// refers to the place any more when it returns.
    ///
    /// # Errors
    /// As [`lock_lazily`](Self::lock_lazily).
    #[cold]
    #[inline(never)]
    pub fn lock_at(&self, place: &Place<P>, how: &WaitBounds<'_, P>) -> Result<(), LockError> {
        let me = P::me();
        let owner = self.owner();
        if owner == Some(me) {
            return Err(LockError::Recursive);
        }
        if owner.is_some_and(|owner| P::participant(owner).lost()) {
            return Err(LockError::OwnerLost);
        }
        let awaited = Awaited {
            address: self.id().0,
            wants: AwaitedUse::Mutex,
            name: None,
            deadline: how.deadline,
        };
        telling::<P, _>(&awaited, || {
            if self.line.at_the_gate(|| self.takes_or_joins(place, me))? {
                return Ok(());
            }
            self.line.wait(place, how, &awaited.shown(how))
        })
    }

    /// Takes the mutex if it is free, and says so; otherwise joins the line. The caller is at the gate.
    fn takes_or_joins(&self, place: &Place<P>, me: Slot) -> bool {
        loop {
            if self.take(me.get()) {
                return true;
            }
            let seen = self.word.load(Ordering::Relaxed);
            if seen == 0 {
                continue;
            }
            // Relaxed: the owner's release fails from now on, and comes to the gate.
            let queued = self.word.compare_exchange(
                seen,
                seen | QUEUED,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if queued.is_ok() {
                self.line.join(place, me);
                return false;
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn unlock_slow(&self) {
        let next = self.line.at_the_gate(|| {
            let next = self.line.take_first();
            // SAFETY: LINE-ALIVE: it has just been taken out.
            let owner = next.map_or(0, |next| u64::from(unsafe { &*next }.slot()));
            let queued = if self.line.is_empty() { 0 } else { QUEUED };
            // ord: FAIR-2 release, pairs with FAIR-1: the last of the line may have left just now.
            self.word.store(owner | queued, Ordering::Release);
            if fault!(line_grants_under_the_gate)
                && let Some(next) = next
            {
                // SAFETY: LINE-ALIVE: it has just been taken out.
                unsafe { grant(next) };
            }
            next
        });
        match next {
            // SAFETY: LINE-ALIVE: this thread has taken it out, and grants it once.
            Ok(Some(next)) if !fault!(line_grants_under_the_gate) => unsafe { grant(next) },
            Ok(_) => {}
            // After `fork`, which has left the thread at the gate behind: nobody else is there.
            // ord: FAIR-2 release, pairs with FAIR-1.
            Err(_) => self.word.store(0, Ordering::Release),
        }
    }
}

impl<P: Platform, Y: Policy> Default for RawFifoMutex<P, Y> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform, Y: Policy> core::fmt::Debug for RawFifoMutex<P, Y> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let queued = if self.line.is_empty() { "" } else { " queued" };
        write!(f, "RawFifoMutex{{owner={}{queued}}}", self.owner().map_or(0, Slot::get))
    }
}

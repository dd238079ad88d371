//! The exact condition variable: a notification wakes the one that has waited longest, or all, and
//! nobody else returns.
//!
//! # Protocol
//! Waiter, holding the mutex: joins the line, releases the mutex, waits to be granted, and takes
//! the mutex again.
//!
//! Notifier: with an empty line, one load. Otherwise it takes the first, or all, out of the line and
//! grants each.
//!
//! # Progress
//! A notification is for a thread that joined before it: under the mutex nobody can begin to wait
//! and be notified in an older one's place. All that are notified at once want the mutex at once.
//!
//! # Lifetime
//! A notifier touches the condition variable for the last time before it grants: a waiter may
//! free it once its wait has ended, if nobody else waits.

use super::{Line, Place, grant, place_at};
use crate::awaited::telling;
use crate::platform::{Awaited, AwaitedUse, LockError, Platform, WaitBounds};
use crate::policy::{Policy, Standard};
use core::ptr;

/// A condition variable without its mutex that has no spurious wake-ups. See the source's module
/// documentation. 16 bytes; all zeros: nobody waits.
#[repr(C)]
pub struct RawExactCondvar<P: Platform, Y: Policy = Standard> {
    line: Line<P, Y>,
}

impl<P: Platform, Y: Policy> RawExactCondvar<P, Y> {
    /// Makes a condition variable that nobody waits for.
    #[must_use]
    pub const fn new() -> Self {
        Self { line: Line::new() }
    }

    /// Joins the line, releases a mutex by `release`, and sleeps until notified or as `how` says. The
    /// caller takes the mutex again afterwards.
    ///
    /// # Errors
    /// The reasons in `how`: the thread was not notified. [`LockError::Recursive`] in a signal
    /// handler that has interrupted its own thread in a call of this condition variable,
    /// [`LockError::OwnerLost`] after `fork`: `release` may not have been called.
    pub fn wait(&self, release: impl FnOnce(), how: &WaitBounds<'_, P>) -> Result<(), LockError> {
        self.wait_at(&Place::new(), release, how)
    }

    /// Waits like [`wait`](Self::wait), standing at `place`. Nothing refers to the place any more when it
    /// returns.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_at(
        &self,
        place: &Place<P>,
        release: impl FnOnce(),
        how: &WaitBounds<'_, P>,
    ) -> Result<(), LockError> {
        let me = P::me();
        self.line.at_the_gate(|| self.line.join(place, me))?;
        release();
        let awaited = Awaited {
            address: ptr::from_ref(self).addr(),
            wants: AwaitedUse::Notification,
            name: None,
            deadline: how.deadline,
        };
        telling::<P, _>(&awaited, || self.line.wait(place, how, &awaited.shown(how)))
    }

    /// Wakes the thread that has waited longest. Returns whether there was one.
    ///
    /// # Errors
    /// [`LockError::Recursive`] and [`LockError::OwnerLost`] as of [`wait`](Self::wait): nobody was
    /// notified.
    #[inline]
    pub fn notify_one(&self) -> Result<bool, LockError> {
        if self.line.is_empty() { Ok(false) } else { self.notify_one_slow() }
    }

    /// Wakes all threads that wait. Returns how many.
    ///
    /// # Errors
    /// As [`notify_one`](Self::notify_one).
    #[inline]
    pub fn notify_all(&self) -> Result<usize, LockError> {
        if self.line.is_empty() { Ok(0) } else { self.notify_all_slow() }
    }

    #[cold]
    fn notify_one_slow(&self) -> Result<bool, LockError> {
        let first = self.line.at_the_gate(|| self.line.take_first())?;
        if let Some(first) = first {
            // SAFETY: LINE-ALIVE: this thread has taken it out, and grants it once.
            unsafe { grant(first) };
        }
        Ok(first.is_some())
    }

    #[cold]
    fn notify_all_slow(&self) -> Result<usize, LockError> {
        let all = self.line.at_the_gate(|| {
            // The places keep their order behind one another while they are taken out.
            let mut all: Option<(*const Place<P>, *const Place<P>)> = None;
            while let Some(place) = self.line.take_first() {
                all = Some((all.map_or(place, |(first, _)| first), place));
            }
            all
        })?;
        let Some((mut place, last)) = all else { return Ok(0) };
        let mut count = 1;
        while !ptr::eq(place, last) {
            // SAFETY: LINE-ALIVE: this thread has taken it out and not granted it.
            let behind = place_at(&unsafe { &*place }.behind);
            // SAFETY: LINE-ALIVE: this thread has taken the place out, and grants it once.
            unsafe { grant(place) };
            place = behind;
            count += 1;
        }
        // SAFETY: LINE-ALIVE: this thread has taken the last place out, and grants it once.
        unsafe { grant(last) };
        Ok(count)
    }
}

impl<P: Platform, Y: Policy> Default for RawExactCondvar<P, Y> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform, Y: Policy> core::fmt::Debug for RawExactCondvar<P, Y> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "RawExactCondvar{{waiting={}}}", !self.line.is_empty())
    }
}

//! Reading by threads that may read already.
//!
//! A promise to *next* holds newcomers off. A thread that reads and asks to read again is none: it
//! would wait for *next*, which waits for it. Who such a thread is the word cannot say, so the caller does,
//! and any reader that asks so passes a *next*, for as long as the lock is being read.
//!
//! That keeps RWLOCK-PROMISE: one more reader leaves *next* no more room than there was. It is not
//! bounded for *next*: readers that all ask in this way keep a writer off for as long as they overlap.

use super::state::RwLockMode;
use super::{RawRwLock, RwLockState};
use crate::hooks::{Access, Hooks, Path, Site};
use crate::platform::{LockError, Platform, WaitBounds};
use crate::policy::Policy;

impl<P: Platform, H: Hooks, Y: Policy> RawRwLock<P, H, Y> {
    /// Acquires for reading like [`RawRwLock::read_lazily`], and does not wait for those that wait if
    /// the lock is being read already, by the caller perhaps.
    ///
    /// # Errors
    /// As [`RawRwLock::read_lazily`].
    #[inline]
    pub fn read_recursive_lazily<'a>(
        &self,
        how: impl FnOnce() -> WaitBounds<'a, P>,
        site: Site,
    ) -> Result<(), LockError> {
        H::will_acquire(&self.state, self.id(), Access::Shared, 0, site);
        if self.read_beside() {
            H::acquired(&self.state, self.id(), Access::Shared, Path::Fast, site);
            return Ok(());
        }
        // Nobody reads, so the caller does not: it waits as others do.
        self.acquire_slow(RwLockMode::Read, &how(), site)
    }

    /// Acquires for reading if that needs no waiting but for those that wait themselves.
    #[inline]
    pub fn try_read_recursive(&self, site: Site) -> bool {
        let taken = self.read_beside();
        if taken {
            H::acquired(&self.state, self.id(), Access::Shared, Path::Fast, site);
        }
        taken
    }

    /// Takes the lock if its holders leave room for a reader, whatever is promised.
    #[inline(always)]
    fn read_beside(&self) -> bool {
        let mut seen = self.peek();
        while seen.admits_beside() {
            match self.exchange(seen, RwLockState::read(seen)) {
                Ok(()) => return true,
                Err(found) => seen = found,
            }
        }
        false
    }
}

//! The lock word with its hooks: what both real-time mutexes stand on.

use super::Owner;
use crate::Site;
use core::any::type_name;
use lockstead_core::{
    Access, Awaited, AwaitedUse, Hooks, LockError, LockId, Path, Platform, WaitBounds,
};
use lockstead_linux::Linux;
use lockstead_linux::pi::{PiError, PiWord};

#[repr(C)]
pub(super) struct Raw<H: Hooks> {
    word: PiWord,
    state: H::State,
}

impl<H: Hooks> Raw<H> {
    pub(super) const fn new(state: H::State) -> Self {
        Raw { word: PiWord::new(), state }
    }

    pub(super) fn state(&self) -> &H::State {
        &self.state
    }

    pub(super) fn word(&self) -> &PiWord {
        &self.word
    }

    pub(super) fn id(&self) -> LockId {
        LockId(core::ptr::from_ref(self).addr())
    }

    /// Acquires the lock, and asks for `how` when the fast path has failed.
    #[inline]
    #[track_caller]
    pub(super) fn lock<'a>(
        &self,
        how: impl FnOnce() -> WaitBounds<'a, Linux>,
        subclass: u32,
        site: Site,
    ) -> Result<(), PiError> {
        H::will_acquire(&self.state, self.id(), Access::Alone, subclass, site);
        if self.word.lock_fast() {
            H::acquired(&self.state, self.id(), Access::Alone, Path::Fast, site);
            return Ok(());
        }
        self.lock_slow(&how(), site)
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn lock_slow(&self, how: &WaitBounds<'_, Linux>, site: Site) -> Result<(), PiError> {
        H::will_wait(&self.state, self.id(), how.is_endless());
        let awaited = Awaited {
            address: self.id().0,
            wants: AwaitedUse::InheritingMutex,
            name: H::name(&self.state),
            deadline: how.deadline,
        };
        let told = Linux::wait_begins(&awaited);
        let result = self.word.lock_slow(how);
        if told {
            let error = result.err().map(|error| match error {
                PiError::TimedOut => LockError::TimedOut,
                PiError::Interrupted => LockError::Interrupted,
                PiError::Cancelled => LockError::Cancelled,
                PiError::Recursive | PiError::Deadlock => LockError::Recursive,
                PiError::OwnerLost => LockError::OwnerLost,
            });
            Linux::wait_ends(&awaited, error);
        }
        match result {
            Ok(()) => H::acquired(&self.state, self.id(), Access::Alone, Path::Slow, site),
            Err(_) => H::abandoned(&self.state, self.id(), site),
        }
        result
    }

    #[inline]
    pub(super) fn try_lock(&self, site: Site) -> bool {
        let taken = self.word.lock_fast() || self.word.try_lock_slow();
        if taken {
            H::acquired(&self.state, self.id(), Access::Alone, Path::Fast, site);
        }
        taken
    }

    /// Releases the lock of the calling thread.
    ///
    /// # Safety
    /// GUARD-HOLDS: the calling thread holds the lock.
    #[inline]
    pub(super) unsafe fn unlock(&self) {
        H::releasing(&self.state, self.id());
        // SAFETY: GUARD-HOLDS: the calling thread holds the lock; the caller keeps it.
        unsafe { self.word.unlock() }
    }

    pub(super) fn owner(&self) -> Option<Owner> {
        self.word.owner().map(Owner)
    }

    /// Describes the lock as it appears in a message.
    pub(super) fn subject<T: ?Sized>(&self, kind: &'static str) -> crate::refusal::RefusedLock {
        crate::refusal::RefusedLock {
            kind,
            name: H::name(&self.state),
            guards: type_name::<T>(),
            address: self.id().0,
            acquired_at: H::acquired_at(&self.state),
        }
    }
}

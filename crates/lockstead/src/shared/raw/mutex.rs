//! The mutex without data.

use super::super::error::SharedError;
use super::super::mutex::{give, mark_consistent, release, release_untouched, slow, take};
use super::super::named_before;
use super::RawOutcome;
use lockstead_core::WaitBounds;
use lockstead_core::robust::word::{INCONSISTENT, NOT_RECOVERABLE};
use lockstead_core::robust::{Identity, RawSharedMutex};
use lockstead_linux::Linux;
use lockstead_linux::shared::me;

/// [`SharedMutex`](super::super::SharedMutex) without its data: 8 bytes, zeroes are free.
#[repr(transparent)]
pub struct RawMutex(pub(super) RawSharedMutex<Linux>);

const _: () = assert!(size_of::<RawMutex>() == 8 && align_of::<RawMutex>() == 8);

/// Tells whether a release by the calling thread is an exchange of the word, and the count of what
/// it holds, and nothing else: it has nothing to name again after a wait for a condition. For fast
/// paths in other languages, which may take and release mutexes by themselves as long as this
/// holds: until the thread waits for a condition.
#[must_use]
pub fn releases_by_the_word() -> bool {
    !named_before::is_any()
}

impl Default for RawMutex {
    fn default() -> Self {
        RawMutex(RawSharedMutex::new())
    }
}

impl RawMutex {
    /// Acquires it if it is free and this is the segment that the thread has used last:
    /// the fast path of all forms.
    #[inline(always)]
    #[must_use]
    pub fn take(&self) -> bool {
        take(&self.0)
    }

    /// Releases it if the calling thread has it, nobody waits, and nobody died: the fast path of
    /// [`unlock`](Self::unlock), for callers that do something else first where this says false.
    #[inline(always)]
    #[must_use]
    pub fn give(&self) -> bool {
        give(&self.0)
    }

    /// Acquires it, waiting as `how` says.
    ///
    /// # Errors
    /// Those that `how` allows, and those of
    /// [`SharedMutex::lock`](super::super::SharedMutex::lock).
    #[inline]
    pub fn lock(&self, how: &WaitBounds<'_, Linux>) -> Result<RawOutcome, SharedError> {
        if take(&self.0) {
            return Ok(RawOutcome::Acquired);
        }
        let mut error = SharedError::Held;
        RawOutcome::of(slow(&self.0, Some(how), &mut error), error)
    }

    /// Acquires it if that needs no wait.
    ///
    /// # Errors
    /// [`SharedError::Held`]; as [`lock`](Self::lock).
    #[inline]
    pub fn try_lock(&self) -> Result<RawOutcome, SharedError> {
        if take(&self.0) {
            return Ok(RawOutcome::Acquired);
        }
        let mut error = SharedError::Held;
        RawOutcome::of(slow(&self.0, None, &mut error), error)
    }

    /// Releases it. Returns false, and nothing is done, if the calling thread does not have it.
    #[inline]
    pub fn unlock(&self) -> bool {
        release(&self.0)
    }

    /// Releases it as one that has not touched what it protects: after
    /// [`RawOutcome::OwnerDied`] the next owner is told of the death in its stead, and the mutex stays
    /// usable. Returns false, and nothing is done, if the calling thread does not have it.
    ///
    /// ```
    /// use lockstead::shared::raw::{Form, RawMutex, RawOutcome, RawSegment};
    /// use lockstead::shared::SegmentOptions;
    /// use lockstead_core::WaitBounds;
    ///
    /// let segment = RawSegment::memfd("raw", &SegmentOptions::new(), &Form::unknown(8), |_| ())?;
    /// // SAFETY: in the root, at a multiple of 8, and used as a mutex by all who use it.
    /// let mutex = unsafe { segment.root().cast::<RawMutex>().as_ref() };
    /// assert_eq!(mutex.lock(&WaitBounds::FOREVER)?, RawOutcome::Acquired);
    /// assert!(mutex.unlock_untouched());
    /// assert!(!mutex.unlock_untouched());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unlock_untouched(&self) -> bool {
        release_untouched(&self.0)
    }

    /// Declares consistent what a dead owner left. Returns false if the calling thread does not
    /// have the mutex.
    pub fn mark_consistent(&self) -> bool {
        mark_consistent(&self.0)
    }

    /// Tells whether an owner has died since what it protects was last declared consistent; or it
    /// is not recoverable, for that reason.
    #[must_use]
    pub fn is_inconsistent(&self) -> bool {
        self.0.peek() & INCONSISTENT != 0
    }

    /// Tells whether anybody has it, dead or alive, at some moment during the call.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.holder().is_some()
    }

    /// Returns who has it, dead or alive, at some moment during the call; `None`: nobody. The name is
    /// that of one thread among all that have used the segment.
    ///
    /// ```
    /// use lockstead::shared::raw::{Form, RawMutex, RawSegment};
    /// use lockstead::shared::SegmentOptions;
    /// use lockstead_core::WaitBounds;
    ///
    /// let segment = RawSegment::memfd("raw", &SegmentOptions::new(), &Form::unknown(8), |_| ())?;
    /// // SAFETY: in the root, at a multiple of 8, and used as a mutex by all who use it.
    /// let mutex = unsafe { segment.root().cast::<RawMutex>().as_ref() };
    /// assert_eq!(mutex.holder(), None);
    /// let _ = mutex.lock(&WaitBounds::FOREVER)?;
    /// assert!(mutex.holder().is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline(always)]
    #[must_use]
    pub fn holder(&self) -> Option<Identity> {
        let word = self.0.peek();
        Identity::from_bits(word).filter(|_| word != NOT_RECOVERABLE)
    }

    /// Tells whether the calling thread has it.
    #[must_use]
    pub fn is_mine(&self) -> bool {
        let address = core::ptr::from_ref(self).addr();
        let me =
            me(address).or_else(|| lockstead_linux::shared::participant_at(address)?.identity());
        me.is_some_and(|me| self.0.is_held_by(me))
    }
}

impl core::fmt::Debug for RawMutex {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RawMutex").field("locked", &self.is_locked()).finish_non_exhaustive()
    }
}

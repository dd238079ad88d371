//! Counting semaphores, kernel-shaped, with guards for those who want them.

/// Defines one semaphore type over one raw semaphore: the tuned and the
/// classic one differ in nothing else.
macro_rules! semaphore {
    ($(#[$about:meta])* $raw:ident) => {
        use $crate::error::{Cancelled, Interrupted, TimedOut};
        use $crate::{CancelToken, time};
        use core::fmt;
        use core::panic::Location;
        use lockstead_core::{LockError, WaitBounds, $raw};
        use lockstead_linux::{Linux, U64};
        use std::time::{Duration, Instant};

        $(#[$about])*
        #[repr(transparent)]
        pub struct Semaphore {
            raw: $raw<Linux>,
        }

        const _: () = assert!(size_of::<Semaphore>() == 8);

        impl Semaphore {
            /// The most permits that can be free at a time.
            pub const MAX_PERMITS: u32 = $raw::<Linux>::MAX_PERMITS;

            /// Creates a semaphore with this many free permits. 0: the first `down` waits for an
            /// `up`. 1: a mutex that any thread may release.
            ///
            /// # Panics
            /// If `permits` exceeds [`MAX_PERMITS`](Self::MAX_PERMITS); in a
            /// constant, at compile time.
            #[must_use]
            pub const fn new(permits: u32) -> Self {
                match $raw::<Linux>::initial_word(permits) {
                    Some(word) => Semaphore { raw: $raw::from_word(U64::new(word)) },
                    None => panic!("a semaphore cannot count that many permits: see MAX_PERMITS"),
                }
            }

            /// Takes a permit, waiting as long as it takes.
            #[inline]
            #[track_caller]
            pub fn down(&self) {
                self.settle(self.take(|| WaitBounds::FOREVER));
            }

            /// Takes a permit if one is free, without waiting; says whether it
            /// did. (The kernel's `down_trylock` says 0 for success.)
            #[inline]
            #[track_caller]
            #[must_use = "false means that no permit was taken"]
            pub fn try_down(&self) -> bool {
                self.raw.try_down(Location::caller())
            }

            /// Takes a permit, unless a signal handler runs on this thread
            /// while it sleeps; see
            /// [`Mutex::lock_interruptible`](crate::Mutex::lock_interruptible).
            ///
            /// # Errors
            /// [`Interrupted`]: a handler ran.
            #[inline]
            #[track_caller]
            pub fn down_interruptible(&self) -> Result<(), Interrupted> {
                match self.take(|| time::INTERRUPTIBLE) {
                    Err(LockError::Interrupted) => Err(Interrupted),
                    other => {
                        self.settle(other);
                        Ok(())
                    }
                }
            }

            /// Takes a permit, unless `token` is fired, before the call or
            /// while it waits.
            ///
            /// # Errors
            /// [`Cancelled`]: the token was fired and no permit was free.
            #[inline]
            #[track_caller]
            pub fn down_killable(&self, token: &CancelToken) -> Result<(), Cancelled> {
                match self.take(|| token.wait()) {
                    Err(LockError::Cancelled) => Err(Cancelled),
                    other => {
                        self.settle(other);
                        Ok(())
                    }
                }
            }

            /// Takes a permit, waiting at most `timeout`.
            ///
            /// # Errors
            /// [`TimedOut`], not before the time is over.
            #[inline]
            #[track_caller]
            pub fn down_timeout(&self, timeout: Duration) -> Result<(), TimedOut> {
                match self.take(|| time::within(timeout)) {
                    Err(LockError::TimedOut) => Err(TimedOut),
                    other => {
                        self.settle(other);
                        Ok(())
                    }
                }
            }

            /// Takes a permit, waiting until `deadline` at most.
            ///
            /// # Errors
            /// [`TimedOut`], not before the deadline.
            #[inline]
            #[track_caller]
            pub fn down_until(&self, deadline: Instant) -> Result<(), TimedOut> {
                match self.take(|| time::until(deadline)) {
                    Err(LockError::TimedOut) => Err(TimedOut),
                    other => {
                        self.settle(other);
                        Ok(())
                    }
                }
            }

            /// Gives a permit back, or adds one. Any thread may.
            ///
            /// # Panics
            /// If [`MAX_PERMITS`](Self::MAX_PERMITS) are free already: `up` was
            /// called more often than `down`. The permits are unchanged.
            #[inline]
            #[track_caller]
            pub fn up(&self) {
                if let Err(overflow) = self.raw.up() {
                    panic!("{overflow}");
                }
            }

            /// Returns the number of free permits, at some moment during the call.
            #[must_use]
            pub fn permits(&self) -> u32 {
                self.raw.permits()
            }

            /// Does what [`down`](Self::down) does, with the [`up`](Self::up) in the guard.
            #[inline]
            #[track_caller]
            pub fn acquire(&self) -> Permit<'_> {
                self.down();
                Permit { semaphore: self }
            }

            /// Does what [`try_down`](Self::try_down) does, with the `up` in the guard.
            #[inline]
            #[track_caller]
            pub fn try_acquire(&self) -> Option<Permit<'_>> {
                self.try_down().then(|| Permit { semaphore: self })
            }

            /// Does what [`down_interruptible`](Self::down_interruptible) does, with the `up` in
            /// the guard.
            ///
            /// # Errors
            /// [`Interrupted`]: a handler ran.
            #[inline]
            #[track_caller]
            pub fn acquire_interruptible(&self) -> Result<Permit<'_>, Interrupted> {
                self.down_interruptible()?;
                Ok(Permit { semaphore: self })
            }

            /// Does what [`down_killable`](Self::down_killable) does, with the `up` in the guard.
            ///
            /// # Errors
            /// [`Cancelled`]: the token was fired and no permit was free.
            #[inline]
            #[track_caller]
            pub fn acquire_killable(&self, token: &CancelToken) -> Result<Permit<'_>, Cancelled> {
                self.down_killable(token)?;
                Ok(Permit { semaphore: self })
            }

            /// Does what [`down_timeout`](Self::down_timeout) does, with the `up` in the guard.
            ///
            /// # Errors
            /// [`TimedOut`], not before the time is over.
            #[inline]
            #[track_caller]
            pub fn acquire_timeout(&self, timeout: Duration) -> Result<Permit<'_>, TimedOut> {
                self.down_timeout(timeout)?;
                Ok(Permit { semaphore: self })
            }

            #[inline]
            #[track_caller]
            fn take<'a>(&self, how: impl FnOnce() -> WaitBounds<'a, Linux>) -> Result<(), LockError> {
                self.raw.down_lazily(how, Location::caller())
            }

            /// Checks the outcome of a wait: a semaphore has no owner, so it ends in no way that
            /// nobody asked for.
            #[inline]
            fn settle(&self, outcome: Result<(), LockError>) {
                if let Err(error) = outcome {
                    unreachable!("{self:?}: {error:?} was not asked for");
                }
            }
        }

        impl fmt::Debug for Semaphore {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct("Semaphore").field("permits", &self.permits()).finish()
            }
        }

        /// A permit of a [`Semaphore`], given back when dropped, by whatever
        /// thread.
        #[must_use = "the permit is given back as soon as the guard is dropped"]
        #[derive(Debug)]
        pub struct Permit<'a> {
            semaphore: &'a Semaphore,
        }

        impl Permit<'_> {
            /// Keeps the permit out of circulation: somebody else calls
            /// [`up`](Semaphore::up) for it, or nobody does.
            pub fn forget(self) {
                core::mem::forget(self);
            }
        }

        impl Drop for Permit<'_> {
            #[inline]
            fn drop(&mut self) {
                self.semaphore.up();
            }
        }
    };
}

pub(crate) mod tuned {
    semaphore! {
        /// A counting semaphore with every trick of the mutex: inline fast
        /// paths, one spinner at a time, handoff past the bound. 8 bytes.
        ///
        /// Permits are not owned: one thread may take and another give. If
        /// each is given back by the thread that took it, and there is one, a
        /// [`Mutex`](crate::Mutex) is the better choice: it knows its owner.
        ///
        /// # Source
        /// The kernel's `struct semaphore`, under its names; the algorithm is
        /// the mutex's.
        ///
        /// # Example
        /// ```
        /// use lockstead::Semaphore;
        ///
        /// static SLOTS: Semaphore = Semaphore::new(2);
        /// let first = SLOTS.acquire();
        /// SLOTS.down();
        /// assert!(SLOTS.try_acquire().is_none());
        /// drop(first);
        /// SLOTS.up();
        /// assert_eq!(SLOTS.permits(), 2);
        /// ```
        TunedSemaphore
    }
}

/// The semaphore that mutexes were measured against in 2005.
pub mod classic {
    semaphore! {
        /// A counting semaphore that behaves as the kernel's did in 2005: who
        /// finds no permit sleeps at once, and who is woken competes with
        /// everybody who comes by. No spinning, no bound on waiting. 8 bytes.
        ///
        /// For comparison; use [`crate::Semaphore`].
        ///
        /// ```
        /// use lockstead::classic::Semaphore;
        ///
        /// static MUTEX: Semaphore = Semaphore::new(1);
        /// MUTEX.down();
        /// assert!(!MUTEX.try_down());
        /// MUTEX.up();
        /// ```
        ClassicSemaphore
    }
}

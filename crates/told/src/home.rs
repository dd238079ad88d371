//! How a lock that does not tell of its end is told apart from the one that was there before.
//!
//! # Why
//! The locks of the standard library and of parking_lot have no destructor. One that is told would
//! change what compiles (a constant that drops a lock), and what is alive when (a lock in
//! `thread_local!`). Nor does a destructor run where a lock moves and another one takes its place, as
//! when a vector grows. So a lock notes where it was when it was told first. If it finds itself
//! elsewhere, or has noted nothing, it is new to this place, and what was known here is another lock's.

use crate::Listener;
use core::sync::atomic::{AtomicUsize, Ordering};

/// The bit of a note that is being taken. The address of a [`Home`] is even.
const MOVING_IN: usize = 1;

/// How often a thread lets others run while another one moves in. After that it moves in itself, for
/// the other one is gone where this is the child of a fork that came in between. (If it was only
/// kept from running for so long, it forgets what was told of the lock meanwhile.)
const TURNS: u32 = 1_000_000;

unsafe extern "C" {
    safe fn sched_yield() -> core::ffi::c_int;
}

/// The beginning of a lock: where it lies it is told, and in it stands where it was told first, or 0.
#[derive(Debug)]
pub struct Home(AtomicUsize);

impl Home {
    /// Notes nothing: the lock is new.
    #[inline]
    #[must_use]
    #[expect(
        clippy::new_without_default,
        reason = "it is a part of locks that are made in constants"
    )]
    pub const fn new() -> Home {
        Home(AtomicUsize::new(0))
    }

    /// Returns the address by which the lock is told.
    #[inline]
    #[must_use]
    pub fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Returns the address by which the lock is told, after telling `listener` that what it knows
    /// there is gone, unless that is this lock. To be called before anything else is told of the
    /// lock. What is told to lie `also` so many bytes behind it goes with it.
    ///
    /// ```
    /// use lockstead_told::{ToldLock, flag, home::Home, kind, listener};
    ///
    /// let home = Home::new();
    /// let told = listener()
    ///     .map(|listener| ToldLock::new(home.settle(listener, None), kind::MUTEX, flag::FOLLOWED));
    /// assert!(told.is_none(), "nobody listens to this example");
    /// ```
    #[inline]
    pub fn settle(&self, listener: &Listener, also: Option<usize>) -> usize {
        let (noted, here) = (self.0.load(Ordering::Acquire), self.address());
        if noted != here {
            self.move_in(listener, (noted, here), also);
        }
        here
    }

    #[cold]
    fn move_in(&self, listener: &Listener, (noted, here): (usize, usize), also: Option<usize>) {
        // Several threads may use a new lock at once. One of them tells, and the others tell nothing
        // of the lock before that is done: it would be forgotten.
        let moving_in = here | MOVING_IN;
        let (taken, unseen) = (Ordering::Relaxed, Ordering::Relaxed);
        if noted == moving_in || self.0.compare_exchange(noted, moving_in, taken, unseen).is_err() {
            for _ in 0..TURNS {
                if self.0.load(Ordering::Acquire) == here {
                    return;
                }
                sched_yield();
            }
        }
        listener.dies(here);
        if let Some(also) = also {
            listener.dies(here + also);
        }
        self.0.store(here, Ordering::Release);
    }
}

//! The panics of real-time mutexes: acquisitions that could only hang.

use crate::refusal::{Acquired, RefusedLock};
use core::panic::Location;
use lockstead_linux::pi::PiError;

#[cold]
#[inline(never)]
#[track_caller]
pub(super) fn refuse(error: PiError, subject: &RefusedLock) -> ! {
    let here = Location::caller();
    let acquired = Acquired(subject.acquired_at);
    match error {
        PiError::Recursive => panic!(
            "recursive locking: the {subject} is already held by this thread, which asks for it \
             again at {here}; {acquired}. Waiting would never end: drop the first guard before \
             this call, pass it down, or use an RtRecursiveMutex"
        ),
        PiError::Deadlock => panic!(
            "deadlock: the {subject}, asked for at {here}, is held by a thread that waits for a \
             lock of this thread, maybe over others; {acquired}. Waiting would never end: take \
             these locks in the same order everywhere, or use a form with a deadline and back off"
        ),
        PiError::OwnerLost => panic!(
            "lost owner: the {subject}, asked for at {here}, was held by a thread that has ended, \
             or that fork left behind in the parent process; {acquired}. It can never be released, \
             and what it guards may be half changed: do not leak its guard, and take it around fork"
        ),
        PiError::TimedOut | PiError::Cancelled | PiError::Interrupted => {
            unreachable!("{subject}: {error:?} was not asked for")
        }
    }
}

/// Panics for an acquisition too many.
#[cold]
#[inline(never)]
#[track_caller]
pub(super) fn too_deep(subject: &RefusedLock) -> ! {
    panic!(
        "too deep: the {subject}, asked for at {}, is held by this thread {} times already",
        Location::caller(),
        u64::from(u32::MAX) + 1,
    )
}

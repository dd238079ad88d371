//! The panics: acquisitions that could only hang.

use core::fmt;
use core::panic::Location;
use lockstead_core::slot::MAX_SLOTS;
use lockstead_core::{LockError, OnceError, Site};

/// A lock as it appears in a message.
pub(crate) struct RefusedLock {
    /// What the lock is called: `mutex`, `reader-writer lock`, ...
    pub(crate) kind: &'static str,
    /// The name given to it.
    pub(crate) name: Option<&'static str>,
    /// The type of what the lock guards.
    pub(crate) guards: &'static str,
    /// The address of the lock.
    pub(crate) address: usize,
    /// The place where the lock was last acquired.
    pub(crate) acquired_at: Option<Site>,
}

impl fmt::Display for RefusedLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RefusedLock { kind, name, guards, address, .. } = self;
        match name {
            Some(name) => write!(f, "{kind} `{name}` ({guards} at {address:#x})"),
            None => write!(f, "{kind} of {guards} at {address:#x}"),
        }
    }
}

/// Panics for an acquisition that would never end.
///
/// The location of the panic is the caller's; it is repeated in the message
/// for programs that log the payload only.
#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn refuse(error: LockError, subject: &RefusedLock) -> ! {
    let here = Location::caller();
    let acquired = Acquired(subject.acquired_at);
    match error {
        LockError::Recursive => panic!(
            "recursive locking: the {subject} is already held by this thread, which asks for it \
             again at {here}; {acquired}. Waiting would never end: drop the first guard before \
             this call, or pass it down"
        ),
        LockError::OwnerLost => panic!(
            "lost owner: the {subject}, asked for at {here}, is held by a thread that fork left \
             behind in the parent process, or that has ended with a context; {acquired}. It can \
             never be released here: take it around fork, use only try_lock in the child, or exec; \
             let contexts and guards end with their thread"
        ),
        LockError::TooManyReaders => panic!(
            "too many readers: {MAX_SLOTS} hold the {subject}, asked for at {here}, which can count \
             no more; {acquired}. Some of them forget to release: look for guards that are leaked"
        ),
        LockError::TimedOut | LockError::Interrupted | LockError::Cancelled => {
            unreachable!("{subject}: {error:?} was not asked for")
        }
    }
}

/// Panics for an initialisation that would never end, or that has failed.
#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn refuse_once(error: OnceError, address: usize, makes: &str) -> ! {
    let here = Location::caller();
    match error {
        OnceError::Poisoned => panic!(
            "poisoned: the initialiser of the once at {address:#x}, asked for at {here}, has \
             panicked; use call_once_force to run another"
        ),
        OnceError::NotAwaited(LockError::Recursive) => panic!(
            "recursive initialisation: the initialiser of {makes} at {address:#x} runs on this \
             thread and asks for its own result at {here}. Waiting would never end: compute what \
             it needs without that result"
        ),
        OnceError::NotAwaited(LockError::OwnerLost) => panic!(
            "lost initialiser: {makes} at {address:#x}, asked for at {here}, is being made by a \
             thread that fork left behind in the parent process. It will never be ready here: \
             initialise before fork, or exec"
        ),
        OnceError::NotAwaited(error) => {
            unreachable!("the once at {address:#x}: {error:?} was not asked for")
        }
    }
}

/// The half sentence about the acquisition that is in the way.
pub(crate) struct Acquired(pub(crate) Option<Site>);

impl fmt::Display for Acquired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(site) => write!(f, "it was acquired at {site}"),
            None => f.write_str("where it was acquired is kept for named locks only"),
        }
    }
}

/// Ends the process when dropped: where a panic must not unwind further.
pub(crate) struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        std::process::abort();
    }
}

//! The panics: acquisitions that could only hang.

use core::fmt;
use lockstead_core::{LockError, Site};

/// A lock as it appears in a message.
pub(crate) struct Subject {
    /// `mutex`, `reader-writer lock`, ...
    pub(crate) kind: &'static str,
    /// The name given to it.
    pub(crate) name: Option<&'static str>,
    /// What it guards.
    pub(crate) guards: &'static str,
    /// Its address.
    pub(crate) address: usize,
    /// Where it was last acquired.
    pub(crate) acquired_at: Option<Site>,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Subject {
            kind,
            name,
            guards,
            address,
            ..
        } = self;
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
pub(crate) fn refuse(error: LockError, subject: &Subject) -> ! {
    let here = core::panic::Location::caller();
    let acquired = Acquired(subject.acquired_at);
    match error {
        LockError::Recursive => panic!(
            "recursive locking: the {subject} is already held by this thread, which asks for it \
             again at {here}; {acquired}. Waiting would never end: drop the first guard before \
             this call, or pass it down"
        ),
        LockError::OwnerLost => panic!(
            "lost owner: the {subject}, asked for at {here}, is held by a thread that fork left \
             behind in the parent process; {acquired}. It can never be released here: take it \
             around fork, use only try_lock in the child, or exec"
        ),
        LockError::TimedOut | LockError::Interrupted | LockError::Cancelled => {
            unreachable!("{subject}: {error:?} was not asked for")
        }
    }
}

/// The half sentence about the acquisition that is in the way.
struct Acquired(Option<Site>);

impl fmt::Display for Acquired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(site) => write!(f, "it was acquired at {site}"),
            None => f.write_str("where it was acquired is kept for named locks only"),
        }
    }
}

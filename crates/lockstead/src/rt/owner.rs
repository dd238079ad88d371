//! Who holds a real-time mutex.

use core::fmt;
use lockstead_linux::pi::PiOwner;

/// The thread that held a lock at the moment it was asked for. May have released it,
/// and even ended, since.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Owner(pub(super) PiOwner);

impl Owner {
    /// Returns the kernel's id of the thread, as in `/proc/PID/task`; `None` if it has ended, or
    /// was left behind by `fork`.
    #[must_use]
    pub fn thread_id(self) -> Option<u32> {
        if self.is_current() {
            // SAFETY: the call takes no argument and cannot fail.
            return u32::try_from(unsafe { libc::gettid() }).ok();
        }
        (!self.is_lost()).then(|| self.0.tid())
    }

    /// Tells whether it is the calling thread.
    #[must_use]
    pub fn is_current(self) -> bool {
        self.0.is_current()
    }

    /// Tells whether it will never release the lock: it has ended, or `fork` did not copy it.
    #[must_use]
    pub fn is_lost(self) -> bool {
        self.0.is_lost()
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.thread_id() {
            Some(id) => write!(f, "thread {id}"),
            None => f.write_str("a thread that has ended or was left behind by fork"),
        }
    }
}

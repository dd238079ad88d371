//! The holder of a lock.

use lockstead_core::{Platform, Slot};
use lockstead_linux::Linux;

/// The thread that held a lock at the moment of the question. It may have released the lock, and
/// even ended, since. Two owners are equal if they are the same thread.
///
/// ```
/// let mutex = lockstead::Mutex::new(1);
/// assert!(mutex.owner().is_none());
/// let guard = mutex.lock();
/// let owner = mutex.owner().expect("this thread holds it");
/// assert!(owner.is_current() && !owner.is_lost());
/// # drop(guard);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Owner {
    slot: Slot,
}

impl Owner {
    pub(crate) fn new(slot: Slot) -> Self {
        Owner { slot }
    }

    /// Returns the kernel's id of the thread, as in `/proc/PID/task`; `None` if it has ended, which
    /// means that it leaked the guard.
    #[must_use]
    pub fn thread_id(self) -> Option<u32> {
        if self.is_lost() {
            return None;
        }
        Linux::participant(self.slot).tid()
    }

    /// Tells whether it is the calling thread.
    #[must_use]
    pub fn is_current(self) -> bool {
        Linux::me_or_zero() == self.slot.get()
    }

    /// Tells whether it is a thread of the parent that `fork` did not copy: it will never release
    /// the lock in this process.
    #[must_use]
    pub fn is_lost(self) -> bool {
        Linux::participant(self.slot).lost()
    }
}

impl core::fmt::Display for Owner {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.thread_id() {
            Some(id) => write!(f, "thread {id}"),
            None if self.is_lost() => f.write_str("a thread left behind by fork"),
            None => f.write_str("a thread that has ended"),
        }
    }
}

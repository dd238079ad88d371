//! Locks of which a violation has been noted that explains what comes next: whoever
//! gives back a lock that was initialised meanwhile is not to hear that it is
//! unlocked.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The latest few locks that were noted.
#[derive(Debug)]
pub struct Latest {
    locks: [AtomicU64; 16],
    next: AtomicUsize,
}

/// The next violation of these follows from one that was noted.
pub static BROKEN: Latest = Latest::new();

/// These were held when their destruction began.
pub static DESTROYED: Latest = Latest::new();

impl Latest {
    const fn new() -> Latest {
        Latest { locks: [const { AtomicU64::new(0) }; 16], next: AtomicUsize::new(0) }
    }

    /// Adds a lock, in the place of the oldest.
    pub fn add(&self, address: u64) {
        self.locks[self.next.fetch_add(1, Relaxed) % self.locks.len()].store(address, Relaxed);
    }

    /// Tells whether the lock was added; not the next time.
    #[must_use]
    pub fn take(&self, address: u64) -> bool {
        self.locks.iter().any(|lock| lock.compare_exchange(address, 0, Relaxed, Relaxed).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::Latest;

    #[test]
    fn once() {
        let latest = Latest::new();
        assert!(!latest.take(0x5000));
        latest.add(0x5000);
        assert!(latest.take(0x5000) && !latest.take(0x5000));
    }
}

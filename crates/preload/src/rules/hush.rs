//! Locks of which a breach has been noted that explains what comes next: whoever
//! gives back a lock that was initialised meanwhile is not to hear that it is
//! unlocked.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The latest few.
static LOCKS: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// The next breach of this lock follows from one that was noted.
pub fn next_of(address: u64) {
    LOCKS[NEXT.fetch_add(1, Relaxed) % LOCKS.len()].store(address, Relaxed);
}

/// Whether that was said of this lock; not the next time.
#[must_use]
pub fn was(address: u64) -> bool {
    LOCKS.iter().any(|lock| lock.compare_exchange(address, 0, Relaxed, Relaxed).is_ok())
}

#[cfg(test)]
mod tests {
    #[test]
    fn once() {
        assert!(!super::was(0x5000));
        super::next_of(0x5000);
        assert!(super::was(0x5000) && !super::was(0x5000));
    }
}

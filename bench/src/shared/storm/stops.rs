//! How long somebody was stopped, on a clock that every process reads.
//!
//! Who waits for a lock that a stopped process has waits as long as that one is stopped, and
//! that is no fault of the lock. So of every wait is subtracted for how long any worker at
//! all was stopped meanwhile: more than it was delayed, perhaps, but a wake-up that was lost
//! is lost for ever, and shows as soon as nobody is stopped. In a quiet phase nobody is.

use crate::shared::memory::Plain;
use std::sync::atomic::{AtomicU64, Ordering};

/// One word, so that whoever reads it reads all of it: while nobody is stopped, for how long
/// somebody has been; while somebody is, [`STOPPED`] and the time at which nothing of that
/// would have begun yet, had it all been at once and until now.
#[repr(transparent)]
#[derive(Debug, Default)]
pub(super) struct Stops(AtomicU64);

// SAFETY: by PLAIN-BITS it is made of atomics: any bits are valid, and others may write at any
// time.
unsafe impl Plain for Stops {}

const STOPPED: u64 = 1 << 63;

impl Stops {
    /// Notes that somebody is stopped from `now` on, and that nobody was before.
    pub(super) fn begin(&self, now: u64) {
        let total = self.0.load(Ordering::Relaxed);
        self.0.store(STOPPED | now.saturating_sub(total), Ordering::Relaxed);
    }

    /// Notes that nobody is stopped any more from `now` on.
    pub(super) fn end(&self, now: u64) {
        self.0.store(self.until(now), Ordering::Relaxed);
    }

    /// Returns for how long somebody was stopped until `now`.
    pub(super) fn until(&self, now: u64) -> u64 {
        match self.0.load(Ordering::Relaxed) {
            total if total & STOPPED == 0 => total,
            start => now.saturating_sub(start & !STOPPED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_in_which_somebody_is_stopped_add_up() {
        let stops = Stops::default();
        let sums = |times: [u64; 3]| times.map(|now| stops.until(now));
        assert_eq!(sums([0, 50, 100]), [0, 0, 0]);
        stops.begin(100);
        assert_eq!(sums([100, 101, 130]), [0, 1, 30]);
        stops.end(150);
        assert_eq!(sums([150, 160, 199]), [50, 50, 50]);
        stops.begin(200);
        assert_eq!(sums([200, 201, 210]), [50, 51, 60]);
        stops.end(220);
        assert_eq!(stops.until(1000), 70);
    }
}

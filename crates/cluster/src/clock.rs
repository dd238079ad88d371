//! The clock by which a lease is judged in this process.

use std::time::Duration;

/// A moment of this machine, in nanoseconds since it was started, times of suspension included.
///
/// A process that was stopped finds the clock gone on, and so does one on a laptop that slept:
/// `CLOCK_MONOTONIC`, and with it [`std::time::Instant`], stands still meanwhile. Comparable between the
/// processes of one machine. What no clock of the machine shows is a virtual machine that its host has
/// paused together with its clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub(crate) u64);

impl Moment {
    /// Returns the present moment.
    #[must_use]
    pub fn now() -> Self {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a `timespec` that the call may write.
        let failed = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
        assert_eq!(failed, 0, "Linux has had CLOCK_BOOTTIME since 2.6.39");
        #[expect(clippy::cast_sign_loss, reason = "the time since the start is not negative")]
        Moment(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }

    /// Returns the moment that is `time` later.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        Moment(self.0.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Returns the time from now until this moment; zero if it has passed.
    #[must_use]
    pub fn remaining(self) -> Duration {
        self.since(Moment::now())
    }

    /// Returns the time from `earlier` until this moment; zero if that is later.
    #[must_use]
    pub fn since(self, earlier: Moment) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the nanoseconds since the machine was started.
    #[must_use]
    pub fn nanoseconds(self) -> u64 {
        self.0
    }
}

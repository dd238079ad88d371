//! Says when a timed wait ends.

use crate::call::LockCall;
use crate::site::CallSite;
use core::ffi::c_int;
use lockstead_ledger::publish::{Flags, WaitKind};

/// A time that a timed function was given, and its clock.
#[derive(Clone, Copy, Debug)]
pub struct GivenDeadline {
    clock: c_int,
    /// The end in nanoseconds; `None` for a null pointer, which glibc's functions take for
    /// "never" where they allow it.
    at: Option<u64>,
}

impl GivenDeadline {
    /// Reads the end of a wait. Returns `None` if the clock is none of the two that can be waited
    /// by, or the nanoseconds are not less than a second's. Reader-writer locks and semaphores
    /// refuse such a time even if there is nothing to wait for, so that nothing may be tried
    /// before.
    ///
    /// # Safety
    /// `time` is null or points to what the program passes as a time.
    #[must_use]
    pub unsafe fn new(clock: c_int, time: *const libc::timespec) -> Option<GivenDeadline> {
        if time.is_null() {
            return Some(GivenDeadline { clock, at: None });
        }
        // SAFETY: the caller passes what the program passes as a time, which the real function
        // reads as well.
        let (nanos, at) = unsafe { ((*time).tv_nsec, deadline(time)) };
        let known = clock == libc::CLOCK_REALTIME || clock == libc::CLOCK_MONOTONIC;
        (known && (0..1_000_000_000).contains(&nanos))
            .then_some(GivenDeadline { clock, at: Some(at) })
    }

    /// A wait that never ends by itself.
    pub const NEVER: GivenDeadline = GivenDeadline { clock: libc::CLOCK_REALTIME, at: None };
    /// A wait that ends as soon as it begins, as with a time that is refused.
    pub const PAST: GivenDeadline = GivenDeadline { clock: libc::CLOCK_REALTIME, at: Some(0) };

    /// Makes the call at `site` about `target`, which waits so long if it has to.
    #[inline(always)]
    pub fn call<N>(
        self,
        target: u64,
        nature: N,
        how: WaitKind,
        site: &CallSite,
    ) -> LockCall<'_, N> {
        let (mode, companion) = (Flags::NONE, 0);
        let (how, deadline) = (self.how(how), self.at.unwrap_or(0));
        LockCall { target, nature, how, mode, deadline, companion, site }
    }

    /// Returns `how` with this end.
    const fn how(self, how: WaitKind) -> WaitKind {
        if self.at.is_some() { timed(how, self.clock) } else { how }
    }
}

/// Returns the end of a timed wait in nanoseconds; nonsense is the program's affair and
/// becomes zero.
///
/// # Safety
/// `time` is null or points to what the program passes as a time.
#[must_use]
pub unsafe fn deadline(time: *const libc::timespec) -> u64 {
    if time.is_null() {
        return 0;
    }
    // SAFETY: the caller passes what the program passes as a time, which the real function
    // reads as well.
    let time = unsafe { time.read() };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// Returns the timed variant of `how`, by the clock's number.
#[must_use]
pub const fn timed(how: WaitKind, clock: c_int) -> WaitKind {
    if clock == libc::CLOCK_REALTIME { how.timed_realtime() } else { how.timed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until(clock: c_int, tv_nsec: i64) -> Option<GivenDeadline> {
        // SAFETY: the time lives on this stack.
        unsafe { GivenDeadline::new(clock, &libc::timespec { tv_sec: 2, tv_nsec }) }
    }

    #[test]
    fn times_are_judged_as_libc_does() {
        assert_eq!(until(libc::CLOCK_MONOTONIC, 5).and_then(|until| until.at), Some(2_000_000_005));
        assert!(until(libc::CLOCK_REALTIME, 999_999_999).is_some());
        assert!(until(libc::CLOCK_REALTIME, 1_000_000_000).is_none());
        assert!(until(libc::CLOCK_REALTIME, -1).is_none());
        assert!(until(libc::CLOCK_BOOTTIME, 0).is_none());
    }

    #[test]
    fn a_wait_is_timed_if_it_ends() {
        let how = |clock| until(clock, 0).expect("valid").how(WaitKind::READ);
        assert_eq!(how(libc::CLOCK_REALTIME), WaitKind::READ.timed_realtime());
        assert_eq!(how(libc::CLOCK_MONOTONIC), WaitKind::READ.timed());
        assert_eq!(GivenDeadline::NEVER.how(WaitKind::READ), WaitKind::READ);
    }
}

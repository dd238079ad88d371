//! Deadlines: from the caller's terms to the platform's monotonic clock.

use lockstead_core::{Nanos, Platform, WaitBounds};
use lockstead_linux::Linux;
use std::time::{Duration, Instant};

/// Returns the wait that ends after `timeout`. A time beyond the clock's range (584 years) means
/// never.
pub(crate) fn within(timeout: Duration) -> WaitBounds<'static, Linux> {
    let nanos = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
    by(Linux::now().after(nanos))
}

/// Returns the wait that ends at `deadline`.
///
/// An [`Instant`] does not say which clock it is of, so the time left is
/// carried over. It is computed before the platform's clock is read: the
/// moments between the two reads make the wait longer, never shorter.
pub(crate) fn until(deadline: Instant) -> WaitBounds<'static, Linux> {
    within(deadline.saturating_duration_since(Instant::now()))
}

/// The wait that a signal handler ends.
pub(crate) const INTERRUPTIBLE: WaitBounds<'static, Linux> =
    WaitBounds { interruptible: true, ..WaitBounds::FOREVER };

fn by(deadline: Nanos) -> WaitBounds<'static, Linux> {
    WaitBounds { deadline: Some(deadline), ..WaitBounds::FOREVER }
}

/// Defines the forms of an acquisition that may give up, in an `impl` of a lock with data `T` and
/// hooks `H`: by a timeout, by a deadline, by a signal handler, by a token. The closure acquires,
/// given what makes the wait. `settle` makes the guard, and panics for an error that nobody asked
/// for.
macro_rules! forms {
    (
        $guard:ident, $error:ident, |$this:ident, $how:ident| $acquire:expr, $settle:ident;
        panics: $panics:literal;
        $(#[$timeout_doc:meta])* $timeout:ident;
        $(#[$until_doc:meta])* $until:ident;
        $(#[$interruptible_doc:meta])* $interruptible:ident;
        $(#[$killable_doc:meta])* $killable:ident;
    ) => {
        $(#[$timeout_doc])*
        ///
        /// # Errors
        /// [`TimedOut`], not before the time is over; the scheduler may add to it.
        ///
        /// # Panics
        #[doc = $panics]
        #[inline]
        #[track_caller]
        pub fn $timeout(&self, timeout: Duration) -> Result<$guard<'_, T, H>, TimedOut> {
            let ($this, $how) = (self, || time::within(timeout));
            match $acquire {
                Err($error::TimedOut) => Err(TimedOut),
                other => Ok(self.$settle(other)),
            }
        }

        $(#[$until_doc])*
        ///
        /// # Errors
        /// [`TimedOut`], not before the deadline.
        ///
        /// # Panics
        #[doc = $panics]
        #[inline]
        #[track_caller]
        pub fn $until(&self, deadline: Instant) -> Result<$guard<'_, T, H>, TimedOut> {
            let ($this, $how) = (self, || time::until(deadline));
            match $acquire {
                Err($error::TimedOut) => Err(TimedOut),
                other => Ok(self.$settle(other)),
            }
        }

        $(#[$interruptible_doc])*
        ///
        /// # Errors
        /// [`Interrupted`]: a handler ran.
        ///
        /// # Panics
        #[doc = $panics]
        #[inline]
        #[track_caller]
        pub fn $interruptible(&self) -> Result<$guard<'_, T, H>, Interrupted> {
            let ($this, $how) = (self, || time::INTERRUPTIBLE);
            match $acquire {
                Err($error::Interrupted) => Err(Interrupted),
                other => Ok(self.$settle(other)),
            }
        }

        $(#[$killable_doc])*
        ///
        /// # Errors
        /// [`Cancelled`]: the token was fired before the lock could be had.
        ///
        /// # Panics
        #[doc = $panics]
        #[inline]
        #[track_caller]
        pub fn $killable(&self, token: &CancelToken) -> Result<$guard<'_, T, H>, Cancelled> {
            let ($this, $how) = (self, || token.wait());
            match $acquire {
                Err($error::Cancelled) => Err(Cancelled),
                other => Ok(self.$settle(other)),
            }
        }
    };
}
pub(crate) use forms;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_never_moves_forward() {
        let deadline = Instant::now() + Duration::from_millis(5);
        let converted = until(deadline).deadline.expect("a deadline");
        while Linux::now() < converted {
            std::hint::spin_loop();
        }
        assert!(Instant::now() >= deadline);
    }

    #[test]
    fn a_deadline_in_the_past_is_now() {
        let before = Linux::now();
        let past = Instant::now().checked_sub(Duration::from_millis(1)).expect("a running clock");
        let converted = until(past).deadline.expect("a deadline");
        assert!(before <= converted && converted <= Linux::now());
    }

    #[test]
    fn an_endless_timeout_does_not_wrap() {
        assert_eq!(within(Duration::MAX).deadline, Some(Nanos(u64::MAX)));
    }
}

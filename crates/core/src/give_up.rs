//! The reasons for which a waiter stops waiting.

use crate::platform::{LockError, Platform, WaitBounds, WaitOutcome};

/// The reasons to give up that a waiter has, and those that its sleeps have told it.
pub(crate) struct Reasons<'a, P: Platform> {
    how: &'a WaitBounds<'a, P>,
    told: Option<LockError>,
}

impl<'a, P: Platform> Reasons<'a, P> {
    pub(crate) fn new(how: &'a WaitBounds<'a, P>) -> Self {
        Self { how, told: None }
    }

    /// Takes note of how a sleep ended.
    pub(crate) fn heard(&mut self, outcome: WaitOutcome) {
        match outcome {
            WaitOutcome::Interrupted if self.how.interruptible => {
                self.told = Some(LockError::Interrupted);
            }
            WaitOutcome::Cancelled => self.told = Some(LockError::Cancelled),
            // The deadline is judged by the clock: the sleep may have had an
            // earlier one of its own.
            WaitOutcome::Interrupted
            | WaitOutcome::Woken
            | WaitOutcome::Changed
            | WaitOutcome::TimedOut => {}
        }
    }

    /// Returns the reason to give up now, if there is one. Reads the clock only for a deadline.
    pub(crate) fn given_up(&self) -> Option<LockError> {
        if self.told.is_some() {
            self.told
        } else if self.how.cancelled() {
            Some(LockError::Cancelled)
        } else if self.how.deadline.is_some_and(|deadline| P::now() >= deadline) {
            Some(LockError::TimedOut)
        } else {
            None
        }
    }
}

//! The state of a waiter between two sleeps: what it must pass on, and why it gives up.

use crate::give_up::Reasons;
use crate::platform::{Platform, WaitOutcome};
use crate::policy::Policy;
use crate::spin;
use crate::word::Word;

/// A waiter between two sleeps.
pub(super) struct SleepWaiter<'a, P: Platform> {
    pub(super) reasons: Reasons<'a, P>,
    /// The waiter must pass a wake-up on: it consumed one, or its *waiters* did not stand, and
    /// it has not announced sleepers since.
    pub(super) must_pass_on: bool,
    /// The waiter set *waiters*, which may not stand. It must pass on, unless it sees to that.
    pub(super) loose: bool,
}

impl<P: Platform> SleepWaiter<'_, P> {
    /// Takes note of how a sleep ended.
    pub(super) fn heard(&mut self, outcome: WaitOutcome) {
        self.must_pass_on |= outcome == WaitOutcome::Woken;
        self.reasons.heard(outcome);
    }

    /// Returns `word` with sleepers announced, if the waiter must pass a wake-up on.
    pub(super) fn passing_on<Y: Policy>(&self, word: Word) -> Word {
        if self.must_pass_on { word.announced(spin::alive::<P, Y>(word)) } else { word }
    }
}

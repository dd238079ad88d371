//! What a waiter knows about itself between two sleeps.

use crate::give_up::Reasons;
use crate::platform::{Outcome, Platform};
use crate::policy::Policy;
use crate::spin;
use crate::word::Word;

/// What a waiter knows about itself between two sleeps.
pub(super) struct Waiter<'a, P: Platform> {
    pub(super) reasons: Reasons<'a, P>,
    /// A wake-up was consumed, or W did not stand, and sleepers were not announced
    /// since.
    pub(super) must_pass_on: bool,
    /// W was set, and may not stand. Such a waiter must pass on, unless it sees to that.
    pub(super) loose: bool,
}

impl<P: Platform> Waiter<'_, P> {
    pub(super) fn heard(&mut self, outcome: Outcome) {
        self.must_pass_on |= outcome == Outcome::Woken;
        self.reasons.heard(outcome);
    }

    /// `word` with what the waiter owes.
    pub(super) fn passing_on<Y: Policy>(&self, word: Word) -> Word {
        if self.must_pass_on { word.announced(spin::alive::<P, Y>(word)) } else { word }
    }
}

//! The back-off sleep of a waiter that was barged past (`spin/barging.rs`).

use crate::atomic::{Atomic32, Ordering};
use crate::platform::{Nanos, Platform, ShownSleep, WaitBounds, WaitOutcome};
use crate::policy::Policy;
use crate::slot::Slot;

/// Sleeps until a timer ends it, or a reason to give up in `how`; not beyond `insist`.
/// `count`: how often the caller was barged past. `sleepers`: as returned by
/// [`Platform::begin_sleep`]. `shown`: what an observer outside may be shown.
///
/// Each further time doubles the sleep, up to [`Policy::BACKOFF_DOUBLINGS`] times. The sleep is
/// as many times longer as threads sleep, so that they come back at the same pace however many
/// they are.
pub(super) fn back_off<P: Platform, Y: Policy>(
    count: u32,
    me: Slot,
    how: &WaitBounds<'_, P>,
    insist: Nanos,
    sleepers: u32,
    shown: Option<&ShownSleep>,
) -> WaitOutcome {
    let doublings = count.saturating_sub(Y::BACKOFF_AFTER).min(Y::BACKOFF_DOUBLINGS);
    let length = (Y::BACKOFF_SLEEP * u64::from(sleepers)) << doublings;
    let until = P::now().after(length).min(insist);
    let until = how.deadline.map_or(until, |deadline| deadline.min(until));
    let sequence = &P::participant(me).wake_sequence;
    // A thread that counts it up means another lock, and the sleep ends early.
    let deadline = (!fault!(back_off_has_no_end)).then_some(until);
    let (expected, how) = (sequence.load(Ordering::Relaxed), WaitBounds { deadline, ..*how });
    match shown {
        Some(shown) => P::wait32_shown(sequence, expected, &how, shown),
        None => P::wait32(sequence, expected, &how),
    }
}

//! The nap of a waiter that is passed by.

use crate::atomic::{Atomic32, Ordering};
use crate::platform::{Nanos, Outcome, Platform, Wait};
use crate::policy::Policy;
use crate::slot::Slot;

/// Sleeps until a timer ends it, or the caller's reasons to give up; not beyond
/// `insist`. `sleepers`: as counted by [`Platform::begin_sleep`], the caller included.
///
/// Each further miss doubles the nap; and as many as nap at a time, so much longer
/// is it, so that they come back at the same pace however many they are.
pub(super) fn back_off<P: Platform, Y: Policy>(
    count: u32,
    me: Slot,
    how: &Wait<'_, P>,
    insist: Nanos,
    sleepers: u32,
) -> Outcome {
    let doublings = count.saturating_sub(Y::BACKOFF_AFTER).min(Y::BACKOFF_DOUBLINGS);
    let length = (Y::BACKOFF_SLEEP * u64::from(sleepers)) << doublings;
    let until = P::now().after(length).min(insist);
    let until = how.deadline.map_or(until, |deadline| deadline.min(until));
    let bell = &P::participant(me).bell;
    // Whoever rings it means another lock, and the nap is over early.
    P::wait32(bell, bell.load(Ordering::Relaxed), &Wait { deadline: Some(until), ..*how })
}

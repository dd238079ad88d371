//! Spinning on the word beside the queue.
//!
//! # Role
//! Where the policy lets one spinner into the queue, or has no queue, the others spin here. To
//! the lock, each of their looks is a newcomer's: they leave the queue alone.

use super::barging::Barging;
use super::spinner::{OwnNode, SpinPace, Spun, look};
use crate::exchange::exchange;
use crate::platform::{Platform, WaitBounds};
use crate::policy::Policy;
use crate::word::{Subject, Word};

/// Spins on the lock word until it is free, the waiter was barged past too often, or its time
/// for spinning is over. `own`: the caller's node, of which only the heartbeat is used.
pub(super) fn spin_beside<P: Platform, K: Subject, Y: Policy>(
    word: &P::U64,
    own: &OwnNode<P>,
    pace: &mut SpinPace,
    how: &WaitBounds<'_, P>,
    barging: &mut Barging<P, K, Y>,
) -> Spun {
    loop {
        let seen = look::<P, Y>(word);
        if K::free(seen) {
            let alone = fault!(taker_beside_the_queue_forgets_it);
            let free = if alone { Word(seen.low().into()) } else { seen };
            if let Ok(taken) = exchange::<P, K>(word, seen, K::take(free, own.me)) {
                return Spun::Took(taken);
            }
        } else if barging.looked(word, seen) || !pace.turn::<P, Y>(own.node, how, K::holder(seen)) {
            return Spun::Left;
        }
    }
}

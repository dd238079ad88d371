//! Spinning beside the queue.

use super::barging::Barging;
use super::spinner::{Pace, Seat, Spun, look};
use crate::exchange::exchange;
use crate::platform::{Platform, Wait};
use crate::policy::Policy;
use crate::word::Subject;

/// Spins on the lock word together with all others that do, in no queue: to the lock, each
/// look that takes it is a newcomer's.
pub(super) fn spin_beside<P: Platform, K: Subject, Y: Policy>(
    word: &P::U64,
    seat: &Seat<P>,
    pace: &mut Pace,
    how: &Wait<'_, P>,
    barging: &mut Barging<P, K, Y>,
) -> Spun {
    loop {
        let seen = look::<P, Y>(word);
        if K::free(seen) {
            if let Ok(taken) = exchange::<P, K>(word, seen, K::take(seen, seat.me)) {
                return Spun::Took(taken);
            }
        } else if barging.looked(word, seen) || !pace.turn::<P, Y>(seat.node, how, K::holder(seen))
        {
            return Spun::Left;
        }
    }
}

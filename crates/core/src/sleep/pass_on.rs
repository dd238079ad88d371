//! Giving up with a debt.

use crate::atomic::{Atomic64, Ordering};
use crate::exchange::exchange;
use crate::platform::{LockError, Platform};
use crate::policy::Policy;
use crate::slot::Slot;
use crate::spin;
use crate::word::{Subject, Word};

/// A waiter that owes gives up: it stays until sleepers are announced and that
/// stands, or it has the lock after all, which somebody has released meanwhile.
/// `loose`: the heat may be its own, and not stand.
pub(super) fn pass_on<P: Platform, K: Subject, Y: Policy>(
    word: &P::U64,
    me: Slot,
    error: LockError,
    mut loose: bool,
) -> Result<Word, LockError> {
    loop {
        let seen = Word(word.load(Ordering::Relaxed));
        let (free, paid) = (K::free(seen), seen.announced(spin::alive::<P, Y>(seen)));
        // An exchange even where sleepers are seen to be announced: the look at the
        // word may be older than the wake-up.
        let Ok(paid) = exchange::<P, K>(word, seen, if free { K::take(paid, me) } else { paid })
        else {
            continue;
        };
        if free {
            return Ok(paid);
        }
        loose |= paid.waiters() && !seen.unlocks_slowly();
        if !K::RELEASE_LOSES || !loose {
            return Err(error);
        }
        P::restart_releases();
        loose = false;
        let now = Word(word.load(Ordering::Relaxed));
        if now.waiters() || now.covered() {
            return Err(error);
        }
    }
}

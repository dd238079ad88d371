//! Giving up after a wake-up: the waiter passes it on before it leaves.

use crate::atomic::{Atomic64, Ordering};
use crate::exchange::exchange;
use crate::platform::{LockError, Platform};
use crate::policy::Policy;
use crate::slot::Slot;
use crate::spin;
use crate::word::{Subject, Word};

/// Leaves with `error`, for a waiter that must pass a wake-up on. The waiter announces sleepers
/// again and waits until a release is certain to see that; or it takes the lock, if that comes
/// free meanwhile. `loose`: the slow unlocks in the word may be the waiter's own, and not stand.
pub(super) fn pass_on<P: Platform, K: Subject, Y: Policy>(
    word: &P::U64,
    me: Slot,
    error: LockError,
    mut loose: bool,
) -> Result<Word, LockError> {
    loop {
        let seen = Word(word.load(Ordering::Relaxed));
        let (free, passed_on) = (K::free(seen), seen.announced(spin::alive::<P, Y>(seen)));
        if !free && passed_on == seen && fault!(leaver_believes_an_old_word) {
            return Err(error);
        }
        // An exchange even where sleepers are seen to be announced: the look at the
        // word may be older than the wake-up.
        let Ok(passed_on) =
            exchange::<P, K>(word, seen, if free { K::take(passed_on, me) } else { passed_on })
        else {
            continue;
        };
        if free {
            return Ok(passed_on);
        }
        loose |= passed_on.waiters() && !seen.unlocks_slowly();
        if !K::RELEASE_LOSES || !loose || fault!(leaver_leaves_waiters_loose) {
            return Err(error);
        }
        P::restart_releases();
        loose = false;
        let found = Word(word.load(Ordering::Relaxed));
        if found.waiters() || found.covered() || fault!(leaver_does_not_look_again) {
            return Err(error);
        }
    }
}

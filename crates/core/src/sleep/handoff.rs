//! The heir.

use super::pass_on::pass_on;
use super::waiter::Waiter;
use crate::atomic::{Atomic64, Ordering};
use crate::exchange::exchange;
use crate::platform::{LockError, Nanos, Platform, Wait};
use crate::policy::Policy;
use crate::slot::Slot;
use crate::word::{Subject, Word};

/// The heir's wait.
pub(super) fn wait_for_handoff<P: Platform, K: Subject, Y: Policy>(
    word: &P::U64,
    me: Slot,
    how: &Wait<'_, P>,
    mut waiter: Waiter<'_, P>,
) -> Result<Word, LockError> {
    let mut spin = Spin::<P, Y>::start();
    // K and R, if set, stand.
    let mut firm = !K::RELEASE_LOSES;
    loop {
        let seen = Word(word.load(Ordering::Relaxed));
        if K::available(seen) {
            let taken = waiter.passing_on::<Y>(K::take(seen.handoff_taken(), me));
            match exchange::<P, K>(word, seen, taken) {
                Ok(taken) => return Ok(taken),
                Err(_) => continue,
            }
        }
        if let Some(error) = waiter.reasons.given_up() {
            let left = waiter.passing_on::<Y>(seen.handoff_withdrawn());
            if exchange::<P, K>(word, seen, left).is_err() {
                continue;
            }
            // Another thread may believe to be the heir, and sleep (below).
            if seen.handoff_asleep() {
                P::wake_handoff(P::address_low(word));
            }
            // Heat that does not stand is the heir's own, or somebody else's who trusts
            // in the heir.
            if K::RELEASE_LOSES && left.waiters() && !(firm && seen.unlocks_slowly()) {
                return pass_on::<P, K, Y>(word, me, error, true);
            }
            return Err(error);
        }
        // Someone took the lock that was kept for us, and E with it. If a third
        // thread has registered since we cannot know: then there are two heirs,
        // whoever comes first takes, and the other is back here.
        // Or a release has erased K unseen, and newcomers took what is kept. (No W went
        // with it: as long as there is an heir, sleepers are vouched for.)
        if !seen.handoff() || !seen.reserved() {
            let _ = exchange::<P, K>(word, seen, seen.with_handoff());
            firm = !K::RELEASE_LOSES;
            continue;
        }
        if spin.turn() {
            continue;
        }
        if !seen.handoff_asleep() {
            let _ = exchange::<P, K>(word, seen, seen.with_handoff_asleep());
            firm = !K::RELEASE_LOSES;
            continue;
        }
        if !firm {
            P::restart_releases();
            firm = true;
            continue;
        }
        let asleep = seen.low();
        waiter.heard(if K::OWNED {
            P::wait_handoff_owned(word, asleep, how)
        } else {
            P::wait_handoff(word, asleep, how)
        });
    }
}

/// The spinning of an heir: short, and nobody else's business.
struct Spin<P: Platform, Y: Policy> {
    until: Option<Nanos>,
    turns: u32,
    policy: core::marker::PhantomData<fn() -> (P, Y)>,
}

impl<P: Platform, Y: Policy> Spin<P, Y> {
    fn start() -> Self {
        Spin {
            until: Some(P::now().after(Y::HANDOFF_SPIN)),
            turns: 0,
            policy: core::marker::PhantomData,
        }
    }

    /// Pauses once; false when it is time to sleep.
    fn turn(&mut self) -> bool {
        let Some(until) = self.until else { return false };
        self.turns += 1;
        if self.turns.is_multiple_of(Y::TURNS) && P::now() >= until {
            self.until = None;
            return false;
        }
        P::relax();
        true
    }
}

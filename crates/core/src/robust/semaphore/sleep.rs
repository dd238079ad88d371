//! The sleep for units: on the channel, the doorbell, and the lives of the holders.

use super::super::life::Life;
use super::super::machine::{RobustMachine, WatchedWord, Woken};
use super::super::outcome::RobustError;
use super::super::party::Party;
use super::super::slot::{AWAITED, Claim};
use super::{RawSharedSemaphore, get};
use crate::atomic::{Atomic32, Ordering};
use crate::platform::WaitBounds;

/// The number of holders that one sleeper watches. If there are more, it looks again after
/// [`GLANCE`].
pub const WATCHED: usize = 100;

/// How long a sleeper sleeps that cannot watch all holders, in nanoseconds.
pub const GLANCE: u64 = 100_000_000;

impl<P: RobustMachine> RawSharedSemaphore<P> {
    /// Releases the mutex and sleeps until so many units may be free.
    pub(super) fn sleep(
        &self,
        party: &Party<'_, P>,
        (what, units): (u32, u32),
        (how, tell): (&WaitBounds<'_, P>, &mut dyn FnMut()),
    ) -> Slept {
        let doorbell = party.domain.doorbell_value();
        let channel = get(&self.channel);
        let first = WatchedWord::Word(&self.channel, channel);
        let mut watches = [first; WATCHED + 3];
        watches[1] = WatchedWord::Word(party.domain.doorbell, doorbell);
        let mut watched = [(0, Life(0)); WATCHED];
        // Between the channel, the doorbell and what comes last.
        let last = watches.len() - 1;
        let mut places = watches[2..last].iter_mut().zip(&mut watched).take(P::MOST_WATCHES - 3);
        let (mut used, mut holders, mut held) = (2, 0usize, 0u32);
        for (slot, record, life, claims) in party.domain.all_living() {
            // ord: SHR-7 (acquire): as `count`.
            let holds = |claim: &&Claim<P>| claim.what.load(Ordering::Acquire) & !AWAITED == what;
            let mut holding = claims.iter().filter(holds).peekable();
            let is_holder = holding.peek().is_some();
            held = holding.fold(held, |sum, claim| sum.saturating_add(get(&claim.units)));
            if slot != party.me.slot() && is_holder {
                holders += 1;
                if let Some((place, watched)) = places.next() {
                    *place = WatchedWord::Low(&record.life, life.life());
                    *watched = (slot, life);
                    used += 1;
                }
            }
        }
        let free = get(&self.total).saturating_sub(held);
        self.mutex.unlock(party);
        if free >= units && !fault!(shared_count_is_not_repeated) {
            // A holder has died since the caller counted, and is not among the watched.
            return Slept::Not;
        }
        tell();
        // Last: a sleeper that was woken after this one had queued, and died before this one
        // was at the doorbell, has woken nobody there.
        let watched = &watched[..used - 2];
        watches[used] = WatchedWord::Seen(&self.channel, channel);
        let watches = &watches[..=used];
        let soon = P::now().after(GLANCE);
        let is_sooner = how.deadline.is_none_or(|deadline| soon < deadline);
        let ended = if holders > watched.len() && is_sooner {
            let ended = P::wait_any(watches, &WaitBounds { deadline: Some(soon), ..*how });
            // Asks about each slot in its turn, however the sleep has ended.
            let slot = (soon.0 / GLANCE) as usize % party.domain.records.len();
            if ended != Woken::Copied
                && let Some(record) = party.domain.record(slot as u32)
            {
                let life = record.current();
                if life.is_alive() {
                    party.suspects(slot as u32, life);
                }
            }
            if ended == Woken::TimedOut { Woken::Unsure } else { ended }
        } else {
            party.sleep(watches, how, watched)
        };
        match ended {
            Woken::At(0) => Slept::Woken,
            Woken::At(index) => {
                party.domain.after_wake(index, doorbell);
                Slept::ByDeath
            }
            Woken::Changed => Slept::Not,
            Woken::Unsure => Slept::Unsure,
            Woken::TimedOut => Slept::Over(RobustError::TimedOut),
            Woken::Interrupted if how.interruptible => Slept::Over(RobustError::Interrupted),
            Woken::Interrupted => Slept::Not,
            Woken::Cancelled => Slept::Over(RobustError::Cancelled),
            Woken::Copied => Slept::Over(RobustError::Copied),
        }
    }
}

/// How a sleep for units ended.
pub(super) enum Slept {
    /// The caller has not slept yet.
    Fresh,
    /// Somebody woke it: gave units back, or is to be watched.
    Woken,
    /// A death woke it, or a participant that wakes everybody; perhaps others too.
    ByDeath,
    /// It is to look again, for it did not sleep.
    Not,
    /// It is to look again, because nobody woke it for long.
    Unsure,
    /// The wait is over.
    Over(RobustError),
}

impl Slept {
    /// Returns what matters of it to a model checker, for [`RobustMachine::turn`].
    pub(super) fn kept(&self) -> u64 {
        match *self {
            Slept::Fresh => 0,
            Slept::Woken => 1,
            Slept::ByDeath => 2,
            Slept::Not | Slept::Unsure => 3,
            Slept::Over(error) => 4 + error as u64,
        }
    }
}

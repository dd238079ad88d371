//! States that were reached before, and need not be explored again.

use super::{Awoken, Engine, ThreadStatus};
use crate::atom::Atom;
use crate::fingerprint::mix;

impl Engine {
    /// Tells whether the state was reached before; notes it if not.
    pub(super) fn known(&mut self) -> bool {
        match self.states.entry(self.state) {
            std::collections::hash_map::Entry::Occupied(mut known) => {
                if *known.get() <= self.preemptions {
                    return true;
                }
                known.insert(self.preemptions);
            }
            std::collections::hash_map::Entry::Vacant(unknown) => {
                unknown.insert(self.preemptions);
            }
        }
        false
    }

    /// Stops looking for known states and putting anything down (random searches,
    /// replays).
    pub(crate) fn seal(&mut self) {
        self.sealed = true;
        self.marking = false;
    }

    pub(super) fn fingerprint(&self) -> u64 {
        let mut sum = mix(self.memory.hash, self.memory.agreed_hash());
        for (number, thread) in self.threads.iter().enumerate() {
            let status = match thread.status {
                ThreadStatus::Ready | ThreadStatus::Yielded => 0,
                ThreadStatus::Relaxing(_) => u64::from(!self.can_run(number)),
                ThreadStatus::Asleep(sleeper) => {
                    let ahead = self.threads.iter().filter(|t| match t.status {
                        ThreadStatus::Asleep(s) => {
                            s.address == sleeper.address && s.order < sleeper.order
                        }
                        _ => false,
                    });
                    mix(2 + ahead.count() as u64, sleeper.address as u64)
                }
                ThreadStatus::Watching => 4,
                ThreadStatus::Done => 3,
                ThreadStatus::Gone => 5,
            };
            let awoken = match thread.awoken {
                None => 0,
                Some(Awoken::ForSignal) => 1,
                Some(Awoken::As(outcome)) => 2 + outcome as u64,
            };
            let idle = thread.idle_since == Some(self.by_others(number));
            let mut status = mix(status, u64::from(idle));
            for entry in thread.entries.iter() {
                status = mix(status, mix(entry.address as u64, entry.queued as u64));
            }
            if thread.mortal {
                let end = u64::from(thread.dying) << 1 | u64::from(thread.doomed);
                let at = |word: Option<*const Atom>| word.map_or(0, |word| word.addr() as u64);
                status = mix(status, mix(at(thread.named), 2 + end));
                status = mix(status, mix(at(thread.deferred), at(thread.life)));
            }
            let thread = mix(mix(number as u64, thread.history), mix(status, awoken));
            sum = sum.wrapping_add(thread);
        }
        let b = &self.budget;
        let few = [
            [b.spurious, b.timeouts],
            [b.interrupts, b.signals],
            [b.jumps, b.stale],
            [b.kills, b.respawns],
            [b.unmarked, self.passes],
        ];
        let mut key = mix(sum, self.clock);
        for [one, other] in few {
            key = mix(key, u64::from(one) << 32 | u64::from(other));
        }
        if self.config.preemptions.is_some() {
            let last = if self.goes_on() { self.last } else { self.threads.len() };
            key = mix(key, last as u64);
        }
        key
    }
}

//! Half a word, and restartable sections.
//!
//! # Role
//! What `Halves` asks of a platform: an exchange of the low half of a word, and its
//! erasure in two steps, as a thread does in a section that the kernel restarts: it
//! looks, others may do anything, it stores. So what others have written into the half
//! meanwhile is lost, in the models as on the processor. (On an exchange in the place
//! of the two steps, see [`Config::sections`](crate::Config::sections).)
//!
//! # What restarts a section
//! [`restart`], by any other thread, and a signal handler of the thread itself: it then
//! does not store. A `membarrier` is more: all that the caller did before is seen by
//! what others do after it, and all that others did before it by the caller.
//!
//! # What it does not show
//! On the processor the store is of half the word: that the other half keeps what
//! others put there, and that whoever reads it knows what they knew, is taken for
//! granted here (as it is on x86-64, where stores and locked instructions of any size
//! have one order).

use crate::U64;
use crate::atomic::access;
use crate::config::Fault;
use crate::engine::{Phase, check, halt, point, with};
use crate::fingerprint::mix;
use crate::report::{ModelStep, Site};
use std::panic::Location;
use std::sync::atomic::Ordering;

const LOW: u64 = u32::MAX as u64;

impl U64 {
    /// Replaces the low half, if it is `current`, by `new`. Returns whether it did.
    #[track_caller]
    pub(crate) fn compare_exchange_low(&self, current: u32, new: u32, order: Ordering) -> bool {
        self.exchange_low(current, new, order, Location::caller())
    }

    fn exchange_low(&self, current: u32, new: u32, order: Ordering, site: Site) -> bool {
        access(&self.atom, false, site);
        let (wanted, new, failed) = (current.into(), new.into(), Ordering::Relaxed);
        let done = with(|e| {
            e.compare_exchange(&self.atom, LOW, wanted, new, order, failed, site, true).is_ok()
        });
        check();
        done
    }

    /// Erases the low half, if it is no more than `most`. Returns whether it did. In one exchange,
    /// if so configured, of the number that the thread has as a participant.
    #[track_caller]
    pub(crate) fn erase_low(&self, most: u32, order: Ordering) -> bool {
        let site = Location::caller();
        if !with(|engine| engine.config.sections) {
            return self.exchange_low(crate::thread() as u32 + 1, 0, order, site);
        }
        access(&self.atom, false, site);
        let fits = with(|engine| {
            let found = engine.load(&self.atom, Ordering::Relaxed, site, true);
            let me = engine.current;
            engine.threads[me].in_section = found & LOW <= u64::from(most);
            engine.threads[me].in_section
        });
        check();
        if !fits {
            return false;
        }
        access(&self.atom, false, site);
        with(|engine| {
            let me = engine.current;
            let goes_on = std::mem::take(&mut engine.threads[me].in_section);
            if goes_on {
                engine.update(&self.atom, order, site, true, |found| found & !LOW);
            }
            goes_on
        })
    }
}

/// Has others begin their sections anew.
pub(crate) fn restart(site: Site) {
    let nothing =
        with(|engine| !engine.config.sections || engine.config.fault == Some(Fault::NoRestart));
    if nothing || refused() {
        return;
    }
    membarrier(site, true);
}

/// Tells whether the calling thread may not restart the sections of others.
pub(crate) fn refused() -> bool {
    with(|engine| engine.config.refused >> engine.current & 1 != 0)
}

/// Executes a fence of all threads, which restarts their sections or not.
pub(crate) fn membarrier(site: Site, restarts: bool) {
    point(site);
    let on = with(|engine| {
        if engine.phase == Phase::Run {
            let me = engine.current;
            let threads = engine.main();
            let known = (0..threads).fold(0, |known, t| mix(known, engine.threads[t].history));
            engine.learn(known);
            engine.memory.meet(me);
            for other in (0..threads).filter(|&t| t != me) {
                let thread = &mut engine.threads[other];
                let restarted = restarts && std::mem::take(&mut thread.in_section);
                thread.history = mix(thread.history, mix(known, u64::from(restarted)));
            }
            engine.changes += 1;
            engine.threads[me].own += 1;
        }
        engine.event(site, ModelStep::Restart, 0, false);
        engine.step()
    });
    if !on {
        halt();
    }
}

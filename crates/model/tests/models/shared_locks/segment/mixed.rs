//! A model of two locks, one of which is taken inside the other.

use super::*;
use lockstead_core::robust::{RawSharedMutex, RawSharedRwLock};
use lockstead_model::Scenario;

/// A lock for readers and writers, and a mutex.
#[repr(C)]
pub(crate) struct Two {
    common: Common,
    outer: RawSharedRwLock<Model>,
    inner: RawSharedMutex<Model>,
}

impl Two {
    fn locks(&self, party: &Party<'_, Model>) {
        if self.inner.lock(party, &WaitBounds::FOREVER) == Ok(Got::OwnerDied) {
            assert!(self.inner.mark_consistent(party), "it has the mutex");
        }
        assert!(self.inner.unlock(party), "it has the mutex");
    }

    fn writes(&self, party: &Party<'_, Model>) {
        if self.outer.write(party, &WaitBounds::FOREVER) == Ok(Got::OwnerDied) {
            assert!(self.outer.mark_consistent(party), "it has the lock");
        }
        assert!(self.outer.unwrite(party), "it has the lock");
    }

    /// Reads, and has the mutex meanwhile.
    fn reads(&self, party: &Party<'_, Model>) {
        let hold = self.outer.read(party, Some(0), &WaitBounds::FOREVER).expect("recoverable");
        self.locks(party);
        assert!(self.outer.unread(party, hold), "it reads");
    }
}

/// Makes the scenario in which one reads and has the mutex inside, one writes, one wants the mutex:
/// a death that a sleeper of the one lock is woken by concerns a sleeper of the other.
pub(crate) fn nested() -> Scenario<Two> {
    let run = |what: fn(&Two, &Party<'_, Model>)| {
        move |s: &Two| {
            let party = s.common.party();
            what(s, &party);
            forget(0);
        }
    };
    let make = || {
        let (outer, inner) = (RawSharedRwLock::new(), RawSharedMutex::new());
        let two = Two { common: Common::new(), outer, inner };
        two.common.populate(3);
        two
    };
    Scenario::new(make).thread(run(Two::reads)).thread(run(Two::writes)).thread(run(Two::locks))
}

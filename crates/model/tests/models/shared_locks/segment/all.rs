//! A lock of each kind, whose orderings are weakened.

use super::*;
use lockstead_core::robust::{RawSharedMutex, RawSharedRwLock, RawSharedSemaphore};
use lockstead_model::{Cell, Scenario};

/// A lock of each kind, and what it protects.
#[repr(C)]
pub(crate) struct All {
    common: Common,
    mutex: RawSharedMutex<Model>,
    lock: RawSharedRwLock<Model>,
    semaphore: RawSharedSemaphore<Model>,
    data: Cell<u32>,
}

fn all(lives: usize) -> Scenario<All> {
    Scenario::new(move || All::new(lives))
}

impl All {
    fn new(lives: usize) -> Self {
        let all = All {
            common: Common::new(),
            mutex: RawSharedMutex::new(),
            lock: RawSharedRwLock::new(),
            semaphore: RawSharedSemaphore::with_units(1),
            data: Cell::new(0),
        };
        all.common.populate(lives);
        all
    }

    fn add(&self) {
        self.data.set(self.data.get() + 1);
    }

    fn locks(&self, party: &Party<'_, Model>) {
        let got = self.mutex.lock(party, &WaitBounds::FOREVER).expect("recoverable");
        self.add();
        if got == Got::OwnerDied {
            self.mutex.mark_consistent(party);
        }
        self.mutex.unlock(party);
    }

    fn reads(&self, party: &Party<'_, Model>) {
        let hold = self.lock.read(party, Some(0), &WaitBounds::FOREVER).expect("recoverable");
        self.data.get();
        self.lock.unread(party, hold);
    }

    fn writes(&self, party: &Party<'_, Model>) {
        let _ = self.lock.write(party, &WaitBounds::FOREVER).expect("recoverable");
        self.add();
        self.lock.unwrite(party);
    }

    fn takes(&self, party: &Party<'_, Model>) {
        let _ = self.semaphore.acquire(party, 0, 1, &WaitBounds::FOREVER).expect("endless");
        self.add();
        self.semaphore.release(party, 0, 1).expect("recoverable");
    }
}

/// Makes the scenario in which each takes the mutex.
pub(crate) fn lockers(number: usize) -> Scenario<All> {
    all(number).threads(number, |s| s.locks(&s.common.party()))
}

/// Makes the scenario in which each takes the mutex, one of them after it has come to the slot of a
/// dead one.
pub(crate) fn newcomer_and_locker() -> Scenario<All> {
    let make = || {
        let all = All::new(2);
        all.common.records[MOST].life.store(Life::ended(1).0, Ordering::Relaxed);
        all
    };
    Scenario::new(make)
        .thread(|s: &All| {
            let domain = s.common.domain();
            let taken = domain.occupy(MOST as u32, 1, 1).expect("nobody else comes");
            s.locks(&Party { domain, me: taken.identity(MOST as u32).expect("it lives") });
        })
        .thread(|s: &All| s.locks(&s.common.party()))
}

/// Makes the scenario in which two wait for a mutex that is held at the beginning, one of them after it
/// has come to the slot of a dead one. Each of them may wait for so long that it has the mutex reserved.
pub(crate) fn newcomer_and_waiter() -> Scenario<All> {
    let make = || {
        let all = All::new(3);
        all.common.records[MOST].life.store(Life::ended(1).0, Ordering::Relaxed);
        assert!(all.mutex.take(Identity::new(1, 1).expect("a slot")), "it is free");
        all
    };
    Scenario::new(make)
        .thread(|s: &All| {
            let party = s.common.party();
            s.add();
            assert!(s.mutex.unlock(&party), "it has the mutex");
        })
        .thread(|s: &All| {
            let domain = s.common.domain();
            let taken = domain.occupy(MOST as u32, 2, 2).expect("nobody else comes");
            s.locks(&Party { domain, me: taken.identity(MOST as u32).expect("it lives") });
        })
        .thread(|s: &All| s.locks(&s.common.party()))
}

/// Makes the scenario in which one takes the mutex, leaves its slot, comes again and takes the mutex
/// again, and another one takes the mutex.
pub(crate) fn leaver_and_locker() -> Scenario<All> {
    let leaver = all(2).thread(|s: &All| {
        let party = s.common.sits(false);
        s.locks(&party);
        s.common.records[1].vacate(Life::alive(1, 1, 1));
        let domain = s.common.domain();
        let (slot, life) = domain.take_slot(1, 1).expect("there are more than threads");
        let party = Party { domain, me: life.identity(slot).expect("it lives") };
        party.arrive();
        s.locks(&party);
    });
    leaver.thread(|s: &All| s.locks(&s.common.party()))
}

/// Makes the scenario in which each takes the only unit, one of them after it has come to the slot of
/// a dead one.
pub(crate) fn newcomer_and_taker() -> Scenario<All> {
    let make = || {
        let all = All::new(2);
        all.common.records[MOST].life.store(Life::ended(1).0, Ordering::Relaxed);
        all
    };
    let newcomer = Scenario::new(make).thread(|s: &All| {
        let domain = s.common.domain();
        let taken = domain.occupy(MOST as u32, 1, 1).expect("nobody else comes");
        let party = Party { domain, me: taken.identity(MOST as u32).expect("it lives") };
        party.arrive();
        s.takes(&party);
    });
    newcomer.thread(|s: &All| s.takes(&s.common.party()))
}

/// Makes the scenario in which one reads and one writes, so often.
pub(crate) fn reader_and_writer(times: usize) -> Scenario<All> {
    all(2).thread(|s| s.reads(&s.common.party())).thread(move |s| {
        let party = s.common.party();
        for _ in 0..times {
            s.writes(&party);
        }
    })
}

/// Makes the scenario in which one reads and two write, so that one of these may wait.
pub(crate) fn reader_and_writers() -> Scenario<All> {
    let one = all(3).thread(|s| s.reads(&s.common.party()));
    one.threads(2, |s| s.writes(&s.common.party()))
}

/// Makes the scenario in which one comes, to a slot that another one had and has left, and reads, and one
/// writes.
pub(crate) fn newcomer_and_writer() -> Scenario<All> {
    let after_a_reader = || {
        let all = All::new(2);
        let records = &all.common.records;
        records[0].claims.store(1, Ordering::Relaxed);
        records[1].claims.store(1, Ordering::Relaxed);
        records[1].life.store(Life::alive(1, 1, 1).free().0, Ordering::Relaxed);
        all
    };
    let one = Scenario::new(after_a_reader).thread(|s| {
        let domain = s.common.domain();
        let (slot, life) = domain.take_slot(1, 1).expect("it is free");
        let party = Party { domain, me: life.identity(slot).expect("it lives") };
        party.arrive();
        s.reads(&party);
    });
    one.thread(|s| s.writes(&s.common.party()))
}

/// Makes the scenario in which each takes the only unit.
pub(crate) fn takers() -> Scenario<All> {
    all(2).threads(2, |s| s.takes(&s.common.party()))
}

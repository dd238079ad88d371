//! Every labelled ordering of the shared locks: the models notice when it is weaker, or
//! it is shown not to matter.

mod shipped {
    pub(super) use lockstead_core::{atomic, platform, robust};

    #[allow(dead_code, unused_imports, unreachable_pub, reason = "not all use everything")]
    pub(super) mod model {
        include!("segment/common.rs");
        use super::robust::{ReadHold, SharedMutex, SharedRwLock, SharedSemaphore};
        use lockstead_model::{Cell, Scenario};

        /// A lock of each kind, and what it protects.
        #[repr(C)]
        pub struct All {
            common: Common,
            mutex: SharedMutex<Model>,
            lock: SharedRwLock<Model>,
            semaphore: SharedSemaphore<Model>,
            data: Cell<u32>,
        }

        fn all(lives: usize) -> Scenario<All> {
            Scenario::new(move || {
                let all = All {
                    common: Common::new(),
                    mutex: SharedMutex::new(),
                    lock: SharedRwLock::new(),
                    semaphore: SharedSemaphore::with_units(1),
                    data: Cell::new(0),
                };
                all.common.populate(lives);
                all
            })
        }

        impl All {
            fn add(&self) {
                self.data.set(self.data.get() + 1);
            }

            fn locks(&self, party: &Party<'_, Model>) {
                let got = self.mutex.lock(party, &Wait::FOREVER).expect("recoverable");
                self.add();
                if got == Got::OwnerDied {
                    self.mutex.mark_consistent(party);
                }
                self.mutex.unlock(party);
            }

            fn reads(&self, party: &Party<'_, Model>) {
                let hold = self.lock.read(party, Some(0), &Wait::FOREVER).expect("recoverable");
                self.data.get();
                self.lock.unread(party, hold);
            }

            fn writes(&self, party: &Party<'_, Model>) {
                let _ = self.lock.write(party, &Wait::FOREVER).expect("recoverable");
                self.add();
                self.lock.unwrite(party);
            }

            fn takes(&self, party: &Party<'_, Model>) {
                let _ = self.semaphore.acquire(party, 0, 1, &Wait::FOREVER).expect("endless");
                self.add();
                self.semaphore.release(party, 0, 1).expect("recoverable");
            }
        }

        /// Each takes the mutex.
        pub fn lockers(number: usize) -> Scenario<All> {
            all(number).threads(number, |s| s.locks(&s.common.party()))
        }

        /// One reads, one writes, so often.
        pub fn reader_and_writer(times: usize) -> Scenario<All> {
            all(2).thread(|s| s.reads(&s.common.party())).thread(move |s| {
                let party = s.common.party();
                for _ in 0..times {
                    s.writes(&party);
                }
            })
        }

        /// Each takes the only unit.
        pub fn takers() -> Scenario<All> {
            all(2).threads(2, |s| s.takes(&s.common.party()))
        }
    }
}

use crate::labels::{Part, weaker, weaker_without_fences};
use lockstead_model::{Config, Kind, Scenario};
use shipped::model::*;

fn small() -> Config {
    Config::new().spurious(0).preemptions(2).stale_reads(1)
}

/// That a scenario, correct as it is, fails without each of these.
fn missed<S: 'static>(
    scenario: &Scenario<S>,
    config: &Config,
    orderings: &[(&'static str, &'static str, Part)],
) {
    let stats = scenario.check(config).expect("correct as shipped");
    println!("{stats}");
    for &(file, label, part) in orderings {
        match scenario.check(&weaker(config, file, &[label], part)) {
            Ok(stats) => panic!("{file} {label}, {part:?}: not missed: {stats}"),
            Err(failure) => {
                assert_eq!(failure.kind, Kind::Race, "{file} {label}, {part:?}: {failure}");
                println!("{file} {label}, {part:?}: after {} executions", failure.executions);
            }
        }
    }
}

#[test]
fn shared_mutex_misses_each_ordering() {
    let orderings =
        [("robust/mutex.rs", "SHR-1", Part::All), ("robust/mutex.rs", "SHR-2", Part::All)];
    missed(&lockers(2), &small(), &orderings);
    missed(&lockers(3), &small(), &[("robust/wait.rs", "SHR-1", Part::All)]);
    // What a dead owner wrote; the exchange that takes the lock would show it, too, if
    // the checker took it for a fence.
    let dies = small().kills(1);
    let [with, without] = [&[][..], &["SHR-3"]].map(|labels| {
        let config = weaker_without_fences(&dies, "robust/slot.rs", labels, Part::All);
        lockers(2).check(&config)
    });
    with.expect("correct with it");
    assert_eq!(without.expect_err("SHR-3 is missed").kind, Kind::Race);
}

/// A waiter that overlooks the hand-off waiter takes the lock from it, which is not fair, and
/// nothing else.
#[test]
fn shared_mutex_is_as_safe_without_the_handoff_ordering() {
    let config = small().jumps(1, 5_000_000);
    let weaker = weaker(&config, "robust/wait.rs", &["SHR-5"], Part::All);
    lockers(3).verify("without SHR-5", &weaker.preemptions(1));
}

#[test]
fn shared_rwlock_misses_each_ordering() {
    let orderings =
        [("robust/rwlock.rs", "SHR-6", Part::All), ("robust/slot.rs", "SHR-7", Part::All)];
    missed(&reader_and_writer(1), &small(), &orderings);
    missed(&reader_and_writer(2), &small(), &[("robust/wait.rs", "SHR-6", Part::All)]);
}

/// The semaphore's numbers and the claims on it are touched under its mutex, whose
/// orderings it misses; its own only say what they mean.
#[test]
fn shared_semaphore_misses_each_ordering() {
    let orderings =
        [("robust/mutex.rs", "SHR-1", Part::All), ("robust/mutex.rs", "SHR-2", Part::All)];
    missed(&takers(), &small(), &orderings);
    let weaker = weaker(&small().kills(1), "robust/semaphore.rs", &["SHR-7"], Part::All);
    takers().verify("without SHR-7", &weaker);
}

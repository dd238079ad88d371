//! The condition variable: no notification is lost, the mutex is always taken
//! again, the count of waiters comes out right.

use crate::common::{Insists, Sleeps, depth};
use lockstead_core::{LockError, Nanos, Off, Platform, Policy, RawCondvar, RawMutex, WaitBounds};
use lockstead_model::{Cell, Config, FailureKind, Fault, Model, Ordering, Scenario, U32, freed};
use std::panic::Location;

const FOREVER: WaitBounds<'static, Model> = WaitBounds::FOREVER;
const TIMED: WaitBounds<'static, Model> = WaitBounds { deadline: Some(Nanos(100)), ..FOREVER };
const INTERRUPTIBLE: WaitBounds<'static, Model> = WaitBounds { interruptible: true, ..FOREVER };

/// Things to take, and a way to hear of them.
struct Store<Y: Policy> {
    lock: RawMutex<Model, Off, Y>,
    more: RawCondvar<Model>,
    things: Cell<u32>,
    cancel: U32,
}

impl<Y: Policy> Store<Y> {
    fn new() -> Self {
        Store {
            lock: RawMutex::new(),
            more: RawCondvar::new(),
            things: Cell::new(0),
            cancel: U32::ZERO,
        }
    }

    fn lock(&self) {
        self.lock.lock(Location::caller()).expect("not recursive");
    }

    fn unlock(&self) {
        // SAFETY: every caller has locked it, and waits take it again.
        unsafe { self.lock.unlock() };
    }

    fn wait(&self, how: &WaitBounds<'_, Model>) -> Result<(), LockError> {
        // SAFETY: every caller of this has locked it.
        let ended = unsafe { self.more.wait(&self.lock, how, Location::caller()) };
        assert!(self.lock.is_mine(), "a wait takes the mutex again, however it ended");
        ended
    }

    /// Takes a thing, waiting for one.
    fn take(&self) {
        self.lock();
        while self.things.get() == 0 {
            self.wait(&FOREVER).expect("nothing ends this wait");
        }
        self.things.set(self.things.get() - 1);
        self.unlock();
    }

    /// Takes a thing unless the wait ends first, with this error.
    fn take_or(&self, how: &WaitBounds<'_, Model>, error: LockError) {
        self.lock();
        while self.things.get() == 0 {
            if let Err(given) = self.wait(how) {
                assert_eq!(given, error);
                break;
            }
        }
        // Also when given up: what came meanwhile counts.
        self.things.set(self.things.get().saturating_sub(1));
        self.unlock();
    }

    fn put(&self, number: u32) {
        self.lock();
        self.things.set(self.things.get() + number);
        self.unlock();
    }

    fn put_and_tell(&self) {
        self.put(1);
        self.more.notify_one();
    }

    /// Waits until there is a thing, and leaves it there.
    fn see(&self) {
        self.lock();
        while self.things.get() == 0 {
            self.wait(&FOREVER).expect("nothing ends this wait");
        }
        self.unlock();
    }

    /// Returns how many notifications may have a taker.
    fn waiting(&self) -> u32 {
        let shown = format!("{:?}", self.more);
        let (_, rest) = shown.split_once("waiting=").expect("shown");
        rest.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
    }
}

/// Returns a search in which the mutex releases in one step: that two do is shown by its own
/// models.
fn whole() -> Config {
    Config::new().sections(false)
}

fn store<Y: Policy>() -> Scenario<Store<Y>> {
    Scenario::new(Store::new).after(|s: &Store<Y>| {
        assert!(!s.lock.is_locked());
        assert_eq!(s.things.get(), 0);
    })
}

fn three() -> Config {
    whole().preemptions(depth(2, 3)).stale_reads(depth(1, 2))
}

/// One waits, one tells: after the unlock, or before it.
#[test]
fn model_condvar_tells_one_2t() {
    for under_the_mutex in [false, true] {
        let stats = store::<Sleeps>()
            .thread(Store::take)
            .thread(move |s| {
                s.lock();
                s.things.set(1);
                if under_the_mutex {
                    s.more.notify_one();
                }
                s.unlock();
                if !under_the_mutex {
                    s.more.notify_one();
                }
            })
            .verify("condvar, one told, 2 threads", &whole());
        stats.must_be_complete();
    }
}

/// A notification under the mutex takes its waiter off the count: with nothing
/// but such notifications to end a wait nothing is left.
#[test]
fn model_condvar_counts_2t() {
    let stats = Scenario::new(Store::<Sleeps>::new)
        .thread(|s| {
            for _ in 0..depth(1, 2) {
                s.take();
            }
        })
        .thread(|s| {
            for _ in 0..depth(1, 2) {
                s.lock();
                s.things.set(s.things.get() + 1);
                s.more.notify_one();
                s.unlock();
            }
        })
        .after(|s| assert_eq!((s.waiting(), s.things.get()), (0, 0)))
        .verify("condvar, counted, 2 threads", &whole().spurious(0));
    stats.must_be_complete();
    // Each wait that ends for another reason leaves at most one on it.
    let stats = Scenario::new(Store::<Sleeps>::new)
        .thread(Store::take)
        .thread(Store::put_and_tell)
        .after(|s| assert!(s.waiting() <= 2))
        .verify("condvar, counted, spurious, 2 threads", &whole().spurious(2));
    stats.must_be_complete();
}

#[test]
fn model_condvar_tells_each_3t() {
    store::<Sleeps>()
        .threads(2, Store::take)
        .thread(|s| {
            s.put_and_tell();
            s.put_and_tell();
        })
        .verify("condvar, each told, 3 threads", &three());
    store::<Sleeps>()
        .threads(2, Store::take)
        .thread(|s| {
            s.put(2);
            s.more.notify_one();
            s.more.notify_one();
        })
        .verify("condvar, each told in a row, 3 threads", &three());
    store::<Insists>()
        .threads(2, Store::take)
        .thread(|s| {
            s.put_and_tell();
            s.put_and_tell();
        })
        .verify("condvar, each told, insisting, 3 threads", &three().timeouts(1).spurious(0));
}

#[test]
fn model_condvar_tells_all_3t() {
    store::<Sleeps>()
        .threads(2, Store::take)
        .thread(|s| {
            s.put(2);
            s.more.notify_all();
        })
        .verify("condvar, all told, 3 threads", &three());
    Scenario::new(Store::<Sleeps>::new)
        .threads(2, Store::see)
        .thread(|s| {
            s.put(1);
            s.more.notify_all();
        })
        .after(|s| assert_eq!((s.waiting(), s.things.get()), (0, 1)))
        .verify("condvar, all told, counted, 3 threads", &three().spurious(0));
}

/// Two tell, one after the other's notification may have been used up.
#[test]
fn model_condvar_two_tell_3t() {
    store::<Sleeps>()
        .threads(2, Store::put_and_tell)
        .thread(|s| {
            s.take();
            s.take();
        })
        .verify("condvar, two tell, 3 threads", &three());
}

/// A waiter that gives up takes no notification away from one that stays.
#[test]
fn model_condvar_gives_up_3t() {
    let with = |other: fn(&Store<Sleeps>)| {
        store::<Sleeps>().thread(Store::take).thread(other).thread(|s| {
            s.put_and_tell();
            s.put_and_tell();
        })
    };
    let checked = |scenario: Scenario<Store<Sleeps>>| {
        // What the one that gave up has left behind is not there to be missed.
        scenario.after(|s| assert!(!s.lock.is_locked() && s.things.get() <= 1))
    };
    checked(with(|s| s.take_or(&TIMED, LockError::TimedOut)))
        .verify("condvar, one timed, 3 threads", &three().timeouts(1).spurious(0));
    checked(with(|s| s.take_or(&INTERRUPTIBLE, LockError::Interrupted)))
        .verify("condvar, one interrupted, 3 threads", &three().interrupts(1).spurious(0));
}

#[test]
fn model_condvar_cancelled_2t() {
    let stats = Scenario::new(Store::<Sleeps>::new)
        .thread(|s| {
            let how = WaitBounds { cancel: Some(&s.cancel), ..FOREVER };
            s.take_or(&how, LockError::Cancelled);
        })
        .thread(|s| {
            s.cancel.store(1, Ordering::Release);
            Model::wake(Model::address32(&s.cancel), u32::MAX);
        })
        .after(|s| assert!(!s.lock.is_locked()))
        .verify("condvar, cancelled, 2 threads", &whole());
    stats.must_be_complete();
}

/// A signal that the caller does not want to know of is a return for no reason.
#[test]
fn model_condvar_signalled_2t() {
    let stats = store::<Sleeps>()
        .thread(|s| lockstead_model::with_handler(|| {}, || s.take()))
        .thread(Store::put_and_tell)
        .verify("condvar, signalled, 2 threads", &whole().signals(1).spurious(0));
    stats.must_be_complete();
}

/// The waiter frees all of it as soon as it has what it waited for.
#[test]
fn model_condvar_is_freed_by_waiter_2t() {
    let stats = Scenario::new(Store::<Sleeps>::new)
        .thread(|s| {
            s.take();
            freed(s);
        })
        .thread(|s| {
            s.lock();
            s.things.set(1);
            s.more.notify_one();
            s.unlock();
        })
        .verify("condvar, freed by the waiter, 2 threads", &whole());
    stats.must_be_complete();
}

/// Shows a limit that `condvar.rs` states: a thread that has let go of the mutex and does not sleep
/// yet still looks at the condition variable, so no notification tells the notifier that it may be
/// freed.
#[test]
fn model_condvar_is_not_freed_by_notifier_2t() {
    let failure = Scenario::new(Store::<Sleeps>::new)
        .thread(|s| {
            s.lock();
            if s.things.get() == 0 {
                s.wait(&FOREVER).expect("nothing ends this wait");
            }
            s.unlock();
        })
        .thread(|s| {
            s.lock();
            s.things.set(1);
            s.more.notify_all();
            s.unlock();
            freed(&s.more);
        })
        .check(&whole().preemptions(2))
        .expect_err("a look at freed memory");
    assert_eq!(failure.kind, FailureKind::UseAfterFree);
}

/// Shows what the models rest on: a platform whose waits do not compare and sleep in one step, or
/// whose wake-ups are lost, is found out.
#[test]
fn model_condvar_misses_a_broken_platform_2t() {
    let scenario = store::<Sleeps>().thread(Store::take).thread(Store::put_and_tell);
    let config = whole().spurious(0);
    scenario.verify("condvar, on a correct platform, 2 threads", &config);
    for fault in [Fault::SplitWait, Fault::NoWake] {
        let failure = scenario.check(&config.clone().fault(fault)).expect_err("broken");
        assert_eq!(failure.kind, FailureKind::Deadlock, "{fault:?}");
    }
}

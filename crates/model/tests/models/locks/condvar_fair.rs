//! What the condition variable promises to whom: a notification under the mutex is had by one that
//! waited before it, and nobody who waits later takes it away.

use crate::common::{Sleeps, depth};
use lockstead_core::{LockError, Off, Platform, RawCondvar, RawMutex, WaitBounds};
use lockstead_model::{Cell, Config, FailureKind, Model, Ordering, Scenario, U32};
use std::panic::Location;

/// A mutex, a condition variable, and who waits.
struct Bell {
    lock: RawMutex<Model, Off, Sleeps>,
    bell: RawCondvar<Model>,
    /// A bit for each thread that has begun to wait and is not back.
    waiting: Cell<u32>,
    /// The threads that waited when the bell rang; none, once enough of them are back.
    due: U32,
    /// Ends all other waits.
    cancel: U32,
}

/// How the bell is rung.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ring {
    /// A thread that holds the mutex notifies one.
    One,
    /// A thread that has released the mutex notifies one.
    OneOutside,
    /// A thread that holds the mutex notifies all.
    All,
}

impl Bell {
    fn new() -> Self {
        Bell {
            lock: RawMutex::new(),
            bell: RawCondvar::new(),
            waiting: Cell::new(0),
            due: U32::ZERO,
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

    /// Waits once. Whoever was there when the bell rang says that it is back.
    fn listen(&self, ring: Ring) {
        let me = 1 << lockstead_model::thread();
        self.lock();
        self.waiting.set(self.waiting.get() | me);
        let how = WaitBounds { cancel: Some(&self.cancel), ..WaitBounds::FOREVER };
        // SAFETY: this thread has locked it above.
        let ended = unsafe { self.bell.wait(&self.lock, &how, Location::caller()) };
        assert!(matches!(ended, Ok(()) | Err(LockError::Cancelled)), "{ended:?}");
        self.waiting.set(self.waiting.get() & !me);
        let due = self.due.load(Ordering::Relaxed);
        if due & me != 0 {
            let left = if ring == Ring::All { due & !me } else { 0 };
            self.due.store(left, Ordering::Relaxed);
            Model::wake(Model::address32(&self.due), 1);
        }
        self.unlock();
    }

    /// Rings, waits until those are back that must be, and ends all other waits. Without a
    /// notification for one of those the thread sleeps for ever.
    fn ring(&self, ring: Ring) {
        self.lock();
        self.due.store(self.waiting.get(), Ordering::Relaxed);
        match ring {
            Ring::One => self.bell.notify_one(),
            Ring::All => self.bell.notify_all(),
            Ring::OneOutside => {}
        }
        self.unlock();
        if ring == Ring::OneOutside {
            self.bell.notify_one();
        }
        loop {
            let due = self.due.load(Ordering::Relaxed);
            if due == 0 {
                break;
            }
            Model::wait32(&self.due, due, &WaitBounds::FOREVER);
        }
        self.cancel.store(1, Ordering::Relaxed);
        Model::wake(Model::address32(&self.cancel), u32::MAX);
    }
}

fn listeners(number: usize, ring: Ring) -> Scenario<Bell> {
    Scenario::new(Bell::new)
        .threads(number, move |bell| bell.listen(ring))
        .thread(move |bell| bell.ring(ring))
}

fn small() -> Config {
    Config::new().sections(false).spurious(0).preemptions(depth(2, 3)).stale_reads(depth(0, 1))
}

#[test]
fn model_fair_condvar_rings_for_who_waited_3t() {
    for ring in [Ring::One, Ring::All] {
        let name = format!("condvar, two listen, rings for {ring:?}");
        listeners(2, ring).verify(&name, &small());
    }
}

/// Shows a limit that `condvar.rs` states: where the notifier has released the mutex, one that
/// began to wait since may be woken in an older one's place.
#[test]
fn model_fair_condvar_may_ring_for_a_later_one_outside_3t() {
    let failure = listeners(2, Ring::OneOutside).check(&small()).expect_err("a later one is woken");
    assert_eq!(failure.kind, FailureKind::Deadlock, "{failure}");
}

#[test]
fn model_fair_condvar_misses_who_is_passed_over() {
    for ring in [Ring::One, Ring::All] {
        missed!(
            listeners(2, ring),
            condvar_sequence_stands_still,
            FailureKind::Deadlock,
            small().preemptions(1)
        );
        missed!(
            listeners(2, ring),
            condvar_joins_after_the_release,
            FailureKind::Deadlock,
            small().preemptions(1)
        );
    }
}

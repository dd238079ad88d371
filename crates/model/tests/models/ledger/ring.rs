//! The ring of events: the command takes what the threads leave, whole, in order, and once, or it is
//! counted as lost. And who gets a thread's ring when it has ended.
//!
//! A thread that is killed stops between two of its steps for good. What the command finds then is
//! what it finds in some execution here that takes at that moment.

use crate::common::{depth, mutated};
use crate::labels::{Part, panics};
use crate::weakened::missed;
use lockstead_ledger::ring::{EventRing, EventSlot};
use lockstead_model::with_handler;
use lockstead_model::{Cell, Config, FailureKind, Model, Ordering, Scenario, U32, U64};

/// The slots of a ring here.
const SLOTS: usize = 2;
/// The numbers of the events of the second thread begin above this one.
const SECOND: u64 = 10;

/// A ring, and what its sides know of it.
struct Recorded {
    written: U64,
    lost: U64,
    taken: U64,
    slots: [EventSlot<Model>; SLOTS],
    /// The word that is not zero while the thread works in the library.
    busy: U32,
    /// The word that is not zero when the first thread has ended, so that its ring may be another's.
    ended: U32,
    /// How many events each thread was to leave.
    left: [Cell<u64>; 2],
    /// The number of the last event that was taken, and how many were.
    last: Cell<u64>,
    count: Cell<u64>,
}

impl Recorded {
    fn new() -> Recorded {
        Recorded {
            written: U64::ZERO,
            lost: U64::ZERO,
            taken: U64::ZERO,
            slots: [const { EventSlot::EMPTY }; SLOTS],
            busy: U32::ZERO,
            ended: U32::ZERO,
            left: [const { Cell::new(0) }; 2],
            last: Cell::new(0),
            count: Cell::new(0),
        }
    }

    fn ring(&self) -> EventRing<'_, Model> {
        EventRing {
            written: &self.written,
            lost: &self.lost,
            taken: &self.taken,
            slots: &self.slots,
        }
    }

    /// Leaves the next event of a thread.
    fn leave(&self, thread: usize) {
        let number = self.left[thread].get() + 1;
        self.left[thread].set(number);
        self.ring().leave([number + SECOND * thread as u64; 4]);
    }

    /// Leaves the next event of the first thread as the library does, marked busy.
    fn leave_busy(&self) {
        self.busy.store(1, Ordering::Relaxed);
        self.leave(0);
        self.busy.store(0, Ordering::Relaxed);
    }

    /// Takes what is there: each event whole, and newer than those before.
    fn take(&self) {
        let (mut last, mut count) = (self.last.get(), self.count.get());
        self.ring().take(|event| {
            assert_eq!(event, [event[0]; 4], "an event in pieces");
            assert!(event[0] > last, "event {} after {last}", event[0]);
            last = event[0];
            count += 1;
        });
        self.last.set(last);
        self.count.set(count);
    }

    /// Takes the rest, and finds that no event is missing.
    fn settle(&self) {
        self.take();
        let left = self.left[0].get() + self.left[1].get();
        assert_eq!(self.count.get() + self.ring().lost(), left, "{} lost", self.ring().lost());
    }
}

/// Makes the scenario in which a thread leaves more events than there are slots, while the command
/// takes them at two times, any.
fn taken_meanwhile() -> Scenario<Recorded> {
    Scenario::new(Recorded::new)
        .thread(|ring| (0..4).for_each(|_| ring.leave(0)))
        .thread(|ring| (0..2).for_each(|_| ring.take()))
        .after(Recorded::settle)
}

/// Makes the scenario of a signal handler that comes anywhere while its thread leaves events, and
/// leaves one where the thread is not `busy`, if it keeps to that.
fn interrupted(keeps: bool) -> Scenario<Recorded> {
    Scenario::new(Recorded::new)
        .thread(move |ring| {
            let handler = || {
                if !keeps || ring.busy.load(Ordering::Relaxed) == 0 {
                    ring.leave(0);
                }
            };
            with_handler(handler, || (0..2).for_each(|_| ring.leave_busy()));
        })
        .thread(Recorded::take)
        .after(Recorded::settle)
}

/// Makes the scenario in which a thread ends, another gets its ring, and goes on with it: told of the
/// end with this ordering.
fn inherited(told: Ordering) -> Scenario<Recorded> {
    Scenario::new(Recorded::new)
        .thread(|ring| {
            (0..2).for_each(|_| ring.leave(0));
            ring.ended.store(1, Ordering::Release);
        })
        .thread(move |ring| {
            if ring.ended.load(told) == 1 {
                (0..2).for_each(|_| ring.leave(1));
            }
        })
        .thread(Recorded::take)
        .after(Recorded::settle)
}

fn calm() -> Config {
    Config::new().spurious(0).signals(0)
}

#[test]
fn model_events_are_taken_whole_in_order_and_once_2t() {
    taken_meanwhile().verify("ring", &calm()).must_be_complete();
}

#[test]
fn model_a_handler_leaves_events_beside_those_of_its_thread_2t() {
    let stats = interrupted(true).verify("ring, interrupted", &calm().signals(2));
    stats.must_be_complete();
}

#[test]
fn model_a_ring_goes_on_with_another_thread_3t() {
    let config = calm().preemptions(depth(2, 3)).stale_reads(2);
    inherited(Ordering::Acquire).verify("ring, inherited", &config);
}

#[test]
fn model_ring_misses_each_ordering() {
    let halves = [Part::Acquire, Part::Release].map(|part| ("ring.rs", "LED-15", part));
    missed(&taken_meanwhile(), &calm(), &halves, panics);
}

#[test]
fn broken_rings() {
    missed!(taken_meanwhile(), ring_overwrites_what_was_not_taken, FailureKind::Panic(_), calm());
    missed!(taken_meanwhile(), ring_counts_no_losses, FailureKind::Panic(_), calm());
    missed!(taken_meanwhile(), ring_publishes_before_it_writes, FailureKind::Panic(_), calm());
    missed!(taken_meanwhile(), ring_frees_before_it_reads, FailureKind::Panic(_), calm());
    if mutated() {
        return;
    }
    let rude = interrupted(false).check(&calm().signals(1)).expect_err("a handler in between");
    assert!(matches!(rude.kind, FailureKind::Panic(_)), "{rude}");
    let untold = inherited(Ordering::Relaxed).check(&calm()).expect_err("an old number");
    assert!(matches!(untold.kind, FailureKind::Panic(_)), "{untold}");
}

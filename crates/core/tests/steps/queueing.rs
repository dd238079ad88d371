//! What spinners do that stand in one queue, step by step, on a machine with one thread: whoever
//! stands behind another waits there, leaves, and is walked over; and what else the queue is for.

use crate::common::mutexes::{bits::*, force, mutex, release};
use crate::common::{
    Alone, Channel, as_participant, here, machine, pass, script, script_pause, set, sleeps,
    unplayed,
};
use lockstead_core::policy::{BackOff, Queue, ReadFirst, Without};
use lockstead_core::word::Word;
use lockstead_core::{
    LockError, Off, Policy, RawMutex, Slot, TunedSemaphore, WaitBounds, WaitOutcome,
};

/// Spins for a microsecond, in a queue of any length.
struct Queues;

impl Policy for Queues {
    type Base = Without<BackOff>;
    const SPIN: u64 = 1000;
    const ASK: u64 = 1 << 40;
    const TURNS: u32 = 1;
    const STALE: u64 = 500;
    const PARTS: u32 = u32::MAX;
    const LOOK: u64 = 0;

    fn joins(_tail: Option<Slot>, _processors: u32) -> bool {
        true
    }
}

type Lock = &'static RawMutex<Alone, Off, Queues>;

/// Makes a lock with this word, on a machine on which no time passes but where a test says so.
fn lock_with(word: u64) -> Lock {
    set(|machine| (machine.tick, machine.processors, machine.pauses) = (0, 4, 0));
    let lock = mutex();
    force(lock, Word(word));
    lock
}

const INTERRUPTIBLE: WaitBounds<'static, Alone> =
    WaitBounds { interruptible: true, ..WaitBounds::FOREVER };

/// Has a participant wait for the lock, spin for `nanoseconds` in so many pauses, and be interrupted
/// in its sleep. Returns its pauses.
fn gives_up(lock: Lock, number: u32, pauses: u32, nanoseconds: u64) -> u32 {
    let before = machine().pauses;
    for _ in 0..pauses {
        script_pause(move || pass(nanoseconds / u64::from(pauses)));
    }
    script(|| WaitOutcome::Interrupted);
    as_participant(number, || {
        assert_eq!(lock.lock_how(&INTERRUPTIBLE, 0, here()), Err(LockError::Interrupted));
    });
    machine().pauses - before
}

/// Participants 3 and 4 queue behind the head and leave. The head walks over them when it takes the
/// lock, and when it leaves; then all can queue again.
#[test]
fn a_head_walks_over_those_that_have_left_and_the_queue_ends() {
    for round in 0..3 {
        for behind in [&[3][..], &[3, 4]] {
            for takes in [true, false] {
                let lock = lock_with(2);
                set(|machine| machine.restarts = 0);
                let last = *behind.last().expect("one");
                script_pause(move || {
                    for &number in behind {
                        // It looks at the clock after each turn: for the first time then.
                        assert_eq!(gives_up(lock, number, 5, 1250), 5, "round {round}");
                        // Its place stays, and it counts on the others.
                        let left = Word(2 | COVERED | PREPARING | tail(number));
                        assert_eq!(lock.peek(), left, "round {round}");
                        sleeps();
                    }
                });
                script_pause(move || {
                    assert_eq!(lock.peek().tail().map(Slot::get), Some(last));
                    if takes {
                        release(lock, 2);
                        return;
                    }
                    pass(1 << 30);
                    script(move || {
                        assert_eq!(lock.peek(), Word(2 | WAITERS | SLOW));
                        assert_eq!(machine().restarts, 1);
                        release(lock, 2);
                        WaitOutcome::Interrupted
                    });
                });
                assert_eq!(lock.lock(here()), Ok(()));
                let slow = if takes { WAITERS | SLOW } else { 126 * ONE_SLOW };
                assert_eq!((lock.peek(), unplayed()), (Word(1 | slow), 0));
                assert_eq!(sleeps().len(), usize::from(!takes));
            }
        }
    }
}

/// A head that was alone has left nothing in its node that would make the next one behind it the head.
#[test]
fn a_head_that_was_alone_is_followed_as_any() {
    for _ in 0..2 {
        let alone = lock_with(2);
        script_pause(move || release(alone, 2));
        assert_eq!(alone.lock(here()), Ok(()));
        assert_eq!(alone.peek(), Word::held(1));
        let lock = lock_with(2);
        script_pause(move || {
            assert_eq!(gives_up(lock, 3, 5, 1250), 5);
            assert_eq!(lock.peek(), Word(2 | COVERED | PREPARING | tail(3)));
            release(lock, 2);
        });
        assert_eq!(lock.lock(here()), Ok(()));
        assert_eq!((lock.peek(), unplayed()), (Word(1 | WAITERS | SLOW), 0));
    }
}

/// A release that saw the queue has woken nobody. So the last spinner, which was about to sleep,
/// takes a lock that has come free meanwhile.
#[test]
fn the_last_spinner_takes_a_lock_that_comes_free_as_it_leaves() {
    let lock = lock_with(2 | WAITERS);
    script_pause(|| {});
    script_pause(move || {
        release(lock, 2);
        pass(1 << 30);
    });
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!((lock.peek(), unplayed(), sleeps().len()), (Word(1 | WAITERS | SLOW), 0, 0));
    // Kept for the hand-off waiter, it is not free.
    let lock = lock_with(2 | COVERED | REGISTERED);
    script_pause(|| {});
    script_pause(move || {
        force(lock, Word(COVERED | REGISTERED | tail(1)));
        pass(1 << 30);
    });
    script(move || {
        assert_eq!(lock.peek(), Word(COVERED | PREPARING | REGISTERED));
        force(lock, Word(0));
        WaitOutcome::Interrupted
    });
    assert_eq!(lock.lock(here()), Ok(()));
    // An exchange that fails is made again.
    let lock = lock_with(2);
    script_pause(|| {});
    script_pause(move || {
        pass(1 << 30);
        crate::common::script_exchange(move || force(lock, Word(3 | UNRELEASED | tail(1))));
    });
    script(move || {
        assert_eq!(lock.peek(), Word(3 | UNRELEASED | WAITERS | SLOW));
        force(lock, Word(0));
        WaitOutcome::Interrupted
    });
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!(unplayed(), 0);
}

/// A signal handler that runs while its own thread stands in a queue leaves the thread's place
/// alone, and sleeps for its lock.
#[test]
fn a_handler_of_a_thread_that_spins_does_not_spin() {
    let outer = lock_with(2);
    let inner = mutex::<Queues>();
    force(inner, Word::held(3));
    script_pause(move || {
        script(move || {
            assert_eq!(inner.peek(), Word(3 | WAITERS | SLOW));
            release(inner, 3);
            WaitOutcome::Woken
        });
        assert_eq!(inner.lock(here()), Ok(()));
        assert_eq!(machine().pauses, 1);
        assert_eq!(outer.peek(), Word(2 | tail(1)));
        release(inner, 1);
        release(outer, 2);
    });
    assert_eq!(outer.lock(here()), Ok(()));
    assert_eq!((outer.peek(), unplayed()), (Word::held(1), 0));
    // Afterwards the thread spins again.
    let again = lock_with(2);
    script_pause(move || release(again, 2));
    assert_eq!(again.lock(here()), Ok(()));
    assert_eq!((machine().pauses, sleeps().len()), (1, 1));
}

/// The same where the thread is about to join, and its node stands in no queue yet.
#[test]
fn a_handler_of_a_thread_that_is_about_to_join_does_not_spin() {
    let outer = lock_with(2);
    let inner = mutex::<Queues>();
    force(inner, Word::held(3));
    for _ in 0..5 {
        crate::common::script_exchange(move || {
            crate::common::mutexes::change(outer, |word| Word(word.0 ^ UNRELEASED));
        });
    }
    script_pause(move || {
        let before = machine().pauses;
        script(move || {
            assert_eq!(inner.peek(), Word(3 | WAITERS | SLOW));
            release(inner, 3);
            WaitOutcome::Woken
        });
        assert_eq!(inner.lock(here()), Ok(()));
        assert_eq!(machine().pauses, before);
        release(inner, 1);
        force(outer, Word(0));
    });
    assert_eq!(outer.lock(here()), Ok(()));
    assert_eq!((outer.peek(), unplayed()), (Word::held(1), 0));
}

/// Who joins behind another one leaves the sleepers as they are: the first covers them, or has
/// ceased to.
#[test]
fn who_joins_a_queue_that_is_there_changes_its_end_only() {
    // Its place stays: the next case has a participant and a queue of its own.
    for (number, last, found, joined) in [(1, 3, WAITERS, WAITERS | SLOW), (4, 5, COVERED, COVERED)]
    {
        let lock = lock_with(2 | found | tail(last));
        let joined = 2 | joined | tail(number);
        script_pause(move || assert_eq!(lock.peek(), Word(joined)));
        (0..3).for_each(|_| script_pause(|| {}));
        script_pause(|| pass(1 << 30));
        script(move || {
            force(lock, Word(0));
            WaitOutcome::Interrupted
        });
        as_participant(number, || assert_eq!(lock.lock(here()), Ok(())));
        assert_eq!((unplayed(), sleeps().len()), (0, 1));
    }
}

#[test]
fn the_last_spinner_for_units_restarts_nothing() {
    type Semaphore = TunedSemaphore<Alone, Off, Queues>;
    let semaphore: &'static Semaphore = Box::leak(Box::new(Semaphore::new(0).expect("none")));
    lock_with(0);
    // Somebody sleeps, whom the spinner covers until it leaves.
    for _ in 0..2 {
        set(|machine| machine.restarts = 0);
        script_pause(|| {});
        script_pause(|| pass(1 << 30));
        script(move || {
            assert!(semaphore.peek().waiters());
            assert_eq!(machine().restarts, 0);
            WaitOutcome::Interrupted
        });
        let ended = semaphore.down_how(&INTERRUPTIBLE, here());
        assert_eq!(ended, Err(LockError::Interrupted));
        assert_eq!((machine().restarts, sleeps()[0].channel), (0, Channel::Low));
    }
    assert_eq!(unplayed(), 0);
}

/// Where a policy has no look at the word before it takes the lock, each look is an exchange that
/// changes nothing.
#[test]
fn a_look_by_an_exchange_changes_nothing() {
    type Blind = Without<ReadFirst, Queues>;
    lock_with(0);
    let lock = mutex::<Blind>();
    force(lock, Word(2 | WAITERS));
    set(|machine| machine.exchanges = 0);
    script_pause(move || {
        assert_eq!(lock.peek(), Word(2 | COVERED | PREPARING | tail(1)));
        assert_eq!(machine().exchanges, 2, "it joins, and looks once");
        force(lock, Word(tail(1)));
    });
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!((lock.peek(), machine().exchanges, unplayed()), (Word::held(1), 4, 0));
    // Whoever holds it, and if nobody does.
    type Alike = Without<Queue, Blind>;
    let lock = mutex::<Alike>();
    force(lock, Word::held(1));
    script_pause(move || {
        assert_eq!(lock.peek(), Word::held(1));
        force(lock, Word(0));
    });
    as_participant(3, || assert_eq!(lock.lock(here()), Ok(())));
    assert_eq!((lock.peek(), unplayed()), (Word::held(3), 0));
}

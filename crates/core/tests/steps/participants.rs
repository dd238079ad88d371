//! What the table of participants does, step by step, on a machine with one thread: when a slot
//! may be taken, and what its next thread finds there.

use crate::common::mutexes::{bits::*, force, mutex, release, slot};
use crate::common::{
    Alone, as_participant, here, pass, script, script_exchange32, script_pause, set, unplayed,
};
use lockstead_core::policy::{BackOff, Without};
use lockstead_core::word::Word;
use lockstead_core::ww::{CONTEXTS_PER_THREAD, Class, Context, Scheme};
use lockstead_core::{
    LockError, Off, Platform, Policy, RawMutex, Slot, TableEntry, WaitBounds, WaitOutcome,
};

fn entry(number: u32) -> &'static TableEntry<Alone> {
    Alone::participant(slot(number))
}

#[test]
fn a_slot_belongs_to_one_thread_at_a_time() {
    let entry = entry(3);
    assert_eq!((entry.tid(), entry.lost()), (None, false));
    entry.lose();
    assert!(!entry.lost(), "nobody is there to be left behind");
    assert!(entry.claim(71));
    assert_eq!((entry.tid(), entry.lost()), (Some(71), false));
    assert!(!entry.claim(72));
    assert_eq!(entry.tid(), Some(71));
    entry.rename(73);
    assert_eq!(entry.tid(), Some(73));
    let _ = entry.vacate();
    assert_eq!(entry.tid(), None);
    assert!(entry.claim(74));
    entry.lose();
    assert!(entry.lost());
    assert!(!entry.claim(75), "a lost slot is lost for ever");
    entry.lose();
    assert!(entry.lost());
}

/// Somebody else takes the slot between the look and the exchange.
#[test]
fn a_slot_that_others_take_first_is_left_to_them() {
    let entry = entry(3);
    script_exchange32(move || assert!(entry.claim(71)));
    assert!(!entry.claim(72));
    assert_eq!((entry.tid(), unplayed()), (Some(71), 0));
}

#[test]
fn the_next_thread_of_a_slot_finds_no_contexts_of_the_one_before() {
    let class: &'static Class<Alone> = Box::leak(Box::new(Class::new(Scheme::WaitDie)));
    for _ in 0..2 {
        assert!(entry(3).claim(71));
        as_participant(3, || {
            for _ in 0..CONTEXTS_PER_THREAD {
                assert!(Context::begin(class).is_some());
            }
            assert!(Context::begin(class).is_none());
        });
        let _ = entry(3).vacate();
    }
}

/// Spins for a microsecond, in a queue of any length.
struct Queues;

impl Policy for Queues {
    type Base = Without<BackOff>;
    const SPIN: u64 = 1000;
    const TURNS: u32 = 1;
    const PARTS: u32 = u32::MAX;
    const LOOK: u64 = 0;

    fn joins(_tail: Option<Slot>, _processors: u32) -> bool {
        true
    }
}

type Lock = &'static RawMutex<Alone, Off, Queues>;

/// Has participant 3 queue for the lock behind participant 1, and leave.
fn leaves(lock: Lock) {
    for _ in 0..5 {
        script_pause(|| pass(250));
    }
    script(|| WaitOutcome::Interrupted);
    let how = WaitBounds { interruptible: true, ..WaitBounds::FOREVER };
    as_participant(3, || {
        assert_eq!(lock.lock_how(&how, 0, here()), Err(LockError::Interrupted));
    });
}

#[test]
fn a_slot_to_which_a_queue_refers_is_kept() {
    set(|machine| (machine.tick, machine.processors) = (0, 4));
    for late in [false, true] {
        let lock: Lock = mutex();
        force(lock, Word(2));
        script_pause(move || {
            if late {
                // It is linked between the two looks.
                script_exchange32(move || leaves(lock));
            } else {
                leaves(lock);
            }
            for _ in 0..2 {
                assert!(!entry(3).claim(71));
                assert_eq!(entry(3).tid(), None);
            }
            assert_eq!(lock.peek(), Word(2 | COVERED | PREPARING | tail(3)));
            release(lock, 2);
        });
        assert_eq!(lock.lock(here()), Ok(()));
        // The queue has ended.
        assert!(entry(3).claim(71));
        let _ = entry(3).vacate();
        assert_eq!(unplayed(), 0);
    }
}

//! What the table of participants does, step by step, on a machine with one thread: when a slot
//! may be taken, and what its next thread finds there.

use crate::common::mutexes::{bits::*, force, mutex, release, slot};
use crate::common::{
    Alone, as_participant, here, pass, script, script_exchange32, script_pause, set, unplayed,
    wakes,
};
use lockstead_core::policy::{BackOff, Without};
use lockstead_core::word::Word;
use lockstead_core::ww::{CONTEXTS_PER_THREAD, Class, Context, Scheme, look_again};
use lockstead_core::{
    LockError, Off, Platform, Policy, RawMutex, RawWwMutex, Slot, TableEntry, WaitBounds,
    WaitOutcome,
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

/// Locks may name the thread and its contexts for ever.
#[test]
fn a_slot_whose_thread_ends_with_contexts_goes_to_nobody() {
    let class: &'static Class<Alone> = Box::leak(Box::new(Class::new(Scheme::WaitDie)));
    for (number, ends) in [(3, true), (4, false)] {
        assert!(entry(number).claim(71));
        as_participant(number, || {
            let begun = || Context::begin(class).expect("fewer than it can have");
            let all: [Context<Alone>; CONTEXTS_PER_THREAD] = core::array::from_fn(|_| begun());
            assert!(Context::begin(class).is_none());
            all.iter().skip(usize::from(!ends)).for_each(Context::finish);
        });
        assert_eq!(entry(number).vacate(), !ends);
        assert_eq!((entry(number).lost(), entry(number).tid()), (!ends, None));
        assert_eq!(entry(number).claim(72), ends);
    }
}

#[test]
fn a_slot_whose_thread_ends_with_a_lock_that_it_took_alone_goes_to_nobody() {
    let lock: &'static RawWwMutex<Alone> = Box::leak(Box::default());
    for (number, by_trying) in [(3, false), (4, true)] {
        for releases in [true, false] {
            assert!(entry(number).claim(71));
            as_participant(number, || {
                let taken = by_trying && lock.try_lock(None, here());
                assert!(taken || lock.lock_alone(&WaitBounds::FOREVER, here()) == Ok(()));
                if releases {
                    // SAFETY: taken just now, without a context.
                    unsafe { lock.unlock(None) };
                }
            });
            assert_eq!(entry(number).vacate(), !releases);
        }
        as_participant(5, || {
            assert_eq!(lock.lock_alone(&WaitBounds::FOREVER, here()), Err(LockError::OwnerLost));
        });
        as_participant(number, || {
            // SAFETY: what is left of the lock is this participant's.
            unsafe { lock.unlock(None) };
        });
    }
}

#[test]
fn a_lock_that_is_given_back_hides_no_other_that_is_kept() {
    let locks: &'static [RawWwMutex<Alone>; 2] = Box::leak(Box::default());
    assert!(entry(3).claim(71));
    as_participant(3, || {
        for lock in locks {
            assert_eq!(lock.lock_alone(&WaitBounds::FOREVER, here()), Ok(()));
        }
        // SAFETY: taken just now, without a context.
        unsafe { locks[0].unlock(None) };
    });
    assert!(entry(3).vacate(), "its thread has the other one still");
}

/// A thread has ended, which wakes nobody: whoever may wait for what it holds is woken.
#[test]
fn contexts_that_have_begun_are_made_to_look_again_and_no_others() {
    let class: &'static Class<Alone> = Box::leak(Box::new(Class::new(Scheme::WaitDie)));
    as_participant(3, || {
        look_again::<Alone>(slot(3));
        assert_eq!(wakes(), []);
        let begun = [(); 2].map(|()| Context::begin(class).expect("a place"));
        begun[0].finish();
        look_again::<Alone>(slot(3));
        assert_eq!(wakes().into_iter().map(|wake| wake.1).collect::<Vec<_>>(), [1]);
        begun[1].finish();
        look_again::<Alone>(slot(3));
        assert_eq!(wakes(), []);
    });
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

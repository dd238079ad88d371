//! What a wait/wound mutex does with the word of the mutex that it is made of, step by step, on a
//! machine with one thread: who may take it while contexts wait, and when they are let in and sent
//! away.

use crate::common::mutexes::{bits::*, slot};
use crate::common::{
    Alone, Channel, U64, as_participant, here, lose, machine, script, script_exchange,
    script_restart, set, sleeps, time, told, unplayed, wakes,
};
use lockstead_core::policy::NoSpin;
use lockstead_core::word::{Exclusive, Subject, Word};
use lockstead_core::ww::{Class, Context, ContextPatience, Scheme};
use lockstead_core::{Atomic64, LockError, Ordering, RawWwMutex, WaitBounds, WaitOutcome, WwError};
use std::cell::Cell;
use std::rc::Rc;

type Lock = RawWwMutex<Alone, NoSpin>;

/// Makes a lock on a machine on which no time passes but in sleeps.
fn lock() -> &'static Lock {
    set(|machine| machine.tick = 0);
    Box::leak(Box::new(Lock::new()))
}

/// Returns the word of the mutex that the lock is made of.
fn word(lock: &Lock) -> &U64 {
    // SAFETY: the lock begins with a mutex, and that with its word (`repr(C)`), an atomic; `lock`
    // borrows it.
    unsafe { &*std::ptr::from_ref(lock).cast() }
}

fn peek(lock: &Lock) -> Word {
    Word(word(lock).load(Ordering::Relaxed))
}

/// Returns the ticket of the first context that waits.
fn first(lock: &Lock) -> &U64 {
    // SAFETY: the lock is made of three atomics of eight bytes, the last of which this is
    // (`repr(C)`); `lock` borrows it.
    unsafe { &*std::ptr::from_ref(lock).cast::<U64>().add(2) }
}

fn force(lock: &Lock, value: u64) {
    word(lock).store(value, Ordering::Relaxed);
}

/// Begins a context of participant `number`, the `scheme`'s next one.
fn context(class: &'static Class<Alone>, number: u32) -> &'static Context<Alone> {
    let begun = as_participant(number, || Context::begin(class));
    Box::leak(Box::new(begun.expect("a place")))
}

fn class() -> &'static Class<Alone> {
    Box::leak(Box::new(Class::new(Scheme::WoundWait)))
}

/// Returns words of every flag that stays with a free lock, beside every other.
fn free_words() -> Vec<u64> {
    let flags = [COVERED, HANDOFF | RESERVED, CONTEXTS | RESERVED, 5 * ONE_SLOW, tail(3)];
    let set = |all: u32| (0..flags.len()).filter(move |bit| all >> bit & 1 == 1);
    (0..1 << flags.len()).map(|all| set(all).map(|bit| flags[bit]).sum()).collect()
}

/// Contexts of which none is first any more are sent away by the next holder.
#[test]
fn whoever_takes_the_lock_sends_away_contexts_that_have_gone() {
    let lock = lock();
    for before in free_words() {
        for alone in [false, true] {
            force(lock, before);
            let free = Exclusive::free(Word(before));
            if alone && !free {
                continue;
            }
            let taken = match alone {
                false => lock.try_lock(None, here()),
                true => lock.lock_alone(&WaitBounds::FOREVER, here()) == Ok(()),
            };
            assert_eq!(taken, free, "{:?}", Word(before));
            if free {
                let after = Exclusive::written(Exclusive::take(Word(before), slot(1)), 127);
                let after = if after.contexts() { after.without_contexts() } else { after };
                let after = Exclusive::written(after, 127);
                assert_eq!(peek(lock), after, "{:?}", Word(before));
                // SAFETY: this participant holds the lock, which it has just taken.
                unsafe { lock.unlock(None) };
            }
        }
    }
    assert_eq!((sleeps(), wakes()), (vec![], vec![]));
}

/// The warm path takes the lock by one exchange, which may fail, and leaves it to contexts.
#[test]
fn a_lock_that_was_fought_over_is_taken_by_one_exchange() {
    let lock = lock();
    force(lock, ONE_SLOW);
    script_exchange(move || force(lock, ONE_SLOW | tail(3)));
    set(|machine| machine.exchanges = 0);
    assert!(lock.try_lock(None, here()));
    assert_eq!((peek(lock), machine().exchanges), (Word(1 | ONE_SLOW | tail(3)), 2));
    force(lock, ONE_SLOW);
    script_exchange(move || force(lock, ONE_SLOW | 2));
    set(|machine| machine.exchanges = 0);
    assert!(!lock.try_lock(None, here()));
    assert_eq!((peek(lock), machine().exchanges), (Word(2 | ONE_SLOW), 1));
    // With contexts it costs a second one, which sends them away.
    force(lock, CONTEXTS | RESERVED);
    set(|machine| machine.exchanges = 0);
    assert!(lock.try_lock(None, here()));
    assert_eq!((peek(lock), machine().exchanges), (Word(1 | SLOW), 2));
    // Both are made again.
    force(lock, CONTEXTS | RESERVED);
    script_exchange(move || force(lock, CONTEXTS | RESERVED | COVERED));
    script_exchange(|| {});
    script_exchange(move || force(lock, 1 | CONTEXTS | RESERVED | SLOW));
    assert!(lock.try_lock(None, here()));
    assert_eq!((peek(lock), unplayed()), (Word(1 | SLOW), 0));
    // Somebody else has sent them away by then.
    force(lock, CONTEXTS | RESERVED);
    script_exchange(move || force(lock, ONE_SLOW | tail(3)));
    set(|machine| machine.exchanges = 0);
    assert!(lock.try_lock(None, here()));
    assert_eq!((peek(lock), machine().exchanges), (Word(1 | ONE_SLOW | tail(3)), 2));
    assert_eq!(unplayed(), 0);
}

/// Has a context wait for a lock that participant 2 holds alone, and give up in its first sleep;
/// `meanwhile` comes before.
fn waits(lock: &'static Lock, context: &Context<Alone>, meanwhile: impl FnOnce() + 'static) {
    script(move || {
        meanwhile();
        WaitOutcome::Interrupted
    });
    let patience = ContextPatience { deadline: None, interruptible: true };
    let ended = lock.lock_how(context, &patience, here());
    assert_eq!(ended, Err(WwError::Lock(LockError::Interrupted)));
}

fn held_alone() -> &'static Lock {
    let lock = lock();
    as_participant(2, || assert!(lock.try_lock(None, here())));
    set(|machine| (machine.restarts, machine.exchanges) = (0, 0));
    lock
}

#[test]
fn a_first_that_waits_closes_the_fast_path_and_makes_that_stand() {
    let first = context(class(), 1);
    let lock = held_alone();
    waits(lock, first, move || {
        assert_eq!(peek(lock), Word(2 | WAITERS | CONTEXTS | RESERVED | SLOW));
        assert_eq!(machine().restarts, 1, "its slow unlocks stand by then");
    });
    assert_eq!((wakes(), unplayed()), (vec![], 0));
    // An exchange that fails is made again.
    let lock = held_alone();
    script_exchange(|| {});
    script_exchange(move || force(lock, 2 | UNRELEASED));
    waits(lock, first, move || {
        assert_eq!(peek(lock), Word(2 | UNRELEASED | WAITERS | CONTEXTS | RESERVED | SLOW));
    });
    assert_eq!(unplayed(), 0);
}

#[test]
fn a_first_whose_flag_a_release_has_lost_sets_it_again_and_wakes_a_sleeper() {
    let first = context(class(), 1);
    let lock = held_alone();
    script_restart(move || force(lock, 3 | CONTEXTS));
    waits(lock, first, move || {
        assert_eq!(peek(lock), Word(3 | WAITERS | CONTEXTS | RESERVED | SLOW));
        assert_eq!(machine().restarts, 2);
        let woken: Vec<u32> = wakes().into_iter().map(|it| it.1).collect();
        assert_eq!(woken, [1], "its *waiters* may have gone with it");
    });
    // Gone, because a holder has looked.
    let lock = held_alone();
    script_restart(move || force(lock, 3));
    waits(lock, first, move || {
        assert_eq!(peek(lock), Word(3 | WAITERS | SLOW));
        assert_eq!((machine().restarts, wakes()), (2, vec![]), "once for each flag");
    });
    assert_eq!(unplayed(), 0);
}

/// A first that comes between a holder's look and its exchange is let in by that holder.
#[test]
fn a_holder_that_sends_contexts_away_looks_again() {
    let older = context(class(), 3);
    let lock = held_alone();
    let ticket = Rc::new(Cell::new(0));
    let seen = Rc::clone(&ticket);
    as_participant(3, || waits(lock, older, move || seen.set(first(lock).load(Ordering::Relaxed))));
    assert_ne!(ticket.get(), 0);
    for comes in [false, true] {
        force(lock, CONTEXTS | RESERVED);
        first(lock).store(0, Ordering::Relaxed);
        script_exchange(|| {});
        let ticket = ticket.get();
        script_exchange(move || first(lock).store(u64::from(comes) * ticket, Ordering::Relaxed));
        assert!(lock.try_lock(None, here()));
        assert_eq!(unplayed(), 0);
        let kept = if comes { CONTEXTS | RESERVED } else { 0 };
        assert_eq!(peek(lock), Word(1 | SLOW | kept));
    }
}

/// One without a context that finds the lock free takes it, and nobody is told of a wait.
#[test]
fn one_without_a_context_does_not_wait_for_a_free_lock() {
    let lock = lock();
    set(|machine| machine.observed = true);
    for before in [CONTEXTS | RESERVED, 2] {
        force(lock, before);
        if before == 2 {
            script(move || {
                force(lock, ONE_SLOW);
                WaitOutcome::Woken
            });
        }
        assert_eq!(lock.lock_alone(&WaitBounds::FOREVER, here()), Ok(()));
        let waits = told().len();
        assert_eq!(waits, if before == 2 { 2 } else { 0 }, "{before:x}");
        // SAFETY: this participant has just taken it.
        unsafe { lock.unlock(None) };
    }
    assert_eq!(unplayed(), 0);
}

/// Nobody tells one without a context that the holder's thread has ended: it looks every second, until
/// its own time is over.
#[test]
fn one_without_a_context_looks_again_every_second() {
    const SECOND: u64 = 1_000_000_000;
    for (deadline, looks) in [
        (None, vec![SECOND, 2 * SECOND, 3 * SECOND]),
        (Some(SECOND * 5 / 2), vec![SECOND, 2 * SECOND, SECOND * 5 / 2]),
        (Some(SECOND - 1), vec![SECOND - 1]),
    ] {
        let lock = lock();
        force(lock, 2);
        let began = time();
        for _ in &looks {
            // It lets others barge past for a while, and then has the lock reserved for itself.
            script(|| WaitOutcome::TimedOut);
            script(|| WaitOutcome::TimedOut);
        }
        if deadline.is_none() {
            script(move || {
                force(lock, ONE_SLOW);
                WaitOutcome::Woken
            });
        }
        let until = deadline.map(|after| began.after(after));
        let ended = lock.lock_alone(&WaitBounds { deadline: until, ..WaitBounds::FOREVER }, here());
        assert_eq!(ended, if deadline.is_some() { Err(LockError::TimedOut) } else { Ok(()) });
        let reserved = sleeps().into_iter().filter(|it| it.channel == Channel::HandOff);
        let expected: Vec<_> = looks.into_iter().map(|after| Some(began.after(after))).collect();
        assert_eq!((reserved.map(|it| it.until).collect::<Vec<_>>(), unplayed()), (expected, 0));
    }
}

/// A context of wait-die that holds something backs off before an older holder, but not before one
/// whose thread has ended: that the lock is lost is an error of its own, in either scheme.
#[test]
fn a_context_does_not_back_off_before_a_holder_that_has_ended() {
    let deadlock = WwError::Deadlock;
    let [lost, interrupted] = [LockError::OwnerLost, LockError::Interrupted].map(WwError::Lock);
    for (holder, scheme, ends, expected) in [
        (2, Scheme::WaitDie, false, deadlock),
        (3, Scheme::WaitDie, true, lost),
        (4, Scheme::WoundWait, false, interrupted),
        (5, Scheme::WoundWait, true, lost),
    ] {
        let class: &'static Class<Alone> = Box::leak(Box::new(Class::new(scheme)));
        let [older, me] = [holder, 1].map(|number| context(class, number));
        let (own, lock) = (lock(), lock());
        assert_eq!(own.lock(me, here()), Ok(()));
        as_participant(holder, || assert_eq!(lock.lock(older, here()), Ok(())));
        if ends {
            lose(holder);
        }
        if expected == interrupted {
            script(|| WaitOutcome::Interrupted);
        }
        let patience = ContextPatience { deadline: None, interruptible: true };
        assert_eq!(lock.lock_how(me, &patience, here()), Err(expected), "{scheme:?}, ends: {ends}");
        assert_eq!(unplayed(), 0);
        me.finish();
    }
}

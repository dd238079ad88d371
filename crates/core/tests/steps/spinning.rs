//! What a spinner does step by step, on a machine with one thread: whether and how it joins the
//! queue, how often it looks at the lock, when it leaves, and whom others take it for.

use crate::common::mutexes::{bits::*, change, force, mutex, release};
use crate::common::{
    Alone, U32, as_participant, here, lose, machine, pass, script, script_exchange, script_pause,
    set, sleeps, time, unplayed,
};
use lockstead_core::policy::{BackOff, Cover, Queue, Without};
use lockstead_core::word::Word;
use lockstead_core::{
    Atomic32, LockError, Off, OnCpu, Ordering, Policy, RawMutex, TunedSemaphore, WaitBounds,
    WaitOutcome,
};
use std::cell::RefCell;

type Lock<Y> = &'static RawMutex<Alone, Off, Y>;

/// Spins for a microsecond, looks at the clock after each four turns, and at the lock after each.
struct Spins;

impl Policy for Spins {
    type Base = Without<BackOff>;
    const SPIN: u64 = 1000;
    const ASK: u64 = 200;
    const TURNS: u32 = 4;
    const GAP: u64 = 300;
    const STALE: u64 = 500;
    const LOOK: u64 = 0;
    const PARTS: u32 = u32::MAX;
    const FIRST: u32 = 1;
}

/// Makes a lock with this word on a machine with two processors, on which no time passes but in
/// pauses and sleeps that a test says.
fn lock_with<Y: Policy>(word: u64) -> Lock<Y> {
    set(|machine| (machine.tick, machine.processors, machine.pauses) = (0, 2, 0));
    let lock = mutex();
    force(lock, Word(word));
    lock
}

/// Lets so much time pass in each of so many pauses.
fn pauses(count: u32, nanoseconds: u64) {
    (0..count).for_each(|_| script_pause(move || pass(nanoseconds)));
}

/// Acquires, and sleeps if it has to: then the lock is free. Returns the pauses before that.
fn spins_for<Y: Policy>(lock: Lock<Y>, how: &WaitBounds<'_, Alone>) -> u32 {
    set(|machine| machine.pauses = 0);
    let spun = std::rc::Rc::new(std::cell::Cell::new(None));
    let at_sleep = std::rc::Rc::clone(&spun);
    script(move || {
        at_sleep.set(Some(machine().pauses));
        force(lock, Word(0));
        WaitOutcome::Interrupted
    });
    let _ = lock.lock_how(how, 0, here());
    spun.get().expect("it sleeps when it has spun")
}

fn patiently<Y: Policy>(lock: Lock<Y>) -> u32 {
    let spun = spins_for(lock, &WaitBounds::FOREVER);
    assert_eq!(unplayed(), 0);
    assert!(lock.is_mine());
    spun
}

#[test]
fn a_spinner_joins_covers_the_sleepers_and_takes_the_lock_as_it_comes_free() {
    for (word, joined, taken) in [
        (2, 2 | tail(1), 1),
        (2 | WAITERS, 2 | COVERED | PREPARING | tail(1), 1 | WAITERS | SLOW),
        (2 | WAITERS | SLOW, 2 | COVERED | PREPARING | SLOW | tail(1), 1 | WAITERS | SLOW),
    ] {
        let lock = lock_with::<Spins>(word);
        script_pause(move || assert_eq!(lock.peek(), Word(joined)));
        script_pause(move || release(lock, 2));
        assert_eq!(lock.lock(here()), Ok(()));
        assert_eq!((lock.peek(), machine().pauses, unplayed()), (Word(taken), 2, 0));
        assert_eq!(sleeps(), []);
    }
}

#[test]
fn without_the_cover_a_release_wakes_sleepers_whoever_spins() {
    type Uncovered = Without<Cover, Spins>;
    for (word, joined) in [
        (2 | WAITERS, 2 | WAITERS | SLOW | tail(1)),
        // The hand-off waiter covers them all the same.
        (2 | COVERED | REGISTERED, 2 | COVERED | REGISTERED | tail(1)),
    ] {
        let lock = lock_with::<Uncovered>(word);
        script_pause(move || {
            assert_eq!(lock.peek(), Word(joined));
            force(lock, Word(tail(1)));
        });
        assert_eq!(lock.lock(here()), Ok(()));
        assert_eq!((lock.peek(), unplayed()), (Word::held(1), 0));
    }
    // Nor does a sleeper count on the queue.
    let lock = lock_with::<Uncovered>(2 | tail(3));
    script(move || {
        assert_eq!(lock.peek(), Word(2 | WAITERS | SLOW | tail(3)));
        force(lock, Word(0));
        WaitOutcome::Interrupted
    });
    set(|machine| machine.processors = 1);
    assert_eq!(lock.lock(here()), Ok(()));
}

#[test]
fn without_the_queue_spinners_leave_no_trace_and_need_a_second_processor() {
    type Unqueued = Without<Queue, Spins>;
    let lock = lock_with::<Unqueued>(2 | WAITERS);
    script_pause(move || {
        assert_eq!(lock.peek(), Word(2 | WAITERS));
        release(lock, 2);
    });
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!((lock.peek(), unplayed()), (Word::held(1), 0));
    let lock = lock_with::<Unqueued>(2);
    set(|machine| machine.processors = 1);
    assert_eq!(patiently(lock), 0);
}

#[test]
fn a_second_spinner_stands_beside_the_queue_and_leaves_it_alone() {
    let lock = lock_with::<Spins>(2 | COVERED | tail(3));
    script_pause(move || {
        assert_eq!(lock.peek(), Word(2 | COVERED | tail(3)));
        release(lock, 2);
        // The exchange by which it takes the lock fails first.
        script_exchange(move || change(lock, |word| Word(word.0 | PREPARING)));
    });
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!(lock.peek(), Word(1 | COVERED | PREPARING | tail(3)));
    assert_eq!((unplayed(), sleeps().len()), (0, 0));
    // With one processor it does not spin at all.
    let lock = lock_with::<Spins>(2 | tail(3));
    set(|machine| machine.processors = 1);
    assert_eq!(patiently(lock), 0);
    // Nor for units, of which nobody can be asked whether he runs.
    type Semaphore = TunedSemaphore<Alone, Off, Spins>;
    let semaphore: &'static Semaphore = Box::leak(Box::new(Semaphore::new(0).expect("none")));
    set(|machine| (machine.pauses, machine.processors) = (0, 2));
    script_pause(move || {
        // One spins in the queue; another one finds it taken.
        as_participant(4, || {
            let how = WaitBounds { interruptible: true, ..WaitBounds::FOREVER };
            script(|| WaitOutcome::Interrupted);
            assert_eq!(semaphore.down_how(&how, here()), Err(LockError::Interrupted));
        });
        assert_eq!(machine().pauses, 1);
        semaphore.up().expect("room");
    });
    semaphore.down(here());
    assert_eq!(unplayed(), 0);
}

#[test]
fn a_queue_that_fork_left_behind_is_no_queue() {
    lose(3);
    let lock = lock_with::<Spins>(2 | COVERED | PREPARING | tail(3));
    script_pause(move || {
        assert_eq!(lock.peek(), Word(2 | COVERED | PREPARING | tail(1)));
        release(lock, 2);
    });
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!((lock.peek(), unplayed(), sleeps().len()), (Word(1 | WAITERS | SLOW), 0, 0));
    // Those that did not trust it any more are covered again.
    let lock = lock_with::<Spins>(2 | WAITERS | tail(3));
    script_pause(move || {
        assert_eq!(lock.peek(), Word(2 | COVERED | PREPARING | tail(1)));
        release(lock, 2);
    });
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!(unplayed(), 0);
    // Nor does a sleeper count on it.
    let lock = lock_with::<Spins>(2 | tail(3));
    set(|machine| machine.processors = 1);
    script(move || {
        assert_eq!(lock.peek(), Word(2 | WAITERS | SLOW | tail(3)));
        force(lock, Word(0));
        WaitOutcome::Interrupted
    });
    assert_eq!(lock.lock(here()), Ok(()));
}

#[test]
fn a_spinner_that_cannot_join_keeps_away_for_a_while() {
    let lock = lock_with::<Spins>(2);
    set(|machine| machine.exchanges = 0);
    let fails = move || change(lock, |word| Word(word.0 ^ UNRELEASED));
    let noted = move |pauses: u32| {
        move || {
            assert_eq!(machine().pauses, pauses);
            fails();
        }
    };
    (0..5).for_each(|_| script_exchange(noted(0)));
    script_exchange(noted(6));
    script_exchange(move || {
        assert_eq!(machine().pauses, 12);
        assert_eq!(lock.peek(), Word::held(2));
    });
    // In the last of these pauses the lock is released.
    (0..17).for_each(|_| script_pause(|| {}));
    (0..1).for_each(|_| script_pause(move || release(lock, 2)));
    script_exchange(|| {});
    script_exchange(|| {});
    let _ = lock.lock(here());
    assert_eq!(lock.peek().subject(), 1);
}

#[test]
fn a_spinner_that_cannot_join_looks_anew_after_its_pause() {
    let lock = lock_with::<Spins>(2);
    set(|machine| machine.exchanges = 0);
    for _ in 0..5 {
        script_exchange(move || change(lock, |word| Word(word.0 ^ UNRELEASED)));
    }
    script_pause(move || force(lock, Word(tail(4))));
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!((machine().exchanges, lock.peek()), (6, Word(1 | tail(4))));
    assert_eq!((machine().pauses, unplayed()), (6, 0));
}

#[test]
fn a_spinner_that_cannot_join_gives_up_in_time() {
    let token: &U32 = Box::leak(Box::new(U32::ZERO));
    let how = WaitBounds { cancel: Some(token), ..WaitBounds::FOREVER };
    let lock = lock_with::<Spins>(2);
    set(|machine| machine.exchanges = 0);
    for _ in 0..5 {
        script_exchange(move || change(lock, |word| Word(word.0 ^ UNRELEASED)));
    }
    script_pause(|| token.store(1, Ordering::Relaxed));
    assert_eq!(lock.lock_how(&how, 0, here()), Err(LockError::Cancelled));
    assert_eq!((machine().exchanges, machine().pauses), (5, 6));
    assert_eq!(lock.peek(), Word(2 | UNRELEASED));
}

#[test]
fn a_lock_that_comes_free_as_a_spinner_joins_is_taken_at_once() {
    // What the first exchange finds, and the second; then the lock, and the exchanges in all.
    for (found, next, taken, exchanges) in [
        (2 * ONE_SLOW, None, 1 | ONE_SLOW, 2),
        (ONE_SLOW, Some(3 * ONE_SLOW), 1 | (2 * ONE_SLOW), 3),
        (ONE_SLOW, Some(ONE_SLOW | tail(4)), 1 | ONE_SLOW | tail(4), 3),
    ] {
        let lock = lock_with::<Spins>(2);
        set(|machine| machine.exchanges = 0);
        script_exchange(move || force(lock, Word(found)));
        if let Some(next) = next {
            script_exchange(move || force(lock, Word(next)));
        }
        assert_eq!(lock.lock(here()), Ok(()));
        assert_eq!((machine().exchanges, lock.peek()), (exchanges, Word(taken)));
        assert_eq!((machine().pauses, unplayed()), (0, 0));
    }
}

#[test]
fn a_spinner_leaves_when_its_time_is_over() {
    // It looks at the clock after 4, 8, … pauses, for the first time then. Its time is over at the
    // fifth look, which comes 1000 ns after the first.
    let lock = lock_with::<Spins>(2);
    pauses(4, 0);
    pauses(12, 62);
    pauses(3, 64);
    pauses(1, 64);
    assert_eq!(patiently(lock), 20);
    // A nanosecond less, and it goes on to the next look.
    let lock = lock_with::<Spins>(2);
    pauses(4, 0);
    pauses(12, 62);
    pauses(3, 64);
    pauses(1, 63);
    pauses(4, 10);
    assert_eq!(patiently(lock), 24);
}

#[test]
fn a_spinner_that_was_preempted_leaves() {
    for (gap, spun) in [(Spins::GAP, 12), (Spins::GAP + 1, 8)] {
        let lock = lock_with::<Spins>(2);
        pauses(7, 0);
        pauses(1, gap);
        if spun == 12 {
            pauses(3, 0);
            pauses(1, Spins::GAP + 1);
        }
        assert_eq!(patiently(lock), spun);
    }
}

#[test]
fn a_spinner_leaves_at_its_deadline_and_when_cancelled() {
    for (late, spun) in [(0, 8), (1, 12)] {
        let lock = lock_with::<Spins>(2);
        let deadline = Some(time().after(100 + late));
        let how = WaitBounds { deadline, ..WaitBounds::FOREVER };
        pauses(7, 0);
        pauses(1, 100);
        if late == 1 {
            pauses(4, 1);
        }
        assert_eq!(lock.lock_how(&how, 0, here()), Err(LockError::TimedOut));
        assert_eq!((machine().pauses, unplayed()), (spun, 0), "{late}");
        assert_eq!(sleeps(), []);
    }
    let token: &U32 = Box::leak(Box::new(U32::ZERO));
    let how = WaitBounds { cancel: Some(token), ..WaitBounds::FOREVER };
    let lock = lock_with::<Spins>(2);
    pauses(4, 0);
    script_pause(|| token.store(1, Ordering::Relaxed));
    assert_eq!(lock.lock_how(&how, 0, here()), Err(LockError::Cancelled));
    assert_eq!((machine().pauses, unplayed()), (8, 0));
}

#[test]
fn a_spinner_asks_for_the_owner_when_due_and_leaves_if_that_does_not_run() {
    for on_cpu in [OnCpu::No, OnCpu::Yes, OnCpu::Unknown] {
        // If it is not due by a nanosecond, it asks at the next look.
        for (after, more) in [(Spins::ASK, 0), (Spins::ASK - 1, 4)] {
            let lock = lock_with::<Spins>(2);
            set(|machine| (machine.on_cpu, machine.asked) = (on_cpu, 0));
            pauses(7, 0);
            pauses(1, after);
            pauses(more, 1);
            let runs = on_cpu != OnCpu::No;
            if runs {
                // It asks once more, and then it was preempted.
                pauses(7, 0);
                pauses(1, Spins::GAP + 1);
            }
            assert_eq!(patiently(lock), 8 + more + if runs { 8 } else { 0 }, "{on_cpu:?}");
            assert_eq!(machine().asked, 1 + u32::from(runs), "{on_cpu:?} {after}");
        }
    }
}

/// Looks at the lock less and less often.
struct Grows;

impl Policy for Grows {
    type Base = Spins;
    const TURNS: u32 = 40;
    const PARTS: u32 = 2;
}

/// The same, at most every fifty nanoseconds.
struct Paced;

impl Policy for Paced {
    type Base = Spins;
    const TURNS: u32 = 16;
    const PARTS: u32 = 2;
    const LOOK: u64 = 50;
    const FIRST: u32 = 2;
}

/// The same, as often as it likes, or at each turn.
struct Paces<const LOOK: u64, const TURNS: u32>;

impl<const LOOK: u64, const TURNS: u32> Policy for Paces<LOOK, TURNS> {
    type Base = Spins;
    const SPIN: u64 = 1 << 40;
    const ASK: u64 = 1 << 40;
    const GAP: u64 = 1000;
    const TURNS: u32 = TURNS;
    const PARTS: u32 = 1;
    const LOOK: u64 = LOOK;
}

thread_local! {
    static LOOKS: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// Returns the numbers of pauses between two looks at the word, in the first `count` pauses, each
/// of which takes so long.
fn distances<Y: Policy>(count: u32, nanoseconds: u64) -> Vec<u32> {
    let lock = lock_with::<Y>(2);
    LOOKS.take();
    for _ in 0..count {
        script_pause(move || {
            pass(nanoseconds);
            LOOKS.with_borrow_mut(|looks| looks.push(machine().looks));
        });
    }
    script_pause(move || release(lock, 2));
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!(unplayed(), 0);
    LOOKS.take().chunk_by(|a, b| a == b).map(|same| same.len() as u32).collect()
}

#[test]
fn a_spinner_looks_less_often_the_longer_it_has_spun() {
    assert_eq!(distances::<Spins>(5, 0), [1; 5]);
    // A look comes after a half of what it had spun before; never after more than 40 turns.
    let grown = [1, 1, 1, 1, 2, 3, 4, 6, 9, 14, 21, 31, 40, 40];
    assert_eq!(distances::<Grows>(grown.iter().sum(), 0), grown);
    // The second look at the clock, after 42 turns, knows the pace for the turns after the next.
    let paced = [2, 2, 2, 3, 4, 6, 9, 14, 16, 5, 5, 5, 5];
    assert_eq!(distances::<Paced>(paced.iter().sum(), 10), paced);
    // Never after more than 256 turns once it knows its pace, and never after none.
    let far = [1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 256, 256];
    assert_eq!(distances::<Paces<1000, 300>>(far.iter().sum(), 1), far);
    let near = [1, 1, 2, 4, 4, 1, 1, 1];
    assert_eq!(distances::<Paces<1, 4>>(near.iter().sum(), 50), near);
}

/// Has a spinner look at the clock, then another one sleep `after` that. Returns whether that one
/// counts on the spinner.
fn counts_on_a_spinner(after: u64) -> bool {
    let lock = lock_with::<Spins>(2);
    let trusts = std::rc::Rc::new(std::cell::Cell::new(false));
    let seen = std::rc::Rc::clone(&trusts);
    pauses(4, 0);
    script_pause(move || {
        pass(after);
        set(|machine| machine.processors = 1);
        script(move || {
            seen.set(lock.peek().covered());
            WaitOutcome::Interrupted
        });
        as_participant(4, || {
            let how = WaitBounds { interruptible: true, ..WaitBounds::FOREVER };
            assert_eq!(lock.lock_how(&how, 0, here()), Err(LockError::Interrupted));
        });
        set(|machine| machine.processors = 2);
        force(lock, Word(tail(1)));
    });
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!(unplayed(), 0);
    trusts.get()
}

#[test]
fn a_sleeper_counts_on_a_spinner_that_was_seen_to_run_lately() {
    assert!(counts_on_a_spinner(0));
    assert!(counts_on_a_spinner(Spins::STALE));
    assert!(!counts_on_a_spinner(Spins::STALE + 1));
    // A new one counts as running before it has looked at the clock, whatever it was before.
    let lock = lock_with::<Spins>(2);
    pass(1_000_000);
    script_pause(move || {
        script(move || {
            assert_eq!(lock.peek(), Word(2 | COVERED | PREPARING | tail(1)));
            WaitOutcome::Interrupted
        });
        set(|machine| machine.processors = 1);
        as_participant(4, || {
            let how = WaitBounds { interruptible: true, ..WaitBounds::FOREVER };
            assert_eq!(lock.lock_how(&how, 0, here()), Err(LockError::Interrupted));
        });
        force(lock, Word(tail(1)));
    });
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!(unplayed(), 0);
}

/// The last spinner leaves the sleepers to the owner. The flag that it sets for them it makes to
/// stand, unless a flag of another one's does.
#[test]
fn the_last_spinner_that_leaves_answers_for_the_sleepers() {
    for (word, restarts) in [(2 | WAITERS, 1), (2 | WAITERS | SLOW, 0), (2 | SLOW, 0)] {
        let lock = lock_with::<Spins>(word);
        set(|machine| machine.restarts = 0);
        pauses(7, 0);
        pauses(1, Spins::GAP + 1);
        script(move || {
            assert_eq!(lock.peek(), Word(2 | WAITERS | SLOW));
            assert_eq!(machine().restarts, restarts, "{:?}", Word(word));
            force(lock, Word(0));
            WaitOutcome::Interrupted
        });
        assert_eq!(lock.lock(here()), Ok(()));
        assert_eq!((unplayed(), lock.peek()), (0, Word::held(1)));
    }
    // One that gives up at once does so first.
    for (word, left, restarts) in [
        (2 | WAITERS, 2 | WAITERS | SLOW, 1),
        (2 | WAITERS | SLOW, 2 | WAITERS | SLOW, 0),
        (2, 2, 0),
    ] {
        let lock = lock_with::<Spins>(word);
        let token: &U32 = Box::leak(Box::new(U32::ZERO));
        let how = WaitBounds { cancel: Some(token), ..WaitBounds::FOREVER };
        set(|machine| machine.restarts = 0);
        script_pause(|| token.store(1, Ordering::Relaxed));
        assert_eq!(lock.lock_how(&how, 0, here()), Err(LockError::Cancelled));
        assert_eq!((lock.peek(), machine().restarts), (Word(left), restarts), "{:?}", Word(word));
    }
}

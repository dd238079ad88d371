//! How threads let others have their processor, step by step, on a machine with one thread: which
//! do, how often, and what they write before.

use crate::common::mutexes::{bits::*, force, mutex, release};
use crate::common::{
    Alone, Channel, here, machine, pass, script, script_exchange, script_pause, set, sleeps,
    unplayed,
};
use lockstead_core::policy::{Fair, Spinning, Without};
use lockstead_core::word::Word;
use lockstead_core::{Nanos, Off, Policy, RawMutex, Standard, TunedSemaphore, WaitOutcome};

/// The policy of short waits, without spinning.
type Polite = Without<Spinning, Fair>;

type Lock<Y> = &'static RawMutex<Alone, Off, Y>;

/// Makes a lock that participant 2 holds, on a machine on which no time passes by itself.
fn held<Y: Policy>() -> Lock<Y> {
    set(|machine| machine.tick = 0);
    let lock = mutex();
    force(lock, Word::held(2));
    lock
}

/// Says that the next sleep ends by a wake-up, with this word in the lock.
fn then<Y: Policy>(lock: Lock<Y>, word: u64) {
    script(move || {
        force(lock, Word(word));
        WaitOutcome::Woken
    });
}

/// Acquires the lock, and returns how often the waiter gave way meanwhile.
fn acquired<Y: Policy>(lock: Lock<Y>) -> u32 {
    let before = machine().gave_way;
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!((unplayed(), machine().asleep), (0, 0));
    machine().gave_way - before
}

#[test]
fn a_waiter_gives_way_so_many_times_before_each_sleep() {
    let lock = held::<Polite>();
    script(move || {
        assert_eq!(machine().gave_way, Polite::YIELDS);
        assert_eq!(lock.peek(), Word(2 | WAITERS | UNRELEASED | SLOW));
        force(lock, Word(3));
        WaitOutcome::Woken
    });
    then(lock, 0);
    assert_eq!(acquired(lock), 2 * Polite::YIELDS);
    let slept: Vec<_> = sleeps().into_iter().map(|it| it.channel).collect();
    assert_eq!(slept, [Channel::Low; 2]);
}

#[test]
fn a_waiter_takes_the_lock_as_soon_as_it_sees_it_free() {
    let lock = held::<Polite>();
    script_pause(|| {});
    script_pause(move || force(lock, Word(0)));
    assert_eq!(acquired(lock), 2);
    assert!(sleeps().is_empty());
}

/// The release that finds the mark asks whether its thread should give way.
#[test]
fn a_waiter_marks_the_lock_before_it_gives_way_again() {
    let lock = held::<Polite>();
    script_pause(move || assert_eq!((lock.peek(), machine().exchanges), (Word::held(2), 0)));
    script_pause(move || assert_eq!((lock.peek(), machine().exchanges), (Word(2 | UNRELEASED), 1)));
    script_pause(move || {
        assert_eq!(machine().exchanges, 1, "the mark stands");
        force(lock, Word(3));
    });
    script_pause(move || {
        assert_eq!(lock.peek(), Word(3 | UNRELEASED));
        force(lock, Word(0));
    });
    assert_eq!(acquired(lock), 4);
}

#[test]
fn a_waiter_whose_mark_fails_looks_again_at_once() {
    let lock = held::<Polite>();
    script_exchange(move || force(lock, Word(0)));
    assert_eq!(acquired(lock), 1);
}

/// Two switches take 1.5 µs at least: a processor that is back sooner is wanted by nobody.
#[test]
fn a_waiter_whose_processor_nobody_wants_sleeps() {
    for (others, times) in [(0, 1), (1_499, 1), (1_500, Polite::YIELDS)] {
        let lock = held::<Polite>();
        set(|machine| machine.others = others);
        script(move || {
            assert_eq!(lock.peek().unreleased(), times > 1);
            force(lock, Word(0));
            WaitOutcome::Woken
        });
        assert_eq!(acquired(lock), times);
    }
}

#[test]
fn nobody_gives_way_past_the_bound() {
    let lock = held::<Polite>();
    script_pause(|| pass(Polite::BOUND + Polite::SHARE - machine().others));
    then(lock, 0);
    assert_eq!(acquired(lock), 1);
    assert_eq!(sleeps()[0].channel, Channel::HandOff);
}

/// Another one is registered already: who is past the bound sleeps, and asks again later.
#[test]
fn nobody_gives_way_past_the_bound_behind_another_one() {
    let lock = held::<Polite>();
    script_pause(move || {
        pass(Polite::BOUND + Polite::SHARE - machine().others);
        force(lock, Word(2 | REGISTERED));
    });
    then(lock, 0);
    assert_eq!(acquired(lock), 1);
    assert_eq!(sleeps()[0].channel, Channel::Low);
}

#[test]
fn nobody_gives_way_to_one_for_whom_a_free_lock_is_reserved() {
    let lock = held::<Polite>();
    force(lock, Word(RESERVED | HANDOFF));
    then(lock, 0);
    assert_eq!(acquired(lock), 0);
}

/// Nobody else backs off by this policy: a sleep that is refused would be asked for again and again.
#[test]
fn a_waiter_that_is_refused_a_sleep_backs_off_for_the_same_time_each_time() {
    let lock = held::<Polite>();
    set(|machine| (machine.others, machine.processors) = (0, 3));
    for owner in [3, 5] {
        script(move || {
            force(lock, Word(owner));
            WaitOutcome::Changed
        });
        script(move || {
            assert_eq!(lock.peek(), Word(owner | UNRELEASED));
            force(lock, Word(owner + 1));
            WaitOutcome::TimedOut
        });
    }
    then(lock, 0);
    assert_eq!(lock.lock(here()), Ok(()));
    let [_, first, _, second, last] = sleeps()[..] else { panic!() };
    assert_eq!([first, second].map(|it| it.channel), [Channel::Sequence; 2]);
    assert_eq!((last.channel, unplayed()), (Channel::Low, 0));
    let nap = Polite::BACKOFF_SLEEP;
    assert_eq!((first.until, second.until), (Some(Nanos(1 + nap)), Some(Nanos(1 + 2 * nap))));
}

/// Has participant 1 acquire a lock that comes free in its sleep, where only batches have it give
/// way. Returns how often it did.
fn contended() -> u32 {
    type Batched = Without<lockstead_core::policy::Yields, Polite>;
    let lock = held::<Batched>();
    then(lock, 0);
    let gave_way = acquired(lock);
    release(lock, 1);
    gave_way
}

#[test]
fn a_thread_gives_way_after_each_batch() {
    // A thread that has not waited yet has been there since the machine started.
    pass(Fair::BATCH - 1);
    assert_eq!(contended(), 0);
    pass(Fair::BATCH);
    assert_eq!(contended(), 0, "a batch began when the sleep ended");
    pass(Fair::BATCH + 1);
    assert_eq!(contended(), 1);
    assert_eq!(contended(), 0);
}

/// Has participant 1 release a lock with this in its word beside itself. Returns how often it gave
/// way.
fn released<Y: Policy>(flags: u64) -> u32 {
    let lock = mutex::<Y>();
    force(lock, Word(1 | flags));
    let before = machine().gave_way;
    release(lock, 1);
    machine().gave_way - before
}

#[test]
fn a_batch_ends_with_the_release_of_a_lock_for_which_others_wait() {
    set(|machine| machine.tick = 0);
    pass(Fair::BATCH);
    assert_eq!(released::<Fair>(UNRELEASED), 1);
    for waits in [UNRELEASED, WAITERS, HANDOFF_ASLEEP | REGISTERED] {
        pass(Fair::BATCH);
        assert_eq!(released::<Fair>(waits), 0);
        pass(1);
        assert_eq!(released::<Fair>(0), 0, "nobody waits");
        assert_eq!(released::<Fair>(SLOW), 0, "nobody waits");
        assert_eq!(released::<Standard>(waits), 0, "it takes no turns");
        assert_eq!(released::<Fair>(waits), 1);
        assert_eq!(released::<Fair>(waits), 0, "a batch has begun");
    }
}

/// Where nobody wants its processor a thread asks more rarely.
#[test]
fn the_batch_after_a_call_in_vain_is_four_times_as_long() {
    set(|machine| (machine.tick, machine.others) = (0, 0));
    pass(Fair::BATCH);
    assert_eq!(released::<Fair>(UNRELEASED), 1);
    pass(4 * Fair::BATCH);
    assert_eq!(released::<Fair>(UNRELEASED), 0);
    pass(1);
    assert_eq!(released::<Fair>(UNRELEASED), 1);
}

/// The batch begins when the thread has a processor again, not when it gave one up.
#[test]
fn a_batch_begins_after_others_had_the_processor() {
    set(|machine| machine.tick = 0);
    pass(Fair::BATCH);
    script_pause(|| pass(1_000_000));
    assert_eq!(released::<Fair>(UNRELEASED), 1);
    pass(Fair::BATCH);
    assert_eq!(released::<Fair>(UNRELEASED), 0);
    // The same of a waiter that gives way.
    let lock = held::<Polite>();
    pass(1);
    script_pause(|| pass(1_000));
    script_pause(move || {
        pass(1_000);
        force(lock, Word(0));
    });
    assert_eq!(acquired(lock), 2, "the first for its batch");
    pass(Fair::BATCH);
    assert_eq!(released::<Fair>(UNRELEASED), 0);
    pass(1);
    assert_eq!(released::<Fair>(UNRELEASED), 1);
}

/// A release with which the platform has given back time that it was granted is a turn's end.
#[test]
fn who_gave_its_processor_back_with_the_release_gives_no_way_beside() {
    set(|machine| (machine.tick, machine.gives_back) = (0, true));
    pass(Fair::BATCH + 1);
    assert_eq!(released::<Fair>(UNRELEASED), 0);
    set(|machine| machine.gives_back = false);
    pass(Fair::BATCH);
    assert_eq!(released::<Fair>(UNRELEASED), 0, "a batch began then");
    pass(1);
    assert_eq!(released::<Fair>(UNRELEASED), 1);
}

#[test]
fn the_policy_for_throughput_gives_no_way() {
    let lock = held::<Without<Spinning>>();
    pass(Fair::BATCH + Fair::BOUND);
    then(lock, 0);
    assert_eq!(acquired(lock), 0);
}

/// A semaphore's word has no room for the mark: there is no owner whose turn ends.
#[test]
fn who_waits_for_a_permit_gives_way_and_marks_nothing() {
    set(|machine| machine.tick = 0);
    let semaphore: &'static TunedSemaphore<Alone, Off, Polite> =
        Box::leak(Box::new(TunedSemaphore::new(0).expect("no permit is possible")));
    script(move || {
        assert_eq!(semaphore.peek().0 & UNRELEASED, 0);
        semaphore.up().expect("one permit");
        WaitOutcome::Woken
    });
    semaphore.down(here());
    assert_eq!((machine().gave_way, unplayed()), (Polite::YIELDS, 0));
}

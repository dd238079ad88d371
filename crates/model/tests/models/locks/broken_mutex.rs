//! The mutex and the spin queue with one step broken: the models notice.

use crate::common::{Insists, Leaves, LeavesBeside, Pairs, Sleeps, SleepsAndBacksOff, Spins};
use lockstead_core::{Nanos, Off, Platform, Policy, RawMutex, WaitBounds};
use lockstead_model::{Cell, Config, FailureKind, Fault, Model, Scenario, freed, with_handler};
use std::panic::Location;

type Mutex<Y> = RawMutex<Model, Off, Y>;

/// A counter under a lock.
type Guarded<Y> = (Mutex<Y>, Cell<u32>);

const TIMED: WaitBounds<'static, Model> =
    WaitBounds { deadline: Some(Nanos(100)), ..WaitBounds::FOREVER };

fn guarded<Y: Policy>() -> Guarded<Y> {
    (Mutex::new(), Cell::new(0))
}

/// Takes the lock, adds, releases; or gives up.
fn add<Y: Policy>((lock, count): &Guarded<Y>, how: &WaitBounds<'_, Model>) {
    if lock.lock_how(how, 0, Location::caller()).is_ok() {
        count.set(count.get() + 1);
        // SAFETY: this thread has locked it above.
        unsafe { lock.unlock() };
    }
}

/// Makes the scenario of so many threads that add.
fn adders<Y: Policy>(threads: usize) -> Scenario<Guarded<Y>> {
    Scenario::new(guarded::<Y>).threads(threads, |guarded| add(guarded, &WaitBounds::FOREVER))
}

/// Makes the same scenario with one more thread that may give up.
fn adders_and_a_timed_one<Y: Policy>(threads: usize) -> Scenario<Guarded<Y>> {
    adders(threads).thread(|guarded| add(guarded, &TIMED))
}

/// Makes the scenario in which each of two threads adds and the second one frees the lock after its
/// release.
fn last_frees<Y: Policy>() -> Scenario<Guarded<Y>> {
    Scenario::new(guarded::<Y>).threads(2, |(lock, count)| {
        lock.lock(Location::caller()).expect("not recursive");
        count.set(count.get() + 1);
        let last = count.get() == 2;
        // SAFETY: this thread has locked it above.
        unsafe { lock.unlock() };
        if last {
            freed(lock);
        }
    })
}

/// Makes the scenario in which a third thread takes the lock twice, and makes way each time it has
/// taken or released it.
fn three_and_again<Y: Policy>() -> Scenario<Guarded<Y>> {
    adders(2).thread(|(lock, count)| {
        for _ in 0..2 {
            lock.lock(Location::caller()).expect("not recursive");
            Model::relax();
            count.set(count.get() + 1);
            // SAFETY: this thread has locked it above.
            unsafe { lock.unlock() };
            Model::relax();
        }
    })
}

/// Makes the scenario of two locks that never come free. The first thread spins for the one, its
/// handler, anywhere in that, and the second thread for the other.
fn handled<Y: Policy>() -> Scenario<[Mutex<Y>; 2]> {
    fn give_up<Y: Policy>(lock: &Mutex<Y>) {
        let how = WaitBounds { deadline: Some(Nanos(1)), ..WaitBounds::FOREVER };
        lock.lock_how(&how, 0, Location::caller()).expect_err("held for ever");
    }
    let held = || {
        let lock = Mutex::new();
        lock.lock(Location::caller()).expect("free");
        lock
    };
    Scenario::new(move || [held(), held()])
        .thread(|[one, other]| with_handler(|| give_up(other), || give_up(one)))
        .thread(|[_, other]| give_up(other))
        .after(|locks| assert!(locks.iter().all(|lock| lock.peek().tail().is_none())))
}

/// Returns a search in which locks have no slow unlocks to come, with which they would take the
/// broken steps less often.
fn small() -> Config {
    Config::new().slow_unlocks(0).processors(4).spurious(0).preemptions(2).stale_reads(1)
}

#[test]
fn model_mutex_misses_a_touch_after_the_release() {
    missed!(
        last_frees::<Sleeps>(),
        mutex_looks_after_its_release,
        FailureKind::UseAfterFree,
        small()
    );
}

#[test]
fn model_mutex_misses_forgotten_wake_ups() {
    missed!(adders::<Sleeps>(2), release_wakes_nobody, FailureKind::Deadlock, small());
    missed!(adders::<Sleeps>(2), waiter_sleeps_unannounced, FailureKind::Deadlock, small());
    missed!(adders::<Sleeps>(3), waiter_takes_without_passing_on, FailureKind::Deadlock, small());
    missed!(adders::<Sleeps>(3), waiter_believes_an_old_word, FailureKind::Deadlock, small());
    // Woken, the waiter finds the lock taken again, and its time up.
    let late = small().jumps(1, 1000);
    missed!(
        adders_and_a_timed_one::<Sleeps>(2),
        waiter_gives_up_without_passing_on,
        FailureKind::Deadlock,
        late
    );
}

#[test]
fn model_mutex_misses_broken_hand_off_waiters() {
    let timed = small().timeouts(1);
    missed!(adders::<Insists>(2), release_wakes_no_handoff_waiter, FailureKind::Deadlock, timed);
    let timed = small().timeouts(2);
    missed!(adders::<Insists>(3), handoff_waiter_forgets_sleepers, FailureKind::Deadlock, timed);
    missed!(
        adders_and_a_timed_one::<Insists>(2),
        handoff_waiter_leaves_without_withdrawing,
        FailureKind::Deadlock,
        timed
    );
    missed!(
        adders_and_a_timed_one::<Insists>(2),
        handoff_waiter_leaves_sleepers_behind,
        FailureKind::Deadlock,
        timed
    );
}

/// The release is a look and a store, and loses what is written between the two.
#[test]
fn model_mutex_misses_loose_announcements() {
    missed!(adders::<Sleeps>(2), announcement_is_left_loose, FailureKind::Deadlock, small());
    missed!(adders::<Sleeps>(3), fallen_announcement_is_forgotten, FailureKind::Deadlock, small());
    missed!(adders::<Leaves>(3), last_spinner_leaves_waiters_loose, FailureKind::Deadlock, small());
    let late = small().jumps(1, 1000);
    missed!(
        adders_and_a_timed_one::<Sleeps>(3),
        leaver_leaves_waiters_loose,
        FailureKind::Deadlock,
        late
    );
    let timed = small().timeouts(2);
    missed!(
        adders::<Insists>(3),
        handoff_waiter_sleeps_on_a_loose_flag,
        FailureKind::Deadlock,
        timed
    );
    // Its time is up just when it has become the hand-off waiter.
    let late = small().jumps(2, 60);
    missed!(
        adders_and_a_timed_one::<Insists>(3),
        handoff_waiter_withdraws_loosely,
        FailureKind::Deadlock,
        late
    );
}

/// A count of slow unlocks of one's own making is no reason to leave before it stands.
#[test]
fn model_mutex_misses_trust_in_its_own_slow_unlocks() {
    let late = small().slow_unlocks(1).jumps(2, 60);
    missed!(
        adders_and_a_timed_one::<Insists>(3),
        handoff_waiter_trusts_its_own_slow_unlocks,
        FailureKind::Deadlock,
        late
    );
    let late = small().slow_unlocks(1).jumps(1, 1000).stale_reads(0);
    missed!(
        adders_and_a_timed_one::<Leaves>(3),
        leaver_trusts_its_own_slow_unlocks,
        FailureKind::Deadlock,
        late
    );
}

/// Makes the scenario of three that take the lock twice, and leave nothing behind in it.
fn three_twice<Y: Policy>() -> Scenario<Guarded<Y>> {
    Scenario::new(guarded::<Y>)
        .threads(3, |guarded| {
            for _ in 0..2 {
                add(guarded, &WaitBounds::FOREVER);
            }
        })
        .after(|(lock, _)| assert_eq!(lock.peek().without_slow_unlocks().0, 0))
}

#[test]
fn model_mutex_misses_broken_back_off_sleeps() {
    let config = || small().rescue(true).stale_reads(0);
    missed!(
        three_twice::<SleepsAndBacksOff>(),
        back_off_forgets_to_pass_on,
        FailureKind::Deadlock,
        config()
    );
    missed!(
        three_twice::<SleepsAndBacksOff>(),
        back_off_has_no_end,
        FailureKind::Deadlock,
        config()
    );
    missed!(three_twice::<SleepsAndBacksOff>(), release_leaves_unreleased, _, config());
}

/// A platform that breaks its promise to restart releases is noticed.
#[test]
fn model_mutex_needs_releases_to_be_restarted() {
    let config = small().fault(Fault::NoRestart);
    let failure = adders::<Sleeps>(2).check(&config).expect_err("a wake-up is lost");
    assert!(matches!(failure.kind, FailureKind::Deadlock), "{failure}");
}

#[test]
fn model_queue_misses_forgotten_sleepers() {
    missed!(adders::<Leaves>(3), last_spinner_forgets_sleepers, FailureKind::Deadlock, small());
    // The owner must come back before the sleeper compares the word.
    let config = small().stale_reads(0);
    missed!(three_and_again::<Pairs>(), sleeper_trusts_silently, FailureKind::Deadlock, config);
}

#[test]
fn model_queue_misses_broken_steps() {
    missed!(adders::<Spins>(3), joiner_overlooks_a_closed_node, _, small());
    missed!(adders::<Leaves>(3), leaver_overlooks_that_it_is_head, _, small());
    missed!(adders::<Leaves>(3), walk_overlooks_who_joins, _, small());
    missed!(adders::<Leaves>(3), walk_ends_at_a_leaver, _, small());
}

/// One holds the lock, one stands in the queue, one sleeps because of that, one takes.
#[test]
fn model_queue_misses_who_takes_beside_it() {
    let config = small().processors(2).preemptions(3).stale_reads(0);
    missed!(
        adders::<LeavesBeside>(4),
        taker_beside_the_queue_forgets_it,
        FailureKind::Deadlock,
        config
    );
}

#[test]
fn model_handler_misses_a_shared_node() {
    missed!(handled::<Leaves>(), handler_uses_the_node_of_its_thread, _, small());
}

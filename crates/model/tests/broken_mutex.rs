//! The mutex and the spin queue with one line broken (see `build.rs`): the
//! models notice. Each scenario passes with the core as it ships.

#[macro_use]
mod common;
#[macro_use]
mod broken_cores;

use lockstead_model::{Cell, Config, Fault, Kind, Model, Scenario, freed, with_handler};
use std::panic::Location;

cores!(
    mutex_looks_after_its_release,
    release_wakes_nobody,
    release_rings_for_nobody,
    waiter_gives_up_in_debt,
    waiter_believes_an_old_word,
    waiter_takes_in_debt,
    waiter_sleeps_unannounced,
    heir_leaves_without_withdrawing,
    heir_leaves_sleepers_behind,
    heir_takes_and_forgets_sleepers,
    last_spinner_forgets_sleepers,
    sleeper_trusts_silently,
    announcement_is_left_loose,
    fallen_announcement_is_no_debt,
    last_spinner_leaves_w_loose,
    payer_leaves_w_loose,
    heir_withdraws_loosely,
    heir_sleeps_on_a_loose_ring,
    heir_trusts_its_own_heat,
    payer_trusts_its_own_heat,
    napper_forgets_its_debt,
    nap_has_no_end,
    release_leaves_the_mark,
    joiner_overlooks_a_closed_node,
    leaver_overlooks_that_it_is_head,
    walk_overlooks_who_joins,
    walk_ends_at_a_leaver,
    taker_beside_the_queue_forgets_it,
    handler_uses_the_node_of_its_thread,
);

macro_rules! mutex {
    ($core:ident, $policy:ident) => {
        $core::mutex::RawMutex::<Model, $core::hooks::Off, $core::policies::$policy>::new()
    };
}

/// Takes the lock, adds, releases; as a closure for a thread.
macro_rules! adder {
    ($core:ident, $how:expr) => {
        |(lock, count)| {
            if lock.lock_how(&$how, 0, Location::caller()).is_ok() {
                count.set(count.get() + 1);
                // SAFETY: locked above.
                unsafe { lock.unlock() };
            }
        }
    };
}

macro_rules! forever {
    ($core:ident) => {
        $core::platform::Wait { ..$core::platform::Wait::FOREVER }
    };
}

macro_rules! timed {
    ($core:ident) => {
        $core::platform::Wait {
            deadline: Some($core::platform::Nanos(100)),
            ..$core::platform::Wait::FOREVER
        }
    };
}

macro_rules! threads {
    ($core:ident, $policy:ident, $number:expr) => {
        Scenario::new(|| (mutex!($core, $policy), Cell::new(0)))
            .threads($number, adder!($core, forever!($core)))
    };
}

macro_rules! two {
    ($core:ident, $policy:ident) => {
        threads!($core, $policy, 2)
    };
}

macro_rules! three {
    ($core:ident, $policy:ident) => {
        threads!($core, $policy, 3)
    };
}

macro_rules! four {
    ($core:ident, $policy:ident) => {
        threads!($core, $policy, 4)
    };
}

macro_rules! two_and_a_timed_one {
    ($core:ident, $policy:ident) => {
        threads!($core, $policy, 2).thread(adder!($core, timed!($core)))
    };
}

macro_rules! three_and_a_timed_one {
    ($core:ident, $policy:ident) => {
        threads!($core, $policy, 3).thread(adder!($core, timed!($core)))
    };
}

macro_rules! last_frees {
    ($core:ident, $policy:ident) => {
        Scenario::new(|| (mutex!($core, $policy), Cell::new(2))).threads(2, |(lock, left)| {
            lock.lock(Location::caller()).expect("not recursive");
            left.set(left.get() - 1);
            let last = left.get() == 0;
            // SAFETY: locked above.
            unsafe { lock.unlock() };
            if last {
                freed(lock);
            }
        })
    };
}

/// A third thread takes the lock twice, and makes way each time it has taken or
/// released it.
macro_rules! three_and_again {
    ($core:ident, $policy:ident) => {
        threads!($core, $policy, 2).thread(|(lock, count)| {
            for _ in 0..2 {
                lock.lock(Location::caller()).expect("not recursive");
                <Model as lockstead_core::Platform>::relax();
                count.set(count.get() + 1);
                // SAFETY: locked above.
                unsafe { lock.unlock() };
                <Model as lockstead_core::Platform>::relax();
            }
        })
    };
}

/// Two locks that never come free. The first thread spins for the one, its
/// handler, anywhere in that, and the second thread for the other.
macro_rules! handled {
    ($core:ident, $policy:ident) => {{
        use $core::platform::{Nanos, Wait};
        let held = || {
            let lock = mutex!($core, $policy);
            lock.lock(Location::caller()).expect("free");
            lock
        };
        let give_up = |lock: &$core::mutex::RawMutex<_, _, _>| {
            let how = Wait { deadline: Some(Nanos(1)), ..Wait::FOREVER };
            lock.lock_how(&how, 0, Location::caller()).expect_err("held for ever");
        };
        Scenario::new(move || (held(), held()))
            .thread(move |(one, other)| with_handler(|| give_up(other), || give_up(one)))
            .thread(move |(_, other)| give_up(other))
            .after(|(one, other)| {
                assert!(one.peek().tail().is_none() && other.peek().tail().is_none());
            })
    }};
}

/// Nothing stays hot: what a lock does when it is hot, it does less often.
fn small() -> Config {
    Config::new().slow_unlocks(0).processors(4).spurious(0).preemptions(2).stale_reads(1)
}

#[test]
fn model_mutex_misses_a_touch_after_the_release() {
    missed!(last_frees, Sleeps, mutex_looks_after_its_release, Kind::UseAfterFree, small());
}

#[test]
fn model_mutex_misses_forgotten_wake_ups() {
    missed!(two, Sleeps, release_wakes_nobody, Kind::Deadlock, small());
    missed!(two, Sleeps, waiter_sleeps_unannounced, Kind::Deadlock, small());
    missed!(three, Sleeps, waiter_takes_in_debt, Kind::Deadlock, small());
    missed!(three, Sleeps, waiter_believes_an_old_word, Kind::Deadlock, small());
    // Woken, the waiter finds the lock taken again, and its time up.
    let late = small().jumps(1, 1000);
    missed!(two_and_a_timed_one, Sleeps, waiter_gives_up_in_debt, Kind::Deadlock, late);
}

#[test]
fn model_mutex_misses_broken_heirs() {
    let timed = small().timeouts(1);
    missed!(two, Insists, release_rings_for_nobody, Kind::Deadlock, timed);
    let timed = small().timeouts(2);
    missed!(three, Insists, heir_takes_and_forgets_sleepers, Kind::Deadlock, timed);
    missed!(two_and_a_timed_one, Insists, heir_leaves_without_withdrawing, Kind::Deadlock, timed);
    missed!(two_and_a_timed_one, Insists, heir_leaves_sleepers_behind, Kind::Deadlock, timed);
}

/// The release is a look and a store, and loses what is written between the two.
#[test]
fn model_mutex_misses_loose_announcements() {
    missed!(two, Sleeps, announcement_is_left_loose, Kind::Deadlock, small());
    missed!(three, Sleeps, fallen_announcement_is_no_debt, Kind::Deadlock, small());
    missed!(three, Leaves, last_spinner_leaves_w_loose, Kind::Deadlock, small());
    let late = small().jumps(1, 1000);
    missed!(three_and_a_timed_one, Sleeps, payer_leaves_w_loose, Kind::Deadlock, late);
    let timed = small().timeouts(2);
    missed!(three, Insists, heir_sleeps_on_a_loose_ring, Kind::Deadlock, timed);
    // Its time is up just when it has become the heir.
    let late = small().jumps(2, 60);
    missed!(three_and_a_timed_one, Insists, heir_withdraws_loosely, Kind::Deadlock, late);
}

/// Heat of one's own making is no reason to leave before it stands.
#[test]
fn model_mutex_misses_trust_in_its_own_heat() {
    let late = small().slow_unlocks(1).jumps(2, 60);
    missed!(three_and_a_timed_one, Insists, heir_trusts_its_own_heat, Kind::Deadlock, late);
    let late = small().slow_unlocks(1).jumps(1, 1000).stale_reads(0);
    missed!(three_and_a_timed_one, Leaves, payer_trusts_its_own_heat, Kind::Deadlock, late);
}

/// Three that take the lock twice, and leave nothing behind in it.
macro_rules! three_twice {
    ($core:ident, $policy:ident) => {
        Scenario::new(|| (mutex!($core, $policy), Cell::new(0)))
            .threads(3, |(lock, count)| {
                for _ in 0..2 {
                    lock.lock(Location::caller()).expect("not recursive");
                    count.set(count.get() + 1);
                    // SAFETY: locked above.
                    unsafe { lock.unlock() };
                }
            })
            .after(|(lock, _)| assert_eq!(lock.peek().without_slow_unlocks().0, 0))
    };
}

#[test]
fn model_mutex_misses_broken_naps() {
    let config = || small().rescue(true).stale_reads(0);
    missed!(three_twice, SleepsAndNaps, napper_forgets_its_debt, Kind::Deadlock, config());
    missed!(three_twice, SleepsAndNaps, nap_has_no_end, Kind::Deadlock, config());
    missed!(three_twice, SleepsAndNaps, release_leaves_the_mark, _, config());
}

/// A platform that breaks its promise to restart releases is noticed.
#[test]
fn model_mutex_needs_releases_to_be_restarted() {
    let config = small().fault(Fault::NoRestart);
    let failure = two!(shipped, Sleeps).check(&config).expect_err("a wake-up is lost");
    assert!(matches!(failure.kind, Kind::Deadlock), "{failure}");
}

#[test]
fn model_queue_misses_forgotten_sleepers() {
    missed!(three, Leaves, last_spinner_forgets_sleepers, Kind::Deadlock, small());
    // The owner must come back before the sleeper compares the word.
    let config = small().stale_reads(0);
    missed!(three_and_again, Pairs, sleeper_trusts_silently, Kind::Deadlock, config);
}

#[test]
fn model_queue_misses_broken_steps() {
    missed!(three, Spins, joiner_overlooks_a_closed_node, _, small());
    missed!(three, Leaves, leaver_overlooks_that_it_is_head, _, small());
    missed!(three, Leaves, walk_overlooks_who_joins, _, small());
    missed!(three, Leaves, walk_ends_at_a_leaver, _, small());
}

/// One holds the lock, one stands in the queue, one sleeps because of that, one takes.
#[test]
fn model_queue_misses_who_takes_beside_it() {
    let config = small().processors(2).preemptions(3).stale_reads(0);
    missed!(four, LeavesBeside, taker_beside_the_queue_forgets_it, Kind::Deadlock, config);
}

#[test]
fn model_handler_misses_a_shared_node() {
    missed!(handled, Leaves, handler_uses_the_node_of_its_thread, _, small());
}

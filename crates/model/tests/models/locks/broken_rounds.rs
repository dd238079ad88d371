//! The mutex with a step broken that only several rounds, or several hand-off waiters, bring to
//! light: the models notice.

use super::rounds::Step::{Add, AddInTime, AddSlowly};
use super::rounds::rounds;
use crate::common::{GivesWay, Insists, Leaves, Sleeps, SpinsAndBacksOff, depth};
use lockstead_model::{Config, FailureKind, Fault};

/// Returns a search in which the clock jumps once by so many nanoseconds.
fn late(nanos: u64) -> Config {
    let config = Config::new().slow_unlocks(0).processors(4).spurious(0).preemptions(2);
    config.stale_reads(0).jumps(1, nanos)
}

/// The waiter that set the slow unlocks naps, and does not restart releases afterwards; another
/// one sleeps because of the slow unlocks.
#[test]
fn model_mutex_misses_a_nap_on_loose_slow_unlocks() {
    missed!(
        rounds::<SpinsAndBacksOff>(&[&[Add, Add], &[Add], &[Add]]),
        back_off_forgets_that_it_is_loose,
        FailureKind::Deadlock,
        late(0).jumps(0, 0).slow_unlocks(1).rescue(true)
    );
}

/// A waiter is woken, finds the lock taken again, and gives way before it takes it.
#[test]
fn model_mutex_misses_who_gives_way_in_debt() {
    missed!(
        rounds::<GivesWay>(&[&[Add, Add], &[Add], &[Add]]),
        who_gives_way_forgets_its_wake_up,
        FailureKind::Deadlock,
        late(0).jumps(0, 0)
    );
}

/// A waiter is woken when it is past the bound, while another one sleeps.
#[test]
fn model_mutex_misses_a_hand_off_waiter_in_debt() {
    missed!(
        rounds::<Insists>(&[&[AddSlowly, Add], &[Add], &[Add]]),
        handoff_waiter_registers_without_passing_on,
        FailureKind::Deadlock,
        late(60)
    );
}

/// Somebody takes the lock from a hand-off waiter, and the next one registers. Then there are two.
#[test]
fn model_mutex_misses_two_hand_off_waiters() {
    missed!(
        rounds::<Insists>(&[&[Add, Add], &[AddSlowly], &[AddInTime]]),
        handoff_waiter_withdraws_silently,
        FailureKind::Deadlock,
        late(60).preemptions(1).timeouts(2)
    );
}

/// One hand-off waiter sets *hand-off asleep*, and another one sleeps because of that; then a
/// release erases it unseen. It takes four threads and more switches than a search by bounds reaches.
#[test]
fn model_mutex_misses_who_answers_for_itself_alone() {
    missed!(
        rounds::<Insists>(&[&[Add, Add], &[Add, Add], &[Add], &[Add]]),
        handoff_waiter_answers_for_itself_alone,
        FailureKind::Deadlock,
        late(60).preemptions(99).timeouts(4).random(5, depth(20_000, 1_000_000)).max_steps(20_000)
    );
}

/// A thread to which it is refused to restart releases has to look again by a timer: a release of
/// those that release in sections may miss its flags.
#[test]
fn model_mutex_needs_who_may_not_restart_to_look_again() {
    let config = late(0).jumps(0, 0).timeouts(1).rescue(true);
    let name = "mutex, insisting, one may not restart releases";
    let two = || rounds::<Insists>(&[&[AddSlowly, Add], &[Add]]);
    two().verify(name, &config.clone().refuse_restarts(1));
    let three = rounds::<Insists>(&[&[AddSlowly, Add], &[Add], &[Add, Add]]);
    three.verify(name, &config.clone().refuse_restarts(2));
    let config = config.refuse_restarts(1).fault(Fault::NoLook);
    let failure = two().check(&config).expect_err("a wake-up is lost");
    assert!(matches!(failure.kind, FailureKind::Deadlock), "{failure}");
}

#[test]
fn model_mutex_misses_hasty_leavers() {
    missed!(
        rounds::<Leaves>(&[&[Add, Add], &[Add], &[AddInTime]]),
        leaver_does_not_look_again,
        FailureKind::Deadlock,
        late(1000)
    );
    missed!(
        rounds::<Sleeps>(&[&[Add, Add], &[Add], &[AddInTime]]),
        leaver_believes_an_old_word,
        FailureKind::Deadlock,
        late(1000).preemptions(1).stale_reads(2)
    );
}

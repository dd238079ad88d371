//! The mutex that survives its owner: its owners and waiters are killed before each of
//! their steps.

use super::killing;
use super::segment::mutexes::*;
use crate::common::{deep, depth};

#[test]
fn shared_mutex_2t() {
    locks(&[TWICE, TWICE]).verify("2 threads", &killing(2));
}

#[test]
fn shared_mutex_3t() {
    locks(&[ONE, ONE, ONE]).verify("3 threads", &killing(3));
    locks(&[TWICE, TWICE, ONE]).verify("3 threads, longer", &killing(depth(0, 1)));
}

/// Checks a machine that promises nothing to who has named nothing: all pass on at once.
#[test]
fn shared_mutex_passes_on() {
    let eager = |most| killing(most).no_deferred_wakes();
    locks(&[TWICE, TWICE]).verify("2 threads", &eager(2));
    locks(&[ONE, ONE, ONE]).verify("3 threads", &eager(2));
    locks(&[NESTED, ONE, OTHER]).verify("2 locks", &eager(depth(1, 2)));
    locks(&[MAYBE, ONE, ONE]).verify("one gives up", &eager(depth(1, 2)).timeouts(1));
}

#[test]
fn shared_mutex_4t() {
    locks(&[ONE, ONE, ONE, ONE]).verify("4 threads", &killing(depth(0, 1)));
}

#[test]
fn shared_mutex_two_locks() {
    locks(&[NESTED, ONE, OTHER]).verify("2 locks", &killing(2));
    locks(&[NESTED, NESTED, OTHER]).verify("2 locks, 2 want both", &killing(depth(0, 1)));
    locks(&[BOTH, BOTH, NESTED]).verify("2 locks, all want both", &killing(depth(0, 1)));
}

#[test]
fn shared_mutex_times_out() {
    locks(&[MAYBE, MAYBE]).verify("2 threads", &killing(1).timeouts(2));
    locks(&[MAYBE, ONE, ONE]).verify("3 threads", &killing(depth(1, 2)).timeouts(1));
    locks(&[MAYBE, MAYBE, ONE]).verify("3 threads, 2 give up", &killing(depth(0, 1)).timeouts(2));
    locks(&[ONE, ONE, TRY]).verify("3 threads, one tries", &killing(2));
}

#[test]
fn shared_mutex_respawn() {
    locks_again(&[ONE, ONE], ONE).verify("2 threads", &killing(3).respawns(2));
    let config = killing(1).respawns(1);
    let config = if deep() { config } else { config.preemptions(2) };
    locks_again(&[ONE, ONE, ONE], ONE).verify("3 threads", &config);
}

#[test]
fn shared_mutex_is_lost() {
    locks(&[CARELESS, CARELESS, CARELESS]).verify("3 threads", &killing(depth(1, 2)));
    locks(&[CARELESS, ONE, ONE]).verify("3 threads", &killing(2));
    let config = killing(1).jumps(1, 5_000_000);
    locks(&[ONE, ONE, CARELESS]).verify("a hand-off waiter", &config);
}

/// Who has touched nothing passes on what it was told of a death.
#[test]
fn shared_mutex_is_spared() {
    locks(&[SPARES, SPARES, ONE]).verify("2 of 3 threads", &killing(depth(1, 2)));
    locks(&[SPARES, ONE, ONE]).verify("3 threads", &killing(2));
    locks(&[SPARES, ONE]).verify("a hand-off waiter", &killing(1).jumps(1, 5_000_000));
}

/// Signal handlers end waits, which sleep on all their words all the same.
#[test]
fn shared_mutex_is_interrupted() {
    locks(&[HEEDS, ONE]).verify("2 threads", &killing(2).interrupts(2));
    locks(&[HEEDS, ONE, ONE]).verify("3 threads", &killing(1).interrupts(1));
    let config = killing(0).interrupts(1).jumps(1, 5_000_000);
    locks(&[HEEDS, ONE]).verify("a hand-off waiter", &config);
}

#[test]
fn shared_mutex_is_cancelled() {
    locks(&[YIELDS, ONE_AND_CANCELS]).verify("2 threads", &killing(2));
    locks(&[YIELDS, ONE, TWICE_AND_CANCELS]).verify("3 threads", &killing(depth(0, 1)));
    locks(&[YIELDS, YIELDS, CANCELS]).verify("both are", &killing(1));
}

#[test]
fn shared_mutex_handoff() {
    let jumps = |kills, jumps| killing(kills).jumps(jumps, 5_000_000);
    locks(&[TWICE, TWICE]).verify("2 threads", &jumps(2, 2));
    let most = depth(1, 2);
    locks(&[ONE, ONE, ONE]).verify("3 threads", &jumps(most, most));
}

/// Nobody has the lock before whom it is reserved for.
#[test]
fn shared_mutex_is_handed_over() {
    locks_in_turn(&[THRICE, ONE]).verify("one comes thrice", &killing(1).patience(0));
    let config = killing(0).patience(0).preemptions(3);
    locks_in_turn(&[TWICE, ONE, ONE]).verify("one comes twice", &config);
}

/// Nobody dies, or some do: who comes has the name of who has left, or of the dead one's
/// slot the next.
#[test]
fn shared_mutex_tenants_2t() {
    come_and_go(&[TRY, LEAVES_BETWEEN]).verify("one tries", &killing(2));
    come_and_go(&[LEAVES_BETWEEN, LEAVES_BETWEEN]).verify("2 threads", &killing(2));
    come_and_go(&[MAYBE, LEAVES_BETWEEN]).verify("one gives up", &killing(1).timeouts(1));
}

#[test]
fn shared_mutex_tenants_3t() {
    come_and_go(&[TRY, ONE_AND_LEAVES, COMES]).verify("one tries", &killing(depth(1, 3)));
    come_and_go(&[ONE, ONE_AND_LEAVES, COMES]).verify("3 threads", &killing(depth(1, 2)));
    come_and_go(&[CARELESS, ONE_AND_LEAVES, COMES]).verify("one is careless", &killing(1));
    let config = killing(depth(0, 1));
    come_and_go(&[LEAVES_BETWEEN, ONE_AND_LEAVES, COMES]).verify("all change", &config);
}

#[test]
fn shared_mutex_tenants_handoff() {
    let jumps = |kills| killing(kills).jumps(1, 5_000_000);
    come_and_go(&[TWICE, LEAVES_BETWEEN]).verify("2 threads", &jumps(1));
    come_and_go(&[ONE, ONE_AND_LEAVES, COMES]).verify("3 threads", &jumps(depth(0, 1)));
}

/// Checks the name of a slot that nobody sits in, where no tenant has put it.
#[test]
fn shared_mutex_spoiled_name() {
    spoiled(&[ONE, ONE]).verify("2 threads", &killing(1));
    spoiled(&[TRY, COMES]).verify("one tries, one comes", &killing(1));
}

/// Who leaves a slot leaves it free, whoever asks meanwhile whether it lives.
#[test]
fn shared_mutex_tenant_is_doubted() {
    doubted().verify("one asks", &killing(0));
    doubted_newcomer().verify("about one that comes", &killing(0));
}

#[test]
fn shared_mutex_handoff_waiter_gives_up() {
    let config = killing(0).jumps(1, 5_000_000).timeouts(1);
    locks(&[MAYBE, ONE, ONE]).verify("3 threads", &config);
}

/// Checks the release of processors that subtract no faster. All other tests have the one that
/// subtracts.
#[test]
fn shared_mutex_released_by_exchange() {
    let killing = |most| killing(most).subtracts(false);
    locks(&[TWICE, TWICE]).verify("2 threads", &killing(2));
    locks(&[ONE, ONE, ONE]).verify("3 threads", &killing(2));
    locks(&[CARELESS, ONE, ONE]).verify("one is careless", &killing(1));
    locks(&[TWICE, TWICE]).verify("a hand-off waiter", &killing(1).jumps(1, 5_000_000));
}

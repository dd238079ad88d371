//! The condition variable for shared locks: waiters and notifiers are killed before
//! each of their steps.

use super::killing;
use super::segment::condition::*;
use crate::common::{deep, depth};

#[test]
fn shared_condvar_2t() {
    tokens(0, &[TAKES, PUTS]).verify("2 threads", &killing(0));
    tokens(1, &[TAKES, PUTS]).verify("the waiter dies", &killing(1));
    tokens(1, &[YIELDS, CANCELS]).verify("it is cancelled, or dies", &killing(1));
    tokens(1, &[MAY_TAKE, PUTS]).verify("it gives up, or dies", &killing(1).timeouts(1));
}

/// Whoever was notified may die: another one is woken.
#[test]
fn shared_condvar_3t() {
    tokens(1, &[PASSES, PASSES, PUTS]).verify("one is notified, and dies", &killing(1));
    tokens(1, &[VISITS, TAKES, PUTS]).verify("one dies at the mutex", &killing(1));
    tokens(1, &[TAKES, TAKES, PUTS_TWO]).verify("both are notified", &killing(depth(0, 1)));
}

/// Who takes the mutex back has it reserved at once, and may die then.
#[test]
fn shared_condvar_reserves_the_mutex() {
    tokens(1, &[TAKES, PUTS]).verify("2 threads", &killing(1).jumps(1, 5_000_000));
    let config = killing(1).patience(0);
    let config = if deep() { config } else { config.preemptions(2) };
    tokens(1, &[PASSES, PASSES, PUTS]).verify("one is notified, and dies", &config);
}

/// Who comes has the name of who has left.
#[test]
fn shared_condvar_tenants_2t() {
    tokens(1, &[LEAVES_BETWEEN, PUTS_TWICE]).verify("a waiter comes again", &killing(1));
}

#[test]
fn shared_condvar_tenants_3t() {
    let config = killing(1).preemptions(depth(2, 3));
    tokens(1, &[COMES_TO_PASS, PASSES, PUTS]).verify("who comes is notified, and dies", &config);
    let config = killing(0).preemptions(depth(2, 3));
    tokens(0, &[COMES, LEAVES_BETWEEN, PUTS_THRICE]).verify("2 come", &config);
}

/// A notification under the mutex is had by one that waited before it, and nobody who waits later takes
/// it away.
#[test]
fn shared_condvar_rings_for_who_waited() {
    tokens(0, &[LISTENS, RINGS]).verify("one listens", &killing(0));
    let config = if deep() { killing(0) } else { killing(0).preemptions(2) };
    tokens(0, &[LISTENS, LISTENS, RINGS]).verify("2 listen", &config);
}

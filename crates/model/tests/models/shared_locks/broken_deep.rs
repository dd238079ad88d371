//! Broken steps of the shared locks that only long searches find, those of `LOCKSTEAD_MODEL_DEEP=1`.
//! The second checker, which would come to no end, has none of them.

use super::killing;
use super::segment::mutexes::{MAYBE_AND_COMES, ONE, TWICE, come_and_go, locks};
use lockstead_model::FailureKind;

/// It needs more preemptions than a bounded search has, and a search without a bound takes minutes.
#[test]
fn two_hand_off_waiters() {
    if !crate::common::deep() {
        println!("skipped: LOCKSTEAD_MODEL_DEEP=1 looks for it");
        return;
    }
    let config = killing(0).jumps(2, 5_000_000).timeouts(1);
    let config = config.broken("shared_handoff_waiter_that_left_passes_for_dead");
    let failure = come_and_go(&[TWICE, MAYBE_AND_COMES, ONE]).check(&config).expect_err("missed");
    assert!(matches!(failure.kind, FailureKind::Deadlock), "{failure}");
}

/// It takes the death of a second hand-off waiter: a search without a bound, which takes many seconds.
#[test]
fn a_sleeper_overlooks_the_next() {
    if !crate::common::deep() {
        println!("skipped: LOCKSTEAD_MODEL_DEEP=1 looks for it");
        return;
    }
    let config = killing(1).patience(0).broken("shared_waiter_overlooks_the_next");
    let failure = locks(&[TWICE, ONE, ONE]).check(&config).expect_err("missed");
    assert!(matches!(failure.kind, FailureKind::Deadlock), "{failure}");
}

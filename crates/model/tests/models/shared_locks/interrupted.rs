//! Waits that signal handlers may end sleep on all their words (`handlers_end_calls` of the Linux crate),
//! and would sleep too long on the first alone.

use super::killing;
use super::segment::mutexes::{HEEDS, NESTED, OTHER, locks};
use lockstead_model::{FailureKind, Fault};

#[test]
fn shared_mutex_misses_words_that_an_interruptible_wait_does_not_watch() {
    let config = killing(1).interrupts(1);
    let scenario = locks(&[NESTED, HEEDS, OTHER]);
    scenario.verify("an interruptible wait", &config);
    let failure = scenario.check(&config.fault(Fault::FirstWordOnly)).expect_err("missed");
    assert!(matches!(failure.kind, FailureKind::Deadlock), "{failure}");
}

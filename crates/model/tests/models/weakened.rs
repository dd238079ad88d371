//! What it means that a model notices a weaker ordering.

use crate::common::mutated;
use crate::labels::{Weakened, weaker};
use lockstead_model::{Config, FailureKind, Scenario};

/// Checks that a correct scenario fails without each of these orderings, and how. Says nothing about
/// the orderings if the locks themselves are [mutated](mutated).
///
/// # Panics
/// If it fails with them, or does not fail without one, or fails in another way.
pub(crate) fn missed<S: 'static>(
    scenario: &Scenario<S>,
    config: &Config,
    orderings: &[Weakened],
    kind: fn(&FailureKind) -> bool,
) {
    println!("as shipped: {}", scenario.check(config).expect("correct as shipped"));
    if mutated() {
        return;
    }
    for &(file, label, part) in orderings {
        match scenario.check(&weaker(config, file, &[label], part)) {
            Ok(stats) => panic!("{file} {label}, {part:?}: not missed: {stats}"),
            Err(failure) => {
                assert!(kind(&failure.kind), "{file} {label}, {part:?}: {failure}");
                println!("{file} {label}, {part:?}: after {} executions", failure.executions);
            }
        }
    }
}

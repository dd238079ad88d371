//! Every labelled ordering of the publication protocol and of the table: the models notice when
//! it is weaker.

use super::scenes;
use super::shelf::same_key;
use crate::common::mutated;
use crate::labels::{Part, weaker};
use lockstead_model::{Config, FailureKind, Scenario};

/// Checks that a scene fails without each half of each ordering.
fn missed<S: 'static>(scene: &Scenario<S>, file: &'static str, labels: &[&'static str]) {
    let config = Config::new().signals(0);
    scene.check(&config).expect("correct as shipped");
    if mutated() {
        return;
    }
    for label in labels {
        for part in [Part::Acquire, Part::Release] {
            match scene.check(&weaker(&config, file, &[label], part)) {
                Ok(stats) => panic!("{label}, {part:?}: not missed: {stats}"),
                Err(failure) => {
                    assert!(
                        matches!(failure.kind, FailureKind::Panic(_)),
                        "{label}, {part:?}: {failure}"
                    );
                }
            }
        }
    }
}

#[test]
fn model_publication_misses_each_ordering() {
    missed(&scenes::story(), "publish.rs", &["LED-1", "LED-2", "LED-3", "LED-5"]);
    missed(&scenes::out_of_order(), "publish.rs", &["LED-3"]);
    missed(&scenes::running(), "publish.rs", &["LED-4"]);
    missed(&scenes::slept(), "futexes.rs", &["LED-14"]);
}

#[test]
fn model_table_misses_its_ordering() {
    for part in [Part::Acquire, Part::Release] {
        let config = weaker(&Config::new(), "table.rs", &["LED-7"], part);
        let failure = same_key(0).check(&config).expect_err("weaker");
        assert_eq!(failure.kind, FailureKind::Race, "{part:?}: {failure}");
    }
}

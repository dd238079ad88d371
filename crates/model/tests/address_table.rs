//! The ledger's table: what was inserted is found, complete, and once unless a
//! level was opened meanwhile.

mod labels;

use labels::{Part, weaker};
use lockstead_ledger as ledger;
use lockstead_model::{Config, Coverage, Kind};

/// Declares a module with the scenes over a ledger.
macro_rules! scenes {
    ($name:ident, { $($ledger:tt)+ }) => {
        #[allow(warnings, clippy::all, clippy::undocumented_unsafe_blocks, reason = "broken")]
        mod $name {
            $($ledger)+
            pub mod scenes {
                include!(concat!(
                    env!("CARGO_MANIFEST_DIR"),
                    "/tests/publication/table.rs"
                ));
            }
        }
    };
}

macro_rules! broken {
    ($($name:ident),+ $(,)?) => {
        $(
            scenes!($name, {
                include!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".rs"));
                use crate::$name as ledger;
            });
        )+
    };
}

broken!(
    ledger_looks_into_the_newest_level_only,
    ledger_overwrites_a_slot,
    ledger_believes_its_hashes,
);

#[path = "publication/table.rs"]
#[allow(unreachable_pub, reason = "also included elsewhere")]
mod scenes;

#[test]
fn model_two_insertions_of_one_key_agree_3t() {
    let stats = scenes::same_key(0).verify("one key", &Config::new());
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_keys_of_one_hash_are_told_apart_3t() {
    let stats = scenes::same_hash(0).verify("one hash", &Config::new());
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_a_key_is_found_whatever_level_opens_3t() {
    for taken in 1..=2 {
        let config = Config::new().preemptions(3).stale_reads(2);
        scenes::same_hash(taken).verify("one hash, growing", &config);
        scenes::same_key(taken).verify("one key, growing", &config);
    }
}

#[test]
fn model_table_misses_its_ordering() {
    for part in [Part::Acquire, Part::Release] {
        let config = weaker(&Config::new(), "table.rs", &["LED-7"], part);
        let failure = scenes::same_key(0).check(&config).expect_err("weaker");
        assert_eq!(failure.kind, Kind::Race, "{part:?}: {failure}");
    }
}

#[test]
fn broken_tables_lose_keys() {
    let config = Config::new().preemptions(2).stale_reads(1);
    let one_level = ledger_looks_into_the_newest_level_only::scenes::same_hash(2).check(&config);
    assert!(matches!(one_level.expect_err("broken").kind, Kind::Panic(_)));
    let overwrites = ledger_overwrites_a_slot::scenes::same_hash(0).check(&config);
    assert!(matches!(overwrites.expect_err("broken").kind, Kind::Panic(_)));
    let believes = ledger_believes_its_hashes::scenes::same_hash(0).check(&config);
    assert!(matches!(believes.expect_err("broken").kind, Kind::Panic(_)));
}

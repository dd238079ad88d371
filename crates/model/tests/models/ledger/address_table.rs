//! The ledger's table: what was inserted is found, complete, and once unless a
//! level was opened meanwhile.

use super::shelf::{same_hash, same_key};
use lockstead_model::Config;

#[test]
fn model_two_insertions_of_one_key_agree_3t() {
    let stats = same_key(0).verify("one key", &Config::new());
    stats.must_be_complete();
}

#[test]
fn model_keys_of_one_hash_are_told_apart_3t() {
    let stats = same_hash(0).verify("one hash", &Config::new());
    stats.must_be_complete();
}

#[test]
fn model_a_key_is_found_whatever_level_opens_3t() {
    for taken in 1..=2 {
        let config = Config::new().preemptions(3).stale_reads(2);
        same_hash(taken).verify("one hash, growing", &config);
        same_key(taken).verify("one key, growing", &config);
    }
}

//! The scenarios of the first checker, searched by the second.
//!
//! The modules of `locks` are files of the first checker's tests (`crates/model/tests/models`).
//! Here `lockstead_model` means this crate, so both checkers search one text. The first checker's
//! own program asserts its verdicts, this one that the second comes to the same: see `agreement`,
//! which also lists where it does not.

extern crate lockstead_second as lockstead_model;

#[macro_use]
mod agreement;

#[path = "../../../model/tests/models/common.rs"]
#[allow(dead_code, unused_macros, reason = "the first checker has more policies and tests")]
mod common;

#[path = "../../../model/tests/models/labels.rs"]
mod labels;

mod weakened;

#[path = "../../../model/tests/models/locks"]
mod locks {
    mod broken_biased;
    mod broken_family;
    mod broken_mutex;
    mod broken_ww;
    mod condvar;
    mod condvar_fair;
    mod family_orderings;
    mod fifo;
    mod lifetime;
    mod orderings;
    mod wait_wound;
    mod ww;
    mod ww_fair;
    mod ww_orderings;
}

#[path = "../../../model/tests/models/shared_locks"]
mod shared_locks {
    mod broken;
    mod condvar;
    mod mixed;
    mod mutex;
    mod orderings;
    mod rwlock;
    #[expect(dead_code, reason = "the first checker has more scenarios")]
    mod segment;
    mod semaphore;
    mod unmarked;

    use lockstead_model::Config;

    fn killing(most: u32) -> Config {
        Config::new().merged().kills(most)
    }
}

#[path = "../../../model/tests/models/ledger"]
mod ledger {
    mod address_table;
    mod broken;
    mod orderings;
    mod ring;
    #[expect(dead_code, reason = "the first checker has more scenes")]
    mod scenes;
    mod shelf;
    mod world;
}

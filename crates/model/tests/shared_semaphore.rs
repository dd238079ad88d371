//! The semaphore that survives its holders: holders and waiters are killed before each
//! of their steps.

mod common;

mod shipped {
    pub(super) use lockstead_core::{platform, shared};

    #[allow(dead_code, unused_imports, unreachable_pub, reason = "other test files use the rest")]
    pub(super) mod model {
        include!("segment/units.rs");
    }
}

use common::depth;
use lockstead_model::Config;
use shipped::model::*;

fn killing(most: u32) -> Config {
    Config::new().merged().kills(most)
}

#[test]
fn shared_semaphore_2t() {
    units(1, &[ONE, ONE]).verify("1 unit", &killing(2));
    units(2, &[TWO, ONE]).verify("2 units", &killing(2));
    units(1, &[USES, ADDS]).verify("made and used", &killing(0));
}

#[test]
fn shared_semaphore_3t() {
    units(1, &[ONE, ONE, ONE]).verify("3 threads, 1 unit", &killing(depth(1, 2)));
    units(2, &[ONE, ONE, TWO]).verify("3 threads, 2 units", &killing(depth(1, 2)));
}

#[test]
fn shared_semaphore_adds() {
    units(0, &[KEEPS, KEEPS, &[Op::Add(2)]]).verify("2 made", &killing(0));
}

#[test]
fn shared_semaphore_times_out() {
    let times = |kills, out| killing(kills).timeouts(out);
    units(1, &[MAYBE, MAYBE]).verify("2 threads", &times(2, 2));
    units(1, &[MAYBE, ONE, ONE]).verify("3 threads", &times(1, 1));
    units(1, &[TRIES, ONE]).verify("one tries", &times(1, 1));
}

#[test]
fn shared_semaphore_respawn() {
    units_again(1, &[ONE, ONE], ONE).verify("2 threads", &killing(2).respawns(2));
}

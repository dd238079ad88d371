//! The wait/wound mutex with one line broken (see `build/ww.rs`), or with an
//! ordering missing: the models notice. Each scenario passes with the core as it
//! ships.

mod common;
mod labels;
#[macro_use]
mod wait_wound;

use labels::{Part, weaker};
use lockstead_model::{Config, Kind, Scenario};

/// What the scenarios need, for the core in scope.
macro_rules! scenes {
    ($($core:tt)+) => {
        use $($core)+::platform::{LockError, Nanos, Wait};
        use $($core)+::policy::{Bound, NoSpin, Policy, Without};
        use $($core)+::ww::{Class, Context, Patience, RawWwMutex, Scheme, WwError};
        use lockstead_model::{Cell, Model, Scenario, freed};
        use std::panic::Location;

        pub(crate) const DIE: Scheme = Scheme::WaitDie;
        pub(crate) const WOUND: Scheme = Scheme::WoundWait;

        /// Sleeps at once, and never insists.
        pub(crate) type Sleeps = Without<Bound, NoSpin>;

        ww_scenarios!();
    };
}

/// Declares the broken cores.
macro_rules! cores {
    ($($name:ident),+ $(,)?) => {
        $(
            #[allow(warnings, clippy::all, clippy::undocumented_unsafe_blocks, reason = "broken")]
            mod $name {
                include!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".rs"));

                pub(crate) mod scenes {
                    scenes!(crate::$name);
                }
            }

            lockstead_model::platform!(crate::$name);
        )+
    };
}

cores!(
    ww_holder_overlooks_the_first,
    ww_first_leaves_the_fast_path_open,
    ww_wound_is_not_told,
    ww_deposed_is_not_told,
    ww_first_leaves_sleepers_behind,
    ww_release_touches_the_lock_again,
    ww_silence_is_taken_for_consent,
    ww_younger_waits_behind_an_older,
    ww_contexts_are_admitted_loosely,
    ww_release_lets_newcomers_in,
    ww_woken_one_forgets_the_others,
    ww_woken_one_gives_up_silently,
);

/// The core as it ships.
#[allow(dead_code, reason = "not every scenario has a broken core")]
mod shipped {
    pub(crate) mod scenes {
        scenes!(lockstead_core);
    }
}

fn small() -> Config {
    Config::new().processors(4).spurious(0).preemptions(2).stale_reads(1)
}

fn three() -> Config {
    small().stale_reads(0)
}

/// Checks that the scenario fails with the broken core only.
macro_rules! missed {
    ($scenario:ident, $scheme:ident, $core:ident, $kind:pat, $config:expr) => {
        let shipped: Scenario<_> =
            shipped::scenes::$scenario::<shipped::scenes::Sleeps>(shipped::scenes::$scheme);
        shipped.check(&$config).expect("correct as shipped");
        match $core::scenes::$scenario::<$core::scenes::Sleeps>($core::scenes::$scheme)
            .check(&$config)
        {
            Ok(stats) => panic!("{}: not missed: {stats}", stringify!($core)),
            Err(failure) => {
                assert!(matches!(failure.kind, $kind), "{}: {failure}", stringify!($core));
                println!("{}: after {} executions", stringify!($core), failure.executions);
            }
        }
    };
}

#[test]
fn model_ww_misses_who_overlooks_the_first() {
    missed!(crowd, WOUND, ww_holder_overlooks_the_first, Kind::Deadlock, three());
    missed!(crowd, WOUND, ww_first_leaves_the_fast_path_open, Kind::Deadlock, three());
}

#[test]
fn model_ww_misses_an_open_fast_path() {
    missed!(crowd, WOUND, ww_release_lets_newcomers_in, Kind::Deadlock, three());
    // As shipped it takes minutes: `crowd` is searched elsewhere, to other bounds.
    let config = three().preemptions(3);
    use ww_contexts_are_admitted_loosely::scenes::{Sleeps, WOUND, crowd};
    match crowd::<Sleeps>(WOUND).check(&config) {
        Ok(stats) => panic!("not missed: {stats}"),
        Err(failure) => assert_eq!(failure.kind, Kind::Deadlock, "{failure}"),
    }
}

#[test]
fn model_ww_misses_the_trusting_judge() {
    missed!(opposite, WOUND, ww_silence_is_taken_for_consent, Kind::Deadlock, small());
}

#[test]
fn model_ww_misses_the_silent_wound() {
    missed!(opposite, WOUND, ww_wound_is_not_told, Kind::Deadlock, small());
}

#[test]
fn model_ww_misses_who_is_not_told() {
    missed!(beside_one_alone, DIE, ww_deposed_is_not_told, Kind::Deadlock, three());
}

#[test]
fn model_ww_misses_who_leaves_sleepers_behind() {
    missed!(crowd, WOUND, ww_first_leaves_sleepers_behind, Kind::Deadlock, three());
}

#[test]
fn model_ww_misses_who_forgets_the_others() {
    let four = three().preemptions(1);
    missed!(queue, DIE, ww_woken_one_forgets_the_others, Kind::Deadlock, four);
    let timed = four.timeouts(1);
    missed!(queue_with_timed_ones, DIE, ww_woken_one_gives_up_silently, Kind::Deadlock, timed);
}

#[test]
fn model_ww_misses_who_waits_behind_an_older() {
    missed!(crowd, DIE, ww_younger_waits_behind_an_older, Kind::Deadlock, three());
}

#[test]
fn model_ww_misses_the_late_release() {
    missed!(last_frees, DIE, ww_release_touches_the_lock_again, Kind::UseAfterFree, small());
}

#[test]
fn model_ww_misses_each_ordering() {
    use shipped::scenes::{DIE, Sleeps, WOUND, beside_one_alone, opposite};
    // Where releases are restarted, that orders what the exchanges do, too.
    let config = small().sections(false);
    let told = opposite::<Sleeps>(WOUND);
    let told = told.check(&weaker(&config, "ww/context.rs", &["WW-3"], Part::All));
    let deposed = beside_one_alone::<Sleeps>(DIE);
    let deposed = deposed.check(&weaker(&config, "ww/wait.rs", &["WW-2"], Part::All));
    for (label, result) in [("WW-3", told), ("WW-2", deposed)] {
        let failure = result.err().unwrap_or_else(|| panic!("{label} is not missed"));
        assert_eq!(failure.kind, Kind::Deadlock, "{label}: {failure}");
    }
}

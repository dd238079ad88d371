//! The ledger with one line broken (see `build.rs`), or used against its rules:
//! the models notice.

use lockstead_model::{Config, Failure, Kind, Scenario};

/// Declares a module with the scenes over a ledger.
macro_rules! scenes {
    ($name:ident, { $($ledger:tt)+ }) => {
        #[allow(warnings, clippy::all, clippy::undocumented_unsafe_blocks, reason = "broken")]
        mod $name {
            $($ledger)+
            pub mod world {
                include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/publication/world.rs"));
            }
            pub mod scenes {
                include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/publication/scenes.rs"));
            }
        }
    };
}

/// Declares, for each broken ledger, a module with the scenes over it.
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

scenes!(shipped, {
    use lockstead_ledger as ledger;
});

broken!(
    ledger_stores_the_address_first,
    ledger_raises_the_top_last,
    ledger_counts_no_episodes,
    ledger_forgets_to_end,
    ledger_takes_every_wait_for_still,
    ledger_clears_whatever_is_there,
    ledger_moves_what_was_revoked,
);

use shipped::scenes;
use shipped::world::Rules;

fn calm() -> Config {
    Config::new().spurious(0).signals(0)
}

fn bounded() -> Config {
    calm().preemptions(2).stale_reads(0)
}

/// That the good scene passes and the broken one fails.
fn missed<G: 'static, B: 'static>(
    good: &Scenario<G>,
    broken: &Scenario<B>,
    config: &Config,
) -> Failure {
    good.check(config).expect("correct as shipped");
    match broken.check(config) {
        Ok(stats) => panic!("not missed: {stats}"),
        Err(failure) => *failure,
    }
}

fn panics<G: 'static, B: 'static>(good: &Scenario<G>, broken: &Scenario<B>, config: &Config) {
    let failure = missed(good, broken, config);
    assert!(matches!(failure.kind, Kind::Panic(_)), "{failure}");
}

#[test]
fn broken_an_address_that_is_stored_first_shows_old_fields() {
    let broken = ledger_stores_the_address_first::scenes::running();
    panics(&scenes::running(), &broken, &calm());
}

#[test]
fn broken_a_handler_overwrites_an_entry_above_the_top() {
    let broken = ledger_raises_the_top_last::scenes::interrupted_stack();
    panics(&scenes::interrupted_stack(), &broken, &calm().signals(1));
}

#[test]
fn broken_waits_without_numbers_are_taken_for_one() {
    panics(&scenes::story(), &ledger_counts_no_episodes::scenes::story(), &calm());
}

#[test]
fn broken_a_wait_that_is_not_ended_is_believed() {
    use ledger_forgets_to_end::{scenes, world::Rules};
    let good = shipped::scenes::ordered(shipped::world::Rules::KEPT);
    panics(&good, &scenes::ordered(Rules::KEPT), &bounded());
}

#[test]
fn broken_a_second_look_that_always_agrees() {
    panics(&scenes::story(), &ledger_takes_every_wait_for_still::scenes::story(), &calm());
}

#[test]
fn broken_an_entry_is_taken_away_that_has_moved() {
    let blind = ledger_clears_whatever_is_there::scenes::taken_away();
    panics(&scenes::taken_away(), &blind, &calm());
    let deaf = ledger_moves_what_was_revoked::scenes::taken_away();
    panics(&scenes::taken_away(), &deaf, &calm());
}

/// That a scene fails when a rule is broken.
fn needs(scene: fn(Rules) -> Scenario<shipped::world::World>, rules: Rules, config: &Config) {
    panics(&scene(Rules::KEPT), &scene(rules), config);
}

#[test]
fn broken_an_entry_that_goes_after_the_release() {
    let rules = Rules { pop_first: false, ..Rules::KEPT };
    needs(scenes::interrupted_release, rules, &bounded().preemptions(1).signals(1));
}

#[test]
fn broken_a_wait_that_is_published_after_the_call() {
    let rules = Rules { begin_first: false, ..Rules::KEPT };
    let config = calm().preemptions(1).stale_reads(0);
    let failure = missed(&scenes::alone(Rules::KEPT), &scenes::alone(rules), &config);
    assert_eq!(failure.kind, Kind::Livelock, "{failure}");
}

#[test]
fn broken_a_wait_that_is_withdrawn_after_the_push() {
    needs(scenes::ordered, Rules { end_first: false, ..Rules::KEPT }, &bounded());
}

#[test]
fn broken_a_handler_that_records_while_its_thread_waits() {
    let rules = Rules { handlers_pass: false, ..Rules::KEPT };
    needs(scenes::interrupted_wait, rules, &bounded().signals(1));
}

#[test]
fn broken_an_entry_that_stays_when_another_thread_releases() {
    let rules = Rules { revoke: false, ..Rules::KEPT };
    needs(scenes::handed_on, rules, &bounded().stale_reads(0));
}

#[test]
fn broken_a_mutex_that_is_not_lent_for_the_wait() {
    needs(scenes::condition, Rules { lend: false, ..Rules::KEPT }, &bounded());
}

#[test]
fn broken_a_reader_that_looks_once() {
    let rules = Rules { confirm: false, ..Rules::KEPT };
    needs(scenes::twice, rules, &bounded().preemptions(3).stale_reads(0));
}

//! What threads publish in the ledger, and what a reader concludes: never a
//! deadlock that is none, always one that is.

use super::scenes;
use super::world::{OVER, Rules};
use crate::common::{deep, depth};
use lockstead_model::{Config, Coverage, ModelStep, Scenario, Stats};

fn calm() -> Config {
    Config::new().spurious(0).signals(0)
}

/// Explores every execution.
fn complete<S: 'static>(name: &str, scene: &Scenario<S>, config: &Config) -> Stats {
    let stats = scene.verify(name, config);
    assert_eq!(stats.coverage, Coverage::Complete, "{name}");
    stats
}

/// Explores some executions; says in how many steps of them a cycle was reported.
fn found<S: 'static>(name: &str, scene: &Scenario<S>, config: Config) -> u64 {
    let config = config.watch("found", |e| {
        e.in_file("world.rs")
            && matches!(e.step, ModelStep::Exchange { to, .. } if to > OVER.into())
    });
    scene.verify(name, &config).seen("found")
}

#[test]
fn model_what_is_confirmed_is_of_one_piece_2t() {
    complete("story", &scenes::story(), &calm());
}

#[test]
fn model_what_is_confirmed_is_of_one_piece_after_a_release_out_of_order_2t() {
    complete("out of order", &scenes::out_of_order(), &calm());
}

#[test]
fn model_what_a_waiting_thread_slept_on_is_what_it_has_not_woken_2t() {
    complete("slept", &scenes::slept(), &calm());
}

#[test]
fn model_a_running_threads_fields_are_not_older_than_the_address_2t() {
    complete("running", &scenes::running(), &calm());
}

#[test]
fn model_a_handler_leaves_the_stack_as_it_was_2t() {
    let config = calm().signals(2).watch("handled", |e| e.step == ModelStep::Enter);
    let stats = complete("interrupted stack", &scenes::interrupted_stack(), &config);
    assert!(stats.seen("handled") > 0);
}

#[test]
fn model_a_handler_releases_in_the_middle_of_a_push_or_a_pop_2t() {
    let config = calm().signals(1).watch("handled", |e| e.step == ModelStep::Enter);
    for pops in [false, true] {
        let scene = scenes::interrupted_by_releases(pops);
        let stats = complete("interrupted by releases", &scene, &config);
        assert!(stats.seen("handled") > 0);
    }
}

#[test]
fn model_an_entry_is_taken_away_while_it_moves_2t() {
    complete("taken away", &scenes::taken_away(), &calm());
}

#[test]
fn model_what_others_take_away_makes_room_2t() {
    complete("without room", &scenes::without_room(), &calm());
    complete("given twice", &scenes::given_twice(), &calm());
    complete("closed up", &scenes::closed_up(), &calm());
}

#[test]
fn model_a_thread_that_waits_for_itself_is_found_2t() {
    complete("alone", &scenes::alone(Rules::KEPT), &calm().spurious(1));
}

#[test]
fn model_a_closed_cycle_is_found_3t() {
    let crossed = scenes::crossed(Rules::KEPT);
    crossed.verify("crossed", &calm().preemptions(1).stale_reads(1));
    crossed.verify("crossed", &calm().preemptions(2).stale_reads(depth(0, 1)));
}

/// Returns a search with one preemption, or two with the long searches.
fn few() -> Config {
    calm().preemptions(depth(1, 2)).stale_reads(1)
}

fn some() -> Config {
    calm().preemptions(depth(2, 3)).stale_reads(1)
}

#[test]
fn model_what_is_found_is_closed_3t() {
    // Where a cycle can close, it is found in some of the executions.
    let over = |scene, name, config| assert!(found(name, &scene, config) > 0, "{name}");
    over(scenes::hand_over_hand(Rules::KEPT), "hand over hand", some());
    over(scenes::condition(Rules::KEPT), "condition", some());
    over(scenes::twice(Rules::KEPT), "twice", some());
    over(scenes::interrupted_release(Rules::KEPT), "interrupted release", few().signals(1));
}

#[test]
fn model_nothing_is_found_where_nothing_is_closed_3t() {
    let never = |scene, name, config| assert_eq!(found(name, &scene, config), 0, "{name}");
    never(scenes::ordered(Rules::KEPT), "ordered", some());
    never(scenes::timed(Rules::KEPT), "timed", some().timeouts(1));
}

#[test]
fn model_nothing_is_found_in_handlers_that_end_3t() {
    let scene = scenes::interrupted(Rules::KEPT);
    assert_eq!(found("interrupted", &scene, few().signals(1)), 0);
}

#[test]
fn model_nothing_is_found_behind_a_lock_that_was_handed_on_4t() {
    assert_eq!(found("handed on", &scenes::handed_on(Rules::KEPT), few()), 0);
    if deep() {
        let config = calm().preemptions(3).stale_reads(0);
        assert_eq!(found("handed on", &scenes::handed_on(Rules::KEPT), config), 0);
    }
}

//! What it means that both checkers agree, and where they do not.
//!
//! Each use of `missed!` in the shared files is a row of the table of agreement: a scenario, a
//! fault, and the first checker's verdict, which its own tests assert (the scenario passes as
//! shipped, and fails in this way with the fault). `cargo test -p lockstead-second --test agree --
//! --nocapture` prints the rows as this checker fills them in.

use crate::common::deep;
use lockstead_model::{Config, FailureKind, Scenario, Stats};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Instant;

/// Checks that `$scenario` passes with the locks as they ship, and fails with the variant that is
/// broken at `fault!($name)`, as the first checker says of the same text.
macro_rules! missed {
    ($scenario:expr, $name:ident, $kind:pat, $config:expr) => {{
        let (scenario, config, name) = ($scenario, &$config, stringify!($name));
        let text = concat!(module_path!(), ": ", stringify!($scenario));
        crate::agreement::passes(&scenario, config, name, text);
        let same = |kind: &lockstead_model::FailureKind| matches!(kind, $kind);
        crate::agreement::fails(&scenario, config, name, text, same);
    }};
}

/// Does the second half of what `missed!` does.
macro_rules! missed_if_broken {
    ($scenario:expr, $name:ident, $kind:pat, $config:expr) => {{
        let same = |kind: &lockstead_model::FailureKind| matches!(kind, $kind);
        let text = stringify!($scenario);
        crate::agreement::fails(&$scenario, &$config, stringify!($name), text, same);
    }};
}

/// Does what `missed!` does, for a rule of the ledger's that the scene breaks and not the source.
macro_rules! breaks {
    ($scene:expr, $rules:expr, $name:ident, $kind:pat, $config:expr) => {{
        let (config, name) = ($config, stringify!($name));
        let text = concat!(module_path!(), ": ", stringify!($scene));
        crate::agreement::passes(&$scene(super::world::Rules::KEPT), &config, name, text);
        let same = |kind: &lockstead_model::FailureKind| matches!(kind, $kind);
        crate::agreement::fails_by(&$scene($rules), &config, name, text, same);
    }};
}

/// Does what `missed!` does, for scenarios of the module `$place` of segments, each in a test.
macro_rules! misses {
    (in $place:ident; $($name:ident: $fault:ident, $kind:pat, $config:expr,
     { $($scenario:tt)+ })+) => {
        $(
            #[test]
            fn $name() {
                use super::segment::$place::*;
                missed!({ $($scenario)+ }, $fault, $kind, $config);
            }
        )+
    };
}

/// Why this checker does not find a fault that the first one finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Apart {
    /// Two preemptions do not suffice; the executions with three are too many.
    Preemptions,
    /// The executions with two preemptions are too many.
    Executions,
    /// The executions with one preemption are too many, also of the locks as they ship.
    Large,
    /// Time passes otherwise for spinners here, so that the scenario comes to no end.
    Time,
    /// Nobody comes in the place of a participant that ended without a mark.
    Unmarked,
}

/// The faults that the first checker finds and this one does not.
const APART: &[(&str, Apart)] = &[
    ("biased_lock_is_plain_before_the_owner_has_left", Apart::Large),
    ("biased_one_that_gives_up_keeps_the_inner_mutex", Apart::Large),
    ("handler_uses_the_node_of_its_thread", Apart::Time),
    ("handoff_waiter_leaves_sleepers_behind", Apart::Preemptions),
    ("handoff_waiter_trusts_its_own_slow_unlocks", Apart::Large),
    ("handoff_waiter_withdraws_loosely", Apart::Large),
    ("joiner_overlooks_a_closed_node", Apart::Executions),
    ("last_spinner_leaves_waiters_loose", Apart::Preemptions),
    ("leaver_leaves_waiters_loose", Apart::Large),
    ("leaver_trusts_its_own_slow_unlocks", Apart::Large),
    ("sleeper_trusts_silently", Apart::Executions),
    ("taker_beside_the_queue_forgets_it", Apart::Executions),
    ("waiter_believes_an_old_word", Apart::Preemptions),
    ("waiter_gives_up_without_passing_on", Apart::Preemptions),
    ("ww_contexts_are_admitted_loosely", Apart::Preemptions),
    ("ww_deposer_forgets_who_follows", Apart::Large),
    ("ww_handoff_waiter_lets_newcomers_in", Apart::Large),
    ("ww_holder_dismisses_unseen", Apart::Large),
    ("ww_deposed_is_not_told", Apart::Executions),
    ("ww_holder_overlooks_the_first", Apart::Executions),
    ("ww_woken_one_gives_up_silently", Apart::Large),
    ("ww_younger_waits_behind_an_older", Apart::Executions),
    ("shared_condition_compares_the_count_first", Apart::Executions),
    ("shared_handoff_ends_before_it_is_unmarked", Apart::Preemptions),
    ("shared_handoff_waiter_reads_and_passes_nothing_on", Apart::Executions),
    ("shared_leaver_passes_nothing_on", Apart::Executions),
    ("shared_loser_overlooks_the_handoff", Apart::Executions),
    ("shared_reader_claims_too_late", Apart::Preemptions),
    ("shared_reader_overlooks_a_death", Apart::Executions),
    ("shared_reading_handoff_ends_before_it_is_unmarked", Apart::Preemptions),
    ("shared_woken_by_the_doorbell_wakes_nobody", Apart::Large),
    ("shared_writer_touches_at_once", Apart::Executions),
    ("shared_writer_waits_outside", Apart::Executions),
    ("unmarked_whoever_sits_there_is_declared_dead", Apart::Unmarked),
    ("rule_confirm", Apart::Executions),
    ("rule_revoke", Apart::Executions),
    ("rule_hold_again", Apart::Large),
];

/// Faults of which a search takes more than five thousand executions, and so is made in deep runs
/// only.
const LONG: &[&str] = &[
    "newcomer_overtakes_the_hand_off_waiter",
    "ww_younger_stands_beside_an_older",
    "ledger_raises_the_top_last",
    "rule_handlers_pass",
    "rule_pop_first",
    "shared_condition_compares_the_count_first",
    "shared_leaver_passes_nothing_on",
    "shared_loser_overlooks_the_handoff",
    "shared_reader_overlooks_a_death",
    "shared_writer_touches_at_once",
    "shared_cancelled_at_the_mutex_wakes_nobody",
    "shared_draining_writer_names_nothing",
    "shared_handoff_waiter_stays_when_it_leaves",
    "shared_newcomer_has_what_a_dead_one_claimed",
    "shared_newcomer_wakes_nobody",
    "shared_taker_is_watched_by_nobody",
    "shared_waiter_stops_naming_before_it_passes_on",
    "shared_woken_by_a_death_wakes_nobody",
    "shared_writer_overlooks_readers",
];

/// Faults that other than two preemptions find: more are needed, or fewer suffice and take a tenth.
const FOUND_BY: &[(&str, u32)] = &[
    ("ledger_forgets_to_end", 3),
    ("rule_end_first", 3),
    ("rule_pop_first", 2),
    ("shared_clean_leave_passes_for_a_death", 3),
    ("shared_condition_wakes_nobody", 1),
    ("shared_newcomer_keeps_units", 0),
    ("shared_taker_is_watched_by_nobody", 1),
    ("shared_waiter_stops_naming_before_it_passes_on", 1),
    ("shared_writer_overlooks_readers", 3),
];

/// Faults of which this checker meets another consequence first: a unit stays with a newcomer that
/// does nothing, before somebody counts it twice.
const ANOTHER: &[&str] = &["shared_newcomer_has_what_a_dead_one_claimed"];

/// Faults that this checker finds in one of their scenarios and not in the one with these words,
/// where the first checker finds them as well.
const IN_ANOTHER: &[(&str, &str, Apart)] = &[
    ("shared_clean_leave_passes_for_a_death", "ONE_AND_LEAVES", Apart::Executions),
    // Not with three preemptions either: that search comes to its end after a million executions.
    ("shared_newcomer_overtakes_the_handoff_waiter", "locks_in_turn", Apart::Preemptions),
    ("ww_younger_waits_behind_an_older", "woken_before_an_older", Apart::Large),
];

/// Returns why this checker does not find a fault in the scenario with this text, which it finds, or
/// searches for, in another one.
fn apart_here(fault: &str, text: &str) -> Option<Apart> {
    let here = |(name, words, _): &&(&str, &str, Apart)| *name == fault && text.contains(words);
    IN_ANOTHER.iter().find(here).map(|(_, _, why)| *why)
}

fn apart(fault: &str) -> Option<Apart> {
    APART.iter().find(|(name, _)| *name == fault).map(|(_, why)| *why)
}

/// Faults whose scenario of two threads is searched to so many preemptions only.
const BOUNDED: &[(&str, u32)] = &[
    ("biased_revoker_believes_without_a_fence", 1),
    ("condvar_joins_after_the_release", 2),
    ("condvar_sequence_stands_still", 2),
    ("condvar_forgets_the_mutex", 2),
    ("line_grants_under_the_gate", 2),
];

/// Faults whose scenario is searched without preemptions only, as shipped.
const FREE: &[&str] = &[
    "line_newcomer_stands_first",
    "shared_condition_names_nothing",
    "shared_condition_names_nothing_once_woken",
    "shared_newcomer_has_what_a_dead_one_claimed",
    "shared_newcomer_keeps_units",
    "shared_waiter_compares_the_word_first",
    "shared_writer_waits_outside",
];

/// What scenarios passed as shipped: several faults have the same.
static PASSED: LazyLock<Mutex<HashMap<String, Stats>>> = LazyLock::new(Mutex::default);

/// Tells whether the participants of a fault's scenarios may end: there are more executions then.
fn mortal(fault: &str) -> bool {
    fault.starts_with("shared_") || fault.starts_with("unmarked_")
}

/// Tells whether a fault is one of the ledger, whose reader reads so many words that all stores which
/// it could read are too many.
fn of_the_ledger(fault: &str) -> bool {
    fault.starts_with("ledger_") || fault.starts_with("rule_")
}

/// Tells whether the searches for a fault are left to a deep run, and says so.
fn left_out(fault: &str) -> bool {
    let out = LONG.contains(&fault) && !deep();
    if out {
        println!("{fault}: LOCKSTEAD_MODEL_DEEP=1 searches it");
    }
    out
}

/// Checks that the locks as they ship pass: two threads as the first checker does, to at most two
/// preemptions where it has a bound; more threads, and participants that may end, to one. Deep runs
/// take one more of more threads.
pub(crate) fn passes<S: 'static>(
    scenario: &Scenario<S>,
    config: &Config,
    name: &str,
    text: &'static str,
) {
    if matches!(apart(name), Some(Apart::Large | Apart::Time | Apart::Unmarked))
        || apart_here(name, text) == Some(Apart::Large)
        || left_out(name)
    {
        return;
    }
    let bounded = BOUNDED.iter().find(|(fault, _)| *fault == name).map(|(_, bound)| *bound);
    let config = match (scenario.size(), deep()) {
        _ if FREE.contains(&name) => config.clone().at_most(0),
        _ if mortal(name) || of_the_ledger(name) => config.clone().at_most(1),
        (0..=2, false) if bounded.is_some() => config.clone().at_most(bounded.unwrap_or(2)),
        (0..=2, false) => config.bound_at_most(2),
        (0..=2, true) => config.clone(),
        (_, false) => config.clone().at_most(1),
        (_, true) => config.clone().at_most(2),
    };
    let key = format!("{text} {config:?}");
    if PASSED.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&key) {
        println!("{name}, as shipped: the same as above");
        return;
    }
    let began = Instant::now();
    match scenario.check(&config) {
        Ok(stats) => {
            println!("{name}, as shipped: {stats}, {:.2} s", began.elapsed().as_secs_f64());
            PASSED.lock().unwrap_or_else(PoisonError::into_inner).insert(key, stats);
        }
        Err(failure) => panic!("{name}: the first checker passes it as shipped: {failure}"),
    }
}

/// Checks that the broken copy fails within two preemptions, or as many as [`FOUND_BY`] says, and in
/// the way in which the first checker sees it fail.
pub(crate) fn fails<S: 'static>(
    scenario: &Scenario<S>,
    config: &Config,
    name: &'static str,
    text: &str,
    same: impl Fn(&FailureKind) -> bool,
) {
    fails_by(scenario, &config.clone().broken(name), name, text, same);
}

/// Does the same of a scenario that is broken itself.
pub(crate) fn fails_by<S: 'static>(
    scenario: &Scenario<S>,
    config: &Config,
    name: &'static str,
    text: &str,
    same: impl Fn(&FailureKind) -> bool,
) {
    if let Some(why) = apart(name) {
        println!("{name}, broken: the first checker alone finds it: {why:?}");
        return;
    }
    if left_out(name) {
        return;
    }
    if let Some(why) = apart_here(name, text) {
        println!("{name}, broken: the first checker alone finds it in this scenario: {why:?}");
        return;
    }
    let began = Instant::now();
    let found_by = FOUND_BY.iter().find(|(fault, _)| *fault == name);
    let most = found_by.map_or(2, |(_, most)| *most);
    let config = if found_by.is_some() {
        config.clone().preemptions(most)
    } else {
        config.clone().at_most(most)
    };
    match scenario.check(&config) {
        Ok(stats) => panic!("{name}: the first checker finds it, this one does not: {stats}"),
        Err(failure) => {
            let another = ANOTHER.contains(&name) && failure.kind == FailureKind::Deadlock;
            let agrees = same(&failure.kind) || another;
            assert!(agrees, "{name}: the first checker says otherwise: {failure}");
            let (kind, after) = (&failure.kind, failure.executions);
            println!(
                "{name}, broken: both find it; {kind:?} in execution {after}, {:.2} s",
                began.elapsed().as_secs_f64()
            );
        }
    }
}

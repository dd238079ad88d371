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
        crate::agreement::fails(&scenario, config, name, same);
    }};
}

/// Does the second half of what `missed!` does.
macro_rules! missed_if_broken {
    ($scenario:expr, $name:ident, $kind:pat, $config:expr) => {{
        let same = |kind: &lockstead_model::FailureKind| matches!(kind, $kind);
        crate::agreement::fails(&$scenario, &$config, stringify!($name), same);
    }};
}

/// Why this checker does not find a fault that the first one finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Apart {
    /// Two preemptions do not suffice; the executions with three are too many.
    Preemptions,
    /// The executions with two preemptions are too many.
    Executions,
    /// The executions with one preemption are too many, also of the locks as they ship.
    Large,
    /// Time passes otherwise for spinners here, so that the scenario comes to no end.
    Time,
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
];

fn apart(fault: &str) -> Option<Apart> {
    APART.iter().find(|(name, _)| *name == fault).map(|(_, why)| *why)
}

/// Faults whose scenario of two threads is searched to so many preemptions only.
const BOUNDED: &[(&str, u32)] = &[
    ("biased_revoker_believes_without_a_fence", 1),
    ("condvar_joins_after_the_release", 2),
    ("condvar_sequence_stands_still", 2),
    ("condvar_forgets_the_mutex", 2),
];

/// What scenarios passed as shipped: several faults have the same.
static PASSED: LazyLock<Mutex<HashMap<String, Stats>>> = LazyLock::new(Mutex::default);

/// Checks that the locks as they ship pass: two threads as the first checker does, to at most two
/// preemptions where it has a bound; more threads to one, in deep runs two.
pub(crate) fn passes<S: 'static>(
    scenario: &Scenario<S>,
    config: &Config,
    name: &str,
    text: &'static str,
) {
    if matches!(apart(name), Some(Apart::Large | Apart::Time)) {
        return;
    }
    let bounded = BOUNDED.iter().find(|(fault, _)| *fault == name);
    let config = match (scenario.size(), deep()) {
        (0..=2, false) if bounded.is_some() => config.clone().at_most(bounded.map_or(2, |b| b.1)),
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

/// Checks that the broken copy fails within two preemptions, and in the way in which the first
/// checker sees it fail.
pub(crate) fn fails<S: 'static>(
    scenario: &Scenario<S>,
    config: &Config,
    name: &'static str,
    same: impl Fn(&FailureKind) -> bool,
) {
    if let Some(why) = apart(name) {
        println!("{name}, broken: the first checker alone finds it: {why:?}");
        return;
    }
    let began = Instant::now();
    match scenario.check(&config.clone().at_most(2).broken(name)) {
        Ok(stats) => panic!("{name}: the first checker finds it, this one does not: {stats}"),
        Err(failure) => {
            assert!(same(&failure.kind), "{name}: the first checker says otherwise: {failure}");
            let (kind, after) = (&failure.kind, failure.executions);
            println!(
                "{name}, broken: both find it; {kind:?} in execution {after}, {:.2} s",
                began.elapsed().as_secs_f64()
            );
        }
    }
}

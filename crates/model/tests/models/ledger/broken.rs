//! The ledger with one step broken, or used against its rules: the models notice.

use super::scenes;
use super::shelf::same_hash;
use super::world::Rules;
use lockstead_model::{Config, FailureKind};

fn calm() -> Config {
    Config::new().spurious(0).signals(0)
}

fn bounded() -> Config {
    calm().preemptions(2).stale_reads(0)
}

#[test]
fn broken_an_address_that_is_stored_first_shows_old_fields() {
    missed!(scenes::running(), ledger_stores_the_address_first, FailureKind::Panic(_), calm());
}

#[test]
fn broken_a_handler_overwrites_an_entry_above_the_top() {
    let config = calm().signals(1);
    missed!(scenes::interrupted_stack(), ledger_raises_the_top_last, FailureKind::Panic(_), config);
}

#[test]
fn broken_a_handler_drops_an_entry_that_is_about_to_be_filled() {
    let (scene, config) = (scenes::interrupted_by_releases(true), calm().signals(1));
    missed!(scene, ledger_takes_each_empty_entry_for_a_gap, FailureKind::Panic(_), config);
}

#[test]
fn broken_waits_without_numbers_are_taken_for_one() {
    missed!(scenes::story(), ledger_counts_no_episodes, FailureKind::Panic(_), calm());
}

#[test]
fn broken_a_wait_that_is_not_ended_is_believed() {
    missed!(scenes::ordered(Rules::KEPT), ledger_forgets_to_end, FailureKind::Panic(_), bounded());
}

#[test]
fn broken_a_second_look_that_always_agrees() {
    missed!(scenes::story(), ledger_takes_every_wait_for_still, FailureKind::Panic(_), calm());
}

#[test]
fn broken_an_entry_is_taken_away_that_has_moved() {
    missed!(scenes::taken_away(), ledger_clears_whatever_is_there, FailureKind::Panic(_), calm());
    missed!(scenes::taken_away(), ledger_moves_what_was_revoked, FailureKind::Panic(_), calm());
}

#[test]
fn broken_a_word_that_was_woken_is_taken_for_a_lock_that_is_held() {
    missed!(scenes::slept(), ledger_remembers_what_was_woken, FailureKind::Panic(_), calm());
}

#[test]
fn broken_tables_lose_keys() {
    let config = || Config::new().preemptions(2).stale_reads(1);
    missed!(same_hash(2), ledger_looks_into_the_newest_level_only, FailureKind::Panic(_), config());
    missed!(same_hash(0), ledger_overwrites_a_slot, FailureKind::Panic(_), config());
    missed!(same_hash(0), ledger_believes_its_hashes, FailureKind::Panic(_), config());
}

#[test]
fn broken_an_entry_that_goes_after_the_release() {
    let rules = Rules { pop_first: false, ..Rules::KEPT };
    let config = bounded().preemptions(1).signals(1);
    breaks!(scenes::interrupted_release, rules, rule_pop_first, FailureKind::Panic(_), config);
}

#[test]
fn broken_a_wait_that_is_published_after_the_call() {
    let rules = Rules { begin_first: false, ..Rules::KEPT };
    let config = calm().preemptions(1).stale_reads(0);
    breaks!(scenes::alone, rules, rule_begin_first, FailureKind::Livelock, config);
}

#[test]
fn broken_a_wait_that_is_withdrawn_after_the_push() {
    let rules = Rules { end_first: false, ..Rules::KEPT };
    breaks!(scenes::ordered, rules, rule_end_first, FailureKind::Panic(_), bounded());
}

#[test]
fn broken_a_handler_that_records_while_its_thread_waits() {
    let rules = Rules { handlers_pass: false, ..Rules::KEPT };
    let config = bounded().signals(1);
    breaks!(scenes::interrupted_wait, rules, rule_handlers_pass, FailureKind::Panic(_), config);
}

#[test]
fn broken_an_entry_that_stays_when_another_thread_releases() {
    let rules = Rules { revoke: false, ..Rules::KEPT };
    breaks!(scenes::handed_on, rules, rule_revoke, FailureKind::Panic(_), bounded());
}

#[test]
fn broken_a_mutex_that_is_not_lent_for_the_wait() {
    let rules = Rules { lend: false, ..Rules::KEPT };
    breaks!(scenes::condition, rules, rule_lend, FailureKind::Panic(_), bounded());
}

#[test]
fn broken_a_reader_that_looks_once() {
    let rules = Rules { confirm: false, ..Rules::KEPT };
    let config = bounded().preemptions(3);
    breaks!(scenes::twice, rules, rule_confirm, FailureKind::Panic(_), config);
}

/// A lock that another thread has released meanwhile is not held by a thread that waits on.
#[test]
fn broken_a_reader_that_trusts_in_its_first_look_at_the_holdings() {
    let rules = Rules { hold_again: false, ..Rules::KEPT };
    let config = bounded().preemptions(3);
    breaks!(scenes::handed_on, rules, rule_hold_again, FailureKind::Panic(_), config);
}

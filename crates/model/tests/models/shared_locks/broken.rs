//! The shared locks with one step broken: the models notice.

use super::killing;
use lockstead_model::FailureKind;

misses! {
    in mutexes;
    no_baton: shared_taker_passes_nothing_on, FailureKind::Deadlock, killing(1).no_deferred_wakes(),
        { locks(&[ONE, ONE, ONE]) }
    no_mark: shared_deferred_wake_leaves_no_mark, FailureKind::Deadlock, killing(0),
        { locks(&[ONE, ONE, ONE]) }
    no_deferred_wake: shared_taker_defers_nothing, FailureKind::Deadlock, killing(1),
        { locks(&[ONE, ONE, ONE]) }
    no_baton_on_timeout: shared_leaver_passes_nothing_on, FailureKind::Deadlock, killing(1).timeouts(1),
        { locks(&[MAYBE, ONE, ONE]) }
    untouched_is_lost: shared_untouched_release_passes_for_a_careless_one, FailureKind::Panic(_), killing(1),
        { locks(&[SPARES, ONE, ONE]) }
    no_pending: shared_waiter_names_nothing, FailureKind::Deadlock, killing(1), { locks(&[ONE, ONE, ONE]) }
    pending_cleared_early: shared_waiter_stops_naming_before_it_passes_on, FailureKind::Deadlock, killing(2).no_deferred_wakes(),
        { locks(&[ONE, ONE, ONE]) }
    no_wake_after_a_death: shared_woken_by_a_death_wakes_nobody, FailureKind::Deadlock, killing(2),
        { locks(&[NESTED, ONE, OTHER]) }
    no_wake_by_the_doorbell: shared_woken_by_the_doorbell_wakes_nobody, FailureKind::Deadlock, killing(1),
        { locks(&[CROSSED, ONE, ONE, OTHER]) }
    no_generation: shared_waiter_compares_no_generation, FailureKind::Deadlock, killing(1).respawns(1),
        { locks_again(&[ONE, ONE], IDLE) }
    no_generation_at_all: shared_owner_is_known_by_its_slot, _, killing(1).respawns(1),
        { locks_again(&[ONE, ONE], IDLE) }
    two_owners: shared_clean_leave_passes_for_a_death, FailureKind::Panic(_), killing(0),
        { come_and_go(&[TRY, LEAVES_BETWEEN]) }
    two_owners_of_one_name: shared_clean_leave_passes_for_a_death, FailureKind::Panic(_), killing(0),
        { come_and_go(&[TRY, ONE_AND_LEAVES, COMES]) }
    name_of_a_free_slot: shared_free_slot_keeps_its_name, _, killing(0), { spoiled(&[ONE, ONE]) }
    dead_name_borne_again: shared_death_keeps_the_generation, _, killing(1).respawns(1),
        { locks_again(&[ONE, ONE], IDLE) }
    wrong_order: shared_waiter_compares_the_word_first, FailureKind::Deadlock, killing(2),
        { locks(&[ONE, ONE, ONE]) }
    no_wake: shared_release_overlooks_waiters, FailureKind::Deadlock, killing(0), { locks(&[ONE, ONE]) }
    no_late_wake: shared_late_release_wakes_nobody, FailureKind::Deadlock, killing(0),
        { locks(&[ONE, ONE]) }
    hand_off_waiter_not_woken_late: shared_late_release_overlooks_the_handoff, FailureKind::Deadlock, killing(0).jumps(1, 5_000_000),
        { locks(&[TWICE, TWICE]) }
    death_not_told: shared_successor_tells_nobody, FailureKind::Panic(_), killing(1),
        { locks(&[ONE, ONE]) }
    hand_off_waiter_stays: shared_handoff_waiter_stays_when_it_leaves, FailureKind::Deadlock, killing(0).jumps(1, 5_000_000).timeouts(1),
        { locks(&[MAYBE, ONE, ONE]) }
    hand_off_waiter_not_woken: shared_release_overlooks_the_handoff, FailureKind::Deadlock, killing(0).jumps(1, 5_000_000),
        { locks(&[TWICE, TWICE]) }
    hand_off_waiter_of_a_lost_lock: shared_loser_overlooks_the_handoff, FailureKind::Deadlock, killing(1).jumps(1, 5_000_000),
        { locks(&[ONE, ONE, CARELESS]) }
    no_baton_when_cancelled: shared_cancelled_waiter_passes_nothing_on, FailureKind::Deadlock, killing(0),
        { locks(&[YIELDS, ONE, TWICE_AND_CANCELS]) }
    doubt: shared_leaver_overlooks_a_doubt, FailureKind::Panic(_), killing(0), { doubted() }
    newcomers_doubt: shared_newcomer_overlooks_a_doubt, FailureKind::Panic(_), killing(0),
        { doubted_newcomer() }
    newcomer_overtakes: shared_newcomer_overtakes_the_handoff_waiter, FailureKind::Panic(_), killing(0).patience(0).preemptions(2),
        { locks_in_turn(&[TWICE, ONE, ONE]) }
    hand_off_waiter_abdicates_first: shared_handoff_ends_before_it_is_unmarked, FailureKind::Deadlock, killing(0).jumps(1, 5_000_000).timeouts(1),
        { locks(&[MAYBE, ONE, ONE]) }
}

misses! {
    in readers;
    hand_off_waiter_shares: shared_handoff_waiter_reads_and_passes_nothing_on, FailureKind::Deadlock, killing(0).jumps(1, 5_000_000),
        { readers(&[READS, READS, WRITES]) }
    reader_abdicates_first: shared_reading_handoff_ends_before_it_is_unmarked, FailureKind::Deadlock, killing(0).patience(0).preemptions(3),
        { readers(&[READS, WRITES_TWICE, WRITES]) }
    readers_overlooked: shared_writer_overlooks_readers, FailureKind::Panic(_), killing(0),
        { readers(&[READS, READS, WRITES]) }
    late_claim: shared_reader_claims_too_late, FailureKind::Panic(_), killing(0),
        { readers(&[READS, WRITES, WRITES]) }
    writer_lets_readers_in: shared_writer_waits_outside, FailureKind::Panic(_), killing(0),
        { readers_in(Turns::Drained, &[READS, READS_TWICE, WRITES]) }
    writer_overtakes: shared_newcomer_overtakes_the_handoff_waiter, FailureKind::Panic(_), killing(0).patience(0).preemptions(2),
        { readers_in(Turns::Handed, &[WRITES_TWICE, WRITES, WRITES]) }
    writer_not_woken: shared_reader_wakes_no_writer, FailureKind::Deadlock, killing(0),
        { readers(&[READS, WRITES]) }
    touches_at_once: shared_writer_touches_at_once, FailureKind::Panic(_), killing(1),
        { readers(&[READS, WRITES, WRITES]) }
    untold_to_a_reader: shared_reader_overlooks_a_death, FailureKind::Panic(_), killing(1).timeouts(1).preemptions(4),
        { readers(&[READS, WRITES_TWICE, MAY_WRITE]) }
    reader_not_watched: shared_writer_watches_no_reader, FailureKind::Deadlock, killing(1),
        { readers(&[READS, WRITES]) }
}

misses! {
    in mixed;
    writer_inside_names_nothing: shared_draining_writer_names_nothing, FailureKind::Deadlock, killing(2),
        { nested() }
    writer_inside_wakes_nobody: shared_draining_writer_wakes_nobody, FailureKind::Deadlock, killing(1),
        { nested() }
}

misses! {
    in units;
    units_stay: shared_newcomer_keeps_units, _, killing(1).respawns(1).preemptions(2),
        { units_again(2, &[ONE, TWO], ONE) }
    newcomer_wakes_nobody: shared_newcomer_wakes_nobody, FailureKind::Deadlock, killing(1).respawns(1).preemptions(2),
        { units_again(1, &[ONE, ONE], IDLE) }
    units_lost_twice: shared_newcomer_has_what_a_dead_one_claimed, FailureKind::Panic(_), killing(1).respawns(1).preemptions(2),
        { units_again(2, &[KEEPS, ONE, TWO_IF_THERE_ARE], IDLE) }
    counted_once: shared_count_is_not_repeated, FailureKind::Deadlock, killing(1),
        { units(1, &[ONE, ONE]) }
    taker_not_watched: shared_taker_is_watched_by_nobody, FailureKind::Deadlock, killing(1).preemptions(1),
        { units(1, &[ONE, ONE, ONE]) }
    head_of_the_line: shared_units_wake_one_for_each, FailureKind::Deadlock, killing(0).preemptions(2),
        { units(0, &[TWO, ONE_AND_ADDS, ADDS]) }
    cancelled_at_the_mutex: shared_cancelled_at_the_mutex_wakes_nobody, FailureKind::Deadlock, killing(0).preemptions(2),
        { units(1, &[YIELDS, ONE, ONE_AND_CANCELS]) }
}

misses! {
    in condition;
    condition_notifies_nobody: shared_condition_notifies_nobody, FailureKind::Deadlock, killing(0),
        { tokens(0, &[TAKES, PUTS]) }
    condition_named_until_woken: shared_condition_names_nothing_once_woken, FailureKind::Deadlock, killing(1),
        { tokens(1, &[PASSES, PASSES, PUTS]) }
    condition_wakes_nobody: shared_condition_wakes_nobody, FailureKind::Deadlock, killing(1),
        { tokens(1, &[VISITS, TAKES, PUTS]) }
    condition_not_named: shared_condition_names_nothing, FailureKind::Deadlock, killing(1),
        { tokens(1, &[PASSES, PASSES, PUTS]) }
    condition_compares_first: shared_condition_compares_the_count_first, FailureKind::Deadlock, killing(1),
        { tokens(1, &[PASSES, PASSES, PUTS]) }
    condition_counts_late_for_who_listens: shared_condition_counts_after_the_release, FailureKind::Deadlock, killing(0),
        { tokens(0, &[LISTENS, RINGS]) }
    condition_counts_late: shared_condition_counts_after_the_release, FailureKind::Deadlock, killing(0),
        { tokens(0, &[TAKES, PUTS]) }
}

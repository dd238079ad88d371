//! The wait/wound mutex with one step broken: the models notice.

use super::wait_wound::{
    beside_one_alone, context_is_gone, crowd, ended, last_frees, late_older_one, newcomer,
    opposite, queue, queue_with_timed_ones, trier, woken_before_an_older,
};
use crate::common::{Insists, Sleeps, depth};
use lockstead_core::ww::{ContextPatience, Scheme};
use lockstead_model::{Config, FailureKind};

const DIE: Scheme = Scheme::WaitDie;
const WOUND: Scheme = Scheme::WoundWait;

fn small() -> Config {
    Config::new().processors(4).spurious(0).preemptions(2).stale_reads(1)
}

fn three() -> Config {
    small().stale_reads(0)
}

#[test]
fn model_ww_misses_who_overlooks_the_first() {
    missed!(crowd::<Sleeps>(WOUND), ww_holder_overlooks_the_first, FailureKind::Deadlock, three());
    missed!(
        crowd::<Sleeps>(WOUND),
        ww_first_leaves_the_fast_path_open,
        FailureKind::Deadlock,
        three()
    );
}

#[test]
fn model_ww_misses_an_open_fast_path() {
    missed!(crowd::<Sleeps>(WOUND), ww_release_lets_newcomers_in, FailureKind::Deadlock, three());
    // As shipped it takes minutes: `crowd` is searched elsewhere, to other bounds.
    let config = three().preemptions(3);
    missed_if_broken!(
        crowd::<Sleeps>(WOUND),
        ww_contexts_are_admitted_loosely,
        FailureKind::Deadlock,
        config
    );
}

#[test]
fn model_ww_misses_the_trusting_judge() {
    missed!(
        opposite::<Sleeps>(WOUND),
        ww_silence_is_taken_for_consent,
        FailureKind::Deadlock,
        small()
    );
}

#[test]
fn model_ww_misses_the_silent_wound() {
    missed!(opposite::<Sleeps>(WOUND), ww_wound_is_not_told, FailureKind::Deadlock, small());
}

#[test]
fn model_ww_misses_who_is_not_told() {
    missed!(
        beside_one_alone::<Sleeps>(DIE),
        ww_deposed_is_not_told,
        FailureKind::Deadlock,
        three()
    );
}

#[test]
fn model_ww_misses_who_leaves_sleepers_behind() {
    missed!(
        crowd::<Sleeps>(WOUND),
        ww_first_leaves_sleepers_behind,
        FailureKind::Deadlock,
        three()
    );
}

#[test]
fn model_ww_misses_who_forgets_the_others() {
    let four = three().preemptions(1);
    for scheme in [DIE, WOUND] {
        missed!(
            queue::<Sleeps>(scheme),
            ww_woken_one_forgets_the_others,
            FailureKind::Deadlock,
            four
        );
    }
    let timed = four.timeouts(1);
    missed!(
        queue_with_timed_ones::<Sleeps>(DIE),
        ww_woken_one_gives_up_silently,
        FailureKind::Deadlock,
        timed
    );
}

/// The first is deposed, and takes the lock all the same, before it is told.
#[test]
fn model_ww_misses_the_followers_of_a_deposed_first() {
    for scheme in [DIE, WOUND] {
        missed!(
            late_older_one::<Sleeps>(scheme),
            ww_deposer_forgets_who_follows,
            FailureKind::Deadlock,
            three().preemptions(1)
        );
    }
}

/// A lock must not open to newcomers while a context is first.
#[test]
fn model_ww_misses_who_opens_to_newcomers() {
    missed!(
        newcomer::<Sleeps>(WOUND, |two| two.add_to_one(ContextPatience::ENDLESS)),
        ww_holder_dismisses_unseen,
        FailureKind::Deadlock,
        three().preemptions(1)
    );
    missed!(
        newcomer::<Insists>(WOUND, |two| two.add_alone(0)),
        ww_handoff_waiter_lets_newcomers_in,
        FailureKind::Deadlock,
        three().preemptions(1).timeouts(1).slow_unlocks(0)
    );
}

#[test]
fn model_ww_misses_who_does_not_settle() {
    let config = three().preemptions(1);
    missed!(crowd::<Sleeps>(WOUND), ww_context_does_not_settle, FailureKind::Deadlock, config);
    missed!(trier::<Sleeps>(WOUND), ww_try_does_not_settle, FailureKind::Deadlock, config);
    let timed = config.timeouts(1);
    missed!(
        context_is_gone::<Sleeps>(|two| two.try_alone(0)),
        ww_try_does_not_settle,
        FailureKind::Panic(_),
        timed
    );
    missed!(
        context_is_gone::<Sleeps>(|two| two.add_alone(0)),
        ww_one_alone_does_not_settle,
        FailureKind::Panic(_),
        timed
    );
}

#[test]
fn model_ww_misses_who_waits_behind_an_older() {
    missed!(crowd::<Sleeps>(DIE), ww_younger_waits_behind_an_older, FailureKind::Deadlock, three());
    missed!(
        woken_before_an_older::<Sleeps>(WOUND),
        ww_younger_waits_behind_an_older,
        FailureKind::Deadlock,
        three().preemptions(depth(0, 1))
    );
}

#[test]
fn model_ww_misses_the_late_release() {
    missed!(
        last_frees::<Sleeps>(DIE),
        ww_release_touches_the_lock_again,
        FailureKind::UseAfterFree,
        small()
    );
}

#[test]
fn model_ww_misses_the_end_of_a_thread() {
    for alone in [false, true] {
        missed!(
            ended::<Sleeps>(WOUND, alone, |two| two.add_unless_lost(0)),
            ww_ended_holder_tells_nobody,
            FailureKind::Deadlock,
            small()
        );
    }
    missed!(
        ended::<Sleeps>(WOUND, false, |two| two.add_alone_unless_lost(0)),
        ww_one_alone_never_looks,
        FailureKind::Deadlock,
        small().rescue(true)
    );
}

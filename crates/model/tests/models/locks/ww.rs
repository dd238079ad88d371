//! The wait/wound mutex: contexts that want the same locks in any order all get
//! them, one after the other; nobody waits for ever.

use super::wait_wound::{
    Two, beside_one_alone, crowd, cycle, ended, last_frees, opposite, queue, queue_with_timed_ones,
    with_a_timed_one,
};
use crate::common::{Insists, Leaves, LeavesBeside, Sleeps, depth};
use lockstead_core::Policy;
use lockstead_core::ww::{Context, Scheme, WwError};
use lockstead_model::{Config, Scenario, Stats};
use std::panic::Location;

const SCHEMES: [Scheme; 2] = [Scheme::WaitDie, Scheme::WoundWait];

fn small() -> Config {
    Config::new().processors(4).spurious(0).preemptions(depth(2, 3)).stale_reads(depth(1, 2))
}

fn three() -> Config {
    small().preemptions(depth(2, 3)).stale_reads(0)
}

fn crossing<Y: Policy>(name: &str, scheme: Scheme, config: &Config) -> Stats {
    opposite::<Y>(scheme).verify(&format!("{name}, {scheme:?}"), config)
}

#[test]
fn model_ww_two_in_opposite_order_2t() {
    for scheme in SCHEMES {
        crossing::<Sleeps>("ww, sleeping, opposite order", scheme, &small());
        crossing::<Leaves>("ww, leaving, opposite order", scheme, &small().stale_reads(0));
        crossing::<Insists>("ww, insisting, opposite order", scheme, &small().timeouts(1));
    }
}

#[test]
fn model_ww_a_cycle_of_three_3t() {
    for scheme in SCHEMES {
        cycle::<Sleeps>(scheme).verify(&format!("ww, cycle of three, {scheme:?}"), &three());
    }
}

#[test]
fn model_ww_beside_a_thread_without_context_3t() {
    for scheme in SCHEMES {
        let name = format!("ww, opposite order and one alone, {scheme:?}");
        beside_one_alone::<Sleeps>(scheme).verify(&name, &three());
    }
}

#[test]
fn model_ww_crowd_3t() {
    for scheme in SCHEMES {
        crowd::<Sleeps>(scheme).verify(&format!("ww, crowd, {scheme:?}"), &three());
        let config = three().processors(2).preemptions(depth(1, 2));
        let name = format!("ww, crowd beside the queue, {scheme:?}");
        crowd::<LeavesBeside>(scheme).verify(&name, &config);
    }
}

/// Shows that of those that sleep behind a first each is woken in the end, whoever gives up.
#[test]
fn model_ww_queue_4t() {
    let config = three().preemptions(depth(1, 2));
    for scheme in SCHEMES {
        queue::<Sleeps>(scheme).verify(&format!("ww, queue, {scheme:?}"), &config);
        let name = format!("ww, queue, two give up, {scheme:?}");
        queue_with_timed_ones::<Sleeps>(scheme).verify(&name, &config.clone().timeouts(1));
    }
}

#[test]
fn model_ww_release_then_free_2t() {
    for scheme in SCHEMES {
        let stats = last_frees::<Sleeps>(scheme)
            .verify(&format!("ww, free, {scheme:?}"), &small().preemptions(4));
        assert!(stats.executions > 1);
    }
}

/// A wait that gives up by time loses nobody's wake-up.
#[test]
fn model_ww_one_gives_up_3t() {
    for scheme in SCHEMES {
        let name = format!("ww, one gives up, {scheme:?}");
        with_a_timed_one::<Sleeps>(scheme).verify(&name, &three().timeouts(1));
    }
}

/// An older context never backs off in wound-wait, nor in wait-die.
#[test]
fn model_ww_refuses_the_younger_only_2t() {
    for scheme in SCHEMES {
        let stats = Scenario::new(move || Two::<Sleeps>::new(scheme))
            .threads(2, |two| {
                let context = Context::begin(&two.class).expect("room");
                let older = context.stamp() == 0;
                let [a, b] = if older { [0, 1] } else { [1, 0] };
                two.take(a, &context);
                match two.locks[b].lock(&context, Location::caller()) {
                    Ok(()) => two.leave(b, &context),
                    Err(error) => assert!(!older && error == WwError::Deadlock, "{error:?}"),
                }
                two.leave(a, &context);
                context.finish();
            })
            .verify(&format!("ww, the younger is refused, {scheme:?}"), &small());
        assert!(stats.executions > 1);
    }
}

/// Whoever waits for what a thread has ended with is told so: contexts at once, others by looking from
/// time to time.
#[test]
fn model_ww_thread_ends_3t() {
    for scheme in SCHEMES {
        for alone in [false, true] {
            let name = |what: &str| format!("ww, a thread ends, {what}, {scheme:?}, {alone}");
            ended::<Sleeps>(scheme, alone, |two| two.add_unless_lost(0))
                .verify(&name("one asks"), &small().stale_reads(4));
            ended::<Sleeps>(scheme, alone, |two| two.add_unless_lost(0))
                .verify(&name("one asks, sections off"), &small().stale_reads(4).sections(false));
            ended::<Sleeps>(scheme, alone, |two| two.add_unless_lost(0))
                .thread(|two| two.add_unless_lost(0))
                .verify(&name("two ask"), &three());
            ended::<Sleeps>(scheme, alone, |two| two.add_to_both_unless_lost(1, 0))
                .thread(|two| two.add_unless_lost(1))
                .verify(&name("one holds another"), &three().preemptions(1));
            ended::<Sleeps>(scheme, alone, |two| two.add_alone_unless_lost(0))
                .verify(&name("one without a context"), &small().rescue(true));
        }
    }
}

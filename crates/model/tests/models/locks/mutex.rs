//! The mutex: exclusion, no lost wake-up, under every policy.

use crate::common::{
    BacksOffAndInsists, Beside, BesideAndBacksOff, BesideAndInsists, GivesWay, GivesWayAndBacksOff,
    GivesWayAndInsists, Insists, Leaves, LeavesBeside, Mixed, Pairs, PairsUnasked, Passes, Sleeps,
    SleepsAndBacksOff, Spins, SpinsAndBacksOff, SpinsAndGivesWay, depth,
};
use lockstead_core::word::Word;
use lockstead_core::{Off, OnCpu, Policy, RawMutex, Standard};
use lockstead_model::{
    Cell, Config, Coverage, FutexModel, Hint, Model, ModelStep, Scenario, Stats,
};
use std::panic::Location;

type Mutex<Y> = RawMutex<Model, Off, Y>;

/// A counter under a lock.
struct Guarded<Y: Policy> {
    lock: Mutex<Y>,
    count: Cell<u32>,
}

impl<Y: Policy> Guarded<Y> {
    fn new() -> Self {
        Guarded { lock: Mutex::new(), count: Cell::new(0) }
    }

    fn add(&self) {
        self.lock.lock(Location::caller()).expect("not recursive");
        self.count.set(self.count.get() + 1);
        // SAFETY: this thread has locked it above.
        unsafe { self.lock.unlock() };
    }
}

/// Shows that no execution races, loses an addition or a wake-up, or leaves anything behind in the
/// lock, where each of `threads` adds `rounds` times.
fn adds<Y: Policy>(name: &str, threads: usize, rounds: u32, config: &Config) -> Stats {
    Scenario::new(Guarded::<Y>::new)
        .threads(threads, move |g| {
            for _ in 0..rounds {
                g.add();
            }
        })
        .after(move |g| {
            assert_eq!(g.count.get(), threads as u32 * rounds);
            assert_eq!(g.lock.peek().without_slow_unlocks(), Word::IDLE);
        })
        .verify(name, config)
}

#[test]
fn model_mutex_excludes_sleeping_2t() {
    let stats = adds::<Sleeps>("mutex, sleeping, 2 threads", 2, 2, &Config::new());
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_mutex_excludes_spinning_2t() {
    let config = Config::new().jumps(1, 1000);
    let stats = adds::<Spins>("mutex, spinning, 2 threads", 2, depth(1, 2), &config);
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_mutex_excludes_leaving_2t() {
    let stats = adds::<Leaves>("mutex, leaving, 2 threads", 2, 2, &Config::new());
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_mutex_excludes_insisting_2t() {
    let config = Config::new().timeouts(1);
    let stats = adds::<Insists>("mutex, insisting, 2 threads", 2, 2, &config);
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_mutex_excludes_sleeping_3t() {
    let stats = adds::<Sleeps>("mutex, sleeping, 3 threads", 3, 1, &Config::new());
    assert_eq!(stats.coverage, Coverage::Complete);
}

/// Returns `config`, which counts who gives way.
fn watch_way(config: &Config) -> Config {
    config.clone().watch("gave way", |event| event.in_file("sleep/batch.rs"))
}

#[test]
fn model_mutex_excludes_giving_way_2t() {
    let config = watch_way(&Config::new().jumps(1, 1000));
    let stats = adds::<GivesWay>("mutex, giving way, 2 threads", 2, 1, &config);
    assert_eq!(stats.coverage, Coverage::Complete);
    assert!(stats.seen("gave way") > 0);
    let config = Config::new().timeouts(1);
    let name = "mutex, giving way and insisting, 2 threads";
    let stats = adds::<GivesWayAndInsists>(name, 2, 1, &config);
    assert_eq!(stats.coverage, Coverage::Complete);
    let config = config.jumps(1, 1000).preemptions(depth(1, 3)).stale_reads(depth(1, 2));
    adds::<GivesWayAndInsists>("mutex, giving way for two rounds, 2 threads", 2, 2, &config);
}

#[test]
fn model_mutex_excludes_giving_way_3t() {
    let config = watch_way(&three().jumps(1, 1000));
    let stats = adds::<GivesWay>("mutex, giving way, 3 threads", 3, 1, &config);
    assert!(stats.seen("gave way") > 0);
    let config = three().timeouts(1);
    adds::<GivesWayAndInsists>("mutex, giving way and insisting, 3 threads", 3, 1, &config);
    let config = three().processors(2).timeouts(1).preemptions(depth(1, 2));
    adds::<SpinsAndGivesWay>("mutex, spinning and giving way, 3 threads", 3, 1, &config);
}

/// Nobody here backs off but whose sleep was refused. Nothing else has a timer.
#[test]
fn model_mutex_excludes_refused_3t() {
    let watched = |config: Config| {
        config.rescue(true).watch("backed off", |event| event.in_file("sleep/backoff.rs"))
    };
    let name = "mutex, giving way and refused, 2 threads";
    let stats = adds::<GivesWayAndBacksOff>(name, 2, 2, &watched(Config::new()));
    assert_eq!(stats.coverage, Coverage::Complete);
    assert!(stats.seen("backed off") > 0);
    let name = "mutex, giving way and refused, 3 threads";
    let config = watched(three().preemptions(3).stale_reads(depth(0, 1)));
    assert!(adds::<GivesWayAndBacksOff>(name, 3, 1, &config).seen("backed off") > 0);
}

/// Returns bounds for three threads that do more than sleep.
fn three() -> Config {
    Config::new().processors(4).preemptions(depth(2, 3)).stale_reads(depth(1, 2))
}

/// Checks the releases of a platform that does them in one step.
#[test]
fn model_mutex_excludes_without_sections() {
    let config = Config::new().sections(false);
    adds::<Sleeps>("mutex, sleeping, releases in one step, 2 threads", 2, 2, &config);
    let config = three().sections(false).timeouts(1);
    adds::<Insists>("mutex, insisting, releases in one step, 3 threads", 3, 1, &config);
}

/// Checks locks that count on no slow unlock, and on more than the model has.
#[test]
fn model_mutex_excludes_at_any_count_of_slow_unlocks_3t() {
    for unlocks in [0, 255] {
        let config = three().stale_reads(0).slow_unlocks(unlocks).timeouts(1);
        adds::<Insists>(
            &format!("mutex, insisting, {unlocks} slow unlocks, 3 threads"),
            3,
            1,
            &config,
        );
        adds::<Leaves>(
            &format!("mutex, leaving, {unlocks} slow unlocks, 3 threads"),
            3,
            1,
            &config,
        );
    }
}

#[test]
fn model_mutex_excludes_leaving_3t() {
    adds::<Leaves>("mutex, leaving, 3 threads", 3, 1, &three());
}

#[test]
fn model_mutex_excludes_in_pairs_3t() {
    let config = watch_sleep(&three().processors(2));
    let stats = adds::<Pairs>("mutex, one spinner at a time, 3 threads", 3, 1, &config);
    assert!(stats.seen("slept") > 0, "who finds the queue taken sleeps");
}

/// Returns `config`, which counts who goes to sleep.
fn watch_sleep(config: &Config) -> Config {
    config.clone().watch("slept", |event| event.step == ModelStep::Sleep)
}

#[test]
fn model_mutex_excludes_beside_the_queue_3t() {
    let config = three().processors(2).preemptions(depth(3, 5));
    let name = "mutex, spinning beside the queue, 3 threads";
    let stats = adds::<Beside>(name, 3, 1, &watch_sleep(&config));
    assert_eq!(stats.seen("slept"), 0, "with room beside the queue all spin");
    adds::<LeavesBeside>("mutex, spinning beside the queue and leaving, 3 threads", 3, 1, &config);
    let name = "mutex, spinning beside the queue and insisting, 3 threads";
    adds::<BesideAndInsists>(name, 3, 1, &config.clone().preemptions(depth(2, 3)).timeouts(1));
    let config = config.rescue(true).stale_reads(depth(0, 1));
    adds::<BesideAndBacksOff>(
        "mutex, spinning beside the queue and backing off, 3 threads",
        3,
        1,
        &config,
    );
}

/// One holds the lock, one stands in the queue, one sleeps because of that, one takes: as
/// many as it needs for what is wrong with the broken variant.
#[test]
fn model_mutex_excludes_beside_the_queue_4t() {
    let config = three().processors(2).preemptions(3).stale_reads(0);
    adds::<LeavesBeside>("mutex, spinning beside the queue and leaving, 4 threads", 4, 1, &config);
}

#[test]
fn model_mutex_excludes_passing_3t() {
    adds::<Passes>("mutex, passing, 3 threads", 3, 1, &three().jumps(1, 1000).spurious(0));
}

#[test]
fn model_mutex_excludes_insisting_3t() {
    adds::<Insists>("mutex, insisting, 3 threads", 3, 1, &three().timeouts(2));
}

#[test]
fn model_mutex_excludes_mixed_3t() {
    let config = three().jumps(1, 1000).timeouts(1).preemptions(depth(1, 2));
    adds::<Mixed>("mutex, mixed, 3 threads", 3, 1, &config);
}

/// A back-off sleep ends by its timer; nothing else here has one, so that a lost wake-up is lost.
#[test]
fn model_mutex_excludes_backing_off_2t() {
    let config = Config::new().rescue(true);
    let stats =
        adds::<SpinsAndBacksOff>("mutex, spinning and backing off, 2 threads", 2, 2, &config);
    assert_eq!(stats.coverage, Coverage::Complete);
    let stats =
        adds::<SleepsAndBacksOff>("mutex, sleeping and backing off, 2 threads", 2, 2, &config);
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_mutex_excludes_backing_off_3t() {
    let config = three().rescue(true).stale_reads(depth(0, 1));
    adds::<SpinsAndBacksOff>("mutex, spinning and backing off, 3 threads", 3, 1, &config);
    adds::<SleepsAndBacksOff>("mutex, sleeping and backing off, 3 threads", 3, 2, &config);
    let config = config.timeouts(1);
    adds::<BacksOffAndInsists>("mutex, backing off and insisting, 3 threads", 3, 1, &config);
}

#[test]
fn model_mutex_excludes_cheaply_3t() {
    let config = Config::new().futex(FutexModel::Cheap).timeouts(1).stale_reads(2).preemptions(3);
    adds::<Insists>("mutex, insisting, cheap futex, 3 threads", 3, 1, &config);
}

#[test]
fn model_mutex_excludes_whatever_the_hint_2t() {
    for hint in [Hint::Always(OnCpu::Yes), Hint::Always(OnCpu::No), Hint::Either] {
        let config = Config::new().hint(hint).jumps(1, 1000);
        let stats = adds::<Spins>("mutex, spinning, any hint, 2 threads", 2, 1, &config);
        assert_eq!(stats.coverage, Coverage::Complete);
    }
}

#[test]
fn model_mutex_asks_for_the_owner_when_due_2t() {
    let config = watch_sleep(&Config::new().hint(Hint::Always(OnCpu::No)));
    let stats = adds::<Pairs>("mutex, owner not running, 2 threads", 2, 1, &config);
    assert!(stats.seen("slept") > 0, "told that the owner does not run, one sleeps");
    let stats = adds::<PairsUnasked>("mutex, owner not asked for, 2 threads", 2, 1, &config);
    assert_eq!(stats.seen("slept"), 0, "nobody asks before the policy says so");
}

#[test]
fn model_mutex_excludes_on_one_processor_2t() {
    let stats = adds::<Standard>(
        "mutex, standard policy, one processor, 2 threads",
        2,
        1,
        // Woken for nothing, it sleeps to back off, which ends by its timer.
        &Config::new().processors(1).rescue(true),
    );
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_mutex_excludes_at_random_5t() {
    let config = Config::new()
        .random(2005, depth(20_000, 1_000_000))
        .processors(4)
        .jumps(2, 1000)
        .timeouts(2)
        .spurious(2)
        .max_steps(20_000);
    adds::<Mixed>("mutex, mixed, random, 5 threads", 5, 2, &config);
}

#[test]
fn model_mutex_try_lock_3t() {
    let stats = Scenario::new(Guarded::<Insists>::new)
        .threads(2, |g| g.add())
        .thread(|g| {
            if g.lock.try_lock(Location::caller()) {
                g.count.set(g.count.get() + 1);
                // SAFETY: this thread has locked it above.
                unsafe { g.lock.unlock() };
            }
        })
        .after(|g| {
            assert!((2..=3).contains(&g.count.get()));
            // Not by the fast path, where the contention has left slow unlocks behind.
            assert!(g.lock.try_lock(Location::caller()), "nobody holds it");
        })
        .verify("mutex, try_lock, 3 threads", &three().timeouts(1));
    assert!(stats.executions > 1000);
}

/// Adds to a counter, asking for its lock by the policy `X`.
fn add_by<X: Policy, Y: Policy>(g: &Guarded<Y>) {
    let lock: &Mutex<X> = g.lock.by_policy();
    lock.lock(Location::caller()).expect("not recursive");
    g.count.set(g.count.get() + 1);
    // SAFETY: this thread has locked it above.
    unsafe { lock.unlock() };
}

/// Shows the same as `adds` where one thread asks for the lock by the policy `X`, and `others` by the
/// policy `Y`; one of these releases by `X` what it has acquired by `Y`.
fn mixes<X: Policy, Y: Policy>(name: &str, others: usize, config: &Config) -> Stats {
    Scenario::new(Guarded::<Y>::new)
        .thread(|g| add_by::<X, Y>(g))
        .threads(others, |g| g.add())
        .thread(|g| {
            if g.lock.try_lock(Location::caller()) {
                g.count.set(g.count.get() + 1);
                // SAFETY: this thread has locked it above.
                unsafe { g.lock.by_policy::<X>().unlock() };
            }
        })
        .after(move |g| {
            let least = others as u32 + 1;
            assert!((least..=least + 1).contains(&g.count.get()));
            assert_eq!(g.lock.peek().without_slow_unlocks(), Word::IDLE);
        })
        .verify(name, config)
}

/// The shipped pair among them: who gives way, as `Fair` does, meets who backs off, as `Standard` does.
#[test]
fn model_mutex_excludes_whatever_policies_meet_3t() {
    let config = watch_way(&three().jumps(1, 1000));
    let stats = mixes::<GivesWay, Sleeps>("mutex, one gives way, 3 threads", 1, &config);
    assert!(stats.seen("gave way") > 0);
    let config = three().timeouts(1);
    mixes::<GivesWayAndInsists, Sleeps>("mutex, one gives way and insists, 3 threads", 1, &config);
    mixes::<GivesWay, Insists>("mutex, one gives way, one insists, 3 threads", 1, &config);
    mixes::<Insists, GivesWay>("mutex, one insists, one gives way, 3 threads", 1, &config);
    let config = three().rescue(true).stale_reads(depth(0, 1));
    let name = "mutex, one gives way, one backs off, 3 threads";
    mixes::<GivesWay, SleepsAndBacksOff>(name, 1, &config);
    let config = config.processors(2).preemptions(depth(1, 2)).timeouts(1);
    let name = "mutex, one spins and gives way, one spins and backs off, 3 threads";
    mixes::<SpinsAndGivesWay, SpinsAndBacksOff>(name, 1, &config);
}

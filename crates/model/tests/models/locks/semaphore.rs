//! The semaphores: permits are conserved, no wake-up is lost, an `up` is the
//! last touch. Both kinds, the tuned one under every policy.

use crate::common::{Insists, Leaves, Mixed, Sleeps, Spins, depth};
use lockstead_core::{
    ClassicSemaphore, LockError, Nanos, Off, Platform, Policy, TunedSemaphore, WaitBounds,
};
use lockstead_model::{Cell, Config, Coverage, Model, Ordering, Scenario, U32, freed};
use std::cell::Cell as Count;
use std::panic::Location;

const FOREVER: WaitBounds<'static, Model> = WaitBounds::FOREVER;

type Classic = ClassicSemaphore<Model>;
type Tuned<Y> = TunedSemaphore<Model, Off, Y>;

/// What the two kinds have in common.
trait Semaphore: 'static {
    const NAME: &str;
    fn with(permits: u32) -> Self;
    fn down(&self, how: &WaitBounds<'_, Model>) -> Result<(), LockError>;
    fn try_down(&self) -> bool;
    fn up(&self);
    /// Checks that so many permits are free and nobody is near.
    fn rests_with(&self, permits: u32);
}

impl Semaphore for Classic {
    const NAME: &str = "classic semaphore";

    fn with(permits: u32) -> Self {
        Self::new(permits).expect("few permits")
    }

    fn down(&self, how: &WaitBounds<'_, Model>) -> Result<(), LockError> {
        self.down_how(how, Location::caller())
    }

    fn try_down(&self) -> bool {
        self.try_down(Location::caller())
    }

    fn up(&self) {
        self.up().expect("room for a permit");
    }

    fn rests_with(&self, permits: u32) {
        assert_eq!(format!("{self:?}"), format!("ClassicSemaphore{{count={permits} queued=0}}"));
    }
}

impl<Y: Policy> Semaphore for Tuned<Y> {
    const NAME: &str = "tuned semaphore";

    fn with(permits: u32) -> Self {
        Self::new(permits).expect("few permits")
    }

    fn down(&self, how: &WaitBounds<'_, Model>) -> Result<(), LockError> {
        self.down_how(how, Location::caller())
    }

    fn try_down(&self) -> bool {
        self.try_down(Location::caller())
    }

    fn up(&self) {
        self.up().expect("room for a permit");
    }

    fn rests_with(&self, permits: u32) {
        let word = self.peek();
        assert_eq!(word.subject(), permits);
        assert!(!word.handoff() && word.tail().is_none(), "{word:?}");
    }
}

/// Permits, and who uses them.
struct Shared<S> {
    semaphore: S,
    permits: u32,
    /// The number of holders now.
    inside: U32,
    /// The most there were at once.
    most: Count<u32>,
    cancel: U32,
    /// What producers leave for consumers.
    goods: [Cell<u32>; 2],
    /// Users that have not done with it; whoever holds a permit looks.
    users: Cell<u32>,
}

impl<S: Semaphore> Shared<S> {
    fn new(permits: u32) -> Self {
        Shared {
            semaphore: S::with(permits),
            permits,
            inside: U32::ZERO,
            most: Count::new(0),
            cancel: U32::ZERO,
            goods: [Cell::new(0), Cell::new(0)],
            users: Cell::new(2),
        }
    }

    fn hold(&self) {
        let inside = self.inside.fetch_add(1, Ordering::Relaxed) + 1;
        assert!(inside <= self.permits, "more holders than permits");
        self.most.set(self.most.get().max(inside));
    }

    fn give_back(&self) {
        self.inside.fetch_sub(1, Ordering::Relaxed);
        self.semaphore.up();
    }

    fn visit(&self) {
        assert_eq!(self.semaphore.down(&FOREVER), Ok(()));
        self.hold();
        self.give_back();
    }

    /// Makes a visit that is given up as `how` says, with this error.
    fn visit_or(&self, how: &WaitBounds<'_, Model>, error: LockError) {
        match self.semaphore.down(how) {
            Ok(()) => {
                self.hold();
                self.give_back();
            }
            Err(given) => assert_eq!(given, error),
        }
    }

    fn visit_timed(&self) {
        let how = WaitBounds { deadline: Some(Nanos(100)), ..FOREVER };
        self.visit_or(&how, LockError::TimedOut);
    }

    fn try_visit(&self) {
        if self.semaphore.try_down() {
            self.hold();
            self.give_back();
        }
    }

    fn cancel(&self) {
        self.cancel.store(1, Ordering::Release);
        Model::wake(Model::address32(&self.cancel), u32::MAX);
    }
}

/// Makes the scenario of users of `permits` permits, all of which are there at the end.
fn users<S: Semaphore>(permits: u32) -> Scenario<Shared<S>> {
    Scenario::new(move || Shared::new(permits)).after(|s: &Shared<S>| {
        assert_eq!(s.inside.load(Ordering::Relaxed), 0);
        s.semaphore.rests_with(s.permits);
    })
}

/// Makes the scenario of so many threads with so many visits each.
fn visits<S: Semaphore>(permits: u32, threads: usize, rounds: u32) -> Scenario<Shared<S>> {
    users(permits).threads(threads, move |s| {
        for _ in 0..rounds {
            s.visit();
        }
    })
}

/// Returns bounds for three threads.
fn three() -> Config {
    Config::new().processors(4).preemptions(depth(2, 4)).stale_reads(depth(1, 2))
}

fn conserves<S: Semaphore>(what: &str, config: &Config) {
    let say = |rest: &str| format!("{}, {what}, {rest}", S::NAME);
    let two = visits::<S>(1, 2, 2).verify(&say("2 threads"), &config.clone().preemptions(4));
    assert!(two.executions > 10);
    let bounded = config.clone().processors(4).preemptions(depth(2, 3)).stale_reads(1);
    visits::<S>(1, 3, 1).verify(&say("3 threads"), &bounded);
    visits::<S>(2, 3, 1).verify(&say("2 permits, 3 threads"), &bounded);
}

#[test]
fn model_semaphore_conserves_classic_3t() {
    let config = Config::new().spurious(depth(0, 1));
    let stats = visits::<Classic>(1, 2, 2).verify("classic semaphore, 2 threads", &config);
    assert_eq!(stats.coverage, Coverage::Complete);
    conserves::<Classic>("bounded", &Config::new());
}

#[test]
fn model_semaphore_conserves_sleeping_3t() {
    let stats =
        visits::<Tuned<Sleeps>>(1, 2, 1).verify("tuned semaphore, 2 threads", &Config::new());
    assert_eq!(stats.coverage, Coverage::Complete);
    conserves::<Tuned<Sleeps>>("sleeping", &Config::new());
}

#[test]
fn model_semaphore_conserves_spinning_3t() {
    conserves::<Tuned<Spins>>("spinning", &Config::new().jumps(depth(0, 1), 1 << 41).spurious(0));
}

#[test]
fn model_semaphore_conserves_leaving_3t() {
    conserves::<Tuned<Leaves>>("leaving", &Config::new().spurious(0));
}

#[test]
fn model_semaphore_conserves_insisting_3t() {
    conserves::<Tuned<Insists>>("insisting", &Config::new().timeouts(1).spurious(0));
}

#[test]
fn model_semaphore_conserves_mixed_3t() {
    let config = three().timeouts(1).jumps(1, 1000).preemptions(depth(1, 2));
    for permits in [1, 2] {
        let name = format!("tuned semaphore, mixed, {permits} permits, 3 threads");
        visits::<Tuned<Mixed>>(permits, 3, 1).verify(&name, &config);
    }
}

#[test]
fn model_semaphore_conserves_at_random_5t() {
    let config = Config::new()
        .random(1965, depth(10_000, 500_000))
        .processors(4)
        .jumps(2, 1000)
        .timeouts(2)
        .spurious(2)
        .max_steps(20_000);
    visits::<Classic>(2, 5, 2).verify("classic semaphore, random, 5 threads", &config);
    visits::<Tuned<Mixed>>(2, 5, 2).verify("tuned semaphore, random, 5 threads", &config);
}

/// All permits can be out at once.
#[test]
fn model_semaphore_admits_as_many_as_permits_3t() {
    fn most<S: Semaphore>() -> u32 {
        let most = std::rc::Rc::new(Count::new(0));
        let into = std::rc::Rc::clone(&most);
        visits::<S>(2, 3, 1)
            .after(move |s| into.set(into.get().max(s.most.get())))
            .check(&three().preemptions(1))
            .expect("correct");
        most.get()
    }
    assert_eq!(most::<Classic>(), 2);
    assert_eq!(most::<Tuned<Sleeps>>(), 2);
}

fn gives_up<S: Semaphore>() {
    let say = |what: &str| format!("{}, {what}, 3 threads", S::NAME);
    let timed = three().timeouts(1).spurious(0).stale_reads(depth(0, 1));
    users::<S>(1)
        .threads(2, Shared::visit)
        .thread(Shared::visit_timed)
        .verify(&say("one timed"), &timed);
    users::<S>(1)
        .threads(2, Shared::visit)
        .thread(|s| {
            let how = WaitBounds { interruptible: true, ..FOREVER };
            s.visit_or(&how, LockError::Interrupted);
        })
        .verify(&say("one interrupted"), &three().interrupts(1).spurious(0));
    users::<S>(1)
        .thread(Shared::visit)
        .thread(|s| {
            let how = WaitBounds { cancel: Some(&s.cancel), ..FOREVER };
            s.visit_or(&how, LockError::Cancelled);
        })
        .thread(|s| {
            s.cancel();
            s.visit();
        })
        .verify(&say("one cancelled"), &three().spurious(0));
    users::<S>(1)
        .threads(2, Shared::visit)
        .thread(Shared::try_visit)
        .verify(&say("one that only tries"), &three());
}

#[test]
fn model_semaphore_gives_up_classic_3t() {
    gives_up::<Classic>();
}

#[test]
fn model_semaphore_gives_up_sleeping_3t() {
    gives_up::<Tuned<Sleeps>>();
}

#[test]
fn model_semaphore_gives_up_insisting_3t() {
    gives_up::<Tuned<Insists>>();
}

#[test]
fn model_semaphore_gives_up_leaving_3t() {
    gives_up::<Tuned<Leaves>>();
}

/// Makes the scenario of permits that come from nowhere: two consumers, who may both sleep, and as
/// many `up`s in a row.
fn produces<S: Semaphore>() -> Scenario<Shared<S>> {
    Scenario::new(|| Shared::<S>::new(0))
        .threads(2, |s| assert_eq!(s.semaphore.down(&FOREVER), Ok(())))
        .thread(|s| {
            s.semaphore.up();
            s.semaphore.up();
        })
        .after(|s| s.semaphore.rests_with(0))
}

#[test]
fn model_semaphore_wakes_each_3t() {
    let config = Config::new().stale_reads(1).spurious(depth(0, 1));
    let stats = produces::<Classic>().verify("classic semaphore, two ups in a row", &config);
    assert_eq!(stats.coverage, Coverage::Complete);
    let stats = produces::<Tuned<Sleeps>>().verify("tuned semaphore, two ups in a row", &config);
    assert_eq!(stats.coverage, Coverage::Complete);
    let config = three().spurious(0);
    produces::<Tuned<Leaves>>().verify("tuned semaphore, two ups, leaving", &config);
    let config = config.timeouts(1);
    produces::<Tuned<Insists>>().verify("tuned semaphore, two ups, insisting", &config);
    let config = config.preemptions(1).jumps(1, 1000).stale_reads(depth(0, 1));
    produces::<Tuned<Mixed>>().verify("tuned semaphore, two ups, mixed", &config);
}

/// Makes the scenario of two producers and one consumer, who takes both permits and sees what came
/// with them.
fn delivers<S: Semaphore>() -> Scenario<Shared<S>> {
    let mut scenario = Scenario::new(|| Shared::<S>::new(0));
    for producer in 0..2 {
        scenario = scenario.thread(move |s| {
            s.goods[producer].set(1);
            s.semaphore.up();
        });
    }
    scenario
        .thread(|s| {
            for _ in 0..2 {
                assert_eq!(s.semaphore.down(&FOREVER), Ok(()));
            }
            assert_eq!(s.goods[0].get() + s.goods[1].get(), 2);
        })
        .after(|s| s.semaphore.rests_with(0))
}

#[test]
fn model_semaphore_publishes_3t() {
    let stats = delivers::<Classic>().verify("classic semaphore, publishes", &Config::new());
    assert_eq!(stats.coverage, Coverage::Complete);
    let stats = delivers::<Tuned<Sleeps>>().verify("tuned semaphore, publishes", &Config::new());
    assert_eq!(stats.coverage, Coverage::Complete);
}

/// Makes the scenario of one producer of two permits, of which the consumer takes one.
fn delivers_twice<S: Semaphore>() -> Scenario<Shared<S>> {
    Scenario::new(|| Shared::<S>::new(0))
        .thread(|s| {
            s.goods[0].set(1);
            s.semaphore.up();
            s.semaphore.up();
        })
        .thread(|s| {
            assert_eq!(s.semaphore.down(&FOREVER), Ok(()));
            assert_eq!(s.goods[0].get(), 1);
        })
        .after(|s| s.semaphore.rests_with(1))
}

/// A permit that is taken while another one is left brings what came with it, too.
#[test]
fn model_semaphore_publishes_with_each_of_two_permits_2t() {
    let config = Config::new();
    let stats = delivers_twice::<Classic>().verify("classic semaphore, two permits", &config);
    assert_eq!(stats.coverage, Coverage::Complete);
    let stats = delivers_twice::<Tuned<Sleeps>>().verify("tuned semaphore, two permits", &config);
    assert_eq!(stats.coverage, Coverage::Complete);
}

/// Makes the scenario in which a permit tells that the thread which gave it is done: whoever takes
/// it may free the semaphore.
fn completes<S: Semaphore>() -> Scenario<Shared<S>> {
    Scenario::new(|| Shared::<S>::new(0)).thread(|s| s.semaphore.up()).thread(|s| {
        assert_eq!(s.semaphore.down(&FOREVER), Ok(()));
        freed(&s.semaphore);
    })
}

/// Makes the scenario in which the last of two holders in turn frees it after its own release.
fn last_frees<S: Semaphore>() -> Scenario<Shared<S>> {
    Scenario::new(|| Shared::<S>::new(1)).threads(2, |s| {
        assert_eq!(s.semaphore.down(&FOREVER), Ok(()));
        s.users.set(s.users.get() - 1);
        let last = s.users.get() == 0;
        s.semaphore.up();
        if last {
            freed(&s.semaphore);
        }
    })
}

fn is_freed<S: Semaphore>(config: &Config) {
    completes::<S>().verify(&format!("{}, completion, 2 threads", S::NAME), config);
    last_frees::<S>().verify(&format!("{}, the last frees, 2 threads", S::NAME), config);
}

#[test]
fn model_semaphore_is_freed_after_up_2t() {
    is_freed::<Classic>(&Config::new());
    is_freed::<Tuned<Sleeps>>(&Config::new());
    is_freed::<Tuned<Spins>>(&Config::new().jumps(1, 1 << 41));
    is_freed::<Tuned<Leaves>>(&Config::new());
    is_freed::<Tuned<Insists>>(&Config::new().timeouts(1));
    is_freed::<Tuned<Mixed>>(&Config::new().timeouts(1).jumps(1, 1000));
}

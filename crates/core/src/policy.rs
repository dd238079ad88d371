//! The numbers and choices of the slow path, apart from its correctness.
//!
//! # Role
//! Every lock takes a type parameter `Y: Policy`. A policy decides when a thread
//! spins and for how long, and when a waiter has waited long enough to be handed
//! the lock. No choice made here can break exclusion or lose a wake-up: the
//! models run with policies that spin never, always, and give up at once.
//!
//! A policy names its base and states only what differs from it. Benchmarks, the simulator and
//! the models leave ingredients out by [`Without`], and copy nothing.

use crate::slot::Slot;
use core::marker::PhantomData;

/// The choices that say when to spin, for how long, and when to insist.
pub trait Policy: 'static {
    /// The policy that gives every number and choice which this one does not state itself.
    type Base: Policy;
    /// Nanoseconds that a spinner spins before it goes to sleep.
    const SPIN: u64 = <Self::Base as Policy>::SPIN;
    /// Nanoseconds from its first look at the clock in which a spinner does not ask whether
    /// the owner runs: a thread that preempted the owner only because its sleep ended is
    /// usually gone by then.
    const ASK: u64 = <Self::Base as Policy>::ASK;
    /// Turns of the spin loop between two looks at the clock.
    const TURNS: u32 = <Self::Base as Policy>::TURNS;
    /// A spinner that finds the clock advanced by more than this between two
    /// looks was itself preempted, and leaves.
    const GAP: u64 = <Self::Base as Policy>::GAP;
    /// A spinner whose last heartbeat is older than this is passed over, and
    /// no longer counts as a reason not to wake a sleeper.
    const STALE: u64 = <Self::Base as Policy>::STALE;
    /// The most nanoseconds between two looks at the lock. Looks start close
    /// together and their distance grows: a look takes the cache line from the
    /// owner, which needs it again at once if its section is short.
    const LOOK: u64 = <Self::Base as Policy>::LOOK;
    /// The distance of two looks as a part of the time that the spinner has spent: a
    /// release is seen late by no more than this part of the wait.
    const PARTS: u32 = <Self::Base as Policy>::PARTS;
    /// Turns of the spin loop before the first look.
    const FIRST: u32 = <Self::Base as Policy>::FIRST;
    /// Nanoseconds after which a waiter asks to be handed the lock, at least.
    const BOUND: u64 = <Self::Base as Policy>::BOUND;
    /// Nanoseconds added to the bound for each sleeping thread: a hand-over
    /// costs a sleep and a wake-up, and with many waiters past a fixed bound
    /// the lock would do little else.
    const SHARE: u64 = <Self::Base as Policy>::SHARE;
    /// Nanoseconds that a hand-off waiter spins for the lock before it sleeps.
    const HANDOFF_SPIN: u64 = <Self::Base as Policy>::HANDOFF_SPIN;
    /// Looks of a spinner before it sets *unreleased*, which takes the cache line from
    /// an owner whose release may be near.
    const LOOKS_BEFORE_MARK: u32 = <Self::Base as Policy>::LOOKS_BEFORE_MARK;
    /// The number of times that a waiter sees that the lock was released and taken again by others
    /// before it takes a back-off sleep, by a timer of its own, and is no longer woken. 0: never.
    const BACKOFF_AFTER: u32 = <Self::Base as Policy>::BACKOFF_AFTER;
    /// Nanoseconds of the first back-off sleep for each thread that sleeps.
    const BACKOFF_SLEEP: u64 = <Self::Base as Policy>::BACKOFF_SLEEP;
    /// The number of times that a back-off sleep may double.
    const BACKOFF_DOUBLINGS: u32 = <Self::Base as Policy>::BACKOFF_DOUBLINGS;
    /// Nanoseconds for which a thread keeps its processor while it uses locks for which others wait.
    /// Then it lets other threads have it, once, before it waits again or after it has released.
    /// 0: it keeps it as long as the scheduler lets it.
    const BATCH: u64 = <Self::Base as Policy>::BATCH;
    /// The number of times that a waiter lets other threads have its processor, and looks again,
    /// before it sleeps.
    const YIELDS: u32 = <Self::Base as Policy>::YIELDS;
    /// Whether spinners stand in a queue, so that one at a time looks at the
    /// lock. Without it all look at once.
    const QUEUE: bool = <Self::Base as Policy>::QUEUE;
    /// Whether a spinner reads the lock before it tries to change it. Without it
    /// each look is a compare-exchange, which takes the line from the owner.
    const READ_FIRST: bool = <Self::Base as Policy>::READ_FIRST;
    /// Whether a queue of spinners covers the sleepers, so that a release
    /// that a thread spins for wakes nobody. Without it each release that leaves
    /// sleepers behind wakes one.
    const COVER: bool = <Self::Base as Policy>::COVER;

    /// Tells whether a thread may join a queue of spinners whose last one is `tail`.
    fn joins(tail: Option<Slot>, processors: u32) -> bool {
        Self::Base::joins(tail, processors)
    }

    /// Tells whether a thread that may not join spins beside the queue. Only locks with an owner do
    /// that: a spinner has to be able to ask whether the owner runs.
    fn beside(processors: u32) -> bool {
        Self::Base::beside(processors)
    }

    /// Tells whether a waiter takes a back-off sleep if its call to sleep was refused, since the word
    /// had changed while it was on its way: mostly, others had released and taken the lock.
    fn backs_off_refused(processors: u32) -> bool {
        Self::Base::backs_off_refused(processors)
    }
}

/// The shipped policy. `docs/benchmarks-contended.md` says what each number was measured
/// against.
#[derive(Clone, Copy, Debug)]
pub struct Standard;

impl Policy for Standard {
    // A new number needs its value here: without one the compiler reports a cycle.
    type Base = Standard;
    const SPIN: u64 = 30_000;
    const ASK: u64 = 5_000;
    const TURNS: u32 = 64;
    const GAP: u64 = 20_000;
    const STALE: u64 = 50_000;
    const LOOK: u64 = 3_000;
    const PARTS: u32 = 6;
    const FIRST: u32 = 1;
    const BOUND: u64 = 3_000_000;
    const SHARE: u64 = 500_000;
    const HANDOFF_SPIN: u64 = 15_000;
    const LOOKS_BEFORE_MARK: u32 = 2;
    const BACKOFF_AFTER: u32 = 1;
    const BACKOFF_SLEEP: u64 = 100_000;
    const BACKOFF_DOUBLINGS: u32 = 2;
    const BATCH: u64 = 0;
    const YIELDS: u32 = 0;
    const QUEUE: bool = true;
    const READ_FIRST: bool = true;
    const COVER: bool = true;

    fn joins(tail: Option<Slot>, processors: u32) -> bool {
        match processors {
            0 | 1 => false,
            // One runs the owner, one the spinner: a second spinner would run
            // in the owner's place.
            2 => tail.is_none(),
            _ => true,
        }
    }

    /// Returns true on two processors. There a thread that runs and is neither the owner nor the
    /// spinner has taken the processor of one of them, in half of the measured cases that of the
    /// spinner. Then the lock changes hands while the only thread in the queue does not run, and
    /// each thread that uses the lock would have to sleep for it.
    fn beside(processors: u32) -> bool {
        processors == 2
    }

    /// Returns true on more than two processors. On two, one is the owner's: who is refused a sleep
    /// meets nobody else on its way to the next one, and mostly gets the lock before.
    fn backs_off_refused(processors: u32) -> bool {
        processors > 2
    }
}

/// The policy of the mutex whose waits are short. Threads take turns of [`BATCH`](Policy::BATCH) on
/// a processor, by the scheduler's own queue: who gives a processor up needs nobody to be woken by.
/// Nobody backs off but who cannot get to sleep, and the bound after which one asks to be
/// handed the lock is a tenth of the standard one, a fifth for each thread that sleeps. Since nobody
/// leaves the lock to a thread that takes it again and again, a waiter looks late: each look takes
/// the line from that thread.
///
/// `docs/frontier.md` says what it gains and what it costs.
#[derive(Clone, Copy, Debug)]
pub struct Fair;

impl Policy for Fair {
    type Base = Standard;
    const FIRST: u32 = 12;
    const BOUND: u64 = 300_000;
    const SHARE: u64 = 100_000;
    const HANDOFF_SPIN: u64 = 5_000;
    const BACKOFF_AFTER: u32 = 0;
    const BATCH: u64 = 25_000;
    const YIELDS: u32 = 8;
}

/// The policy `Y` without the ingredient `I`. Ingredients compose:
/// `Without<Spinning, Without<BackOff>>` lacks two of the standard policy's.
///
/// Benchmarks, the simulator and the models leave ingredients out by this type alone, so that
/// what they leave out is the same, and the rest is what is shipped.
///
/// ```
/// use lockstead_core::Policy;
/// use lockstead_core::policy::{BackOff, Bound, Standard, Without};
///
/// type Patient = Without<Bound, Without<BackOff>>;
/// assert_eq!(Patient::BACKOFF_AFTER, 0);
/// assert_eq!(Patient::SPIN, Standard::SPIN);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Without<I, Y = Standard>(PhantomData<(I, Y)>);

/// Declares ingredients: each a type, and what a policy without it states.
macro_rules! ingredients {
    ($($(#[$doc:meta])* $name:ident { $($without:item)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl<Y: Policy> Policy for Without<$name, Y> {
            type Base = Y;
            $($without)*
        }
    )*};
}

/// A bound that nobody reaches: 36 years.
const NEVER: u64 = 1 << 60;

ingredients! {
    /// Spinning before sleeping, in the queue, beside it, and for a hand-off. Without it a
    /// thread sleeps as soon as the fast path fails.
    Spinning {
        const SPIN: u64 = 0;
        // A hand-off waiter makes so many turns before it asks whether its time is up.
        const TURNS: u32 = 1;
        const HANDOFF_SPIN: u64 = 0;

        fn joins(_tail: Option<Slot>, _processors: u32) -> bool {
            false
        }

        fn beside(_processors: u32) -> bool {
            false
        }
    }
    /// The queue of spinners. Without it all spinners look at the lock.
    Queue { const QUEUE: bool = false; }
    /// Reading before each exchange. Without it each look is a compare-exchange.
    ReadFirst { const READ_FIRST: bool = false; }
    /// Growing distances between a spinner's looks. Without it each turn is a look.
    SpacedLooks {
        const LOOK: u64 = 0;
        const PARTS: u32 = u32::MAX;
    }
    /// Leaving after a preemption. Without it a preempted spinner spins until its time is up.
    Preemption { const GAP: u64 = NEVER; }
    /// Spinning beside the queue where only one may stand in it. Without it the others sleep.
    Beside {
        fn beside(_processors: u32) -> bool {
            false
        }
    }
    /// The bound on waiting, after which the lock is handed over. Without it nobody insists.
    Bound { const BOUND: u64 = NEVER; }
    /// Spinners that cover the sleepers. Without it each release wakes a sleeper.
    Cover { const COVER: bool = false; }
    /// Back-off sleeps: sleeps by a timer after other threads have barged past. Without them a
    /// waiter asks to be woken each time.
    BackOff {
        const BACKOFF_AFTER: u32 = 0;

        fn backs_off_refused(_processors: u32) -> bool {
            false
        }
    }
    /// Batches of a bounded length. Without them a thread gives its processor up only where it
    /// has to wait.
    Batches { const BATCH: u64 = 0; }
    /// Giving the processor up before sleeping. Without it a waiter sleeps as soon as it has spun.
    Yields { const YIELDS: u32 = 0; }
}

/// The policy of the simplest waiter, which models use: it sleeps as soon as the fast path fails,
/// and only a release wakes it. It lacks two ingredients; [`Without<Spinning>`](Without) lacks one.
pub type NoSpin = Without<Spinning, Without<BackOff>>;

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::vec;
    use std::vec::Vec;

    /// Returns the constants of a policy, by name.
    fn constants<Y: Policy>() -> Vec<(&'static str, u64)> {
        macro_rules! list {
            ($($name:ident)*) => { vec![$((stringify!($name), Y::$name as u64)),*] };
        }
        list!(SPIN ASK TURNS GAP STALE LOOK PARTS FIRST BOUND SHARE HANDOFF_SPIN LOOKS_BEFORE_MARK BACKOFF_AFTER BACKOFF_SLEEP
              BACKOFF_DOUBLINGS BATCH YIELDS QUEUE READ_FIRST COVER)
    }

    /// Returns the names of the constants in which `Y` differs from the standard policy.
    fn changed<Y: Policy>() -> Vec<&'static str> {
        differs::<Standard, Y>()
    }

    /// Returns the names of the constants in which two policies differ.
    fn differs<X: Policy, Y: Policy>() -> Vec<&'static str> {
        let pairs = constants::<X>().into_iter().zip(constants::<Y>());
        pairs.filter(|(standard, without)| standard != without).map(|(s, _)| s.0).collect()
    }

    #[test]
    fn an_ingredient_changes_what_it_is_made_of_and_nothing_else() {
        assert_eq!(changed::<Without<Spinning>>(), ["SPIN", "TURNS", "HANDOFF_SPIN"]);
        assert_eq!(changed::<Without<Queue>>(), ["QUEUE"]);
        assert_eq!(changed::<Without<ReadFirst>>(), ["READ_FIRST"]);
        assert_eq!(changed::<Without<SpacedLooks>>(), ["LOOK", "PARTS"]);
        assert_eq!(changed::<Without<Preemption>>(), ["GAP"]);
        assert_eq!(changed::<Without<Bound>>(), ["BOUND"]);
        assert_eq!(changed::<Without<Cover>>(), ["COVER"]);
        assert_eq!(changed::<Without<BackOff>>(), ["BACKOFF_AFTER"]);
        assert!(changed::<Without<Beside>>().is_empty());
        assert_eq!(differs::<Fair, Without<Batches, Fair>>(), ["BATCH"]);
        assert_eq!(differs::<Fair, Without<Yields, Fair>>(), ["YIELDS"]);
        assert_eq!(
            changed::<Fair>(),
            ["FIRST", "BOUND", "SHARE", "HANDOFF_SPIN", "BACKOFF_AFTER", "BATCH", "YIELDS"]
        );
        assert_eq!(changed::<NoSpin>(), ["SPIN", "TURNS", "HANDOFF_SPIN", "BACKOFF_AFTER"]);
        for processors in [1, 2, 64] {
            assert!(!Without::<Spinning>::joins(None, processors));
            assert!(!Without::<Spinning>::beside(processors));
            assert!(!Without::<Beside>::beside(processors));
            assert_eq!(Without::<Beside>::joins(None, processors), processors > 1);
            assert_eq!(Without::<Queue>::beside(processors), processors == 2);
            assert_eq!(Without::<Queue, Fair>::backs_off_refused(processors), processors > 2);
            assert!(!Without::<BackOff>::backs_off_refused(processors));
        }
    }
}

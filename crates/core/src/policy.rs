//! The numbers and choices of the slow path, apart from its correctness.
//!
//! # Role
//! Every lock takes a type parameter `Y: Policy`. A policy decides when to
//! spin, for how long, and when a waiter has waited long enough to be handed
//! the lock. No choice made here can break exclusion or lose a wake-up: the
//! models run with policies that spin never, always, and give up at once.
//! Benchmarks compare policies by name.

use crate::slot::Slot;

/// When to spin, for how long, and when to insist.
pub trait Policy: 'static {
    /// Nanoseconds a spinner waits before it goes to sleep.
    const SPIN: u64;
    /// Nanoseconds from its first look at the clock in which a spinner does not ask whether
    /// the owner runs. Who has taken the owner's processor for a moment, because its sleep
    /// is over, may be gone sooner.
    const ASK: u64 = 0;
    /// Turns of the spin loop between two looks at the clock.
    const TURNS: u32;
    /// A spinner that finds the clock advanced by more than this between two
    /// looks was itself preempted, and leaves.
    const GAP: u64;
    /// A spinner whose last heartbeat is older than this is passed over, and
    /// no longer counts as a reason not to wake a sleeper.
    const STALE: u64;
    /// The most nanoseconds between two looks at the lock. Looks start close
    /// together and their distance grows: a look takes the line from the
    /// owner, who in short sections needs it again at once.
    const LOOK: u64;
    /// The distance of two looks as a part of the time that the spinner has spent: a
    /// release is seen late by no more than this part of the wait.
    const PARTS: u32 = 6;
    /// Turns of the spin loop before the first look.
    const FIRST: u32;
    /// Nanoseconds after which a waiter asks to be handed the lock, at least.
    const BOUND: u64;
    /// Nanoseconds added to the bound for each sleeping thread: a hand-over
    /// costs a sleep and a wake-up, and with many waiters past a fixed bound
    /// the lock would do little else.
    const SHARE: u64;
    /// Nanoseconds an heir spins for the hand-over before it sleeps.
    const HEIR_SPIN: u64;
    /// Looks of a spinner before it marks the lock, so as not to disturb a release that
    /// is near.
    const UNMARKED: u32 = 2;
    /// How often a waiter sees that the lock was released and taken again by others
    /// before it naps: sleeps by a timer of its own, and is no longer woken. 0: never.
    const MISSES: u32 = 0;
    /// Nanoseconds of the first nap for each thread that sleeps.
    const NAP: u64 = 100_000;
    /// How often a nap may double.
    const DOUBLINGS: u32 = 2;
    /// Whether spinners stand in a queue, so that one at a time looks at the
    /// lock. Without it all look at once.
    const QUEUE: bool = true;
    /// Whether a spinner reads the lock before it tries to change it. Without it
    /// each look is a compare-exchange, which takes the line from the owner.
    const READ_FIRST: bool = true;
    /// Whether a queue of spinners answers for the sleepers, so that a release
    /// that somebody spins for wakes nobody. Without it each release that leaves
    /// sleepers behind wakes one.
    const VOUCH: bool = true;

    /// Whether a thread may join a queue of spinners whose last one is `tail`.
    fn joins(tail: Option<Slot>, processors: u32) -> bool;

    /// Whether a thread that may not join spins beside the queue: only for a lock with an
    /// owner, who can be asked for.
    fn beside(_processors: u32) -> bool {
        false
    }
}

/// The shipped policy. Each number has its measurement in
/// `docs/benchmarks-contended.md`.
#[derive(Clone, Copy, Debug)]
pub struct Standard;

impl Policy for Standard {
    const SPIN: u64 = 30_000;
    const ASK: u64 = 5_000;
    const TURNS: u32 = 64;
    const GAP: u64 = 20_000;
    const STALE: u64 = 50_000;
    const LOOK: u64 = 3_000;
    const FIRST: u32 = 1;
    const BOUND: u64 = 3_000_000;
    const SHARE: u64 = 500_000;
    const HEIR_SPIN: u64 = 15_000;
    const MISSES: u32 = 1;

    fn joins(tail: Option<Slot>, processors: u32) -> bool {
        match processors {
            0 | 1 => false,
            // One runs the owner, one the spinner: a second spinner would run
            // in the owner's place.
            2 => tail.is_none(),
            _ => true,
        }
    }

    /// On two processors, who runs and is neither the owner nor the spinner has taken the
    /// processor of one of them, of the spinner in half of the cases that were asked
    /// about: then the lock changes hands meanwhile, and with the only one in the queue
    /// not running, each of those who use it would have to sleep for it.
    fn beside(processors: u32) -> bool {
        processors == 2
    }
}

/// Never spins: sleeps as soon as the fast path fails. The baseline that
/// spinning is measured against.
#[derive(Clone, Copy, Debug)]
pub struct NoSpin;

impl Policy for NoSpin {
    const SPIN: u64 = 0;
    const TURNS: u32 = Standard::TURNS;
    const GAP: u64 = Standard::GAP;
    const STALE: u64 = Standard::STALE;
    const LOOK: u64 = 0;
    const FIRST: u32 = 1;
    const BOUND: u64 = Standard::BOUND;
    const SHARE: u64 = Standard::SHARE;
    const HEIR_SPIN: u64 = 0;

    fn joins(_tail: Option<Slot>, _processors: u32) -> bool {
        false
    }
}

//! The ingredients that reports name, and what each of them is.
//!
//! `lockstead_core::policy::Without` leaves out those that are a policy's; the machines of
//! `machines.rs` and `subjects.rs` leave out the others.

use serde::Serialize;

/// An ingredient of a lock, which can be left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Ingredient {
    /// The fast path is compiled into the caller.
    Inline,
    /// A thread that finds the lock taken spins before it sleeps.
    Spinning,
    /// Spinners stand in a queue; one at a time looks at the lock.
    Queue,
    /// Spinners read the lock before they try to change it.
    ReadFirst,
    /// Spinners ask whether the owner runs.
    OwnerRunning,
    /// The lock is reserved for a waiter past the bound.
    Handoff,
    /// A release that somebody spins for wakes nobody.
    WakeUps,
    /// A waiter past whom others have barged sleeps by a timer of its own, and is not woken.
    BackOff,
    /// A release that wakes anybody wakes one.
    OneWake,
    /// The fast paths say who has the lock.
    Owner,
    /// The release is a store that the kernel restarts.
    OneAtomic,
    /// A lock that was contended keeps to releases that need not be restarted, for a while.
    SlowUnlocks,
    /// A thread that finds the only spinner's place taken spins beside it, on two processors.
    Beside,
    /// A spinner that was itself preempted leaves.
    Preemption,
    /// The distance between a spinner's looks grows with the time it has spent.
    SpacedLooks,
    /// The bound on waiting, which is not left out but chosen otherwise: the lock "without" it has
    /// a bound of 1 ms, however many sleep, in place of the shipped one.
    #[serde(rename = "bound-1ms")]
    ShortBound,
}

impl Ingredient {
    /// All, in the order of the reports.
    pub const ALL: [Ingredient; 10] = [
        Ingredient::Inline,
        Ingredient::Spinning,
        Ingredient::Queue,
        Ingredient::ReadFirst,
        Ingredient::OwnerRunning,
        Ingredient::Handoff,
        Ingredient::WakeUps,
        Ingredient::BackOff,
        Ingredient::OneWake,
        Ingredient::Owner,
    ];

    /// The ingredients of a contended mutex that `bench ablation` knows, in the order of the
    /// reports.
    pub const MUTEX: [Ingredient; 15] = [
        Ingredient::Spinning,
        Ingredient::Queue,
        Ingredient::Beside,
        Ingredient::ReadFirst,
        Ingredient::SpacedLooks,
        Ingredient::OwnerRunning,
        Ingredient::Preemption,
        Ingredient::Handoff,
        Ingredient::ShortBound,
        Ingredient::WakeUps,
        Ingredient::BackOff,
        Ingredient::OneWake,
        Ingredient::OneAtomic,
        Ingredient::SlowUnlocks,
        Ingredient::Inline,
    ];

    /// Returns the name that reports write.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Ingredient::Inline => "inline",
            Ingredient::Spinning => "spinning",
            Ingredient::Queue => "queue",
            Ingredient::ReadFirst => "read-first",
            Ingredient::OwnerRunning => "owner-running",
            Ingredient::Handoff => "handoff",
            Ingredient::WakeUps => "wake-ups",
            Ingredient::BackOff => "back-off",
            Ingredient::OneWake => "one-wake",
            Ingredient::Owner => "owner",
            Ingredient::OneAtomic => "one-atomic",
            Ingredient::SlowUnlocks => "slow-unlocks",
            Ingredient::Beside => "beside",
            Ingredient::Preemption => "preemption",
            Ingredient::SpacedLooks => "spaced-looks",
            Ingredient::ShortBound => "bound-1ms",
        }
    }

    /// Returns what it is, and what there is without it.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Ingredient::Inline => "fast paths in the caller; without: two calls",
            Ingredient::Spinning => "spin, then sleep; without: sleep at once",
            Ingredient::Queue => {
                "one spinner looks at a time, and covers the sleepers; without: all look, and \
                 none covers"
            }
            Ingredient::ReadFirst => {
                "read, then compare-exchange; without: each look is a compare-exchange"
            }
            Ingredient::OwnerRunning => {
                "no spinning for an owner that does not run; without: the bound alone ends it"
            }
            Ingredient::Handoff => {
                "the lock is reserved for a waiter past the bound; without: first come"
            }
            Ingredient::WakeUps => {
                "a release that is spun for wakes nobody; without: it wakes a sleeper all the same"
            }
            Ingredient::BackOff => {
                "a waiter past whom others barged sleeps by a timer; without: it asks to be woken"
            }
            Ingredient::OneWake => {
                "a release wakes one sleeper; without: it wakes all, and one of them gets the lock"
            }
            Ingredient::Owner => {
                "fast paths name the owner; without: one number for all (undisputed pairs alone)"
            }
            Ingredient::OneAtomic => {
                "a release is a store that the kernel restarts; without: a locked instruction"
            }
            Ingredient::SlowUnlocks => {
                "a lock that was contended is released by a locked instruction for a while; \
                 without: each sleeper restarts the others' releases"
            }
            Ingredient::Beside => {
                "on two processors, spin also where the one spinner's place is taken; without: \
                 sleep at once"
            }
            Ingredient::Preemption => {
                "a spinner that was preempted leaves at once; without: when its time is up"
            }
            Ingredient::SpacedLooks => {
                "a spinner's looks come at growing distances; without: at every turn"
            }
            Ingredient::ShortBound => {
                "no ingredient but a choice, the bound on waiting; held against it: 1 ms, however \
                 many sleep"
            }
        }
    }

    /// Tells whether it is not left out but chosen otherwise.
    #[must_use]
    pub const fn is_choice(self) -> bool {
        matches!(self, Ingredient::ShortBound)
    }
}

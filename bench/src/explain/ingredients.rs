//! What a lock is made of here, each ingredient by its name, and a policy that
//! leaves out whichever one wants.
//!
//! Nothing is copied: the locks are the core's own, with a policy whose constants
//! follow from a set of bits that is a parameter of its type.

use lockstead_core::{Policy, Slot, Standard};
use serde::{Serialize, Serializer};

/// What can be left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ingredient {
    /// The fast path is compiled into the caller.
    Inline,
    /// Who finds the lock taken spins before it sleeps.
    Spinning,
    /// Spinners stand in a queue; one at a time looks at the lock.
    Queue,
    /// Spinners read the lock before they try to change it.
    ReadFirst,
    /// Spinners ask whether the owner runs.
    OwnerRunning,
    /// A waiter past the bound is kept the lock.
    Handoff,
    /// A release that somebody spins for wakes nobody.
    WakeUps,
    /// Who is passed by sleeps by a timer of its own, and is not woken.
    Naps,
    /// A release that wakes anybody wakes one.
    OneWake,
    /// The fast paths say who has the lock.
    Owner,
    /// The release is a store that the kernel restarts.
    OneAtomic,
    /// A lock that was fought over keeps to releases that need not be restarted.
    Heat,
    /// On two processors, who finds the only spinner's place taken spins beside it.
    Beside,
    /// A spinner that was itself preempted leaves.
    Preemption,
    /// The distance between a spinner's looks grows with the time it has spent.
    SpacedLooks,
    /// Not left out but chosen otherwise: the bound on waiting.
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
        Ingredient::Naps,
        Ingredient::OneWake,
        Ingredient::Owner,
    ];

    /// Those of a contended mutex, in the order of the reports: what `bench ablation` knows.
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
        Ingredient::Naps,
        Ingredient::OneWake,
        Ingredient::OneAtomic,
        Ingredient::Heat,
        Ingredient::Inline,
    ];

    /// Its name in reports.
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
            Ingredient::Naps => "naps",
            Ingredient::OneWake => "one-wake",
            Ingredient::Owner => "owner",
            Ingredient::OneAtomic => "one-atomic",
            Ingredient::Heat => "heat",
            Ingredient::Beside => "beside",
            Ingredient::Preemption => "preemption",
            Ingredient::SpacedLooks => "spaced-looks",
            Ingredient::ShortBound => "bound-1ms",
        }
    }

    /// What it is, and what there is without it.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Ingredient::Inline => "fast paths in the caller; without: two calls",
            Ingredient::Spinning => "spin, then sleep; without: sleep at once",
            Ingredient::Queue => {
                "one spinner looks at a time, and answers for sleepers; without: all look, and \
                 none answers"
            }
            Ingredient::ReadFirst => {
                "read, then compare-exchange; without: each look is a compare-exchange"
            }
            Ingredient::OwnerRunning => {
                "no spinning for an owner that does not run; without: the bound alone ends it"
            }
            Ingredient::Handoff => {
                "the lock is kept for who has waited past the bound; without: first come"
            }
            Ingredient::WakeUps => {
                "a release that is spun for wakes nobody; without: it wakes a sleeper all the same"
            }
            Ingredient::Naps => {
                "who is passed by sleeps by a timer of its own; without: it asks to be woken"
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
            Ingredient::Heat => {
                "a lock that was fought over is released by a locked instruction for a while; \
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

    /// Whether it is not left out but chosen otherwise.
    #[must_use]
    pub const fn is_choice(self) -> bool {
        matches!(self, Ingredient::ShortBound)
    }

    /// Its place in a set.
    pub(crate) const fn bit(self) -> u32 {
        1 << self as u32
    }
}

impl Serialize for Ingredient {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Whether a set of ingredients holds this one.
pub(crate) const fn lacks(set: u32, ingredient: Ingredient) -> bool {
    set & ingredient.bit() != 0
}

/// A bound that nobody reaches: 36 years.
const NEVER: u64 = 1 << 60;

/// The standard policy without the ingredients in `LACKS`. That of the caller's
/// code, that of the process and those of the machine ([`Ingredient::Inline`],
/// [`Ingredient::OwnerRunning`], [`Ingredient::OneWake`], [`Ingredient::Owner`],
/// [`Ingredient::OneAtomic`], [`Ingredient::Heat`]) are no policy's business.
pub(crate) struct Without<const LACKS: u32>;

impl<const LACKS: u32> Policy for Without<LACKS> {
    const SPIN: u64 = Standard::SPIN;
    const ASK: u64 = Standard::ASK;
    // An heir makes so many turns before it asks whether its time is up.
    const TURNS: u32 = if lacks(LACKS, Ingredient::Spinning) { 1 } else { Standard::TURNS };
    const GAP: u64 = if lacks(LACKS, Ingredient::Preemption) { NEVER } else { Standard::GAP };
    const STALE: u64 = Standard::STALE;
    const LOOK: u64 = if lacks(LACKS, Ingredient::SpacedLooks) { 0 } else { Standard::LOOK };
    const PARTS: u32 =
        if lacks(LACKS, Ingredient::SpacedLooks) { u32::MAX } else { Standard::PARTS };
    const FIRST: u32 = Standard::FIRST;
    const BOUND: u64 = if lacks(LACKS, Ingredient::Handoff) {
        NEVER
    } else if lacks(LACKS, Ingredient::ShortBound) {
        1_000_000
    } else {
        Standard::BOUND
    };
    const SHARE: u64 = if lacks(LACKS, Ingredient::ShortBound) { 0 } else { Standard::SHARE };
    const HEIR_SPIN: u64 = if lacks(LACKS, Ingredient::Spinning) { 0 } else { Standard::HEIR_SPIN };
    const UNMARKED: u32 = Standard::UNMARKED;
    const MISSES: u32 = if lacks(LACKS, Ingredient::Naps) { 0 } else { Standard::MISSES };
    const NAP: u64 = Standard::NAP;
    const DOUBLINGS: u32 = Standard::DOUBLINGS;
    const QUEUE: bool = !lacks(LACKS, Ingredient::Queue);
    const READ_FIRST: bool = !lacks(LACKS, Ingredient::ReadFirst);
    const VOUCH: bool = !lacks(LACKS, Ingredient::WakeUps);

    fn joins(tail: Option<Slot>, processors: u32) -> bool {
        !lacks(LACKS, Ingredient::Spinning) && Standard::joins(tail, processors)
    }

    fn beside(processors: u32) -> bool {
        !lacks(LACKS, Ingredient::Spinning)
            && !lacks(LACKS, Ingredient::Beside)
            && Standard::beside(processors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The constants of a policy, by name.
    fn constants<Y: Policy>() -> Vec<(&'static str, u64)> {
        macro_rules! list {
            ($($name:ident)*) => { vec![$((stringify!($name), Y::$name as u64)),*] };
        }
        list!(SPIN ASK TURNS GAP STALE LOOK PARTS FIRST BOUND SHARE HEIR_SPIN UNMARKED MISSES NAP
              DOUBLINGS QUEUE READ_FIRST VOUCH)
    }

    /// What differs from the standard policy without these.
    fn changed<const LACKS: u32>() -> Vec<&'static str> {
        let pairs = constants::<Standard>().into_iter().zip(constants::<Without<LACKS>>());
        pairs.filter(|(standard, without)| standard != without).map(|(s, _)| s.0).collect()
    }

    #[test]
    fn an_ingredient_changes_what_it_is_made_of_and_nothing_else() {
        macro_rules! changes {
            ($ingredient:ident: $($name:expr),*) => {
                assert_eq!(changed::<{ Ingredient::$ingredient.bit() }>(), [$($name),*] as [&str; _]);
            };
        }
        changes!(Spinning: "TURNS", "HEIR_SPIN");
        changes!(Queue: "QUEUE");
        changes!(ReadFirst: "READ_FIRST");
        changes!(Handoff: "BOUND");
        changes!(WakeUps: "VOUCH");
        changes!(Naps: "MISSES");
        changes!(Preemption: "GAP");
        changes!(SpacedLooks: "LOOK", "PARTS");
        changes!(ShortBound: "BOUND", "SHARE");
        // These are no policy's business.
        changes!(Inline:);
        changes!(OwnerRunning:);
        changes!(OneWake:);
        changes!(Owner:);
        changes!(Beside:);
        changes!(OneAtomic:);
        changes!(Heat:);
        assert!(changed::<0>().is_empty());
        for processors in [1, 2, 64] {
            assert_eq!(Without::<0>::joins(None, processors), Standard::joins(None, processors));
            assert_eq!(Without::<0>::beside(processors), Standard::beside(processors));
        }
        assert!(!Without::<{ Ingredient::Spinning.bit() }>::joins(None, 64));
        assert!(!Without::<{ Ingredient::Spinning.bit() }>::beside(2));
        assert!(!Without::<{ Ingredient::Beside.bit() }>::beside(2));
    }

    /// A number that is not passed on would be the trait's, and not the standard policy's.
    #[test]
    fn every_constant_of_a_policy_is_known_here() {
        let source = include_str!("../../../crates/core/src/policy.rs");
        let source = source.split("\n}\n").find(|part| part.contains("pub trait Policy"));
        let declared: Vec<&str> = source
            .expect("the trait")
            .lines()
            .filter_map(|line| line.trim().strip_prefix("const ")?.split(':').next())
            .collect();
        let known: Vec<&str> = constants::<Standard>().into_iter().map(|(name, _)| name).collect();
        assert_eq!(declared, known);
        let own = include_str!("ingredients.rs");
        for name in declared {
            assert!(own.contains(&format!("    const {name}: ")), "{name} is not passed on");
        }
    }
}

//! Policies and small helpers that the models share.

use lockstead_core::{Policy, Slot};

/// A bound that no model reaches: nobody asks to be handed the lock.
pub(crate) const NEVER: u64 = 1 << 62;

macro_rules! policy {
    ($(#[$doc:meta])* $name:ident: spin $spin:expr, stale $stale:expr, bound $bound:expr,
     handoff $handoff:expr, joins $joins:expr $(, ask $ask:expr)? $(, beside $beside:literal)?
     $(, backoff $backoff:expr)? $(, gives_way $yields:expr)?
     $(, refused $refused:literal)?) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name;

        impl Policy for $name {
            // Models state everything: what they explore does not follow the shipped numbers.
            type Base = Self;
            const SPIN: u64 = $spin;
            const ASK: u64 = 0 $(+ $ask)?;
            // One turn, one look at the clock: what a spinner does after many
            // turns it does after one.
            const TURNS: u32 = 1;
            const GAP: u64 = 500;
            const STALE: u64 = $stale;
            const LOOK: u64 = 0;
            const PARTS: u32 = 6;
            const FIRST: u32 = 1;
            const BOUND: u64 = $bound;
            const SHARE: u64 = 0;
            const HANDOFF_SPIN: u64 = $handoff;
            const LOOKS_BEFORE_MARK: u32 = 0;
            const BACKOFF_AFTER: u32 = 0 $(+ $backoff)?;
            const BACKOFF_SLEEP: u64 = 10;
            const BACKOFF_DOUBLINGS: u32 = 1;
            const BATCH: u64 = 0 $(+ $yields)?;
            const YIELDS: u32 = 0 $(+ $yields)?;
            const QUEUE: bool = true;
            const READ_FIRST: bool = true;
            const COVER: bool = true;

            fn joins(tail: Option<Slot>, processors: u32) -> bool {
                let joins: fn(Option<Slot>, u32) -> bool = $joins;
                joins(tail, processors)
            }

            fn beside(_processors: u32) -> bool {
                false $(|| $beside)?
            }

            fn backs_off_refused(_processors: u32) -> bool {
                false $(|| $backoff > 0)? $(|| $refused)?
            }
        }
    };
}

policy!(
    /// A policy that sleeps at once.
    Sleeps: spin 0, stale 0, bound NEVER, handoff 0, joins |_, _| false
);
policy!(
    /// Spins until it gets the lock, or time jumps.
    Spins: spin 1 << 40, stale 1 << 40, bound NEVER, handoff 1 << 40, joins |_, _| true
);
policy!(
    /// Spins if nobody else does.
    Pairs: spin 1 << 40, stale 1 << 40, bound NEVER, handoff 0, joins |tail, _| tail.is_none()
);
policy!(
    /// The same, and would ask for the owner later than it spins.
    PairsUnasked: spin 1 << 40, stale 1 << 40, bound NEVER, handoff 0,
    joins |tail, _| tail.is_none(), ask 1 << 41
);
policy!(
    /// One stands in the queue and the others spin beside it, like the standard policy
    /// on two processors.
    Beside: spin 1 << 40, stale 1 << 40, bound NEVER, handoff 0,
    joins |tail, _| tail.is_none(), beside true
);
policy!(
    /// The same, each until it is barged past once, and sleeps to back off.
    BesideAndBacksOff: spin 1 << 40, stale 1 << 40, bound u64::MAX, handoff 0,
    joins |tail, _| tail.is_none(), beside true, backoff 1
);
policy!(
    /// One stands in the queue and the others spin beside it, each for one turn.
    LeavesBeside: spin 0, stale 1 << 40, bound NEVER, handoff 0,
    joins |tail, _| tail.is_none(), beside true
);
policy!(
    /// The same, and asks to be handed the lock.
    BesideAndInsists: spin 0, stale 1 << 40, bound 1, handoff 0,
    joins |tail, _| tail.is_none(), beside true
);
policy!(
    /// Leaves the queue after one turn.
    Leaves: spin 0, stale 1 << 40, bound NEVER, handoff 0, joins |_, _| true
);
policy!(
    /// Spins; whoever has not been seen since the clock jumped is passed over.
    Passes: spin 1 << 40, stale 100, bound NEVER, handoff 0, joins |_, _| true
);
policy!(
    /// Asks to be handed the lock as soon as it has slept once or time moved.
    Insists: spin 0, stale 0, bound 1, handoff 0, joins |_, _| false
);
policy!(
    /// Everything at once: spins, leaves, and asks for the lock.
    Mixed: spin 0, stale 100, bound 1, handoff 0, joins |_, _| true
);
policy!(
    /// Spins until it is barged past once, and sleeps to back off. Nothing else has a timer.
    SpinsAndBacksOff: spin 1 << 40, stale 1 << 40, bound u64::MAX, handoff 0,
    joins |tail, _| tail.is_none(), backoff 1
);
policy!(
    /// Sleeps at once, and sleeps to back off when woken in vain.
    SleepsAndBacksOff: spin 0, stale 0, bound u64::MAX, handoff 0, joins |_, _| false, backoff 1
);
policy!(
    /// The same, until it insists.
    BacksOffAndInsists: spin 0, stale 0, bound 30, handoff 0, joins |_, _| false, backoff 1
);

policy!(
    /// Gives way once before it sleeps, and whenever time has passed since it last did.
    GivesWay: spin 0, stale 0, bound NEVER, handoff 0, joins |_, _| false, gives_way 1
);
policy!(
    /// The same, and asks to be handed the lock.
    GivesWayAndInsists: spin 0, stale 0, bound 1, handoff 0, joins |_, _| false, gives_way 1
);
policy!(
    /// The same, and sleeps to back off when it is refused a sleep. Nothing else has a timer.
    GivesWayAndBacksOff: spin 0, stale 0, bound u64::MAX, handoff 0, joins |_, _| false, gives_way 1,
    refused true
);
policy!(
    /// Spins beside the queue for a turn, gives way, and asks to be handed the lock.
    SpinsAndGivesWay: spin 0, stale 1 << 40, bound 30, handoff 0,
    joins |tail, _| tail.is_none(), beside true, gives_way 1
);

/// Checks that `$scenario` passes with the locks as they ship, and fails as `$kind` says with
/// the variant that is broken at `fault!($name)`. The second part is left out if the locks
/// themselves are [mutated](mutated).
macro_rules! missed {
    ($scenario:expr, $name:ident, $kind:pat, $config:expr) => {{
        let (scenario, config, name) = ($scenario, &$config, stringify!($name));
        let stats = scenario.check(config).expect("correct as shipped");
        println!("{name}: {stats}");
        missed_if_broken!(scenario, $name, $kind, config);
    }};
}

/// Does the second half of what `missed!` does.
macro_rules! missed_if_broken {
    ($scenario:expr, $name:ident, $kind:pat, $config:expr) => {{
        let name = stringify!($name);
        if !$crate::common::mutated() {
            match $scenario.check(&$config.clone().broken(name)) {
                Ok(stats) => panic!("{name}: not missed: {stats}"),
                Err(failure) => assert!(matches!(failure.kind, $kind), "{name}: {failure}"),
            }
        }
    }};
}

/// Checks that `$scene` passes where all rules are kept, and fails as `$kind` says by these `$rules`,
/// of which the one that `$name` says is broken. The second part is left out if the locks themselves are
/// [mutated](mutated).
macro_rules! breaks {
    ($scene:expr, $rules:expr, $name:ident, $kind:pat, $config:expr) => {{
        let (name, config) = (stringify!($name), $config);
        let stats = $scene(super::world::Rules::KEPT).check(&config).expect("correct as shipped");
        println!("{name}: {stats}");
        if !$crate::common::mutated() {
            match $scene($rules).check(&config) {
                Ok(stats) => panic!("{name}: not missed: {stats}"),
                Err(failure) => assert!(matches!(failure.kind, $kind), "{name}: {failure}"),
            }
        }
    }};
}

/// Tells whether a mutant of the locks is under test (`cargo xtask mutants`): that a fault is no
/// longer noticed then does not mean that the mutant is.
pub(crate) fn mutated() -> bool {
    std::env::var_os("LOCKSTEAD_MUTANT").is_some()
}

/// Tells whether the long searches are asked for (`LOCKSTEAD_MODEL_DEEP=1`).
pub(crate) fn deep() -> bool {
    std::env::var("LOCKSTEAD_MODEL_DEEP").is_ok_and(|v| v == "1")
}

/// Returns `usual`, or `thorough` when the long searches are asked for.
pub(crate) fn depth<T>(usual: T, thorough: T) -> T {
    if deep() { thorough } else { usual }
}

/// Declares tests, each of which shows that a scenario of the module `$place` of segments fails
/// with a variant that is broken, and how. (That it passes as shipped, other tests show.)
macro_rules! misses {
    (in $place:ident; $($name:ident: $fault:ident, $kind:pat, $config:expr,
     { $($scenario:tt)+ })+) => {
        $(
            #[test]
            fn $name() {
                use super::segment::$place::*;
                if $crate::common::mutated() {
                    return;
                }
                let fault = stringify!($fault);
                match ($($scenario)+).check(&$config.broken(fault)) {
                    Ok(stats) => panic!("{fault} is not missed: {stats}"),
                    Err(failure) => {
                        assert!(matches!(failure.kind, $kind), "{fault}: {failure}");
                        println!("{fault}: after {} executions", failure.executions);
                    }
                }
            }
        )+
    };
}

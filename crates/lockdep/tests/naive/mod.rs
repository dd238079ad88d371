//! The same answers by looking at everything: all cycles, all witnesses.

use lockstead_lockdep::{GateLock, InversionStep, LockId, Mode, OrderEdge};
use std::collections::BTreeSet;

/// An edge with what it held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) from_mode: Mode,
    pub(crate) to_mode: Mode,
    pub(crate) thread: u32,
    pub(crate) gates: Vec<GateLock>,
    pub(crate) alone: bool,
    /// Tells it from others that look the same.
    pub(crate) site: u32,
}

impl Seen {
    pub(crate) fn edge(&self) -> OrderEdge<'_> {
        OrderEdge {
            from: LockId(self.from),
            to: LockId(self.to),
            from_mode: self.from_mode,
            to_mode: self.to_mode,
            from_site: lockstead_lockdep::SiteId(self.site),
            to_site: lockstead_lockdep::SiteId(self.site),
            thread: lockstead_lockdep::ThreadId(self.thread),
            gates: &self.gates,
            alone: self.alone,
            tried_from: false,
            timed_to: false,
        }
    }

    /// Returns what the thread holds: the lock that the edge comes from, and the gates.
    fn held(&self) -> impl Iterator<Item = (u32, bool)> + '_ {
        let from = (self.from, self.from_mode != Mode::Write);
        self.gates.iter().map(|gate| (gate.lock.0, gate.shared)).chain([from])
    }

    /// Tells whether this one proves whatever the other one does.
    pub(crate) fn covers(&self, other: &Seen) -> bool {
        (self.from, self.to, self.thread) == (other.from, other.to, other.thread)
            && no_weaker((self.from_mode, self.to_mode), (other.from_mode, other.to_mode))
            && self.alone <= other.alone
            && self.held().all(|(lock, shared)| {
                other.held().any(|(also, both)| lock == also && shared >= both)
            })
    }

    /// Tells whether two threads can be at these two edges at the same time.
    fn together(&self, other: &Seen) -> bool {
        self.thread != other.thread
            && !self.held().any(|(lock, shared)| {
                other.held().any(|(also, both)| lock == also && !(shared && both))
            })
    }
}

/// Tells whether the request waits behind the hold.
pub(crate) fn waits(asked: Mode, held: Mode) -> bool {
    asked != Mode::ReadRecursive || held == Mode::Write
}

/// Tells whether an edge of these modes allows as much as one of those.
fn no_weaker(a: (Mode, Mode), b: (Mode, Mode)) -> bool {
    let shared = |mode: Mode| mode != Mode::Write;
    let recursive = |mode: Mode| mode == Mode::ReadRecursive;
    shared(a.0) <= shared(b.0) && recursive(a.1) <= recursive(b.1)
}

/// Returns all cycles of different locks that begin with `first`, each with one witness an edge,
/// for which `fits` holds of each new member and those before it.
pub(crate) fn cycles(
    all: &[Seen],
    first: &Seen,
    fits: &dyn Fn(&[Seen], &Seen) -> bool,
    report: &mut dyn FnMut(&[Seen]),
) {
    fn go(
        all: &[Seen],
        cycle: &mut Vec<Seen>,
        fits: &dyn Fn(&[Seen], &Seen) -> bool,
        report: &mut dyn FnMut(&[Seen]),
    ) {
        let (first, last) = (cycle[0].clone(), cycle[cycle.len() - 1].clone());
        for next in all {
            if next.from != last.to
                || !waits(last.to_mode, next.from_mode)
                || cycle.iter().any(|seen| seen.from == next.from)
                || !fits(cycle, next)
            {
                continue;
            }
            if next.to == first.from {
                if waits(next.to_mode, first.from_mode) {
                    cycle.push(next.clone());
                    report(cycle);
                    cycle.pop();
                }
            } else if cycle.iter().all(|seen| seen.from != next.to) {
                cycle.push(next.clone());
                go(all, cycle, fits, report);
                cycle.pop();
            }
        }
    }
    go(all, &mut vec![first.clone()], fits, report);
}

/// The length of the shortest cycles, and what the classes of each of them are.
pub(crate) type Shortest = Option<(usize, BTreeSet<Vec<u32>>)>;

fn shortest(class: &dyn Fn(u32) -> u32) -> impl FnMut(&mut Shortest, &[Seen]) + '_ {
    move |best, cycle| {
        let mut cause: Vec<u32> = cycle.iter().map(|seen| class(seen.from)).collect();
        cause.sort_unstable();
        cause.dedup();
        match best {
            Some((length, causes)) if *length == cycle.len() => {
                causes.insert(cause);
            }
            Some((length, _)) if *length < cycle.len() => {}
            _ => *best = Some((cycle.len(), BTreeSet::from([cause]))),
        }
    }
}

/// Returns the shortest cycles through `new` that its witness and others prove.
pub(crate) fn potential(all: &[Seen], new: &Seen, class: &dyn Fn(u32) -> u32) -> Shortest {
    let mut best = None;
    if new.alone {
        return best;
    }
    let fits = |cycle: &[Seen], next: &Seen| !next.alone && cycle.iter().all(|s| s.together(next));
    let mut keep = shortest(class);
    cycles(all, new, &fits, &mut |cycle| keep(&mut best, cycle));
    best
}

/// Returns the shortest cycles through `new`.
pub(crate) fn order(all: &[Seen], new: &Seen, class: &dyn Fn(u32) -> u32) -> Shortest {
    let mut best = None;
    let mut keep = shortest(class);
    cycles(all, new, &|_, _| true, &mut |cycle| keep(&mut best, cycle));
    best
}

/// Tells whether an edge of this one's kind is news, given all before it.
pub(crate) fn is_new_kind(all: &[Seen], new: &Seen) -> bool {
    !all.iter().any(|seen| {
        (seen.from, seen.to) == (new.from, new.to)
            && no_weaker((seen.from_mode, seen.to_mode), (new.from_mode, new.to_mode))
    })
}

/// Returns what a step of a finding says.
pub(crate) fn of_step(step: &InversionStep) -> Seen {
    let witness = &step.witness;
    Seen {
        from: step.from.0,
        to: step.to.0,
        from_mode: witness.from_mode,
        to_mode: witness.to_mode,
        thread: witness.thread.0,
        gates: witness.gates.clone(),
        alone: witness.alone,
        site: witness.from_site.0,
    }
}

/// Tells whether the threads of a cycle can deadlock.
pub(crate) fn proves(cycle: &[Seen]) -> bool {
    cycle
        .iter()
        .enumerate()
        .all(|(index, seen)| !seen.alone && cycle[..index].iter().all(|other| other.together(seen)))
}

/// Tells whether each of two orders of classes was taken with two pairs of locks or more, and these
/// two by threads that hold nothing alike.
pub(crate) fn is_habit(steps: &[Seen], ever: &[Seen], class: &dyn Fn(u32) -> u32) -> bool {
    let [one, other] = steps else { return false };
    let classes = |seen: &Seen| (class(seen.from), class(seen.to));
    let pairs = |of: &Seen| -> BTreeSet<(u32, u32)> {
        let alike = ever.iter().filter(|seen| classes(seen) == classes(of) && !seen.alone);
        alike.map(|seen| (seen.from, seen.to)).collect()
    };
    let gates = |seen: &Seen| -> BTreeSet<u32> {
        seen.gates.iter().map(|gate| class(gate.lock.0)).collect()
    };
    classes(one) == (class(other.to), class(other.from))
        && one.thread != other.thread
        && !one.alone
        && !other.alone
        && waits(one.to_mode, other.from_mode)
        && waits(other.to_mode, one.from_mode)
        && gates(one).is_disjoint(&gates(other))
        && [one, other].iter().all(|step| pairs(step).len() >= 2)
}

/// Tells whether a lock of these two classes stands between locks of the other one, and not many on
/// both sides.
pub(crate) fn is_tree(steps: &[Seen], live: &[Seen], class: &dyn Fn(u32) -> u32) -> bool {
    let classes = (class(steps[0].from), class(steps[0].to));
    let of_these = |seen: &&Seen| {
        let found = (class(seen.from), class(seen.to));
        found == classes || found == (classes.1, classes.0)
    };
    let edges: Vec<&Seen> = live.iter().filter(of_these).collect();
    let locks: BTreeSet<u32> = edges.iter().flat_map(|seen| [seen.from, seen.to]).collect();
    locks.iter().any(|lock| {
        let of = |ends: &dyn Fn(&Seen) -> (u32, u32)| -> BTreeSet<u32> {
            let found = edges.iter().map(|seen| ends(seen)).filter(|(own, _)| own == lock);
            found.map(|(_, other)| other).collect()
        };
        let before = of(&|seen| (seen.to, seen.from)).len();
        let after = of(&|seen| (seen.from, seen.to)).len();
        before.min(after) == 1
    })
}

/// Tells whether the requests of a cycle wait for each other, lock by lock.
pub(crate) fn is_cycle(cycle: &[Seen]) -> bool {
    let locks: BTreeSet<u32> = cycle.iter().map(|seen| seen.from).collect();
    locks.len() == cycle.len()
        && cycle
            .iter()
            .zip(cycle.iter().cycle().skip(1))
            .all(|(seen, next)| seen.to == next.from && waits(seen.to_mode, next.from_mode))
}

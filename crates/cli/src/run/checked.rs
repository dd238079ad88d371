//! Findings of the checks, named: between the facts and the reporter.

use super::processes::Observed;
use super::scene::{Scene, ThreadNames, current_name};
use lockstead_inspect::check::facts::{CheckFacts, ThreadFacts};
use lockstead_inspect::check::model::{Details, Level};
use lockstead_inspect::waits::detect::FoundCycle;
use lockstead_ledger::violation::Rule;
use std::collections::{BTreeSet, HashMap};

/// Returns the threads that facts speak of.
fn threads(facts: &CheckFacts) -> Vec<ThreadFacts> {
    match facts {
        CheckFacts::Order(order) => {
            order.steps.iter().map(|step| step.thread).chain(order.handler).collect()
        }
        CheckFacts::Violation(facts) => {
            let violation = &facts.violation;
            vec![
                ThreadFacts { serial: violation.thread, tid: violation.tid },
                ThreadFacts { serial: 0, tid: violation.other_tid },
            ]
        }
    }
}

/// Returns their names as they are now, by the indices of their records.
pub(super) fn names(process: &Observed, facts: &CheckFacts) -> ThreadNames {
    let named = |thread: &ThreadFacts| {
        let index = process.record_of(*thread)?;
        Some((index, current_name(process, thread.tid)?))
    };
    threads(facts).iter().filter_map(named).collect()
}

/// Returns the finding that facts come to.
pub(super) fn details(scene: &mut Scene, facts: &CheckFacts) -> Details {
    let named: HashMap<(u32, u32), Option<String>> = threads(facts)
        .into_iter()
        .map(|thread| ((thread.serial, thread.tid), scene.name_of(thread)))
        .collect();
    let called = |thread: ThreadFacts| named.get(&(thread.serial, thread.tid)).cloned().flatten();
    scene.describe(&called, |describer| match facts {
        CheckFacts::Order(order) => describer.order(order),
        CheckFacts::Violation(violation) => describer.violation(violation),
    })
}

/// Returns what a deadlock is for the checks.
pub(super) fn of_deadlock() -> Details {
    Details {
        level: Some(Level::Deadlock),
        rule: Some(Rule::Deadlock.id().into()),
        ..Details::default()
    }
}

/// The deadlocks of one process that were reported, and what covers them or is
/// covered by them.
#[derive(Default)]
pub(super) struct ReportedDeadlocks {
    /// The locks of each deadlock.
    cycles: Vec<BTreeSet<u64>>,
    /// The threads that locked again what they hold: that was said before they stopped.
    recursions: Vec<(u32, u64)>,
}

impl ReportedDeadlocks {
    /// Notes that a deadlock is reported. Says whether all there is to say of it has been said.
    pub(super) fn note(&mut self, found: &FoundCycle) -> bool {
        self.cycles.push(found.members.iter().filter_map(|member| member.lock).collect());
        let [member] = &found.members[..] else { return false };
        member.lock.is_some_and(|lock| self.recursions.contains(&(member.waiter.tid, lock)))
    }

    /// Returns whether a deadlock of the same locks was reported; takes note of what may become
    /// one.
    pub(super) fn covers(&mut self, facts: &CheckFacts) -> bool {
        match facts {
            CheckFacts::Order(order) => {
                let locks: BTreeSet<u64> = order
                    .steps
                    .iter()
                    .flat_map(|step| [step.from.address, step.to.address])
                    .collect();
                self.cycles.iter().any(|cycle| locks.is_subset(cycle))
            }
            CheckFacts::Violation(facts) => {
                if facts.violation.rule == Rule::Recursion {
                    self.recursions.push((facts.violation.tid, facts.violation.address));
                }
                false
            }
        }
    }
}

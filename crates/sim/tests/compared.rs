//! The locks that are there to be compared with: who has them next, and that everybody gets them.

use lockstead_sim::{Machine, RunSettings, SimLockName, StepKind, TraceStep, Workload, run_traced};

const TASKS: usize = 8;

/// Returns the steps of a storm of tasks that each have a core.
fn steps(lock: SimLockName) -> Vec<TraceStep> {
    let machine = Machine::bundled("westmere-8x10").expect("built in");
    let part = machine.with_nodes(1).and_then(|one| one.with_threads(1)).expect("a part");
    let mut storm = Workload::bundled("storm").expect("built in");
    (storm.compute, storm.warm_up, storm.length) = (1.0, 0.0, 3.0);
    let how = RunSettings { trace: true, ..RunSettings::default() };
    let (figures, steps) = run_traced(&part, lock, &storm, TASKS, how);
    assert_eq!(figures.violations, 0, "{}", lock.name());
    steps
}

/// Returns how often each task had the lock, and how often one task at most had it while another waited.
fn turns(lock: SimLockName) -> ([usize; TASKS], usize) {
    let mut taken = [0; TASKS];
    let mut passed = [None; TASKS];
    let mut most = 0;
    for step in steps(lock) {
        let task = step.task as usize;
        match step.kind {
            StepKind::Ask => passed[task] = Some([0; TASKS]),
            StepKind::Take => {
                taken[task] += 1;
                passed[task] = None;
                for others in passed.iter_mut().flatten() {
                    others[task] += 1;
                    most = most.max(others[task]);
                }
            }
            _ => {}
        }
    }
    (taken, most)
}

#[test]
fn queues_and_tickets_are_taken_in_turn() {
    for lock in [SimLockName::Ticket, SimLockName::Mcs, SimLockName::Clh] {
        let (taken, passed) = turns(lock);
        let (least, most) = (taken.iter().min(), taken.iter().max());
        assert!(least > Some(&20) && most.zip(least).is_some_and(|(m, l)| m - l <= 2), "{taken:?}");
        // Once it may have been on its way to the queue itself.
        assert!(passed <= 2, "{}: passed {passed} times by one task", lock.name());
    }
}

#[test]
fn everybody_gets_a_lock_that_others_may_take_first() {
    let locks = [
        SimLockName::BackOff,
        SimLockName::Futex,
        SimLockName::FutexAdaptive,
        SimLockName::ParkingLot,
        SimLockName::RustStd,
    ];
    for lock in locks {
        let (taken, passed) = turns(lock);
        assert!(taken.iter().all(|&times| times > 5), "{}: {taken:?}", lock.name());
        assert!(passed > 2, "{}: nobody was passed by the same task more often", lock.name());
    }
}

fn count(lock: SimLockName, kind: StepKind) -> usize {
    steps(lock).iter().filter(|step| step.kind == kind).count()
}

#[test]
fn waiters_sleep_where_the_real_ones_do() {
    for lock in [SimLockName::BackOff, SimLockName::Ticket, SimLockName::Mcs, SimLockName::Clh] {
        assert_eq!(count(lock, StepKind::Sleep), 0, "{}", lock.name());
    }
    let sleeps = |lock| count(lock, StepKind::Sleep);
    // Some spinning spares sleeps.
    let plain = sleeps(SimLockName::Futex);
    assert!(plain > 0 && sleeps(SimLockName::FutexAdaptive) > 0);
    assert!(sleeps(SimLockName::RustStd) > 0 && sleeps(SimLockName::ParkingLot) > 0);
    assert!(sleeps(SimLockName::FutexAdaptive) < plain, "{plain}");
}

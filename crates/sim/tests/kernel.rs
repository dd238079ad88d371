//! What the locks cost that the kernel has for those who sleep on a word.

use lockstead_sim::{Machine, RunSettings, SimLockName, Workload, run};

fn epyc(changes: &[(&str, f64)]) -> Machine {
    let mut machine = Machine::bundled("epyc-2x64").expect("built in");
    machine = machine.with_threads(1).expect("one there is");
    for &(name, value) in changes {
        assert!(machine.change(name, |_| value), "{name}");
    }
    machine
}

/// Returns sections a second of a mutex whose waiters sleep, over some seeds.
fn sections(machine: &Machine, lock: SimLockName, tasks: usize, mutexes: usize) -> f64 {
    let mut storm = Workload::bundled("storm").expect("built in");
    (storm.compute, storm.length) = (2.0, 3.0);
    storm.locks[0].many = mutexes;
    let jobs = |seed| {
        let figures =
            run(machine, lock, &storm, tasks, RunSettings { seed, ..RunSettings::default() });
        assert_eq!(figures.violations, 0);
        figures.jobs
    };
    (1..=3).map(jobs).sum()
}

#[test]
fn the_lock_of_a_bucket_costs_the_more_the_more_there_are() {
    let off = epyc(&[("bucket", 0.0)]);
    let of = |tasks| {
        sections(&epyc(&[]), SimLockName::Futex, tasks, 1)
            / sections(&off, SimLockName::Futex, tasks, 1)
    };
    let (few, many) = (of(4), of(64));
    assert!(many < 0.8 && many < few - 0.1, "{few} with 4 tasks, {many} with 64");
}

#[test]
fn who_does_not_sleep_does_not_notice_the_locks_of_the_kernel() {
    let off = epyc(&[("bucket", 0.0), ("queue", 0.0), ("kick", 0.0)]);
    for lock in [SimLockName::Mcs, SimLockName::Ticket] {
        assert_eq!(sections(&epyc(&[]), lock, 32, 1), sections(&off, lock, 32, 1));
    }
}

#[test]
fn mutexes_that_share_a_bucket_slow_each_other() {
    let shared = sections(&epyc(&[("buckets", 1.0)]), SimLockName::Futex, 64, 8);
    let apart = sections(&epyc(&[]), SimLockName::Futex, 64, 8);
    assert!(shared < 0.9 * apart, "{shared} of {apart}");
}

#[test]
fn a_waker_that_keeps_the_bucket_meanwhile_is_something_else() {
    let inside = sections(&epyc(&[("waking", 1.0)]), SimLockName::Futex, 32, 1);
    assert_ne!(inside, sections(&epyc(&[]), SimLockName::Futex, 32, 1));
}

#[test]
fn a_wait_with_a_deadline_ends_though_the_bucket_is_contended() {
    // lockstead's waiters sleep for a bounded time where they back off.
    for buckets in [1.0, 0.0] {
        let machine = epyc(&[("buckets", buckets)]);
        assert!(sections(&machine, SimLockName::Lockstead, 96, 4) > 0.0);
        assert!(sections(&machine, SimLockName::SemaphoreTuned, 96, 4) > 0.0);
    }
}

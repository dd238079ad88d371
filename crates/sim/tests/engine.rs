//! What the engine promises: one seed one run, the same run on two engines, spinning that
//! costs nothing, locks that exclude and let everybody on.

use lockstead_sim::{
    LOCKS, Machine, RunFigures, RunSettings, SimLockName, TraceStep, Workload, run, run_traced,
};

fn westmere() -> Machine {
    Machine::bundled("westmere-8x10").expect("built in")
}

fn storm(length: f64) -> Workload {
    let mut storm = Workload::bundled("storm").expect("built in");
    (storm.warm_up, storm.length) = (0.2, length);
    storm
}

fn same(one: &RunFigures, other: &RunFigures) -> bool {
    format!("{one:?}") == format!("{other:?}")
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_another() {
    let machine = westmere().with_nodes(2).expect("there are two");
    for (lock, name, _) in LOCKS {
        let with = |seed| {
            run(&machine, lock, &storm(0.5), 30, RunSettings { seed, ..RunSettings::default() })
        };
        assert!(same(&with(1), &with(1)), "{name}");
        assert!(!same(&with(1), &with(2)), "{name}");
    }
}

/// Returns the jobs of a storm for all threads of one node, with a number of the machine changed.
fn changed(threads: usize, name: &str, value: f64) -> RunFigures {
    let part = westmere().with_nodes(1).and_then(|one| one.with_threads(threads));
    let mut machine = part.expect("such a part");
    assert!(machine.change(name, |_| value), "{name}");
    run(&machine, SimLockName::Spinning2013, &storm(0.5), 20, RunSettings::default())
}

#[test]
fn exchanges_are_slower_beside_a_busy_sibling_if_the_machine_says_so() {
    assert!(same(&changed(1, "exchanges", 1.0), &changed(1, "exchanges", 0.5)));
    assert!(changed(2, "exchanges", 1.0).jobs > changed(2, "exchanges", 0.1).jobs);
}

#[test]
fn the_time_for_which_a_line_is_kept_varies_if_the_machine_says_so() {
    let with = |variation| changed(1, "hold_variation", variation);
    assert!(same(&with(0.3), &with(0.3)));
    assert!(!same(&with(0.0), &with(0.3)));
}

fn steps(lock: SimLockName, oracle: bool) -> Vec<TraceStep> {
    let machine = westmere().with_nodes(2).expect("there are two");
    let how = RunSettings { seed: 7, oracle, trace: true, ..RunSettings::default() };
    let mut workload = storm(0.05);
    workload.warm_up = 0.0;
    run_traced(&machine, lock, &workload, 24, how).1
}

#[test]
fn coroutines_and_threads_of_the_system_give_the_same_trace() {
    for (lock, name, _) in LOCKS {
        let one = steps(lock, false);
        assert!(one.len() > 300, "{name}: {} steps", one.len());
        assert!(one == steps(lock, true), "{name}");
    }
}

#[test]
fn each_lock_excludes_and_lets_everybody_on() {
    let machines = [
        westmere(),
        westmere().with_nodes(1).and_then(|m| m.with_threads(1)).expect("a part"),
        Machine::bundled("vm-2").expect("built in"),
        Machine::bundled("epyc-2x64").expect("built in"),
    ];
    for machine in &machines {
        for (lock, name, _) in LOCKS {
            for tasks in [2, 40] {
                let figures = run(machine, lock, &storm(2.0), tasks, RunSettings::default());
                assert_eq!(figures.violations, 0, "{name} on {}", machine.name);
                let taken = figures.locks[0].taken;
                assert!(taken > 15, "{name} on {}, {tasks} tasks: {taken}", machine.name);
            }
        }
    }
}

#[test]
fn preempted_holders_do_not_break_a_lock() {
    let mut machine = Machine::bundled("vm-2").expect("built in");
    for (name, value) in [("slice", 3.0), ("latency", 3.0), ("granularity", 1.0)] {
        assert!(machine.change(name, |_| value));
    }
    for (lock, name, _) in LOCKS {
        let figures = run(&machine, lock, &storm(3.0), 12, RunSettings::default());
        assert_eq!(figures.violations, 0, "{name}");
        assert!(figures.locks[0].taken > 50, "{name}: {}", figures.locks[0].taken);
    }
}

/// Returns the throughput over some seeds: single runs near saturation differ by more than is asked
/// here.
fn throughput(
    machine: &Machine,
    lock: SimLockName,
    workload: &Workload,
    tasks: usize,
    every_poll: bool,
) -> (f64, u64) {
    let mut sum = (0.0, 0);
    for seed in 1..=3 {
        let how = RunSettings { seed, every_poll, ..RunSettings::default() };
        let figures = run(machine, lock, workload, tasks, how);
        sum = (sum.0 + figures.jobs, sum.1 + figures.events);
    }
    sum
}

/// Returns a workload with sections long enough that spinners have time to spin.
fn long_sections() -> Workload {
    let mut workload = storm(1.0);
    workload.locks[0].section = 20.0;
    workload
}

#[test]
fn leaving_out_idle_turns_changes_nothing_but_the_work() {
    let full = westmere();
    let single = westmere().with_threads(1).expect("one there is");
    for machine in [full, single] {
        for lock in [SimLockName::Spinning2013, SimLockName::Queued2013] {
            let tasks = 40;
            let workload = long_sections();
            let (elided, few) = throughput(&machine, lock, &workload, tasks, false);
            let (polled, many) = throughput(&machine, lock, &workload, tasks, true);
            let name = lock.name();
            assert!((elided / polled - 1.0).abs() < 0.02, "{name}: {elided} against {polled}");
            assert!(few * 4 < many, "{name}: {few} events against {many}");
        }
    }
}

#[test]
fn spinners_of_the_kernel_cost_nothing_though_others_want_their_processors() {
    let machine = westmere().with_nodes(1).and_then(|m| m.with_threads(1)).expect("a part");
    let mut workload = Workload::bundled("fserver").expect("built in");
    (workload.compute, workload.away) = (40.0, 0.0);
    (workload.warm_up, workload.length) = (3.0, 30.0);
    workload.locks.truncate(1);
    // Spinning takes longer than what is left of many a slice.
    workload.locks[0].write_section = Some(40.0);
    workload.locks[0].writes = 0.2;
    let tasks = 30;
    let (elided, few) = throughput(&machine, SimLockName::Queued2013, &workload, tasks, false);
    let (polled, many) = throughput(&machine, SimLockName::Queued2013, &workload, tasks, true);
    assert!((elided / polled - 1.0).abs() < 0.02, "{elided} against {polled}");
    assert!(few * 200 < many, "{few} events against {many}");
}

#[test]
fn a_thousand_tasks_on_a_thousand_processors_are_simulated() {
    let machine = Machine::bundled("mesh-1024").expect("built in");
    let mut workload = storm(14.8);
    workload.compute = 50.0;
    let figures = run(&machine, SimLockName::Lockstead, &workload, 1000, RunSettings::default());
    assert_eq!(figures.violations, 0);
    assert!(figures.locks[0].taken > 100, "{}", figures.locks[0].taken);
}

#[test]
fn mutexes_beat_the_semaphore_of_2005_and_use_less() {
    let machine = Machine::bundled("smp-8way-2005").expect("built in");
    let workload = Workload::bundled("test-mutex-v").expect("built in");
    let with = |lock| run(&machine, lock, &workload, 16, RunSettings::default());
    let (mutex, semaphore) = (with(SimLockName::Counter2006), with(SimLockName::Semaphore2005));
    assert!(mutex.jobs > 1.3 * semaphore.jobs, "{} {}", mutex.jobs, semaphore.jobs);
    let per_time = |figures: &RunFigures| figures.jobs / figures.busy;
    assert!(per_time(&mutex) > 1.8 * per_time(&semaphore));
}

#[test]
fn part_of_a_machine_runs_though_its_nodes_are_unequal() {
    let part = westmere().with_cores(13).expect("one node and a part of another");
    for (lock, name, _) in LOCKS {
        let figures = run(&part, lock, &storm(0.5), 26, RunSettings::default());
        assert_eq!(figures.violations, 0, "{name}");
        assert!(figures.locks[0].taken > 15 && figures.busy <= 1.0, "{name}");
    }
    // Thirteen cores compute what thirteen can.
    let mut free = storm(5.0);
    (free.compute, free.locks) = (1000.0, Vec::new());
    let single = part.with_threads(1).expect("one there is");
    let jobs = run(&single, SimLockName::Futex, &free, 26, RunSettings::default()).jobs;
    assert!((jobs / 13_000.0 - 1.0).abs() < 0.05, "{jobs}");
}

#[test]
fn waits_that_have_not_ended_count() {
    let machine = Machine::bundled("epyc-2x64").expect("built in");
    let mut workload = storm(10.0);
    // The first one keeps the lock for longer than is simulated.
    workload.locks[0].section = 1e6;
    for (lock, name, _) in LOCKS {
        let figures = run(&machine, lock, &workload, 4, RunSettings::default());
        let hot = &figures.locks[0];
        assert_eq!((figures.waiting(), hot.waiting), (3, 3), "{name}");
        assert!(
            (figures.longest() - figures.seconds).abs() < 1e-6,
            "{name}: {}",
            figures.longest()
        );
        assert!(!figures.longest_ended(), "{name}");
        assert_eq!(hot.wait, 3 * hot.longest, "{name}");
        assert_eq!(hot.held, hot.longest, "{name}: it is held all the time");
    }
    // Nobody waits where there is one.
    let figures = run(&machine, SimLockName::Lockstead, &workload, 1, RunSettings::default());
    assert_eq!((figures.waiting(), figures.longest_ended()), (0, true));
}

//! Where tasks go: cores before their threads, idle processors to who queues or shares a core.

use lockstead_sim::{Machine, RunFigures, RunSettings, SimLockName, Workload, run};

/// Returns a workload without a lock: 10 µs of computing are a job.
fn free() -> Workload {
    let mut workload = Workload::bundled("storm").expect("built in");
    (workload.compute, workload.locks) = (10.0, Vec::new());
    (workload.warm_up, workload.length) = (1.0, 5.0);
    workload
}

fn epyc() -> Machine {
    Machine::bundled("epyc-2x64").expect("built in")
}

fn with(machine: &Machine, workload: &Workload, tasks: usize) -> RunFigures {
    run(machine, SimLockName::Futex, workload, tasks, RunSettings::default())
}

/// Returns the throughput over what as many cores would have, without and with a change.
fn linear(tasks: usize, changes: &[(&str, f64)]) -> f64 {
    let mut machine = epyc();
    for &(name, value) in changes {
        assert!(machine.change(name, |_| value), "{name}");
    }
    with(&machine, &free(), tasks).jobs / (100_000.0 * tasks as f64)
}

#[test]
fn tasks_have_cores_to_themselves_while_there_are_any() {
    for tasks in [1, 2, 3, 64, 128] {
        let of = linear(tasks, &[]);
        assert!((of - 1.0).abs() < 0.001, "{tasks} tasks: {of} of linear");
    }
    // Beyond that a core's two threads are each as fast as the machine's file says.
    assert!((linear(256, &[]) - 0.62).abs() < 0.001);
}

#[test]
fn a_scheduler_that_knows_no_cores_puts_two_tasks_on_one() {
    let alike = [("placement", 0.0), ("balance", 0.0)];
    assert!((linear(2, &alike) - 0.62).abs() < 0.001);
    // Looking around alone mends it, if later.
    let mended = linear(2, &[("placement", 0.0), ("balance", 100.0)]);
    assert!((mended - 1.0).abs() < 0.02, "{mended}");
}

/// The hand-over of a lock costs more between two nodes than within one.
#[test]
fn the_first_tasks_stay_on_a_node_if_the_machine_says_so() {
    let storm = |tasks, stay: f64| {
        let mut machine = Machine::bundled("mesh-256").expect("built in");
        assert!(machine.change("stay", |_| stay));
        let storm = Workload::bundled("storm").expect("built in");
        run(&machine, SimLockName::SpinQueue, &storm, tasks, RunSettings::default()).jobs
    };
    assert!(storm(4, 4.0) > storm(4, 0.0), "{} {}", storm(4, 4.0), storm(4, 0.0));
    // Where all start one by one on other nodes, and all on one, the nodes fill alike.
    let (one, other) = (storm(256, 0.0), storm(256, 4.0));
    assert!((one / other - 1.0).abs() < 0.1, "{one} {other}");
}

#[test]
fn the_same_seed_gives_the_same_run_with_and_without_placement() {
    for value in [0.0, 1.0] {
        let mut machine = epyc();
        assert!(machine.change("placement", |_| value) && machine.change("balance", |_| 200.0));
        let storm = Workload::bundled("storm").expect("built in");
        let one = || format!("{:?}", with(&machine, &storm, 300));
        assert_eq!(one(), one());
    }
}

/// Runs four threads of one lock on two processors, which wake each other.
fn beside_an_idle_processor(changes: &[(&str, f64)]) -> RunFigures {
    let mut machine = Machine::bundled("vm-2").expect("built in");
    for &(name, value) in changes {
        assert!(machine.change(name, |_| value), "{name}");
    }
    let mut storm = Workload::bundled("storm").expect("built in");
    storm.compute = 5.0;
    storm.locks[0].section = 5.0;
    (storm.warm_up, storm.length) = (5.0, 40.0);
    with(&machine, &storm, 4)
}

#[test]
fn who_finds_no_idle_processor_wakes_tasks_where_they_ran() {
    let (found, kept) =
        (beside_an_idle_processor(&[]), beside_an_idle_processor(&[("finds", 0.0)]));
    // Each release that wakes a task on the other processor pays for that, and the lock is taken when the task comes.
    assert!(kept.jobs > 1.1 * found.jobs, "{} {}", kept.jobs, found.jobs);
}

#[test]
fn a_task_that_has_just_run_is_left_where_it_is() {
    // 0.5 ms of computing and a nap: with more tasks than processors some queue all the time.
    let idle = |hot: f64| {
        let mut machine = Machine::bundled("vm-2").expect("built in");
        assert!(machine.change("hot", |_| hot) && machine.change("finds", |_| 0.0));
        let mut naps = free();
        (naps.compute, naps.away, naps.length) = (500.0, 500.0, 100.0);
        1.0 - with(&machine, &naps, 4).busy
    };
    assert!(idle(5_000.0) > idle(0.0), "{} {}", idle(5_000.0), idle(0.0));
}

#[test]
fn a_new_turn_is_kept_from_who_wakes_up() {
    let jobs = |keeps: f64, slice: f64| {
        let mut machine = Machine::bundled("vm-2").expect("built in").with_cores(1).expect("one");
        for (name, value) in [("granularity", 0.0), ("keeps", keeps), ("slice", slice)] {
            assert!(machine.change(name, |_| value), "{name}");
        }
        // Without `keeps` each item that one end passes on has the other end take the processor.
        let text = "name = \"ends\"\nabout = \"a queue\"\ntasks = 1\nkernel = false\ncompute = 0.0\n\
            away = 0.0\nrounds = 1\nvariation = 0.5\nwarm_up = 2.0\nlength = 20.0\nlocks = []\n\
            [[tokens]]\nname = \"full\"\n[[tokens]]\nname = \"empty\"\nstart = 16\n\
            [[classes]]\nname = \"producer\"\ntasks = 1\ncounts = true\ncompute = 5.0\n\
            takes = [{ of = \"empty\", many = 1 }]\ngives = [{ of = \"full\", many = 1 }]\n\
            [[classes]]\nname = \"consumer\"\ntasks = 1\ncompute = 5.0\n\
            takes = [{ of = \"full\", many = 1 }]\ngives = [{ of = \"empty\", many = 1 }]\n";
        let ends = Workload::parse("ends", text).expect("a workload");
        with(&machine, &ends, 1).jobs
    };
    let (taken, kept) = (jobs(0.0, 4_000.0), jobs(1.0, 4_000.0));
    assert!(kept > 1.1 * taken, "{kept} of {taken}");
    // A turn that has lasted a slice is not new.
    assert!(jobs(1.0, 1.0) < 1.05 * taken, "{} of {taken}", jobs(1.0, 1.0));
}

//! Programs whose threads have different parts: who waits for whom, and readers that go together.

use lockstead_sim::{Machine, RunFigures, RunSettings, SimLockName, Workload, run};

fn machine(cores: usize) -> Machine {
    let machine = Machine::bundled("epyc-2x64").expect("built in");
    machine.with_threads(1).and_then(|m| m.with_cores(cores)).expect("so many there are")
}

fn simulate(text: &str, cores: usize, lock: SimLockName) -> RunFigures {
    simulate_on(&machine(cores), text, lock)
}

fn simulate_on(machine: &Machine, text: &str, lock: SimLockName) -> RunFigures {
    let head = "name = \"x\"\nabout = \"\"\ntasks = 1\ncompute = 0.0\nvariation = 0.5\n\
        warm_up = 2.0\nlength = 20.0\n";
    let workload = Workload::parse("x.toml", &format!("{head}{text}")).expect("a workload");
    run(machine, lock, &workload, workload.own_tasks(), RunSettings::default())
}

/// Returns a producer that makes an item in 10 µs, and consumers that need 1 µs and count.
fn producer(consumers: usize, room: &str) -> String {
    format!(
        "[[tokens]]\nname = \"items\"\n{room}\
         [[classes]]\nname = \"producer\"\ntasks = 1\ncompute = 10.0\ngives = [{{ of = \"items\" }}]\n\
         [[classes]]\nname = \"consumer\"\ntasks = {consumers}\ncounts = true\ncompute = 1.0\n\
         takes = [{{ of = \"items\" }}]\n"
    )
}

/// 250,000 of 100,000 was a prediction once.
#[test]
fn consumers_never_make_more_than_producers_offer() {
    for cores in [2, 8, 64] {
        let jobs = simulate(&producer(4, ""), cores, SimLockName::Futex).jobs;
        assert!(jobs > 70_000.0 && jobs < 101_000.0, "{cores}: {jobs}");
    }
    let alone = simulate(&producer(4, ""), 1, SimLockName::Futex).jobs;
    assert!(alone < 91_000.0, "one core has both parts: {alone}");
}

/// Who gives a batch and waits for all of it does its own part while nobody else has work.
#[test]
fn a_batch_has_a_serial_part() {
    let text = |own: f64| {
        format!(
            "[[tokens]]\nname = \"work\"\n[[tokens]]\nname = \"done\"\nstart = 16\n\
             [[classes]]\nname = \"main\"\ntasks = 1\ncompute = {own}\n\
             takes = [{{ of = \"done\", many = 16 }}]\ngives = [{{ of = \"work\", many = 16 }}]\n\
             [[classes]]\nname = \"worker\"\ntasks = 4\ncounts = true\ncompute = 50.0\n\
             takes = [{{ of = \"work\" }}]\ngives = [{{ of = \"done\" }}]\n"
        )
    };
    let gain = |own| {
        let one = simulate(&text(own), 1, SimLockName::Futex).jobs;
        simulate(&text(own), 4, SimLockName::Futex).jobs / one
    };
    // 800 µs of work for a batch, and 800 of the main thread's own: two at most.
    let (half, little) = (gain(800.0), gain(8.0));
    assert!(half > 1.3 && half < 1.75, "{half}");
    assert!(little > 2.5 && little <= 4.0, "{little}");
}

#[test]
fn whoever_meets_others_waits_for_the_slowest() {
    let text = "[[tokens]]\nname = \"phase\"\nbarrier = true\n[[classes]]\nname = \"part\"\ntasks = 4\n\
        counts = true\ncompute = 100.0\nmeets = [\"phase\"]\n";
    let one = simulate(text, 1, SimLockName::Futex).jobs;
    let four = simulate(text, 4, SimLockName::Futex).jobs;
    // The slowest of four that vary by half takes 130 of a mean of 100.
    assert!(four / one > 2.2 && four / one < 3.6, "{one}, {four}");
}

#[test]
fn readers_go_together_and_writers_alone() {
    let text = |writes: f64| {
        format!(
            "[[locks]]\nname = \"table\"\nkind = \"shared\"\nburst = 1.0\nsection = 10.0\n\
             [[classes]]\nname = \"user\"\ntasks = 8\ncounts = true\ncompute = 1.0\n\
             uses = [{{ lock = \"table\", burst = 1.0, section = 10.0, writes = {writes} }}]\n"
        )
    };
    for lock in [SimLockName::Futex, SimLockName::Lockstead] {
        let gain = |writes: f64| {
            let one = simulate(&text(writes), 1, lock).jobs;
            simulate(&text(writes), 8, lock).jobs / one
        };
        let (reads, writes) = (gain(0.001), gain(1.0));
        assert!(reads > 3.5, "{}: {reads}", lock.name());
        assert!(writes < 1.4, "{}: {writes}", lock.name());
    }
}

/// The last reader hands the C library's lock to a writer that sleeps, and nobody has it until that has
/// woken up: one in ten that write cost more than their sections, and more where a wake-up takes longer.
#[test]
fn a_phase_that_is_handed_to_a_sleeper_keeps_everybody_waiting() {
    let text = "[[locks]]\nname = \"table\"\nkind = \"shared\"\nburst = 1.0\nsection = 2.0\n\
        [[classes]]\nname = \"user\"\ntasks = 4\ncounts = true\ncompute = 2.0\n\
        [[classes.uses]]\nlock = \"table\"\nburst = 1.0\nsection = 2.0\nwrites = 0.1\n";
    let with_signals_of = |us: f64| {
        let mut machine = machine(4);
        assert!(machine.change("signal", |_| us));
        simulate_on(&machine, text, SimLockName::Futex).jobs
    };
    // Had tasks that are awake the lock meanwhile, it would be 5 % less.
    let (short, long) = (with_signals_of(2.0), with_signals_of(8.0));
    assert!(long < 0.8 * short, "{short} {long}");
}

#[test]
fn a_workload_that_is_written_can_be_read() {
    let (head, rest) = ("name = \"x\"\nabout = \"\"\ntasks = 1\ncompute = 0.0\n", producer(3, ""));
    let text = format!("{head}warm_up = 1.0\nlength = 5.0\n{rest}");
    let workload = Workload::parse("x.toml", &text).expect("a workload");
    let again = Workload::parse("y.toml", &workload.text()).expect("what was written");
    assert_eq!(format!("{workload:?}"), format!("{again:?}"));
    assert_eq!(again.own_tasks(), 4);
    for (right, wrong, line) in [
        ("takes = [{ of = \"items\" }]", "takes = [{ of = \"thing\" }]", 19),
        ("tasks = 3", "tasks = 0", 16),
    ] {
        assert!(text.contains(right), "{text}");
        let error = Workload::parse("w.toml", &text.replace(right, wrong)).expect_err(wrong);
        assert_eq!(error.line, line, "{error}");
        assert!(error.what.contains("expected: "), "{error}");
    }
}

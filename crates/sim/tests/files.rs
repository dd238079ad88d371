//! Files that are wrong are refused with file, line and what was expected.

use lockstead_sim::{MACHINES, Machine, WORKLOADS, Workload};

fn vm() -> &'static str {
    MACHINES.iter().find(|&&(name, _)| name == "vm-2").expect("built in").1
}

/// Returns the error that a machine's file gives in which one text is replaced.
fn refused(from: &str, to: &str) -> String {
    assert!(vm().contains(from), "{from}");
    Machine::parse("m.toml", &vm().replacen(from, to, 1)).expect_err(to).to_string()
}

fn line_of(text: &str) -> usize {
    vm().lines().position(|line| line.starts_with(text)).expect("it is there") + 1
}

#[test]
fn what_is_built_in_can_be_read() {
    for (name, text) in MACHINES {
        assert_eq!(Machine::parse(name, text).expect(name).name, name);
    }
    for (name, text) in WORKLOADS {
        assert_eq!(Workload::parse(name, text).expect(name).name, name);
    }
}

#[test]
fn errors_name_file_line_and_what_was_expected() {
    for (from, to, key, expected) in [
        ("cores = 2", "cores = 0", "cores", "from 1 to 4096"),
        ("cores = 2", "cores = 100000", "cores", "from 1 to 4096"),
        ("cores = 2", "cores = 2\nused = 3", "cores", "to that of all cores"),
        ("transfer = [30.0]", "transfer = []", "transfer", "a time for each distance"),
        ("hit = 0.8", "hit = -1.0", "hit", "a time from 0"),
        ("hit = 0.8", "hit = nan", "hit", "a time from 0"),
        ("jitter = 0.1", "jitter = 2.0", "jitter", "a share from 0"),
        ("pause = 20.0", "pause = 0.0", "pause", "more than 0"),
        ("speed = 1.0", "speed = 0.0", "speed", "above 0"),
        ("idle = [[0.0, 1.0]", "idle = [[90.0, 1.0]", "idle", "rising"),
    ] {
        let error = refused(from, to);
        let line = line_of(key) + to.matches('\n').count();
        assert!(error.starts_with(&format!("m.toml:{line}: ")), "{to}: {error}");
        assert!(error.contains("expected: ") && error.contains(expected), "{to}: {error}");
    }
}

#[test]
fn what_is_no_such_file_is_refused_at_its_line() {
    let at = |text: &str| format!("m.toml:{}: ", line_of(text));
    let error = refused("hit = 0.8", "hit = \"fast\"");
    assert!(error.starts_with(&at("hit")) && error.contains("expected"), "{error}");
    let error = refused("jitter = 0.1", "shiver = 0.1");
    assert!(error.starts_with(&at("jitter")) && error.contains("expected"), "{error}");
    let error = refused("exchange = 2.5", "exchange 2.5");
    assert!(error.starts_with(&at("exchange")) && error.contains("expected"), "{error}");
}

#[test]
fn workloads_are_checked_too() {
    let (_, text) = WORKLOADS.iter().find(|&&(name, _)| name == "storm").expect("built in");
    let line = text.lines().position(|line| line.starts_with("section")).expect("a section") + 1;
    let wrong = text.replace("section = 0.2", "section = -3.0");
    let error = Workload::parse("w.toml", &wrong).expect_err("less than nothing").to_string();
    assert!(error.starts_with(&format!("w.toml:{line}: ")), "{error}");
    assert!(Workload::parse("w.toml", "").is_err());
}

#[test]
fn parts_of_machines_are_had_or_refused() {
    let machine = Machine::bundled("westmere-8x10").expect("built in");
    let part = machine.with_nodes(4).and_then(|m| m.with_threads(1)).expect("a part");
    assert_eq!((part.cpus(), part.cores()), (40, 40));
    // In equal parts, or not.
    for cores in [1, 12, 20, 64, 79, 80] {
        let part = machine.with_cores(cores).expect("so many there are");
        assert_eq!((part.cores(), part.cpus()), (cores, 2 * cores));
        let nodes = cores.div_ceil(10);
        assert_eq!(part.layout.nodes, nodes, "{cores}");
        assert_eq!(part.with_nodes(nodes).expect("all of them").cores(), cores);
    }
    for error in [
        machine.with_nodes(9).expect_err("eight").to_string(),
        machine.with_nodes(0).expect_err("eight").to_string(),
        machine.with_cores(81).expect_err("eighty").to_string(),
    ] {
        assert!(error.contains("asked for"), "{error}");
    }
}

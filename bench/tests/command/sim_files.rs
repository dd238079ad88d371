//! Files of machines, workloads and profiles that are wrong: the error names file and line
//! and says what was expected; the status is that of a wrong command line.

use std::process::Command;

/// A machine and a workload that are right.
const MACHINE: &str = "\
name = \"m\"
about = \"\"
[layout]
nodes = 2
cores = 2
hops = [[0, 2], [2, 0]]
[lines]
hit = 0.8
exchange = 2.5
sibling = 3.0
transfer = [30.0, 30.0, 90.0]
occupied = []
memory = 100.0
hold_write = 5.0
hold_read = 10.0
pause = 20.0
[smt]
speed = 1.0
[scheduler]
latency = 6000.0
slice = 2000.0
granularity = 1500.0
credit = 3000.0
switch = 1.5
wake = 1.5
signal = 3.0
[kernel]
call = 120.0
futex = 120.0
clock = 25.0
";
const WORKLOAD: &str = "\
name = \"w\"
about = \"\"
tasks = 4
compute = 1.0
warm_up = 0.1
length = 0.5
[[locks]]
name = \"one\"
burst = 1.0
section = 0.5
[[locks]]
name = \"other\"
burst = 1.0
section = 0.5
";
const PROFILE: &str = "\
{\"schema\": \"lockstead-run\", \"processes\": [{
\"threads\": {\"peak\": 4},
\"waiting\": {\"thread_ns\": 4000000000, \"waited_ns\": 400000000, \"idled_ns\": 0},
\"locks\": [
{\"name\": \"a\", \"kind\": \"mutex\", \"locks\": 1, \"acquisitions\": 2000,
\"hold\": {\"count\": 2000, \"total_ns\": 4000000}}]}]}
";

/// A kind of file: its name, and the command that reads it.
#[derive(Clone, Copy)]
enum File {
    Machine,
    Workload,
    Profile,
}

/// Returns what the command says of a file with this content, and its status.
fn said(file: File, content: &[u8]) -> (String, String, Option<i32>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    std::fs::write(&path, content).expect("written");
    let name = path.to_str().expect("a plain name").to_owned();
    let run = ["sim", "run", "--lock", "futex"];
    let arguments: Vec<&str> = match file {
        File::Machine => [&run[..], &["--workload", "storm", "--machine", &name]].concat(),
        File::Workload => [&run[..], &["--machine", "vm-2", "--workload", &name]].concat(),
        File::Profile => vec!["sim", "whatif", &name, "--machine", "vm-2", "--cores", "1"],
    };
    let output = Command::new(env!("CARGO_BIN_EXE_lockstead-bench"))
        .args(arguments)
        .output()
        .expect("the command starts");
    (name, String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
}

/// Asserts that the file is refused at this line, with these words.
fn refused(file: File, content: &[u8], line: usize, words: &str) {
    let (name, error, status) = said(file, content);
    assert_eq!(status, Some(2), "{error}");
    assert!(error.contains(&format!("{name}:{line}: ")), "line {line} expected: {error}");
    assert!(error.contains("expected") && error.contains(words), "`{words}` expected: {error}");
}

/// Replaces one text, and gives the line where it stands.
fn spoil(right: &str, from: &str, to: &str) -> (Vec<u8>, usize) {
    let at = right.find(from).unwrap_or_else(|| panic!("{from} stands in the file"));
    let line = right[..at].matches('\n').count() + 1;
    (right.replacen(from, to, 1).into_bytes(), line)
}

#[test]
fn right_files_are_accepted() {
    for (file, content) in
        [(File::Machine, MACHINE), (File::Workload, WORKLOAD), (File::Profile, PROFILE)]
    {
        let (_, error, status) = said(file, content.as_bytes());
        assert_eq!(status, Some(0), "{error}");
    }
}

#[test]
fn a_wrong_machine_is_refused_at_its_line() {
    for (from, to, words) in [
        // No such key, no key, a key twice.
        ("memory = 100.0", "momory = 100.0", "unknown field"),
        ("exchange = 2.5", "exchange = 2.5\nexchange = 2.5", "duplicate key"),
        // The wrong type.
        ("nodes = 2", "nodes = \"two\"", "expected usize"),
        ("nodes = 2", "nodes = 2.5", "expected usize"),
        ("hit = 0.8", "hit = [0.8]", "expected f64"),
        ("transfer = [30.0, 30.0, 90.0]", "transfer = 30.0", "expected a sequence"),
        // Out of range, no number, more than fits.
        ("cores = 2", "cores = 0", "from 1 to 4096"),
        ("cores = 2", "cores = -2", "expected usize"),
        ("cores = 2", "cores = 99999999999999999999", "expected"),
        ("hit = 0.8", "hit = nan", "a time from 0"),
        ("hit = 0.8", "hit = inf", "a time from 0"),
        ("hit = 0.8", "hit = 1e300", "a time from 0"),
        ("hit = 0.8", "hit = -1.0", "a time from 0"),
        ("pause = 20.0", "pause = 0.0", "more than 0"),
        ("speed = 1.0", "speed = 1.5", "at most 1"),
        // Distances that do not fit the nodes, or each other.
        ("hops = [[0, 2], [2, 0]]", "hops = [[0, 2]]", "a row for each node"),
        ("hops = [[0, 2], [2, 0]]", "hops = [[0, 1], [2, 0]]", "there and back"),
        ("hops = [[0, 2], [2, 0]]", "hops = [[0, 7], [7, 0]]", "numbers of distances"),
        ("transfer = [30.0, 30.0, 90.0]", "transfer = [30.0]", "for each distance"),
        // No TOML.
        ("[smt]", "[smt", "expected"),
        ("hit = 0.8", "hit 0.8", "expected"),
    ] {
        let (content, line) = spoil(MACHINE, from, to);
        let line = if words == "duplicate key" { line + 1 } else { line };
        refused(File::Machine, &content, line, words);
    }
}

#[test]
fn a_wrong_workload_is_refused_at_its_line() {
    for (from, to, words) in [
        ("tasks = 4", "tusks = 4", "unknown field"),
        ("tasks = 4", "tasks = 0", "from 1 to 16384"),
        ("tasks = 4", "tasks = 1000000000", "from 1 to 16384"),
        ("length = 0.5", "length = 0.0", "above 0"),
        ("name = \"one\"", "name = \"one\"\nkind = \"spoon\"", "unknown variant"),
        ("name = \"one\"", "name = \"one\"\nlines = 65", "at most 64"),
        ("name = \"one\"", "name = \"one\"\nwrites = 2.0", "a share from 0 to 1"),
    ] {
        let (content, line) = spoil(WORKLOAD, from, to);
        let line = line + usize::from(to.contains('\n'));
        refused(File::Workload, &content, line, words);
    }
    // Of several locks it is the wrong one's line.
    let (content, line) = spoil(
        WORKLOAD,
        "name = \"other\"\nburst = 1.0\nsection = 0.5",
        "name = \"other\"\nburst = 1.0\nsection = -0.5",
    );
    refused(File::Workload, &content, line + 2, "a time from 0");
    let (content, line) =
        spoil(WORKLOAD, "name = \"other\"", "name = \"other\"\nmany = 9000000000000000000");
    refused(File::Workload, &content, line + 1, "at most 4096");
}

#[test]
fn a_wrong_profile_is_refused_at_its_line() {
    for (from, to, words) in [
        ("\"peak\": 4", "\"peak\": \"four\"", "expected u64"),
        ("\"peak\": 4", "\"peak\": -4", "expected u64"),
        ("\"acquisitions\": 2000", "\"acquisitions\": 1e300", "expected u64"),
        ("\"locks\": [", "\"licks\": [", "a report of `lockstead run --json`"),
        ("\"threads\"", "threads", "a report of `lockstead run --json`"),
    ] {
        let (content, line) = spoil(PROFILE, from, to);
        let (_, error, status) = said(File::Profile, &content);
        assert_eq!(status, Some(2), "{error}");
        assert!(error.contains(words) && error.contains("expected"), "{error}");
        // A field that is missing is missed where its object ends.
        if !to.contains("licks") {
            refused(File::Profile, &content, line, words);
        }
    }
    for (from, to) in [
        ("lockstead-run", "lockstead-top"),
        ("\"total_ns\": 4000000", "\"total_ns\": 18000000000000000000"),
        ("\"acquisitions\": 2000", "\"acquisitions\": 18000000000000000000"),
    ] {
        let (content, _) = spoil(PROFILE, from, to);
        let (name, error, status) = said(File::Profile, &content);
        assert_eq!(status, Some(2), "{error}");
        assert!(error.contains(&name) && error.contains("expected"), "{error}");
    }
}

#[test]
fn files_without_sense_are_refused_at_their_lines() {
    for file in [File::Machine, File::Workload, File::Profile] {
        refused(file, b"\n\nnothing \xff\xfe here", 3, "not in UTF-8");
        let (name, error, status) = said(file, b"");
        assert_eq!(status, Some(2), "{error}");
        assert!(error.contains(&format!("{name}:")) && error.contains("expected"), "{error}");
    }
    // A folder is no file.
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder.path().to_str().expect("a plain name");
    let output = Command::new(env!("CARGO_BIN_EXE_lockstead-bench"))
        .args(["sim", "run", "--lock", "futex", "--workload", "storm", "--machine", name])
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains(name));
}

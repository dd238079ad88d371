//! Which tests run where under emulation, and why the others do not.

use super::machine::{BEGINS, ENDS, Machine};
use super::system::{TRIPLE, Toolchain};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Stdio;

/// The packages that are built for the processor.
pub(super) const PACKAGES: [&str; 13] = [
    "lockstead-core",
    "lockstead-told",
    "lockstead-linux",
    "lockstead-ledger",
    "lockstead-lockdep",
    "lockstead-rules",
    "lockstead-derive",
    "lockstead",
    "lockstead-capi",
    "lockstead-instructions",
    "lockstead-model",
    "lockstead-sim",
    "lockstead-bench",
];

/// Those whose tests the emulator of one process can run: it has futexes, threads and signals.
const IN_ONE_PROCESS: [&str; 5] = [
    "lockstead-core",
    "lockstead-told",
    "lockstead-ledger",
    "lockstead-lockdep",
    "lockstead-rules",
];

/// Those whose tests need a kernel of the processor: for restartable sections, robust lists, `ptrace`,
/// filters of system calls, and to start their own program again.
const IN_A_MACHINE: [&str; 3] = ["lockstead-linux", "lockstead", "lockstead-instructions"];

/// What of the packages is built and not run, with the reason.
const NOT_RUN: [(&str, &str); 4] = [
    (
        "lockstead-model",
        "hours under emulation; it searches on one thread and has no atomic of the processor's",
    ),
    ("lockstead-sim", "computes alone: the same numbers on each processor"),
    ("lockstead-bench", "its tests start programs of this workspace, and measure"),
    ("lockstead-derive", "runs in the compiler"),
];

/// Programs of a machine's packages that are left out, with the reason.
const LEFT_OUT: [(&str, &str); 4] = [
    ("shared_musl", "builds programs for musl by a cargo"),
    ("shared_libc", "builds programs for another libc by a compiler"),
    ("unloading", "builds a plug-in by a cargo"),
    ("plugin", "builds a plug-in by a cargo"),
];

/// Tests of the library for C that are left out, with the reason.
const NOT_IN_ONE_PROCESS: [(&str, &str); 1] = [(
    "a_program_that_has_the_c_library_inside",
    "one of its programs has shared locks: the emulator of one process has no robust lists",
)];

/// The processors that a machine is started with: all that there is, and the first version of the
/// architecture, which has no instructions of LSE. With the second one the programs that take another way.
const NEWEST: &str = "max";
const WITHOUT_LSE: &str = "cortex-a72";
const OTHER_WAY: [&str; 4] = ["lockstead_linux", "exclusion", "releases", "section"];

/// A test program as cargo has built it.
pub(super) struct Program {
    package: String,
    name: String,
    /// Its path for who has built it.
    path: String,
}

/// Builds the tests of the packages.
///
/// # Errors
/// What cargo said, or that it said what cannot be read.
pub(super) fn build(toolchain: &dyn Toolchain, packages: &[&str]) -> Result<Vec<Program>, String> {
    println!("== building their tests");
    let mut words = vec!["cargo", "test", "--locked", "--no-run", "--target", TRIPLE];
    words.push("--message-format=json-render-diagnostics");
    let runs =
        |package: &&&str| IN_ONE_PROCESS.contains(*package) || IN_A_MACHINE.contains(*package);
    packages.iter().filter(runs).for_each(|package| words.extend(["-p", package]));
    if !words.contains(&"-p") {
        return Ok(Vec::new());
    }
    let output = toolchain.command(&words).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("cargo test --no-run: {}", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut programs = Vec::new();
    for line in text.lines() {
        let message: Value =
            serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
        let is_test = message["profile"]["test"].as_bool() == Some(true);
        if let (Some(path), true) = (message["executable"].as_str(), is_test) {
            let of = message["manifest_path"].as_str().unwrap_or_default();
            let package = packages.iter().find(|package| of.ends_with(&manifest(package)));
            let name = message["target"]["name"].as_str().unwrap_or_default();
            programs.push(Program {
                package: (*package.ok_or_else(|| format!("whose is {of}?"))?).into(),
                name: name.replace('-', "_"),
                path: path.into(),
            });
        }
    }
    Ok(programs)
}

/// Returns how the path of a package's manifest ends.
fn manifest(package: &str) -> String {
    match package {
        "lockstead-instructions" => "/bench/instructions/Cargo.toml".into(),
        _ => {
            format!("/crates/{}/Cargo.toml", package.strip_prefix("lockstead-").unwrap_or(package))
        }
    }
}

/// What came of the suites.
#[derive(Default)]
pub(super) struct Report {
    rows: Vec<(String, String)>,
    skipped: Vec<(String, String)>,
    failed: bool,
}

impl Report {
    /// Notes what a program wrote and how it ended.
    fn ran(&mut self, name: &str, output: &str, ended_well: bool) {
        let result = output.lines().find_map(|line| line.split_once("test result: "));
        let result = result.map_or("no result: it did not come to its end", |(_, result)| result);
        let told: Vec<&str> = output.lines().filter(|line| line.contains("skipped: ")).collect();
        for line in told {
            self.skipped(name, line.trim());
        }
        if !ended_well {
            self.failed = true;
            println!("{output}");
        }
        self.rows.push((name.into(), result.into()));
    }

    /// Notes what was not run, and why.
    pub(super) fn skipped(&mut self, what: &str, why: &str) {
        self.skipped.push((what.into(), why.into()));
    }

    pub(super) fn is_well(&self) -> bool {
        !self.failed
    }

    pub(super) fn print(&self) {
        println!("== ran");
        self.rows.iter().for_each(|(name, result)| println!("{name}: {result}"));
        println!("== skipped");
        self.skipped.iter().for_each(|(what, why)| println!("{what}: {why}"));
    }
}

/// Runs the programs that need no kernel of their processor, each by the emulator of one process.
pub(super) fn in_one_process(
    toolchain: &dyn Toolchain,
    programs: &[Program],
    report: &mut Report,
) -> Result<(), String> {
    for program in programs {
        if !IN_ONE_PROCESS.contains(&program.package.as_str()) {
            continue;
        }
        let name = format!("{}: {} (one process)", program.package, program.name);
        println!("== {name}");
        let words = ["timeout", "900", "qemu-aarch64", &program.path, "--nocapture"];
        let output = toolchain.command(&words).output().map_err(|error| error.to_string())?;
        let text = [output.stdout, output.stderr].concat();
        report.ran(&name, &String::from_utf8_lossy(&text), output.status.success());
    }
    for (package, why) in NOT_RUN {
        report.skipped(package, why);
    }
    Ok(())
}

/// Runs the tests of the library for C: built here, of programs in C and C++ for the processor.
pub(super) fn of_the_c_library(
    toolchain: &dyn Toolchain,
    packages: &[&str],
    report: &mut Report,
) -> Result<(), String> {
    if !packages.contains(&"lockstead-capi") {
        return Ok(());
    }
    println!("== lockstead-capi: programs in C and C++ (one process)");
    let mut words = vec!["env", "LOCKSTEAD_FOREIGN=aarch64-unknown-linux-gnu", "cargo", "test"];
    words.extend(["--locked", "-p", "lockstead-capi", "--test", "capi", "--", "--nocapture"]);
    words.extend(["programs::", "check::", "kernel::", "pthread::", "for_aarch64"]);
    for (test, why) in NOT_IN_ONE_PROCESS {
        report.skipped(&format!("lockstead-capi: {test}"), why);
        words.extend(["--skip", test]);
    }
    let output = toolchain.command(&words).output().map_err(|error| error.to_string())?;
    let text = [output.stdout, output.stderr].concat();
    let name = "lockstead-capi: programs in C and C++ (one process)";
    report.ran(name, &String::from_utf8_lossy(&text), output.status.success());
    Ok(())
}

/// Runs the programs that need a kernel of their processor.
pub(super) fn in_a_machine(
    machine: &Machine,
    toolchain: &dyn Toolchain,
    programs: &[Program],
    report: &mut Report,
) -> Result<(), String> {
    let mut chosen: Vec<(String, PathBuf)> = Vec::new();
    for program in programs {
        if !IN_A_MACHINE.contains(&program.package.as_str()) {
            continue;
        }
        let left = LEFT_OUT.iter().find(|(name, _)| *name == program.name);
        match left {
            Some((name, why)) => report.skipped(&format!("{}: {name}", program.package), why),
            None => chosen.push((program.name.clone(), toolchain.outside(&program.path))),
        }
    }
    if chosen.is_empty() {
        return Ok(());
    }
    one_machine(machine, NEWEST, &chosen, report)?;
    if !machine.has_small_pages() {
        // It does not start: that processor has no pages of 16 KiB.
        report.skipped(
            &format!("a machine with {WITHOUT_LSE}"),
            "it has pages of 4 and 64 KiB alone",
        );
        return Ok(());
    }
    chosen.retain(|(name, _)| OTHER_WAY.contains(&name.as_str()));
    one_machine(machine, WITHOUT_LSE, &chosen, report)
}

fn one_machine(
    machine: &Machine,
    processor: &str,
    programs: &[(String, PathBuf)],
    report: &mut Report,
) -> Result<(), String> {
    println!("== a machine with {} programs, processor {processor}", programs.len());
    let mut running: Option<(String, String)> = None;
    let mut ran = 0;
    machine.run(processor, programs, |line| {
        if let Some((_, name)) = line.split_once(BEGINS) {
            println!("== {name} (a machine, {processor})");
            running = Some((name.into(), String::new()));
        } else if let Some((_, code)) = line.split_once(ENDS) {
            if let Some((name, output)) = running.take() {
                let name = format!("{name} (a machine, {processor})");
                report.ran(&name, &output, code == "0");
                ran += 1;
            }
        } else if let Some((_, output)) = &mut running {
            *output += line;
            *output += "\n";
        } else {
            println!("{line}");
        }
    })?;
    if ran == programs.len() {
        return Ok(());
    }
    let (name, output) = running.unwrap_or_default();
    Err(format!("the machine ended in the middle, after {ran} programs, in {name}:\n{output}"))
}

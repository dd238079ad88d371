//! Which tests run where under emulation, and why the others do not.

use super::machine::{BEGINS, ENDS, Load, Machine, Started};
use super::system::{INSIDE, OUTPUT, TRIPLE, Toolchain, ends_well};
use crate::root;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Stdio;

/// The packages that are built for the processor.
pub(super) const PACKAGES: [&str; 21] = [
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
    "lockstead-unwind",
    "lockstead-inspect",
    "lockstead-preload",
    "lockstead-cli",
    "lockstead-model",
    "lockstead-sim",
    "lockstead-bench",
    "lockstead-parking-lot",
    "lockstead-std",
    "lockstead-cluster",
    "lockstead-cluster-capi",
];

/// Those whose tests the emulator of one process can run: it has futexes, threads and signals.
const IN_ONE_PROCESS: [&str; 7] = [
    "lockstead-core",
    "lockstead-told",
    "lockstead-ledger",
    "lockstead-lockdep",
    "lockstead-rules",
    "lockstead-unwind",
    "lockstead-parking-lot",
];

/// Those whose tests need a kernel of the processor: for restartable sections, robust lists, `ptrace`,
/// filters of system calls, and to start their own program again.
const IN_A_MACHINE: [&str; 3] = ["lockstead-linux", "lockstead", "lockstead-instructions"];

/// Those whose tests, in a machine, build programs by its own compilers and look at its own programs.
const ON_A_DISK: [&str; 3] = ["lockstead-inspect", "lockstead-preload", "lockstead-cli"];

/// What the compiler is told beside: the emulator is slower than what it would save.
pub(super) const OPTIMISED: [&str; 2] =
    ["--config", "profile.dev.package.lockstead-inspect.opt-level=2"];

/// What of the workspace they read.
const READ: [&str; 11] = [
    ".ci",
    "crates",
    "docs",
    "hangs",
    "action.yml",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "Cargo.toml",
    "Cargo.lock",
];

/// What of the packages is built and not run, with the reason.
const NOT_RUN: [(&str, &str); 7] = [
    (
        "lockstead-model",
        "hours under emulation; it searches on one thread and has no atomic of the processor's",
    ),
    ("lockstead-sim", "computes alone: the same numbers on each processor"),
    ("lockstead-bench", "its tests start programs of this workspace, and measure"),
    ("lockstead-derive", "runs in the compiler"),
    ("lockstead-std", "has no tests"),
    ("lockstead-cluster", "its tests start etcd, and its protocol's model computes alone"),
    ("lockstead-cluster-capi", "its tests start etcd"),
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

impl Program {
    /// Returns the folder of its package, from that of the workspace.
    fn folder(&self) -> String {
        let manifest = manifest(&self.package);
        manifest.trim_start_matches('/').trim_end_matches("/Cargo.toml").into()
    }
}

/// Builds the tests of the packages.
///
/// # Errors
/// What cargo said, or that it said what cannot be read.
pub(super) fn build(toolchain: &dyn Toolchain, packages: &[&str]) -> Result<Vec<Program>, String> {
    println!("== building their tests");
    let mut words = vec!["cargo", "test", "--locked", "--no-run", "--target", TRIPLE];
    words.push("--message-format=json-render-diagnostics");
    words.extend(OPTIMISED);
    let runs = |package: &&&str| {
        [&IN_ONE_PROCESS[..], &IN_A_MACHINE, &ON_A_DISK].iter().any(|some| some.contains(*package))
    };
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
        "lockstead-parking-lot" => "/crates/parking_lot/Cargo.toml".into(),
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
    words: &[String],
    report: &mut Report,
) -> Result<(), String> {
    for program in programs {
        if !IN_ONE_PROCESS.contains(&program.package.as_str()) {
            continue;
        }
        let name = format!("{}: {} (one process)", program.package, program.name);
        println!("== {name}");
        let mut call = vec!["timeout", "900", "qemu-aarch64", &program.path, "--nocapture"];
        call.extend(words.iter().map(String::as_str));
        let output = toolchain.command(&call).output().map_err(|error| error.to_string())?;
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
    words: &[String],
    report: &mut Report,
) -> Result<(), String> {
    let mut load =
        Load { processor: NEWEST, disk: None, files: Vec::new(), programs: Vec::new(), words };
    for program in programs {
        if !IN_A_MACHINE.contains(&program.package.as_str()) {
            continue;
        }
        if let Some((name, why)) = LEFT_OUT.iter().find(|(name, _)| *name == program.name) {
            report.skipped(&format!("{}: {name}", program.package), why);
            continue;
        }
        let name = program.name.clone();
        load.files.push((toolchain.outside(&program.path), format!("/programs/{name}")));
        load.programs.push(Started { path: format!("./{name}"), name, folder: "/programs".into() });
    }
    if load.programs.is_empty() {
        return Ok(());
    }
    one_machine(machine, &load, report)?;
    if !machine.runs_everywhere() {
        // The processor without LSE has no pages of 16 KiB.
        report.skipped(
            &format!("a machine with {WITHOUT_LSE}"),
            "it has pages of 4 and 64 KiB alone",
        );
        return Ok(());
    }
    load.processor = WITHOUT_LSE;
    load.programs.retain(|program| OTHER_WAY.contains(&program.name.as_str()));
    one_machine(machine, &load, report)
}

/// Runs the programs that also need compilers and programs of their processor. What they need of the
/// workspace, and what was built of it beside them, lies in the machine where it lay for the compiler.
pub(super) fn on_a_disk(
    machine: &Machine,
    toolchain: &dyn Toolchain,
    programs: &[Program],
    words: &[String],
    report: &mut Report,
) -> Result<(), String> {
    let chosen: Vec<&Program> =
        programs.iter().filter(|program| ON_A_DISK.contains(&program.package.as_str())).collect();
    if chosen.is_empty() {
        return Ok(());
    }
    // The libraries under programs are built with the command, which carries them.
    let mut build = vec!["cargo", "build", "--locked", "--target", TRIPLE, "-p", "lockstead-cli"];
    build.extend(OPTIMISED);
    ends_well(&mut toolchain.command(&build))?;
    let disk = toolchain.disk()?;
    let built = format!("{OUTPUT}/build/{TRIPLE}");
    let mut paths = vec![format!("{built}/debug/lockstead")];
    for library in ["preload", "check"] {
        let folder = format!("{built}/preload-images/{library}/{TRIPLE}/preload");
        paths.push(format!("{folder}/liblockstead_preload.so"));
    }
    paths.extend(chosen.iter().map(|program| program.path.clone()));
    let mut files: Vec<(PathBuf, String)> =
        paths.into_iter().map(|path| (toolchain.outside(&path), path)).collect();
    files.extend(READ.map(|name| (root().join(name), format!("{INSIDE}/{name}"))));
    let started = |program: &Program| Started {
        name: format!("{}: {}", program.package, program.name),
        path: program.path.clone(),
        folder: format!("{INSIDE}/{}", program.folder()),
    };
    let mut load =
        Load { processor: NEWEST, disk: Some(&disk), files, programs: Vec::new(), words };
    // A machine each: one that does not end in its time takes no other's.
    for program in &chosen {
        load.programs = vec![started(program)];
        one_machine(machine, &load, report)?;
    }
    Ok(())
}

fn one_machine(machine: &Machine, load: &Load<'_>, report: &mut Report) -> Result<(), String> {
    let processor = load.processor;
    let disk = if load.disk.is_some() { ", a disk" } else { "" };
    println!("== a machine with {} programs, processor {processor}{disk}", load.programs.len());
    let mut running: Option<(String, String)> = None;
    let mut ran = 0;
    let ended = machine.run(load, |line| {
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
    });
    if ran == load.programs.len() {
        return ended;
    }
    // What had run before counts all the same.
    let why = ended.err().unwrap_or_else(|| "it ended by itself".into());
    let (name, output) = running.unwrap_or_default();
    let left = load.programs.len() - ran;
    println!("the machine ended after {ran} programs, {left} before all had ended: {why}");
    report.ran(&format!("{name} (a machine, {processor}; {left} did not end)"), &output, false);
    Ok(())
}

//! Programs compiled here: allocators, sanitizers, runtimes, daemons.

use super::case::{Case, processes, sum};
use super::{compiled, installed, skip, watched};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The place where Debian and others keep libraries.
const LIBRARIES: [&str; 5] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
];

fn library(name: &str) -> Option<PathBuf> {
    let found = LIBRARIES.iter().map(|folder| Path::new(folder).join(name)).find(|f| f.is_file());
    if found.is_none() {
        skip(&format!("{name} is not installed"));
    }
    found
}

#[test]
fn allocators_that_are_preloaded() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(load) = compiled(folder.path(), "load.c", &[]) else { return };
    for name in ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libtcmalloc.so.4"] {
        let Some(library) = library(name) else { continue };
        let seen = Case::new(&load).variable("LD_PRELOAD", &library).unharmed();
        assert_eq!(seen.status, Some(7));
        seen.had("load", 9, 24_000);
        assert!(seen.names("load_lock"), "{:#}", seen.report);
    }
}

#[test]
fn a_malloc_of_the_programs_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled(folder.path(), "own_malloc.c", &["-fno-builtin"]) else { return };
    let seen = Case::new(&program).unharmed();
    assert_eq!(seen.status, Some(8));
    // The child's threads and its lock are its own, in a process of its own.
    assert_eq!(processes(&seen.report, "own_malloc").len(), 2, "{:#}", seen.report);
    seen.had("own_malloc", 10, 48_000);
}

#[test]
fn a_program_with_a_gap_between_its_segments() {
    let folder = tempfile::tempdir().expect("a folder");
    // The unwind tables follow the constants, far from the code.
    let options = ["-no-pie", "-Wl,--section-start=.rodata=0x900000"];
    let Some(load) = compiled(folder.path(), "load.c", &options) else { return };
    let seen = Case::new(&load).unharmed();
    assert_eq!(seen.status, Some(7));
    let found = processes(&seen.report, "load");
    let idle = found[0]["idle"].as_array().expect("an array");
    let condition = idle.iter().find(|object| object["name"] == "load_room").expect("it waited");
    for site in condition["waited_at"].as_array().expect("an array") {
        let stack = &site["stack"];
        assert_eq!(stack["end"]["why"], "bottom", "{stack:#}");
        assert!(stack["frames"].as_array().is_some_and(|f| f.len() >= 2), "{stack:#}");
    }
}

#[test]
fn sanitizers() {
    for (option, rounds) in [("address", "3000"), ("thread", "500"), ("undefined", "3000")] {
        let folder = tempfile::tempdir().expect("a folder");
        let option = format!("-fsanitize={option}");
        let Some(load) = compiled(folder.path(), "load.c", &[&option]) else { continue };
        if !Command::new(&load).arg("1").status().is_ok_and(|status| status.code() == Some(7)) {
            skip(&format!("a program with {option} does not run here"));
            continue;
        }
        let seen = Case::new(&load).args(&[rounds]).unharmed();
        assert_eq!(seen.status, Some(7), "{option}");
        seen.had("load", 9, 4000);
        assert!(seen.names("load_lock"), "{option}: {:#}", seen.report);
    }
}

#[test]
fn the_locks_of_cpp() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled(folder.path(), "classes.cpp", &["-std=c++17"]) else { return };
    let seen = Case::new(&program).unharmed();
    assert_eq!(seen.status, Some(9));
    seen.had("classes", 6, 40_000);
    assert!(seen.names("account"), "{:#}", seen.report);
    // The place is the program's, not the standard library's.
    let processes = processes(&seen.report, "classes");
    let locks = processes[0]["locks"].as_array().expect("an array");
    for site in locks.iter().flat_map(|lock| lock["waited_at"].as_array().expect("an array")) {
        let site = site["site"].as_str().expect("a string");
        assert!(site.contains("classes.cpp:") || site.starts_with("others"), "{site}");
    }
}

#[test]
fn locks_that_cannot_be_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut programs = Vec::new();
    programs.extend(compiled(folder.path(), "team.c", &["-fopenmp"]).map(|program| (program, 2)));
    if let Some(compiler) = installed("rustc") {
        let program = folder.path().join("workers");
        let made = Command::new(compiler)
            .args(["--edition", "2021", "-o"])
            .args([&program, &super::source("workers.rs")])
            .output()
            .expect("rustc starts");
        match made.status.success() {
            true => programs.push((program, 8)),
            false => skip("rustc compiles nothing here"),
        }
    }
    for (program, status) in programs {
        let seen = Case::new(&program).unharmed();
        assert_eq!(seen.status, Some(status));
        // The runtime's threads are known, and where nobody used a lock of the
        // C library the report says what that means.
        let name = program.file_name().expect("a name").to_str().expect("text");
        seen.had(name, 4, 0);
        if sum(&processes(&seen.report, name), "/totals/locks") != 0 {
            continue;
        }
        let output = Command::new(env!("CARGO_BIN_EXE_lockstead"))
            .args(["run", "--"])
            .arg(&program)
            .output()
            .expect("lockstead starts");
        // By chance this time a thread waited for one.
        let text = String::from_utf8_lossy(&output.stderr);
        let said = ["acquired no lock that can be seen", "(only its waits are seen)"];
        assert!(said.iter().any(|said| text.contains(said)), "{text}");
    }
}

#[test]
fn a_daemon_that_closes_and_forgets_everything() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled(folder.path(), "daemon.c", &[]) else { return };
    let seen = Case::new(&program).option("--wait-all").unharmed();
    assert_eq!(seen.status, Some(11));
    assert!(seen.stdout.contains("daemon\n"), "{}", seen.stdout);
    seen.had("daemon", 9, 9000);
    assert_eq!(processes(&seen.report, "daemon").len(), 2, "{:#}", seen.report);
}

#[test]
fn valgrind() {
    let Some(valgrind) = installed("valgrind") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let Some(load) = compiled(folder.path(), "load.c", &[]) else { return };
    for tool in ["memcheck", "helgrind"] {
        let tool = format!("--tool={tool}");
        let arguments = ["-q", &tool, load.to_str().expect("text"), "100"];
        let bare = Command::new(&valgrind).args(arguments).output().expect("it starts");
        if bare.status.code() != Some(7) {
            skip(&format!("valgrind {tool} does not run here: {bare:?}"));
            continue;
        }
        let json = folder.path().join("json");
        let mut command = watched(&json, &[]);
        command.arg(&valgrind).args(arguments);
        let ended = super::Running::start(&mut command).end();
        // What Helgrind finds depends on the order of things.
        assert_eq!((ended.status.code(), &ended.stdout), (Some(7), &bare.stdout), "{ended:?}");
        let text = String::from_utf8_lossy(&ended.stderr);
        assert!(!text.contains("lockstead:"), "{text}");
    }
}

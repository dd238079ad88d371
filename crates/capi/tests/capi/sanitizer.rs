//! The programs in C under what finds errors while a program runs: the thread sanitizer, which is
//! told by the headers what a lock orders, the address sanitizer, and valgrind.
//!
//! None may find an error in the programs of the tests, and each must find one that is there. The
//! sanitizers see the headers' inline paths; only valgrind sees the library.

use crate::common::{archive, package, program, scratch, strict, with_library};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The programs that must be without an error.
const PROGRAMS: [&str; 10] =
    ["mutex", "fair", "semaphore", "cond", "rwlock", "once", "ww", "rt", "shared", "kernel_device"];

/// Returns the first compiler of the system that has this sanitizer.
fn compiler(sanitizer: &str) -> Option<&'static str> {
    let builds = |compiler: &&str| {
        let probe = scratch().join(format!("probe-{compiler}-{sanitizer}"));
        let mut command = strict(compiler, "gnu11");
        command.arg(format!("-fsanitize={sanitizer}")).args(["-pthread", "-o"]).arg(probe);
        command.arg(package().join("tests/c/empty.c"));
        command.output().is_ok_and(|output| output.status.success())
    };
    let found = ["clang", "gcc"].into_iter().find(builds);
    if found.is_none() {
        eprintln!("skipped: no compiler here has the {sanitizer} sanitizer");
    }
    found
}

/// Builds with the sanitizer.
fn sanitized(name: &str, compiler: &str, sanitizer: &str) -> PathBuf {
    let program = scratch().join(format!("{name}-{compiler}-{sanitizer}"));
    let mut command = strict(compiler, "gnu11");
    command.arg(format!("-fsanitize={sanitizer}")).arg("-pthread");
    command.arg("-o").arg(&program).arg(package().join(format!("tests/c/{name}.c")));
    let output = with_library(&mut command, archive()).output().expect("it ran before");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Runs it, which takes seconds unless it hangs.
fn run(command: &mut Command) -> Option<Output> {
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => {
            eprintln!("skipped: {} does not run: {error}", command.get_program().display());
            None
        }
    }
}

/// Runs a program under its sanitizer. Older sanitizers do not expect randomised addresses, so these
/// are switched off.
fn sanely(program: &Path) -> Option<Output> {
    let mut command = Command::new("setarch");
    command.args(["-R", "timeout", "-k", "5", "120"]).arg(program);
    run(command.env("TSAN_OPTIONS", "halt_on_error=1"))
}

fn under_valgrind(program: &Path, arguments: &[&str]) -> Option<Output> {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "120", "valgrind", "--quiet", "--error-exitcode=9"]);
    // One thread at a time runs under valgrind: who spins must give way.
    run(command.arg("--fair-sched=yes").arg(program).args(arguments))
}

/// Expects that each program ends well.
fn all_end_well(how: impl Fn(&str) -> Option<Output> + Sync) {
    // Side by side, since they wait for each other's threads much of the time.
    std::thread::scope(|scope| {
        for name in PROGRAMS {
            let how = &how;
            scope.spawn(move || {
                let Some(output) = how(name) else { return };
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{name}: {}\n{said}", output.status);
            });
        }
    });
}

/// Expects that the program does not end well, and that these words are said.
fn is_found(output: Option<Output>, words: &str) {
    let Some(output) = output else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(words), "{}\n{said}", output.status);
}

#[test]
fn there_is_no_race_between_holders() {
    let Some(compiler) = compiler("thread") else { return };
    all_end_well(|name| sanely(&sanitized(name, compiler, "thread")));
}

#[test]
fn a_race_is_found_where_no_lock_is_taken() {
    let Some(compiler) = compiler("thread") else { return };
    is_found(sanely(&sanitized("race", compiler, "thread")), "data race");
}

#[test]
fn only_their_own_memory_is_touched() {
    let Some(compiler) = compiler("address") else { return };
    all_end_well(|name| sanely(&sanitized(name, compiler, "address")));
    is_found(sanely(&sanitized("freed", compiler, "address")), "heap-use-after-free");
}

#[test]
fn the_library_touches_only_memory_that_is_there() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return eprintln!("skipped: valgrind is not installed");
    }
    let built =
        |name: &str| program(&format!("c/{name}.c"), crate::common::compiler(false), "gnu11", &[]);
    all_end_well(|name| under_valgrind(&built(name), &[]));
    is_found(under_valgrind(&built("freed"), &["library"]), "Invalid");
}

//! The programs in C under the thread sanitizer, which is told by the headers what a
//! lock orders: it must find no race, and must find the one that is there without the
//! lock.

use crate::common::{package, scratch, strict, with_library};
use std::path::PathBuf;
use std::process::{Command, Output};

const COMPILER: &str = "clang";

/// Builds with the sanitizer. Returns `None` where it is not installed.
fn sanitized(name: &str, options: &[&str]) -> Option<PathBuf> {
    let program = scratch().join(format!("{name}-sanitized{}", options.concat()));
    let mut command = strict(COMPILER, "gnu11");
    command.args(["-fsanitize=thread", "-pthread"]).args(options);
    command.arg("-o").arg(&program).arg(package().join(format!("tests/c/{name}.c")));
    let output = match with_library(&mut command, crate::common::archive()).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: {COMPILER} does not run: {error}");
            return None;
        }
    };
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("libclang_rt") {
        eprintln!("skipped: {COMPILER} has no thread sanitizer: {said}");
        return None;
    }
    assert!(output.status.success(), "{name}: {said}");
    Some(program)
}

/// Runs it; without the randomised addresses that older sanitizers do not expect.
fn run(program: &PathBuf) -> Option<Output> {
    let mut command = Command::new("setarch");
    command.args(["-R", "timeout", "-k", "5", "120"]).arg(program);
    command.env("TSAN_OPTIONS", "halt_on_error=1");
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => {
            eprintln!("skipped: setarch does not run: {error}");
            None
        }
    }
}

#[test]
fn there_is_no_race_between_holders() {
    for name in ["mutex", "semaphore", "cond", "rwlock", "once", "ww", "rt", "shared"] {
        let Some(output) = sanitized(name, &[]).as_ref().and_then(run) else { return };
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {}\n{said}", output.status);
    }
}

#[test]
fn a_race_is_found_where_no_lock_is_taken() {
    let Some(output) = sanitized("race", &[]).as_ref().and_then(run) else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("data race"), "{}\n{said}", output.status);
}

//! The locks in a program of musl: another distance in the robust list, another way to
//! register it, threads that walk it themselves when they end.
//!
//! A toolchain for musl is rarely there, musl's compiler wrapper more often: the locks,
//! compiled for glibc, go into a program in C of which the libc is musl. That works as
//! long as musl has the names that the standard library asks for.
//!
//! `LOCKSTEAD_TEST_KILLS` says how many threads are killed that hold locks of both kinds,
//! 300 if it is not set.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

fn run(command: &mut Command) -> std::io::Result<Output> {
    command.output()
}

/// Returns the place at which the compiler has an archive of its own.
fn archive(name: &str) -> Option<PathBuf> {
    let asked = run(Command::new("gcc").arg(format!("-print-file-name={name}"))).ok()?;
    let path = PathBuf::from(String::from_utf8(asked.stdout).ok()?.trim());
    path.is_absolute().then_some(path)
}

#[test]
fn programs_of_musl_share_locks() {
    let tests = std::env::current_exe().expect("this program");
    let built = tests.ancestors().nth(2).expect("the build").join("examples/libother_libc.a");
    if !built.exists() {
        return skip("the archive is built with all tests of the package only");
    }
    let (Some(unwinder), Some(helpers)) = (archive("libgcc_eh.a"), archive("libgcc.a")) else {
        return skip("gcc's archives are not here");
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/other_libc/main.c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shared-musl");
    let mut compiler = Command::new("musl-gcc");
    compiler.args(["-O1", "-static", "-o"]).arg(&program).arg(source);
    compiler.args([&built, &unwinder, &helpers]);
    let compiled = match run(&mut compiler) {
        Ok(compiled) => compiled,
        Err(error) => return skip(&format!("musl-gcc does not run: {error}")),
    };
    if !compiled.status.success() {
        let said = String::from_utf8_lossy(&compiled.stderr).into_owned();
        assert!(said.contains("undefined reference"), "musl-gcc: {said}");
        return skip(&format!("this musl lacks names: {said}"));
    }
    let kills = std::env::var("LOCKSTEAD_TEST_KILLS").unwrap_or_else(|_| "300".into());
    let done = run(Command::new("timeout").arg("100").arg(&program).arg(kills)).expect("it runs");
    let said = String::from_utf8_lossy(&done.stdout);
    print!("{said}");
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{}: {errors}", done.status);
    assert!(said.contains("offset -28\n"), "it is musl's list");
}

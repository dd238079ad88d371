//! Programs of these tests, compiled, and their reports.

use crate::common::{Outcome, finish, lockstead, text};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles `source` to a file in `folder`. Without a compiler, or where `lockstead run`
/// does not exist, the reason is printed and the test is skipped.
pub(crate) fn compiled(folder: &Path, name: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
    if !cfg!(all(target_os = "linux", target_env = "gnu")) {
        eprintln!("skipped: `lockstead run` exists for Linux with glibc");
        return None;
    }
    let (input, output) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&input, source).expect("written");
    let compiler = Command::new("cc")
        .args(["-g", "-O1", "-pthread", "-o"])
        .args([&output, &input])
        .args(flags)
        .output();
    match compiler {
        Err(error) => {
            eprintln!("skipped: no C compiler: {error}");
            None
        }
        Ok(said) => {
            let text = String::from_utf8_lossy(&said.stderr);
            assert!(said.status.success(), "the test's own program does not compile: {text}");
            Some(output)
        }
    }
}

/// Returns the report of `command` as JSON, with all its locks, and what was printed.
pub(crate) fn report(
    folder: &Path,
    command: &[&str],
    environment: &[(&str, &OsStr)],
) -> (Value, Outcome) {
    let file = folder.join("report.json");
    let options = ["run", "--top", "10000", "--json", text(&file), "--"];
    let mut run = lockstead(&[&options, command].concat());
    run.envs(environment.iter().copied()).current_dir(folder);
    let outcome = finish(run.spawn().expect("the command starts"));
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let json = std::fs::read_to_string(&file).expect("the report was written");
    (serde_json::from_str(&json).expect("JSON"), outcome)
}

//! The program of these tests.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

const SOURCE: &str = include_str!("worst.c");

static PROGRAM: LazyLock<Result<(tempfile::TempDir, PathBuf), String>> = LazyLock::new(build);

fn build() -> Result<(tempfile::TempDir, PathBuf), String> {
    if !cfg!(all(target_os = "linux", target_env = "gnu")) {
        return Err("`lockstead run` exists for Linux with glibc".into());
    }
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let [source, program] = ["worst.c", "worst"].map(|name| folder.path().join(name));
    std::fs::write(&source, SOURCE).map_err(|error| error.to_string())?;
    let compiler = Command::new("cc")
        .args(["-g", "-O0", "-pthread", "-o"])
        .args([&program, &source])
        .output()
        .map_err(|error| format!("no C compiler: {error}"))?;
    let text = String::from_utf8_lossy(&compiler.stderr);
    assert!(compiler.status.success(), "the test's own program does not compile: {text}");
    Ok((folder, program))
}

/// Returns the program; without it the reason is printed and the test is skipped.
pub(crate) fn program() -> Option<&'static str> {
    match &*PROGRAM {
        Ok((_, program)) => Some(program.to_str().expect("a plain name")),
        Err(reason) => {
            eprintln!("skipped: {reason}");
            None
        }
    }
}

/// Returns the number of the line with this remark.
pub(crate) fn line(remark: &str) -> u64 {
    let remark = format!("/* {remark} */");
    let at = SOURCE.lines().position(|line| line.contains(&remark));
    at.unwrap_or_else(|| panic!("no line with {remark}")) as u64 + 1
}

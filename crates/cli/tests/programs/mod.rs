//! Programs in C, C++ and Rust, compiled here, under `lockstead run`; and what is reported.

#![allow(dead_code, unused_imports, reason = "each file of tests uses its part")]

mod reports;
mod running;

pub(crate) use reports::{Member, blocked, cycles, only};
pub(crate) use running::{Ended, Running, start, under};

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex};
use tempfile::TempDir;

/// Returns where the programs' sources lie.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

/// Prints why a test does nothing here.
pub(crate) fn skip(reason: &str) {
    println!("skipped: {reason}");
}

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));
static BUILT: LazyLock<Mutex<HashMap<PathBuf, Option<PathBuf>>>> = LazyLock::new(Mutex::default);

/// Returns the program of a source, compiled once; `None`, with a message, where there is no
/// compiler for it.
pub(crate) fn program(source: &str) -> Option<PathBuf> {
    compiled(source, compiler_of(source), "", &[])
}

/// Compiles the same to a shared library.
pub(crate) fn library(source: &str) -> Option<PathBuf> {
    compiled(source, compiler_of(source), "", &["-shared", "-fPIC"])
}

/// Returns the library that a source makes with LIBRARY defined.
pub(crate) fn library_in(source: &str) -> Option<PathBuf> {
    compiled(source, compiler_of(source), "-library", &["-shared", "-fPIC", "-DLIBRARY"])
}

/// Compiles the same with the C library inside; not every system has what it takes.
pub(crate) fn fixed(source: &str) -> Option<PathBuf> {
    compiled(source, compiler_of(source), "-static", &["-static"])
}

/// Compiles the same for another C library.
pub(crate) fn with_musl(source: &str) -> Option<PathBuf> {
    compiled(source, "musl-gcc", "-musl", &[])
}

/// Compiles the same, to be started by the dynamic linker that lies at `path`.
pub(crate) fn started_by(source: &str, path: &Path) -> Option<PathBuf> {
    let option = format!("-Wl,--dynamic-linker={}", path.display());
    compiled(source, compiler_of(source), "-linker", &[&option])
}

fn compiler_of(source: &str) -> &'static str {
    match source.rsplit('.').next() {
        Some("c") => "cc",
        Some("rs") => "rustc",
        _ => "c++",
    }
}

fn compiled(source: &str, compiler: &str, suffix: &str, options: &[&str]) -> Option<PathBuf> {
    let name = source.split('.').next().unwrap_or(source).replace('/', "-");
    let to = FOLDER.path().join(format!("{name}{suffix}"));
    // Held while compiling: other tests may want the same program.
    let mut built = BUILT.lock().expect("no test panics in here");
    if let Some(known) = built.get(&to) {
        return known.clone();
    }
    let (before, after): (&[&str], _) = match compiler {
        "rustc" => (&["--edition=2024", "-g", "-Copt-level=1", "-o"], None),
        _ => (&["-g", "-O0", "-Wall", "-pthread", "-o"], Some("-ldl")),
    };
    let mut command = Command::new(compiler);
    command.args(before).arg(&to).args(options).arg(sources().join(source)).args(after);
    let output = command.output();
    let made = match output {
        Ok(output) if !output.status.success() && options == ["-static"] => {
            skip("nothing to link programs statically with");
            None
        }
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{source} does not compile: {text}");
            Some(to.clone())
        }
        Err(error) => {
            skip(&format!("{source}: no {compiler}: {error}"));
            None
        }
    };
    built.insert(to, made.clone());
    made
}

/// Returns `name.c:12`, the line of a source that carries the comment `@mark`.
pub(crate) fn line(source: &str, mark: &str) -> String {
    let text = std::fs::read_to_string(sources().join(source)).expect("a source");
    let ends = |line: &str| {
        line.split("@").nth(1).is_some_and(|m| m.split_whitespace().next() == Some(mark))
    };
    let number = text.lines().position(ends).unwrap_or_else(|| panic!("{source}: no @{mark}"));
    format!("{source}:{}", number + 1)
}

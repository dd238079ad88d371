//! `cargo xtask wheel`: the package for Python, with the command in it.
//!
//! ```text
//!   cargo build ──▶ lockstead ──▶ lockstead.data/scripts ─┐
//!   crates/python: Rust ──▶ _lockstead.abi3.so            ├─ maturin ──▶ lockstead-0.1.0-cp39-abi3-….whl
//!                  python/, py.typed, stubs ──────────────┘
//! ```

use crate::staging::make_folder;
use crate::{dist, root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest glibc that the command runs with, as wheels name it.
const COMPATIBILITY: &str = "manylinux_2_34";

/// Builds the wheel into `out` and returns its path. The command is taken from the folder `programs`, or
/// built.
///
/// # Errors
/// That there is no maturin; what it said, or cargo; what could not be written.
pub fn wheel(programs: Option<PathBuf>, out: &Path) -> Result<PathBuf, String> {
    let maturin = maturin()?;
    let programs = match programs {
        Some(programs) => programs,
        None => dist::build_programs(&["lockstead-cli"])?,
    };
    let package = root().join("crates/python");
    let scripts = package.join("lockstead.data/scripts");
    make_folder(&scripts)?;
    let (from, to) = (programs.join("lockstead"), scripts.join("lockstead"));
    fs::copy(&from, &to).map_err(|error| format!("{}: {error}", from.display()))?;
    let out = std::path::absolute(out).map_err(|error| format!("{}: {error}", out.display()))?;
    make_folder(&out)?;
    // Only the newest is there afterwards, so that nobody tests another one.
    for old in wheels(&out)? {
        fs::remove_file(&old).map_err(|error| format!("{}: {error}", old.display()))?;
    }
    let mut command = Command::new(maturin[0]);
    command.args(&maturin[1..]).args(["build", "--release", "--locked"]);
    command.args(["--compatibility", COMPATIBILITY, "--out"]).arg(&out);
    command.current_dir(&package).env("CARGO_TARGET_DIR", root().join("target/python"));
    let status = command.status().map_err(|error| format!("cannot run maturin: {error}"))?;
    if !status.success() {
        return Err(format!("maturin build: {status}"));
    }
    wheels(&out)?.pop().ok_or_else(|| format!("maturin made no wheel in {}", out.display()))
}

/// Returns the wheels in a folder; none if there is no such folder.
///
/// # Errors
/// What cannot be read.
pub fn wheels(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "whl") {
            found.push(path);
        }
    }
    Ok(found)
}

/// Returns the words by which maturin is started.
fn maturin() -> Result<Vec<&'static str>, String> {
    let ways: [&[&str]; 2] = [&["maturin"], &["python3", "-m", "maturin"]];
    let starts = |way: &&&[&str]| {
        let version = Command::new(way[0]).args(&way[1..]).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    };
    match ways.iter().find(starts) {
        Some(way) => Ok(way.to_vec()),
        None => Err("there is no maturin: `python3 -m pip install maturin` gets it".into()),
    }
}

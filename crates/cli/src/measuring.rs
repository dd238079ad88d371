//! The subcommands that measure, simulate and draw: those of `lockstead-bench`, a program of its
//! own, so that this command carries no benchmark.
//!
//! `lockstead bench …` becomes `lockstead-bench bench …`, as git does with its subcommands. The
//! program lies beside the command or in a folder of PATH. Started by `cargo run` in the source
//! tree, the command has cargo build it first: cargo builds one program of a package for `run`.

use clap::Args;
use lockstead_render::failure::Failure;
use lockstead_render::shell::{self, ColorFlag};
use serde::{Deserialize, Serialize};
use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The subcommands that `lockstead-bench` has, and of which only the names are known here.
pub(crate) const ELSEWHERE: &[&[&str]] =
    &[&["bench"], &["demo"], &["explain"], &["oncpu", "check"], &["plot"], &["sim"]];

const PROGRAM: &str = "lockstead-bench";

/// What a shell answers for a program that is not there.
const NOT_FOUND: u8 = 127;

/// Arguments that are not read here.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Measuring {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

/// Becomes `lockstead-bench` with this subcommand.
///
/// # Errors
/// Always, if it returns: there is no such program, or it cannot be started.
pub(crate) fn start(subcommand: &[&str], arguments: &Measuring) -> Result<(), Failure> {
    Err(become_it(subcommand.iter().map(OsString::from).chain(arguments.rest.iter().cloned())))
}

/// Does the same for `lockstead help SUBCOMMAND …`, which clap would answer without knowing the
/// flags. Returns why that failed; `None` if help for something else is asked for, or none.
pub(crate) fn help() -> Option<Failure> {
    let words: Vec<OsString> = env::args_os().skip(1).collect();
    let (first, asked) = words.split_first()?;
    let theirs =
        |name: &&[&str]| name.len() <= asked.len() && name.iter().zip(asked).all(|(a, b)| b == a);
    if first != "help" || !ELSEWHERE.iter().any(theirs) {
        return None;
    }
    Some(become_it(asked.iter().cloned().chain(["--help".into()])))
}

/// Has `lockstead-bench` answer a shell that wants to have the words of one of its subcommands
/// completed. Returns if none does, or if that program is not there.
pub(crate) fn complete() {
    let Some(words) = shell::asked() else { return };
    let theirs = |name: &&[&str]| {
        name.len() + 1 < words.len() && name.iter().zip(&words[1..]).all(|(a, b)| a == b)
    };
    if let Some(program) = find().filter(|_| ELSEWHERE.iter().any(theirs)) {
        // Where it does not start, the shell gets what is known here.
        let _ = Command::new(program).args(env::args_os().skip(1)).exec();
    }
}

/// Has `lockstead-bench` write its manual pages into a folder. Says whether that program is there.
///
/// # Errors
/// It failed; what it said is in the message.
pub(crate) fn man(folder: &Path) -> Result<bool, Failure> {
    let Some(program) = find() else { return Ok(false) };
    let output = Command::new(&program).arg("man").arg(folder).output();
    let output = output.map_err(|error| cannot_start(&program, &error))?;
    if output.status.success() {
        return Ok(true);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure::Run(format!("{PROGRAM} wrote no manual pages: {}", said.trim())))
}

/// The locks that `lockstead-bench` knows.
#[derive(Deserialize)]
pub(crate) struct MeasurableLocks {
    /// The names of those that can be measured here.
    pub(crate) locks: Vec<String>,
    /// The others, each with the reason.
    pub(crate) locks_absent: Vec<AbsentLock>,
}

/// A lock that cannot be measured.
#[derive(Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AbsentLock {
    /// The name of the lock.
    pub(crate) lock: String,
    /// The reason, with what to install.
    pub(crate) why: String,
}

/// Returns the locks that can be measured here, and why others cannot; `None` without the program.
pub(crate) fn locks() -> Option<MeasurableLocks> {
    let output = Command::new(find()?).arg("locks").stderr(Stdio::null()).output().ok()?;
    serde_json::from_slice(&output.stdout).ok()
}

fn become_it(arguments: impl Iterator<Item = OsString>) -> Failure {
    if let Err(failure) = build_under_cargo() {
        return failure;
    }
    let Some(program) = find() else {
        return Failure::Refused {
            status: NOT_FOUND,
            text: format!(
                "{PROGRAM}, which measures, simulates and draws, is neither beside this command nor \
                 in PATH; install it from the source tree with `cargo install --path bench`"
            ),
        };
    };
    let error = Command::new(&program).args(ColorFlag::applied()).args(arguments).exec();
    cannot_start(&program, &error)
}

fn cannot_start(program: &Path, error: &io::Error) -> Failure {
    Failure::Refused { status: 126, text: format!("cannot start {}: {error}", program.display()) }
}

/// Returns the program: beside this one, else in PATH.
fn find() -> Option<PathBuf> {
    let beside = env::current_exe().ok().and_then(|own| own.parent().map(Path::to_owned));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = beside.into_iter().chain(env::split_paths(&path));
    folders.map(|folder| folder.join(PROGRAM)).find(|file| file.is_file())
}

/// Has cargo build the program under `cargo run`, in the tree that this command was built from,
/// beside this one and in the same profile.
fn build_under_cargo() -> Result<(), Failure> {
    const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");
    let Some(cargo) = env::var_os("CARGO") else { return Ok(()) };
    if env::var_os("CARGO_MANIFEST_DIR").is_none_or(|package| package != PACKAGE) {
        return Ok(());
    }
    let own = env::current_exe().unwrap_or_default();
    let Some((target, profile)) =
        own.parent().and_then(|folder| Some((folder.parent()?, folder.file_name()?.to_str()?)))
    else {
        return Ok(());
    };
    let built = Command::new(cargo)
        .args(["build", "--package", PROGRAM, "--bin", PROGRAM])
        .args(["--profile", if profile == "debug" { "dev" } else { profile }])
        .arg("--target-dir")
        .arg(target)
        .arg("--manifest-path")
        .arg(Path::new(PACKAGE).join("../../Cargo.toml"))
        .stdin(Stdio::null())
        .status();
    match built {
        Ok(status) if status.success() => Ok(()),
        _ => Err(Failure::Run(format!("cargo did not build {PROGRAM}"))),
    }
}

//! The subcommands that other programs have: `lockstead-bench`, which measures, simulates and draws, so
//! that this command carries no benchmark; and `lockstead-cluster`, so that it carries no client of etcd.
//!
//! `lockstead bench …` becomes `lockstead-bench bench …`, as git does with its subcommands, and
//! `lockstead cluster lock …` becomes `lockstead-cluster lock …`. The
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

/// The subcommands that other programs have, and of which only the names are known here.
pub(crate) const ELSEWHERE: &[&[&str]] = &[
    &["bench"],
    &["cluster"],
    &["demo"],
    &["explain"],
    &["oncpu", "check"],
    &["plot"],
    &["sim"],
    &["whatif"],
];

/// A program that has subcommands of this command.
#[derive(Clone, Copy)]
struct Elsewhere {
    /// The name of the program and of its package.
    name: &'static str,
    /// What it does, for whoever has not got it.
    does: &'static str,
    /// The folder of its package in the source tree.
    folder: &'static str,
}

const BENCH: Elsewhere =
    Elsewhere { name: "lockstead-bench", does: "measures, simulates and draws", folder: "bench" };
const CLUSTER: Elsewhere = Elsewhere {
    name: "lockstead-cluster",
    does: "has the locks over etcd",
    folder: "crates/cluster",
};
/// The subcommand that is all of `lockstead-cluster`.
const CLUSTER_NAME: &str = "cluster";

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
    Err(become_it(
        BENCH,
        subcommand.iter().map(OsString::from).chain(arguments.rest.iter().cloned()),
    ))
}

/// Becomes `lockstead-cluster` with these arguments.
///
/// # Errors
/// As [`start`].
pub(crate) fn start_cluster(arguments: &Measuring) -> Result<(), Failure> {
    Err(become_it(CLUSTER, arguments.rest.iter().cloned()))
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
    let (program, skipped) = if asked[0] == CLUSTER_NAME { (CLUSTER, 1) } else { (BENCH, 0) };
    Some(become_it(program, asked.iter().skip(skipped).cloned().chain(["--help".into()])))
}

/// Has the program that has it answer a shell that wants to have the words of one of its subcommands
/// completed. Returns if none does, or if that program is not there.
pub(crate) fn complete() {
    let Some(words) = shell::asked() else { return };
    let theirs = |name: &&[&str]| {
        name.len() + 1 < words.len() && name.iter().zip(&words[1..]).all(|(a, b)| a == b)
    };
    let of_cluster = words.get(1).is_some_and(|word| word == CLUSTER_NAME);
    let program = if of_cluster { CLUSTER } else { BENCH };
    if let Some(program) = find(program).filter(|_| ELSEWHERE.iter().any(theirs)) {
        // Where it does not start, the shell gets what is known here.
        let _ = Command::new(program).args(env::args_os().skip(1)).exec();
    }
}

/// Has the other programs write their manual pages into a folder. Says whether `lockstead-bench` is there.
///
/// # Errors
/// One failed; what it said is in the message.
pub(crate) fn man(folder: &Path) -> Result<bool, Failure> {
    man_of(CLUSTER, folder)?;
    man_of(BENCH, folder)
}

fn man_of(of: Elsewhere, folder: &Path) -> Result<bool, Failure> {
    let Some(program) = find(of) else { return Ok(false) };
    let output = Command::new(&program).arg("man").arg(folder).output();
    let output = output.map_err(|error| cannot_start(&program, &error))?;
    if output.status.success() {
        return Ok(true);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure::Run(format!("{} wrote no manual pages: {}", of.name, said.trim())))
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
    let output = Command::new(find(BENCH)?).arg("locks").stderr(Stdio::null()).output().ok()?;
    serde_json::from_slice(&output.stdout).ok()
}

fn become_it(of: Elsewhere, arguments: impl Iterator<Item = OsString>) -> Failure {
    if let Err(failure) = build_under_cargo(of) {
        return failure;
    }
    let Some(program) = find(of) else {
        let Elsewhere { name, does, folder } = of;
        return Failure::Refused {
            status: NOT_FOUND,
            text: format!(
                "{name}, which {does}, is neither beside this command nor in PATH; install it from \
                 the source tree with `cargo install --path {folder}`"
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
fn find(of: Elsewhere) -> Option<PathBuf> {
    let beside = env::current_exe().ok().and_then(|own| own.parent().map(Path::to_owned));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = beside.into_iter().chain(env::split_paths(&path));
    folders.map(|folder| folder.join(of.name)).find(|file| file.is_file())
}

/// Has cargo build the program under `cargo run`, in the tree that this command was built from,
/// beside this one and in the same profile.
fn build_under_cargo(of: Elsewhere) -> Result<(), Failure> {
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
        .args(["build", "--package", of.name, "--bin", of.name])
        .args(["--profile", if profile == "debug" { "dev" } else { profile }])
        .arg("--target-dir")
        .arg(target)
        .arg("--manifest-path")
        .arg(Path::new(PACKAGE).join("../../Cargo.toml"))
        .stdin(Stdio::null())
        .status();
    match built {
        Ok(status) if status.success() => Ok(()),
        _ => Err(Failure::Run(format!("cargo did not build {}", of.name))),
    }
}

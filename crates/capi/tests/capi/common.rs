//! The library, built once for all tests, and programs in C and C++ that use it.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use xtask::library::ArchiveBuild;

/// Returns the package's folder.
pub(crate) fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns a folder for what tests make.
pub(crate) fn scratch() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Returns the folder in which the library is built: that of the tests, where cargo finds most of
/// what the library is made of.
pub(crate) fn target() -> &'static Path {
    scratch().parent().expect("cargo's folder for tests lies in its target directory")
}

/// Keeps others from building the library: cargo writes its variants to one file, so whoever built
/// one copies it before the next is built.
pub(crate) fn only_builder() -> MutexGuard<'static, ()> {
    static BUILDS: Mutex<()> = Mutex::new(());
    BUILDS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Returns the archive as tests use it: of the profile `dev`, which is optimised and asserts.
pub(crate) fn archive() -> &'static Path {
    static ARCHIVE: OnceLock<PathBuf> = OnceLock::new();
    ARCHIVE.get_or_init(|| build(false))
}

/// Returns the archive that checks.
pub(crate) fn checking_archive() -> &'static Path {
    static ARCHIVE: OnceLock<PathBuf> = OnceLock::new();
    ARCHIVE.get_or_init(|| build(true))
}

fn build(checks: bool) -> PathBuf {
    let workspace = package().ancestors().nth(2).expect("the package lies in the workspace");
    let (package, target_dir, profile) = ("lockstead-capi", target(), "dev");
    let triple = foreign().map(|foreign| foreign.triple);
    let archive = ArchiveBuild { package, workspace, target_dir, profile, triple, checks };
    let _only = only_builder();
    let built = archive.run(env!("CARGO").as_ref()).unwrap_or_else(|error| panic!("{error}"));
    let kept = scratch().join(if checks { "lockstead-check.a" } else { "lockstead.a" });
    fs::copy(&built, &kept).expect("scratch can be written");
    kept
}

/// A compiler of the system, and the language it is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compiler {
    pub(crate) command: &'static str,
    pub(crate) cpp: bool,
}

const COMPILERS: [Compiler; 4] = [
    Compiler { command: "gcc", cpp: false },
    Compiler { command: "g++", cpp: true },
    Compiler { command: "clang", cpp: false },
    Compiler { command: "clang++", cpp: true },
];

/// Another machine than that of the tests: the programs are built for it, and an emulator runs them.
pub(crate) struct Foreign {
    triple: &'static str,
    compilers: [Compiler; 2],
    emulator: &'static str,
}

const AARCH64: Foreign = Foreign {
    triple: "aarch64-unknown-linux-gnu",
    compilers: [
        Compiler { command: "aarch64-linux-gnu-gcc", cpp: false },
        Compiler { command: "aarch64-linux-gnu-g++", cpp: true },
    ],
    emulator: "qemu-aarch64",
};

/// Returns the machine that `LOCKSTEAD_FOREIGN` names by its triple, as `cargo xtask cross` does.
pub(crate) fn foreign() -> Option<&'static Foreign> {
    let triple = std::env::var("LOCKSTEAD_FOREIGN").ok()?;
    assert_eq!(triple, AARCH64.triple, "LOCKSTEAD_FOREIGN names no machine that is known here");
    Some(&AARCH64)
}

/// Returns those that are installed; who has none cannot build this workspace either.
pub(crate) fn compilers() -> Vec<Compiler> {
    if let Some(foreign) = foreign() {
        return foreign.compilers.to_vec();
    }
    let runs = |compiler: &Compiler| {
        let found = Command::new(compiler.command).arg("--version").output().is_ok();
        if !found {
            eprintln!("skipped: {} is not installed", compiler.command);
        }
        found
    };
    COMPILERS.into_iter().filter(runs).collect()
}

/// Returns the compiler for this language that is there for sure.
pub(crate) fn compiler(cpp: bool) -> &'static str {
    let any = compilers();
    any.iter().find(|compiler| compiler.cpp == cpp).map_or("cc", |compiler| compiler.command)
}

/// Returns a command that compiles with all warnings, none of which is accepted.
pub(crate) fn strict(compiler: &str, standard: &str) -> Command {
    let mut command = Command::new(compiler);
    command.arg(format!("-std={standard}"));
    command.args(["-O2", "-g1", "-Wall", "-Wextra", "-pedantic", "-Werror", "-Wconversion"]);
    command.arg("-Wno-sign-conversion").arg("-I").arg(package().join("include"));
    command
}

/// Runs a command, which must end well.
pub(crate) fn ends_well(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Adds to a compiler's command the archive and what it needs.
pub(crate) fn with_library<'a>(command: &'a mut Command, archive: &Path) -> &'a mut Command {
    command.arg(archive).args(["-lgcc_s", "-lpthread", "-ldl", "-lm"])
}

/// Compiles a program of `tests/` with the library, once: another test may run it already.
pub(crate) fn program(source: &str, compiler: &str, standard: &str, options: &[&str]) -> PathBuf {
    let path = package().join("tests").join(source);
    let stem = path.file_stem().expect("a name").display().to_string();
    let options_of_it = options.concat().replace('/', "-");
    let program = scratch().join(format!("{stem}-{compiler}-{standard}{options_of_it}"));
    static BUILT: Mutex<Option<HashMap<PathBuf, Arc<OnceLock<()>>>>> = Mutex::new(None);
    let built = {
        let mut all = BUILT.lock().expect("no test panics with it");
        Arc::clone(all.get_or_insert_default().entry(program.clone()).or_default())
    };
    built.get_or_init(|| {
        let checks = options.contains(&"-DLKS_DEBUG");
        let archive = if checks { checking_archive() } else { archive() };
        let mut command = strict(compiler, standard);
        command.args(options).arg("-pthread").arg("-o").arg(&program).arg(&path);
        ends_well(with_library(&mut command, archive));
    });
    program
}

/// Runs a program for at most a minute and a half.
pub(crate) fn run(program: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "90"]);
    command.args(foreign().map(|foreign| foreign.emulator)).arg(program).args(arguments);
    command.output().expect("timeout runs")
}

/// Runs a program, which must end well.
pub(crate) fn passes(program: &Path) {
    let output = run(program, &[]);
    assert!(
        output.status.success(),
        "{}: {}\n{}{}",
        program.display(),
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Runs a case of a program that was built to check, told what to do or not.
pub(crate) fn checked(program: &Path, case: &str, setting: Option<&str>) -> (Output, String) {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "60"]).args(foreign().map(|foreign| foreign.emulator));
    command.arg(program).arg(case).env_remove("LOCKSTEAD_CHECK");
    if let Some(setting) = setting {
        command.env("LOCKSTEAD_CHECK", setting);
    }
    let output = command.output().expect("timeout runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

/// Returns `FILE:LINE` of the line with this comment, in a program in C.
pub(crate) fn marked(file: &str, comment: &str) -> String {
    let path = package().join("tests/c").join(file);
    let source = fs::read_to_string(path).expect("the source");
    let marked = format!("/* {comment} */");
    let line = source.lines().position(|line| line.contains(&marked));
    format!("{file}:{}", line.unwrap_or_else(|| panic!("no {marked}")) + 1)
}

//! `--rust`: has cargo build what the program builds with a standard library whose locks are seen.
//!
//! # Role
//! Rust's locks are inlined and call nothing, so that nothing can be put under them. But rustc takes
//! for `std` whatever crate it is given by that name. The command carries the source of one that has
//! all of the real `std` and tells of its locks (`crates/std`), builds it with the rustc that is
//! there, and has cargo call rustc by a script that adds that crate to each call. No source and no
//! manifest changes.
//!
//! # What is kept apart
//! The objects that cargo makes so are of no use to other builds, and cargo cannot tell them apart:
//! they go into a target folder of their own, `target/lockstead` of the workspace. The crate lies
//! beside them, in a folder by the name of a hash of its source and of rustc's version.

use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The sources, by the names of their files; the crate `lockstead_told` first.
const SOURCES: [(&str, &str); 7] = [
    ("told.rs", include_str!("../../../told/src/lib.rs")),
    ("lib.rs", include_str!("../../../std/src/lib.rs")),
    ("sync.rs", include_str!("../../../std/src/sync.rs")),
    ("sync/condvar.rs", include_str!("../../../std/src/sync/condvar.rs")),
    ("sync/mutex.rs", include_str!("../../../std/src/sync/mutex.rs")),
    ("sync/rwlock.rs", include_str!("../../../std/src/sync/rwlock.rs")),
    ("sync/telling.rs", include_str!("../../../std/src/sync/telling.rs")),
];

/// What cargo calls in the place of rustc: adds the crate to each call that compiles one for this
/// machine. A wrapper that was there before is called as before.
const SCRIPT: &str = r#"#!/bin/sh
for argument; do
    case $argument in
    --crate-name | --crate-name=*) compiles=1 ;;
    --target | --target=*) elsewhere=1 ;;
    esac
done
rustc=$1
shift
if [ "$compiles" ] && [ -z "$elsewhere" ]; then
    set -- "$@" --extern "std=$LOCKSTEAD_RUST/liblockstead_std.rlib" -L "dependency=$LOCKSTEAD_RUST"
fi
exec $LOCKSTEAD_RUST_BEFORE "$rustc" "$@"
"#;

/// The variables that the script reads.
const FOLDER: &str = "LOCKSTEAD_RUST";
const BEFORE: &str = "LOCKSTEAD_RUST_BEFORE";

/// Builds the crate, if it is not there yet, and returns the variables by which cargo uses it.
///
/// # Errors
/// What stands in the way, in words for the user.
pub(super) fn environment() -> Result<Vec<(&'static str, OsString)>, String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = said(Command::new(&rustc).arg("-vV"))?;
    let target = target()?;
    let mut hasher = DefaultHasher::new();
    hasher.write(version.as_bytes());
    SOURCES.iter().for_each(|(_, source)| hasher.write(source.as_bytes()));
    let folder = target.join(format!("std-{:016x}", hasher.finish()));
    if !folder.join("rustc").exists() {
        build(&folder, &rustc)?;
    }
    let (library, script) = (folder.join("liblockstead_std.rlib"), folder.join("rustc"));
    // The programs of documentation tests are linked with all that their crate is made of.
    let mut rustdoc = std::env::var_os("RUSTDOCFLAGS").unwrap_or_default();
    for word in [" --extern std=".into(), library.into_os_string(), " -L dependency=".into()] {
        rustdoc.push::<OsString>(word);
    }
    rustdoc.push(&folder);
    Ok(vec![
        ("CARGO_TARGET_DIR", target.into()),
        (BEFORE, std::env::var_os("RUSTC_WRAPPER").unwrap_or_default()),
        ("RUSTC_WRAPPER", script.into()),
        ("RUSTDOCFLAGS", rustdoc),
        (FOLDER, folder.into()),
    ])
}

/// Returns the target folder for what is built so.
fn target() -> Result<PathBuf, String> {
    if let Some(target) = std::env::var_os("CARGO_TARGET_DIR").filter(|target| !target.is_empty()) {
        let here =
            std::env::current_dir().map_err(|error| format!("no working folder: {error}"))?;
        return Ok(here.join(target).join("lockstead"));
    }
    let mut locate = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    locate.args(["locate-project", "--workspace", "--message-format", "plain"]);
    let manifest = said(&mut locate)?;
    let root = Path::new(manifest.trim_end()).parent().map(Path::to_path_buf);
    Ok(root.ok_or("cargo names no manifest")?.join("target/lockstead"))
}

/// Builds both crates in the folder, the script last: it says that the rest is there.
fn build(folder: &Path, rustc: &OsString) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot write to {}: {error}", folder.display());
    let source = folder.join("src");
    fs::create_dir_all(source.join("sync")).map_err(failed)?;
    for (name, text) in SOURCES {
        fs::write(source.join(name), text).map_err(failed)?;
    }
    for (file, name, with) in
        [("told.rs", "lockstead_told", false), ("lib.rs", "lockstead_std", true)]
    {
        let mut compile = Command::new(rustc);
        compile.args(["--edition", "2024", "--crate-type", "rlib", "-O", "--cap-lints", "allow"]);
        compile.args(["--crate-name", name, "--out-dir"]).arg(folder).arg(source.join(file));
        if with {
            let mut told = OsString::from("lockstead_told=");
            told.push(folder.join("liblockstead_told.rlib"));
            compile.arg("--extern").arg(told);
        }
        said(&mut compile)?;
    }
    let script = folder.join("rustc.new");
    fs::write(&script, SCRIPT).map_err(failed)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    fs::rename(&script, folder.join("rustc")).map_err(failed)
}

/// Returns what a command says on its standard output; its errors as an error.
fn said(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("cannot start {name}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim_end()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

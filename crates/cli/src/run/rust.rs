//! `--rust`: has cargo build what the program builds with a standard library whose locks are seen.
//!
//! # Role
//! Rust's locks are inlined and call nothing, so that nothing can be put under them. But rustc takes
//! for `std` whatever crate it is given by that name. The command carries the source of one that has
//! all of the real `std` and tells of its locks (`crates/std`), builds it with the rustc that is
//! there, and has cargo call rustc by a script that adds that crate to each call. Where cargo compiles
//! parking_lot, the script compiles that under another number, and around it, in its place, one
//! whose locks tell of themselves (`crates/parking_lot`). No source and no manifest changes.
//!
//! # What does not fit
//! A parking_lot in whose place ours does not compile is built as it is. The script says so and why,
//! and leaves it in a file of the folder `unseen`, for the end of the run.
//!
//! # What is kept apart
//! The objects that cargo makes so are of no use to other builds, and cargo cannot tell them apart:
//! they go into a target folder of their own, `target/lockstead` of the workspace. The crate lies
//! beside them, in a folder by the name of a hash of its source and of one with rustc's version. When
//! the source is another one, what was built with it before is removed.

use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns a source of `crates/parking_lot`, with the name of its file.
macro_rules! lot {
    ($file:literal) => {
        (
            concat!("parking_lot/", $file),
            include_str!(concat!("../../embedded/parking_lot/src/", $file)),
        )
    };
}

/// The sources, by the names of their files; the crate `lockstead_told` first.
const SOURCES: [(&str, &str); 24] = [
    ("told.rs", include_str!("../../embedded/told/src/lib.rs")),
    ("home.rs", include_str!("../../embedded/told/src/home.rs")),
    ("once.rs", include_str!("../../embedded/told/src/once.rs")),
    ("lib.rs", include_str!("../../embedded/std/src/lib.rs")),
    ("sync.rs", include_str!("../../embedded/std/src/sync.rs")),
    ("sync/condvar.rs", include_str!("../../embedded/std/src/sync/condvar.rs")),
    ("sync/lazy_lock.rs", include_str!("../../embedded/std/src/sync/lazy_lock.rs")),
    ("sync/once.rs", include_str!("../../embedded/std/src/sync/once.rs")),
    ("sync/once_lock.rs", include_str!("../../embedded/std/src/sync/once_lock.rs")),
    ("sync/mutex.rs", include_str!("../../embedded/std/src/sync/mutex.rs")),
    ("sync/rwlock.rs", include_str!("../../embedded/std/src/sync/rwlock.rs")),
    ("sync/telling.rs", include_str!("../../embedded/std/src/sync/telling.rs")),
    lot!("lib.rs"),
    lot!("telling.rs"),
    lot!("with_guards/mod.rs"),
    lot!("with_guards/condvar.rs"),
    lot!("with_guards/mutex.rs"),
    lot!("with_guards/once.rs"),
    lot!("with_guards/rwlock.rs"),
    lot!("with_markers/mod.rs"),
    lot!("with_markers/condvar.rs"),
    lot!("with_markers/mutex.rs"),
    lot!("with_markers/once.rs"),
    lot!("with_markers/rwlock.rs"),
];

/// What cargo calls in the place of rustc.
const SCRIPT: &str = include_str!("rust/rustc.sh");

/// The variables that the script reads.
const FOLDER: &str = "LOCKSTEAD_RUST";
const HOST: &str = "LOCKSTEAD_RUST_HOST";
const BEFORE: &str = "LOCKSTEAD_RUST_BEFORE";

/// The standard library that cargo's builds are given.
#[derive(Debug, Default)]
pub(super) struct RustBuild {
    /// The variables by which cargo uses it.
    pub(super) environment: Vec<(&'static str, OsString)>,
    folder: PathBuf,
}

impl RustBuild {
    /// Returns what was built as it is, and why, a line each.
    pub(super) fn unfit(&self) -> Vec<String> {
        let files = fs::read_dir(self.folder.join("unseen")).into_iter().flatten().flatten();
        let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
        texts.map(|text| text.trim_end().to_owned()).collect()
    }
}

/// Builds the crate, if it is not there yet, and says how cargo uses it.
///
/// # Errors
/// What stands in the way, in words for the user.
pub(super) fn prepare() -> Result<RustBuild, String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = said(Command::new(&rustc).arg("-vV"))?;
    let target = target()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    hasher.write(SCRIPT.as_bytes());
    SOURCES.iter().for_each(|(_, source)| hasher.write(source.as_bytes()));
    let source = format!("std-{:016x}-", hasher.finish());
    hasher.write(version.as_bytes());
    let folder = target.join(format!("{source}{:016x}", hasher.finish()));
    if !folder.join("rustc").exists() {
        clear_others(&target, &source)?;
        build(&folder, &rustc)?;
    }
    let (library, script) = (folder.join("liblockstead_std.rlib"), folder.join("rustc"));
    // The programs of documentation tests are linked with all that their crate is made of.
    let mut rustdoc = std::env::var_os("RUSTDOCFLAGS").unwrap_or_default();
    for word in [" --extern std=".into(), library.into_os_string(), " -L dependency=".into()] {
        rustdoc.push::<OsString>(word);
    }
    rustdoc.push(&folder);
    let environment = vec![
        ("CARGO_TARGET_DIR", target.into()),
        (BEFORE, wrapper_before()),
        ("RUSTC_WRAPPER", script.into()),
        ("RUSTDOCFLAGS", rustdoc),
        (HOST, host.into()),
        (FOLDER, folder.clone().into()),
    ];
    Ok(RustBuild { environment, folder })
}

/// Returns the wrapper of rustc that cargo would call without this one, as cargo looks for it: in the
/// environment, then in its configuration, from the working folder upwards.
fn wrapper_before() -> OsString {
    let variables = ["RUSTC_WRAPPER", "CARGO_BUILD_RUSTC_WRAPPER"];
    if let Some(wrapper) = variables.iter().find_map(std::env::var_os) {
        return wrapper;
    }
    let here = std::env::current_dir().unwrap_or_default();
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let folders = here.ancestors().map(|folder| folder.join(".cargo")).chain(home);
    let files = folders.flat_map(|folder| ["config.toml", "config"].map(|name| folder.join(name)));
    let wrapper = |file: PathBuf| {
        let config: toml::Table = fs::read_to_string(&file).ok()?.parse().ok()?;
        let wrapper = PathBuf::from(config.get("build")?.get("rustc-wrapper")?.as_str()?);
        // A name is looked for on the path, a path beside the folder of the configuration.
        let is_name = wrapper.components().count() == 1;
        let base = file.parent()?.parent()?;
        Some(if is_name { wrapper } else { base.join(wrapper) })
    };
    files.into_iter().find_map(wrapper).unwrap_or_default().into()
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

/// Removes the target folder if it has objects that were built with another source than that of
/// folders that begin with `source`: cargo does not know that these are to be built anew.
fn clear_others(target: &Path, source: &str) -> Result<(), String> {
    let names = fs::read_dir(target).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    if names.iter().any(|name| name.starts_with("std-") && !name.starts_with(source)) {
        fs::remove_dir_all(target)
            .map_err(|error| format!("cannot clear {}: {error}", target.display()))?;
    }
    Ok(())
}

/// Builds both crates in the folder, the script last: it says that the rest is there.
fn build(folder: &Path, rustc: &OsString) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot write to {}: {error}", folder.display());
    let source = folder.join("src");
    for (name, text) in SOURCES {
        let file = source.join(name);
        fs::create_dir_all(file.parent().unwrap_or(&source)).map_err(failed)?;
        fs::write(file, text).map_err(failed)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_source_has_built_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("lockstead");
        let objects = target.join("debug");
        fs::create_dir_all(target.join("std-1-7")).expect("a folder");
        fs::create_dir_all(&objects).expect("a folder");
        clear_others(&target, "std-1-").expect("it is read");
        assert!(objects.exists(), "another rustc has objects of its own");
        clear_others(&target, "std-2-").expect("it is removed");
        assert!(!target.exists());
        clear_others(&target, "std-2-").expect("nothing is there");
    }
}

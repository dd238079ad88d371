//! How the library for C is made.
//!
//! rustc's own way to make a shared object exports what it likes and takes no other
//! opinion; so an archive is made, by a cargo in a target directory of its own, and
//! the system's compiler links that, with the list of what C may see.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Builds the archive with the packages of `workspace` in this profile, checking or
/// not, and returns its path.
///
/// # Errors
/// What cargo said.
pub fn build_archive(
    cargo: &OsStr,
    workspace: &Path,
    target_dir: &Path,
    profile: &str,
    checks: bool,
) -> Result<PathBuf, String> {
    let run = |offline: bool| {
        let mut command = Command::new(cargo);
        command.current_dir(workspace);
        command.args(["rustc", "--package", "lockstead-capi", "--lib", "--locked"]);
        command.args(["--crate-type", "staticlib", "--profile", profile]);
        command.arg("--target-dir").arg(target_dir);
        if checks {
            command.args(["--features", "check"]);
        }
        if offline {
            command.arg("--offline");
        }
        // What changes the outer build is not for this one.
        for variable in [
            "RUSTC_WORKSPACE_WRAPPER",
            "RUSTFLAGS",
            "CARGO_BUILD_RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_BUILD_TARGET",
        ] {
            command.env_remove(variable);
        }
        command.stdin(Stdio::null()).output()
    };
    // Without the network first, as the outer cargo may have been told.
    let mut output = run(true);
    if let Ok(failed) = &output
        && !failed.status.success()
        && String::from_utf8_lossy(&failed.stderr).contains("--offline")
    {
        output = run(false);
    }
    let output = output.map_err(|error| format!("cannot run {}: {error}", cargo.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo rustc --package lockstead-capi: {}\n{said}", output.status));
    }
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(target_dir.join(folder).join("liblockstead_capi.a"))
}

/// Links the archive to one object in which only `lks_*` is to be seen, so that a
/// program can have it beside other libraries written in Rust.
///
/// # Errors
/// What the linker said.
pub fn link_object(archive: &Path, object: &Path) -> Result<(), String> {
    let mut roots = Vec::new();
    let symbols = said_by(Command::new("nm").args(["--defined-only", "-g"]).arg(archive))?;
    for line in symbols.lines() {
        let name = line.split_whitespace().nth(2).unwrap_or_default();
        if name.starts_with("lks_") {
            roots.push(format!("--undefined={name}"));
        }
    }
    let mut ld = Command::new("ld");
    ld.args(["-r", "--gc-sections", "-o"]).arg(object).args(roots).arg(archive);
    said_by(&mut ld)?;
    let mut objcopy = Command::new("objcopy");
    objcopy.args(["--wildcard", "--keep-global-symbol=lks_*"]);
    // LLVM's code for itself, which several objects have put one behind the other: its
    // plugin for the linker, where that is installed, reads it and gives up.
    objcopy.args(["--remove-section=.llvmbc", "--remove-section=.llvmcmd"]);
    said_by(objcopy.arg(object))?;
    Ok(())
}

/// Links the object to the shared library `library`, of which programs know the
/// `soname`.
///
/// # Errors
/// What the linker said.
pub fn link_shared(object: &Path, map: &Path, soname: &str, library: &Path) -> Result<(), String> {
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-o"]).arg(library).arg(object);
    cc.arg(format!("-Wl,-soname,{soname}"));
    cc.arg(format!("-Wl,--version-script={}", map.display()));
    cc.args(["-Wl,--gc-sections", "-Wl,-z,relro,-z,now,-z,nodelete", "-Wl,-z,defs"]);
    cc.args(["-lgcc_s", "-lpthread", "-ldl", "-lm", "-lc"]);
    said_by(&mut cc).map(drop)
}

/// Returns the standard output of a command that ends well.
///
/// # Errors
/// What it said otherwise.
pub fn said_by(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().display().to_string();
    let output = command.output().map_err(|error| format!("cannot run {name}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{name}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
    }
}

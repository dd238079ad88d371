//! How the library for C is made.
//!
//! rustc's own way to make a shared object exports what it likes and takes no other
//! opinion; so an archive is made, by a cargo in a target directory of its own, and
//! the system's compiler links that, with the list of what C may see.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An archive of the library as cargo is to build it.
#[derive(Clone, Copy, Debug)]
pub struct ArchiveBuild<'a> {
    /// The package of the library.
    pub package: &'a str,
    /// The folder of the packages.
    pub workspace: &'a Path,
    /// The folder in which cargo builds.
    pub target_dir: &'a Path,
    /// The profile with which cargo builds.
    pub profile: &'a str,
    /// The machine and the C library that it is for, where they are not those of this system.
    pub triple: Option<&'a str>,
    /// Whether the library checks the use of its locks.
    pub checks: bool,
}

impl ArchiveBuild<'_> {
    /// Builds the archive with this cargo, and returns its path.
    ///
    /// # Errors
    /// What cargo said.
    pub fn run(&self, cargo: &OsStr) -> Result<PathBuf, String> {
        // Without the network first, as the outer cargo may have been told.
        let mut output = self.command(cargo).arg("--offline").output();
        if let Ok(failed) = &output
            && !failed.status.success()
            && String::from_utf8_lossy(&failed.stderr).contains("--offline")
        {
            output = self.command(cargo).output();
        }
        let output = output.map_err(|error| format!("cannot run {}: {error}", cargo.display()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let package = self.package;
            return Err(format!("cargo rustc --package {package}: {}\n{said}", output.status));
        }
        let folder = if self.profile == "dev" { "debug" } else { self.profile };
        let of_triple = self.target_dir.join(self.triple.unwrap_or_default());
        let name = format!("lib{}.a", self.package.replace('-', "_"));
        Ok(of_triple.join(folder).join(name))
    }

    fn command(&self, cargo: &OsStr) -> Command {
        let mut command = Command::new(cargo);
        command.current_dir(self.workspace);
        command.args(["rustc", "--package", self.package, "--lib", "--locked"]);
        command.args(["--crate-type", "staticlib", "--profile", self.profile]);
        command.arg("--target-dir").arg(self.target_dir);
        if let Some(triple) = self.triple {
            command.args(["--target", triple]);
        }
        if self.checks {
            command.args(["--features", "check"]);
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
        // Tests are told of their own package, by variables that some build scripts ask to be run again for.
        for (variable, _) in std::env::vars_os() {
            let name = variable.to_string_lossy();
            if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
                command.env_remove(&variable);
            }
        }
        command.stdin(Stdio::null());
        command
    }
}

/// Returns the unwinder that Rust brings for this machine and C library, if it does: a compiler
/// that links with another C library than its own adds the unwinder of its own, which does not fit.
pub fn unwinder(triple: &str) -> Option<PathBuf> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let folder =
        said_by(Command::new(rustc).args(["--print", "target-libdir", "--target", triple]));
    let file = Path::new(folder.ok()?.trim()).join("self-contained/libunwind.a");
    file.exists().then_some(file)
}

/// Links the archive to one object in which only `lks_*` is to be seen, so that a
/// program can have it beside other libraries written in Rust. What `unwinder` offers and the
/// archive wants is part of the object.
///
/// # Errors
/// What the linker said.
pub fn link_object(archive: &Path, unwinder: Option<&Path>, object: &Path) -> Result<(), String> {
    let mut roots = Vec::new();
    let symbols = said_by(Command::new("nm").args(["--defined-only", "-g"]).arg(archive))?;
    for line in symbols.lines() {
        let name = line.split_whitespace().nth(2).unwrap_or_default();
        if name.starts_with("lks_") {
            roots.push(format!("--undefined={name}"));
        }
    }
    let mut ld = Command::new("ld");
    ld.args(["-r", "--gc-sections", "-o"]).arg(object).args(roots).arg(archive).args(unwinder);
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

/// Returns the newest version of glibc that a program or a shared library asks for, as `(2, 34)`: with an older
/// one it does not start.
///
/// # Errors
/// What readelf said, or that it names no glibc.
pub fn newest_glibc(file: &Path) -> Result<(u32, u32), String> {
    let said = said_by(Command::new("readelf").args(["--version-info", "--wide"]).arg(file))?;
    let versions = said.split("Name: GLIBC_").skip(1).filter_map(|after| {
        let version = after.split_whitespace().next()?;
        if version == "ABI_DT_RELR" {
            // Packed relocations, which the loader of 2.36 was the first to know.
            return Some((2, 36));
        }
        let (major, minor) = version.split_once('.')?;
        // Of 2.2.5, what comes first.
        Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
    });
    versions.max().ok_or_else(|| format!("{} asks for no glibc", file.display()))
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

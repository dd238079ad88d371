//! `cargo xtask dist`: the programs, and the library of the locks over etcd for C, as an archive with an
//! installer, and as a Debian package.
//!
//! ```text
//!   cargo build ──▶ bin/, lib/, include/ ─┐
//!   lockstead man ──▶ share/man/man1/ ─┤  one tree ──▶ lockstead-0.1.0-x86_64-linux-gnu.tar.gz
//!   lockstead completions ──▶ share/… ─┤          └──▶ lockstead_0.1.0_amd64.deb
//!   licences, changelog ──▶ share/doc/ ┘
//! ```

use crate::library::said_by;
use crate::staging::{VERSION, make_folder, write};
use crate::{cluster, root};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs that are installed, the one of users first.
const PROGRAMS: [&str; 3] = ["lockstead", "lockstead-bench", CLUSTER];

/// The one behind `lockstead cluster`, which has pages of its own.
const CLUSTER: &str = "lockstead-cluster";

/// Where each shell looks for completions, below the prefix.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/lockstead"),
    ("fish", "share/fish/vendor_completions.d/lockstead.fish"),
    ("zsh", "share/zsh/site-functions/_lockstead"),
];

/// What lies beside the tree in the archive, and puts it in its place.
const INSTALLER: &str = include_str!("install.sh");

/// Builds all that is packed as a release, in the workspace's own target directory, and returns the folder in
/// which it lies.
///
/// # Errors
/// cargo cannot be started, or does not build them; what it says stands on standard error.
pub fn build() -> Result<PathBuf, String> {
    let made = build_programs(&["lockstead-cli", "lockstead-bench", "lockstead-cluster"])?;
    cluster::build("preload", &root().join("target/capi"), &made)?;
    Ok(made)
}

/// Builds the programs of these packages as a release, and returns the folder in which they lie.
///
/// # Errors
/// cargo cannot be started, or does not build them; what it says stands on standard error.
pub fn build_programs(packages: &[&str]) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root()).args(["build", "--release", "--locked", "--bins"]);
    command.args(packages.iter().flat_map(|package| ["--package", package]));
    let status = command.status().map_err(|error| format!("cannot run cargo: {error}"))?;
    if status.success() {
        Ok(root().join("target/release"))
    } else {
        Err(format!("cargo build: {status}"))
    }
}

/// Makes archive and package, in `out`, of the programs in `programs`, and returns their paths. There is
/// no package where `dpkg-deb` is not.
///
/// # Errors
/// What could not be read, written or started.
pub fn package(programs: &Path, out: &Path) -> Result<Vec<PathBuf>, String> {
    let name = format!("lockstead-{VERSION}-{}-linux-gnu", std::env::consts::ARCH);
    make_folder(out)?;
    let scratch = out.join(".dist");
    let _ = fs::remove_dir_all(&scratch);
    let tree = scratch.join(&name);
    stage(programs, &tree)?;
    let mut made = vec![archive(&scratch, &name, out)?];
    made.extend(debian(&tree, &scratch.join("debian"), out)?);
    fs::remove_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
    Ok(made)
}

/// Puts into `tree` all that is installed.
fn stage(programs: &Path, tree: &Path) -> Result<(), String> {
    let bin = tree.join("bin");
    make_folder(&bin)?;
    for program in PROGRAMS {
        let (from, to) = (programs.join(program), bin.join(program));
        fs::copy(&from, &to).map_err(|error| format!("{}: {error}", from.display()))?;
    }
    let program = programs.join(PROGRAMS[0]);
    // Not as cargo starts it, for which it would build the other program.
    let asked = || {
        let mut command = Command::new(&program);
        command.env_remove("CARGO");
        command
    };
    let pages = tree.join("share/man/man1");
    said_by(asked().arg("man").arg(&pages))?;
    said_by(Command::new(programs.join(CLUSTER)).arg("man").arg(&pages))?;
    cluster::stage(programs, tree, "lib")?;
    cluster::describe(tree, "lib", None)?;
    for (shell, file) in COMPLETIONS {
        write(&tree.join(file), &said_by(asked().args(["completions", shell]))?)?;
    }
    for text in ["LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md"] {
        let to = tree.join("share/doc/lockstead").join(text);
        make_folder(to.parent().expect("a file lies in a folder"))?;
        fs::copy(root().join(text), &to).map_err(|error| format!("{text}: {error}"))?;
    }
    Ok(())
}

/// Packs the tree with its installer.
fn archive(scratch: &Path, name: &str, out: &Path) -> Result<PathBuf, String> {
    let installer = scratch.join(name).join("install.sh");
    write(&installer, INSTALLER)?;
    executable(&installer)?;
    let file = out.join(format!("{name}.tar.gz"));
    // The same bytes whoever packs it, and when.
    let fixed = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"];
    said_by(
        Command::new("tar").args(fixed).arg("-C").arg(scratch).arg("-czf").arg(&file).arg(name),
    )?;
    fs::remove_file(&installer).map_err(|error| format!("{}: {error}", installer.display()))?;
    Ok(file)
}

/// Makes the Debian package, below `/usr`.
fn debian(tree: &Path, root: &Path, out: &Path) -> Result<Option<PathBuf>, String> {
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        eprintln!("xtask: no Debian package, for there is no dpkg-deb");
        return Ok(None);
    }
    make_folder(root)?;
    let usr = root.join("usr");
    fs::rename(tree, &usr).map_err(|error| format!("{}: {error}", usr.display()))?;
    // Debian's policy: the licences in one file of this name, changelog and pages compressed.
    let doc = usr.join("share/doc/lockstead");
    let read =
        |name: &str| fs::read_to_string(doc.join(name)).map_err(|error| format!("{name}: {error}"));
    let copyright = format!(
        "lockstead may be used under the MIT licence or version 2.0 of the Apache licence, as you \
         like.\n\n{}\n\n{}",
        read("LICENSE-MIT")?,
        read("LICENSE-APACHE")?
    );
    write(&doc.join("copyright"), &copyright)?;
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        fs::remove_file(doc.join(name)).map_err(|error| format!("{name}: {error}"))?;
    }
    let mut gzip = Command::new("gzip");
    gzip.args(["-9n", "--recursive"]).arg(doc.join("CHANGELOG.md")).arg(usr.join("share/man"));
    said_by(&mut gzip)?;
    cluster::describe(&usr, "lib", Some(Path::new("/usr")))?;
    let zsh = usr.join("share/zsh");
    fs::rename(zsh.join("site-functions"), zsh.join("vendor-completions"))
        .map_err(|error| format!("{}: {error}", zsh.display()))?;
    let kilobytes = said_by(Command::new("du").arg("-sk").arg(&usr))?;
    let kilobytes = kilobytes.split_whitespace().next().ok_or("du: no size")?;
    let machine = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => return Err(format!("what Debian calls {other} is not known here")),
    };
    let control = format!(
        "Package: lockstead\nVersion: {VERSION}\nArchitecture: {machine}\nSection: devel\n\
         Priority: optional\nMaintainer: The maintainers of lockstead\n\
         Installed-Size: {kilobytes}\nDepends: libc6 (>= 2.34), libgcc-s1\n\
         Description: who holds and who waits for which lock, in any program\n \
         Runs a program, or looks at one that runs, and prints deadlocks as they\n \
         close, lock-order inversions, and the locks that cost the most time. Locks\n \
         over etcd for scripts, C and C++.\n"
    );
    write(&root.join("DEBIAN/control"), &control)?;
    // A shared library of the system's is known by the cache of the loader.
    write(&root.join("DEBIAN/triggers"), "activate-noawait ldconfig\n")?;
    let file = out.join(format!("lockstead_{VERSION}_{machine}.deb"));
    said_by(Command::new("dpkg-deb").args(["--root-owner-group", "--build"]).arg(root).arg(&file))?;
    Ok(Some(file))
}

fn executable(file: &Path) -> Result<(), String> {
    fs::set_permissions(file, fs::Permissions::from_mode(0o755))
        .map_err(|error| format!("{}: {error}", file.display()))
}

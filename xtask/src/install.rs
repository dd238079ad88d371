//! Installs the library for C and C++ below a prefix.

use crate::finders::{self, Library};
use crate::library::{ArchiveBuild, link_object, link_shared, said_by, unwinder};
use crate::staging::{ABI, VERSION, copy_all, make_folder};
use crate::{cluster, root};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// The libraries of the locks in memory.
const LIBRARIES: [Library<'static>; 2] = [
    Library {
        name: "lockstead",
        target: "lockstead",
        what: "Locks with bounded waiting",
        define: None,
    },
    Library {
        name: "lockstead-check",
        target: "check",
        what: "Locks with bounded waiting; this library checks their use",
        define: Some("LKS_DEBUG"),
    },
];

/// The folders, and what is installed there.
#[derive(Clone, Debug)]
pub struct InstallOptions {
    /// The folder in which programs find it. Absolute, or made so.
    pub prefix: PathBuf,
    /// The folder in front of the prefix while installing.
    pub destdir: Option<PathBuf>,
    /// The folder of the libraries, below the prefix.
    pub libdir: String,
    /// The profile with which cargo builds.
    pub profile: String,
    /// The folder in which cargo builds.
    pub target: PathBuf,
    /// The machine and the C library that it is for, where they are not those of this system. The
    /// library is not shared then, since the system's linker makes shared ones for its own only.
    pub triple: Option<String>,
    /// Whether the library of the locks over etcd is installed as well.
    pub cluster: bool,
}

impl InstallOptions {
    /// Returns the options of a release below `/usr/local`, built in the workspace's own target
    /// directory.
    #[must_use]
    pub fn new() -> Self {
        InstallOptions {
            prefix: "/usr/local".into(),
            destdir: None,
            libdir: "lib".into(),
            profile: "preload".into(),
            target: root().join("target/capi"),
            triple: None,
            cluster: false,
        }
    }
}

impl Default for InstallOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// Builds and installs everything.
///
/// # Errors
/// What could not be built or written.
pub fn install(options: &InstallOptions) -> Result<(), String> {
    let plain = |part| matches!(part, Component::Normal(_));
    if options.libdir.is_empty() || !Path::new(&options.libdir).components().all(plain) {
        return Err(format!("{}: --libdir is a folder below the prefix", options.libdir));
    }
    let prefix = std::path::absolute(&options.prefix).map_err(|error| error.to_string())?;
    let below = match &options.destdir {
        Some(destdir) => destdir.join(prefix.strip_prefix("/").unwrap_or(&prefix)),
        None => prefix.clone(),
    };
    let package = root().join("crates/capi");
    copy_all(&package.join("include"), &below.join("include"))?;
    copy_all(&package.join("man"), &below.join("share/man"))?;
    let lib = below.join(&options.libdir);
    for library in &LIBRARIES {
        build(options, library, &lib)?;
        finders::pkg_config(library, &lib, &options.libdir, Some(&prefix))?;
    }
    finders::cmake("lockstead", &LIBRARIES, &lib, &options.libdir, options.triple.is_none())?;
    if options.cluster {
        if options.triple.is_some() {
            return Err("--cluster is built for this system's C library only".into());
        }
        cluster::build(&options.profile, &options.target, &lib)?;
        cluster::stage(&lib, &below, &options.libdir)?;
        cluster::describe(&below, &options.libdir, Some(&prefix))?;
    }
    Ok(())
}

fn build(options: &InstallOptions, library: &Library<'_>, lib: &Path) -> Result<(), String> {
    let name = library.name;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let triple = options.triple.as_deref();
    let archive = ArchiveBuild {
        package: "lockstead-capi",
        workspace: &root(),
        target_dir: &options.target,
        profile: &options.profile,
        triple,
        checks: library.define.is_some(),
    };
    let archive = archive.run(&cargo)?;
    let object = archive.with_file_name(format!("{name}.o"));
    link_object(&archive, triple.and_then(unwinder).as_deref(), &object)?;
    make_folder(lib)?;
    let fixed = lib.join(format!("lib{name}.a"));
    let _ = fs::remove_file(&fixed);
    said_by(Command::new("ar").arg("crs").arg(&fixed).arg(&object))?;
    strip(options, &fixed)?;
    if triple.is_some() {
        return Ok(());
    }
    let (whole, short, plain) =
        (format!("lib{name}.so.{VERSION}"), format!("lib{name}.so.{ABI}"), format!("lib{name}.so"));
    let map = root().join("crates/capi/lockstead.map");
    link_shared(&object, &map, &short, &lib.join(&whole))?;
    strip(options, &lib.join(&whole))?;
    for link in [short, plain] {
        let _ = fs::remove_file(lib.join(&link));
        symlink(&whole, lib.join(&link)).map_err(|error| format!("{link}: {error}"))?;
    }
    Ok(())
}

/// Takes out what only debuggers want, but of a build for developers.
fn strip(options: &InstallOptions, file: &Path) -> Result<(), String> {
    if options.profile == "dev" {
        return Ok(());
    }
    said_by(Command::new("strip").arg("--strip-debug").arg(file)).map(drop)
}

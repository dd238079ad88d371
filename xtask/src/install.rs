//! Installs the library for C and C++ below a prefix.

use crate::library::{ArchiveBuild, link_object, link_shared, said_by, unwinder};
use crate::{cluster, root};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// The library's version, which is the package's.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Programs know the shared library by this number, which changes when one that was
/// built before would not run any more.
pub const ABI: &str = "0";

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
    let variants = [("lockstead", false), ("lockstead-check", true)];
    for (name, checks) in variants {
        build(options, name, checks, &lib)?;
        let (pc, text) =
            (format!("pkgconfig/{name}.pc"), pkg_config(&prefix, options, name, checks));
        write(&lib.join(pc), &text)?;
    }
    if options.cluster {
        if options.triple.is_some() {
            return Err("--cluster is built for this system's C library only".into());
        }
        cluster::build(&options.profile, &options.target, &lib)?;
        cluster::stage(&lib, &below, &options.libdir)?;
    }
    // In lower case CMake finds them whatever the case of the name that a project asks for.
    let cmake = lib.join("cmake/lockstead");
    write(&cmake.join("lockstead-config.cmake"), &cmake_config(options))?;
    write(&cmake.join("lockstead-config-version.cmake"), &cmake_version())
}

fn build(options: &InstallOptions, name: &str, checks: bool, lib: &Path) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let triple = options.triple.as_deref();
    let archive = ArchiveBuild {
        package: "lockstead-capi",
        workspace: &root(),
        target_dir: &options.target,
        profile: &options.profile,
        triple,
        checks,
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

/// Returns the text for pkg-config. The unwinder is not among the libraries: compilers add it by
/// themselves, of the kind that fits to a static program or to another one.
fn pkg_config(prefix: &Path, options: &InstallOptions, name: &str, checks: bool) -> String {
    let (what, define) = if checks {
        ("Locks with bounded waiting; this library checks their use", " -DLKS_DEBUG")
    } else {
        ("Locks with bounded waiting", "")
    };
    format!(
        "prefix={}\nlibdir=${{prefix}}/{}\nincludedir=${{prefix}}/include\n\n\
         Name: {name}\nDescription: {what}\nVersion: {VERSION}\n\
         Libs: -L\"${{libdir}}\" -l{name}\nLibs.private: -lpthread -ldl -lm\n\
         Cflags: -I\"${{includedir}}\"{define}\n",
        prefix.display(),
        options.libdir
    )
}

fn cmake_config(options: &InstallOptions) -> String {
    let depth = 2 + Path::new(&options.libdir).components().count();
    let up = "/..".repeat(depth);
    let mut text = format!(
        "# Lockstead::lockstead, Lockstead::lockstead_static, and the two that check the use of\n\
         # locks: Lockstead::check, Lockstead::check_static. Those that are not static are shared,\n\
         # and are not there where the library was built for another C library.\n\
         get_filename_component(_lockstead \"${{CMAKE_CURRENT_LIST_DIR}}{up}\" ABSOLUTE)\n\
         include(CMakeFindDependencyMacro)\nfind_dependency(Threads)\n"
    );
    for (target, name, shared, define) in [
        ("lockstead", "lockstead", true, false),
        ("lockstead_static", "lockstead", false, false),
        ("check", "lockstead-check", true, true),
        ("check_static", "lockstead-check", false, true),
    ] {
        if shared && options.triple.is_some() {
            continue;
        }
        let (kind, file) = if shared {
            ("SHARED", format!("lib{name}.so.{ABI}"))
        } else {
            ("STATIC", format!("lib{name}.a"))
        };
        let libraries = if shared { "" } else { "Threads::Threads;${CMAKE_DL_LIBS};m" };
        let definitions = if define { "LKS_DEBUG" } else { "" };
        text += &format!(
            "if(NOT TARGET Lockstead::{target})\n  add_library(Lockstead::{target} {kind} IMPORTED)\n  \
             set_target_properties(Lockstead::{target} PROPERTIES\n    \
             IMPORTED_LOCATION \"${{_lockstead}}/{}/{file}\"\n    \
             INTERFACE_INCLUDE_DIRECTORIES \"${{_lockstead}}/include\"\n    \
             INTERFACE_COMPILE_DEFINITIONS \"{definitions}\"\n    \
             INTERFACE_LINK_LIBRARIES \"{libraries}\")\n",
            options.libdir
        );
        if shared {
            text += &format!(
                "  set_target_properties(Lockstead::{target} PROPERTIES IMPORTED_SONAME \"{file}\")\n"
            );
        }
        text += "endif()\n";
    }
    text + "unset(_lockstead)\n"
}

fn cmake_version() -> String {
    let compatible: Vec<_> = VERSION.split('.').take(2).collect();
    let compatible = compatible.join(".");
    format!(
        "set(PACKAGE_VERSION \"{VERSION}\")\n\
         if(PACKAGE_FIND_VERSION VERSION_LESS_EQUAL PACKAGE_VERSION\n    \
         AND \"${{PACKAGE_FIND_VERSION_MAJOR}}.${{PACKAGE_FIND_VERSION_MINOR}}\" \
         VERSION_EQUAL \"{compatible}\")\n  \
         set(PACKAGE_VERSION_COMPATIBLE TRUE)\nendif()\n\
         if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)\n  \
         set(PACKAGE_VERSION_EXACT TRUE)\nendif()\n"
    )
}

pub(crate) fn copy_all(from: &Path, to: &Path) -> Result<(), String> {
    make_folder(to)?;
    let entries = fs::read_dir(from).map_err(|error| format!("{}: {error}", from.display()))?;
    for entry in entries {
        let from = entry.map_err(|error| error.to_string())?.path();
        let to = to.join(from.file_name().expect("an entry has a name"));
        if from.is_dir() {
            copy_all(&from, &to)?;
        } else {
            fs::copy(&from, &to).map_err(|error| format!("{}: {error}", to.display()))?;
        }
    }
    Ok(())
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    make_folder(path.parent().expect("a file lies in a folder"))?;
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

pub(crate) fn make_folder(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))
}

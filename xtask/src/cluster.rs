//! The library of the locks over etcd for C and C++: one of its own, beside that of the locks in memory.
//!
//! ```text
//!   crates/cluster-capi ──▶ liblockstead-cluster.a, .so.0.1.0 ─┐
//!   include/ ──▶ lockstead_cluster.h, .hpp ────────────────────┼─▶ below a prefix, or in an archive
//!   man/ ──▶ pages of sections 3 and 7 ────────────────────────┤
//!   what pkg-config and CMake want to know ────────────────────┘
//! ```

use crate::finders::{self, Library};
use crate::library::{ArchiveBuild, link_object, link_shared, said_by};
use crate::root;
use crate::staging::{ABI, VERSION, copy_all, make_folder};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// The library's name, as `-l` has it.
const NAME: &str = "lockstead-cluster";

const LIBRARY: Library<'static> =
    Library { name: NAME, target: "cluster", what: "A mutex over etcd", define: None };

/// Returns the files that [`build`] makes.
#[must_use]
pub fn libraries() -> [String; 2] {
    [format!("lib{NAME}.a"), format!("lib{NAME}.so.{VERSION}")]
}

/// Builds the library, archive and shared, into the folder `out`; `target` is where cargo builds it.
///
/// # Errors
/// What cargo or the linker said.
pub fn build(profile: &str, target: &Path, out: &Path) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let archive = ArchiveBuild {
        package: "lockstead-cluster-capi",
        workspace: &root(),
        target_dir: target,
        profile,
        triple: None,
        checks: false,
    };
    let archive = archive.run(&cargo)?;
    let object = archive.with_file_name(format!("{NAME}.o"));
    link_object(&archive, None, &object)?;
    make_folder(out)?;
    let [fixed, shared] = libraries().map(|name| out.join(name));
    let _ = fs::remove_file(&fixed);
    said_by(Command::new("ar").arg("crs").arg(&fixed).arg(&object))?;
    let map = root().join("crates/cluster-capi/lockstead-cluster.map");
    link_shared(&object, &map, &format!("lib{NAME}.so.{ABI}"), &shared)?;
    if profile != "dev" {
        said_by(Command::new("strip").arg("--strip-debug").args([&fixed, &shared]))?;
    }
    Ok(())
}

/// Puts below `tree` what [`build`] has made in the folder `made`, the headers and the manual pages; the
/// libraries in the folder `libdir` there.
///
/// # Errors
/// What could not be read or written.
pub fn stage(made: &Path, tree: &Path, libdir: &str) -> Result<(), String> {
    let package = root().join("crates/cluster-capi");
    copy_all(&package.join("include"), &tree.join("include"))?;
    copy_all(&package.join("man"), &tree.join("share/man"))?;
    let lib = tree.join(libdir);
    make_folder(&lib)?;
    for name in libraries() {
        let (from, to) = (made.join(&name), lib.join(&name));
        if from != to {
            fs::copy(&from, &to).map_err(|error| format!("{}: {error}", from.display()))?;
        }
    }
    let [_, whole] = libraries();
    for link in [format!("lib{NAME}.so.{ABI}"), format!("lib{NAME}.so")] {
        let _ = fs::remove_file(lib.join(&link));
        symlink(&whole, lib.join(&link)).map_err(|error| format!("{link}: {error}"))?;
    }
    Ok(())
}

/// Writes below `tree` what pkg-config and CMake want to know of it, where programs find it below `prefix`, or
/// wherever the files lie.
///
/// # Errors
/// What could not be written.
pub fn describe(tree: &Path, libdir: &str, prefix: Option<&Path>) -> Result<(), String> {
    let lib = tree.join(libdir);
    finders::pkg_config(&LIBRARY, &lib, libdir, prefix)?;
    finders::cmake(NAME, &[LIBRARY], &lib, libdir, true)
}

//! The library of the locks over etcd for C and C++: one of its own, beside that of the locks in memory.
//!
//! ```text
//!   crates/cluster-capi ──▶ liblockstead-cluster.a, .so.0.1.0 ─┐
//!   include/ ──▶ lockstead_cluster.h, .hpp ────────────────────┼─▶ below a prefix, or in an archive
//!   what pkg-config wants, by its own place ───────────────────┘
//! ```

use crate::install::{ABI, VERSION, copy_all, make_folder, write};
use crate::library::{ArchiveBuild, link_object, link_shared, said_by};
use crate::root;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// The library's name, as `-l` has it.
const NAME: &str = "lockstead-cluster";

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

/// Puts below `tree` what [`build`] has made in the folder `made`, the headers, and what pkg-config wants to
/// know; the libraries in the folder `libdir` there.
///
/// # Errors
/// What could not be read or written.
pub fn stage(made: &Path, tree: &Path, libdir: &str) -> Result<(), String> {
    copy_all(&root().join("crates/cluster-capi/include"), &tree.join("include"))?;
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
    // From the file's own place, since an archive does not know its prefix. Without quotes: pkg-config has
    // put a backslash before each space of it.
    let up = "/..".repeat(1 + Path::new(libdir).components().count());
    let text = format!(
        "prefix=${{pcfiledir}}{up}\nlibdir=${{prefix}}/{libdir}\nincludedir=${{prefix}}/include\n\n\
         Name: {NAME}\nDescription: A mutex over etcd\nVersion: {VERSION}\n\
         Libs: -L${{libdir}} -l{NAME}\nLibs.private: -lpthread -ldl -lm\n\
         Cflags: -I${{includedir}}\n"
    );
    write(&lib.join(format!("pkgconfig/{NAME}.pc")), &text)
}

//! The disk of a machine: Debian for the processor, with the compilers and programs that the tests of the
//! command start.

use super::system::{ends_well, is_installed};
use crate::staging::make_folder;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is on it. Debian's packages are unpacked and not set up, for which their scripts would have to run:
/// what those do and tests need is done by [`finish`].
const PACKAGES: &str = "base-files,base-passwd,bash,binutils,busybox-static,coreutils,diffutils,findutils,g++,gcc,\
    gdb,git,grep,gzip,hostname,iproute2,libc-bin,libc6-dbg,libc6-dev,libpython3-stdlib,libstd-rust-dev,mawk,\
    memcached,mount,musl-tools,nginx-light,perl,procps,python3,redis-server,rustc,sed,util-linux,valgrind";

/// The links that setting those up would make.
const LINKS: [(&str, &str); 4] = [
    ("usr/bin/cc", "gcc"),
    ("usr/bin/c++", "g++"),
    ("usr/bin/awk", "mawk"),
    ("usr/bin/sh", "bash"),
];

/// Room for what is on it and what programs write, of which the file takes what is used.
const SIZE: &str = "4G";

/// Returns the file's name, which is another one for what would be another disk.
fn name(suite: &str, mirror: Option<&str>) -> String {
    let mut hash = DefaultHasher::new();
    (suite, mirror, PACKAGES).hash(&mut hash);
    format!("disk-{:016x}.ext4", hash.finish())
}

/// Makes the disk, if it is not there, and returns its file. The machine writes to copies of its blocks.
///
/// # Errors
/// What is missing and which package has it; what a command said.
pub(super) fn set_up(folder: &Path, suite: &str, mirror: Option<&str>) -> Result<PathBuf, String> {
    let disk = folder.join(name(suite, mirror));
    if disk.exists() {
        return Ok(disk);
    }
    is_installed("mmdebstrap", "mmdebstrap")?;
    is_installed("mke2fs", "e2fsprogs")?;
    let files = folder.join("disk-files");
    if files.exists() {
        fs::remove_dir_all(&files).map_err(|error| format!("{}: {error}", files.display()))?;
    }
    make_folder(folder)?;
    println!("== making {} ({suite}; a minute or two, 2.5 GB meanwhile)", disk.display());
    let mut unpack = Command::new("mmdebstrap");
    unpack.args(["--mode=root", "--variant=extract", "--architectures=arm64"]);
    unpack.arg("--aptopt=Acquire::Check-Valid-Until \"false\"");
    unpack.arg(format!("--include={PACKAGES}")).arg(suite).arg(&files).args(mirror);
    ends_well(&mut unpack)?;
    finish(&files).map_err(|error| format!("{}: {error}", files.display()))?;
    // Named last: what is not complete is made anew.
    let begun = disk.with_extension("begun");
    let mut write = Command::new("mke2fs");
    write.args(["-q", "-F", "-t", "ext4", "-O", "^has_journal", "-d"]).arg(&files).arg(&begun);
    ends_well(write.arg(SIZE))?;
    fs::rename(&begun, &disk)
        .and_then(|()| fs::remove_dir_all(&files))
        .map_err(|error| format!("{}: {error}", disk.display()))?;
    Ok(disk)
}

/// Does to unpacked packages what their scripts would do.
fn finish(files: &Path) -> std::io::Result<()> {
    for (link, target) in LINKS {
        symlink(target, files.join(link))?;
    }
    for (master, file) in [("passwd.master", "etc/passwd"), ("group.master", "etc/group")] {
        fs::copy(files.join("usr/share/base-passwd").join(master), files.join(file))?;
    }
    for documents in ["usr/share/doc", "usr/share/man", "usr/share/locale"] {
        fs::remove_dir_all(files.join(documents))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root;

    #[test]
    fn another_suite_is_another_disk() {
        let unstable = name("unstable", None);
        assert_eq!(unstable, name("unstable", None));
        assert_ne!(unstable, name("trixie", None));
        assert_ne!(unstable, name("unstable", Some("http://127.0.0.1/debian")));
    }

    #[test]
    fn unpacked_packages_get_the_names_of_compilers_and_of_users() {
        let files = &root().join("target/disk-test");
        let _ = fs::remove_dir_all(files);
        for inside in ["usr/bin", "etc", "usr/share/doc", "usr/share/man", "usr/share/locale"] {
            fs::create_dir_all(files.join(inside)).expect("a folder");
        }
        assert!(finish(files).is_err(), "there are no users");
        for (link, _) in LINKS {
            fs::remove_file(files.join(link)).expect("made before");
        }
        let masters = files.join("usr/share/base-passwd");
        fs::create_dir_all(&masters).expect("a folder");
        fs::write(masters.join("passwd.master"), "root:*:0:0:root:/root:/bin/bash\n")
            .expect("written");
        fs::write(masters.join("group.master"), "root:*:0:\n").expect("written");
        finish(files).expect("all is there");
        assert_eq!(fs::read_link(files.join("usr/bin/cc")).expect("a link"), Path::new("gcc"));
        assert!(fs::read_to_string(files.join("etc/passwd")).expect("users").starts_with("root:"));
        fs::remove_dir_all(files).expect("made above");
    }
}

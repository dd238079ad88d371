//! What `cargo xtask dist` packs can be installed, and taken away again. The programs here are scripts,
//! so that nothing has to be built.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use xtask::dist::package;
use xtask::library::said_by;
use xtask::root;

/// Writes a program that answers what is asked of the command while it is packed.
fn programs(folder: &Path, version: &str) {
    let script = format!(
        "#!/bin/sh\ncase $1 in\n\
         man) mkdir -p \"$2\"; for page in ${{0##*/}} ${{0##*/}}-run; do echo page > \"$2/$page.1\"; done ;;\n\
         completions) echo \"for $2\" ;;\n\
         --version) echo lockstead {version} ;;\nesac\n"
    );
    for name in xtask::cluster::libraries() {
        fs::write(folder.join(&name), format!("library {version}")).expect("a library");
    }
    for name in ["lockstead", "lockstead-bench", "lockstead-cluster"] {
        let file = folder.join(name);
        fs::write(&file, &script).expect("a script");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("its mode");
        // A child that another test has just forked may have it open for writing until it is a program.
        let end = Instant::now() + Duration::from_secs(60);
        while let Err(busy) = Command::new(&file).output() {
            assert_eq!(busy.kind(), ErrorKind::ExecutableFileBusy, "{busy}");
            assert!(Instant::now() < end, "still {busy}");
        }
    }
}

/// Returns a new folder for a test, among the build's files.
fn scratch(name: &str) -> PathBuf {
    let folder = root().join("target/dist-test").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Returns the files below a folder, by their paths from there.
fn files(folder: &Path) -> Vec<String> {
    let kinds = [".", "-type", "f", "-o", "-type", "l"];
    let listed = said_by(Command::new("find").args(kinds).current_dir(folder));
    let mut files: Vec<_> = listed.expect("find runs").lines().map(|at| at[2..].into()).collect();
    files.sort();
    files
}

fn installer(tree: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(tree.join("install.sh"));
    command.args(args).output().expect("the installer starts")
}

/// What is installed beside the manual pages of the library.
const INSTALLED: [&str; 22] = [
    "bin/lockstead",
    "bin/lockstead-bench",
    "bin/lockstead-cluster",
    "include/lockstead_cluster.h",
    "include/lockstead_cluster.hpp",
    "lib/cmake/lockstead-cluster/lockstead-cluster-config-version.cmake",
    "lib/cmake/lockstead-cluster/lockstead-cluster-config.cmake",
    "lib/liblockstead-cluster.a",
    "lib/liblockstead-cluster.so",
    "lib/liblockstead-cluster.so.0",
    "lib/liblockstead-cluster.so.0.1.0",
    "lib/pkgconfig/lockstead-cluster.pc",
    "share/bash-completion/completions/lockstead",
    "share/doc/lockstead/CHANGELOG.md",
    "share/doc/lockstead/LICENSE-APACHE",
    "share/doc/lockstead/LICENSE-MIT",
    "share/fish/vendor_completions.d/lockstead.fish",
    "share/man/man1/lockstead-cluster-run.1",
    "share/man/man1/lockstead-cluster.1",
    "share/man/man1/lockstead-run.1",
    "share/man/man1/lockstead.1",
    "share/zsh/site-functions/_lockstead",
];

/// Returns all that is installed, by its paths below the prefix.
fn installed() -> Vec<String> {
    let pages = files(&root().join("crates/cluster-capi/man"));
    assert!(pages.len() > 20, "a page for each call: {pages:?}");
    let mut all: Vec<_> = pages.iter().map(|page| format!("share/man/{page}")).collect();
    all.extend(INSTALLED.map(str::to_owned));
    all.sort();
    all
}

#[test]
fn the_archive_installs_replaces_and_removes() {
    let folder = scratch("archive");
    let (out, prefix) = (folder.join("out"), folder.join("a prefix"));
    for version in ["1", "2"] {
        programs(&folder, version);
        let made = package(&folder, &out).expect("packed");
        said_by(Command::new("tar").arg("-xzf").arg(&made[0]).current_dir(&folder)).expect("whole");
        assert!(files(&out).iter().all(|file| !file.contains(".dist")), "{:?}", files(&out));
    }
    let tree = fs::read_dir(&folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .find(|path| path.join("install.sh").is_file())
        .expect("the tree of the archive");
    let prefix_text = prefix.to_str().expect("text");
    for _ in 0..2 {
        let output = installer(&tree, &["--prefix", prefix_text]);
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.starts_with("lockstead 2\n"), "{said}");
        assert!(said.contains(&format!("{prefix_text}/bin is not in PATH")), "{said}");
        assert_eq!(files(&prefix), installed());
    }
    let read = |file: &str| fs::read_to_string(prefix.join(file)).expect("it is installed");
    assert_eq!(read("share/bash-completion/completions/lockstead"), "for bash\n");
    assert_eq!(read("lib/liblockstead-cluster.so"), "library 2");
    let other = prefix.join("bin/other");
    fs::write(&other, "").expect("another program");
    let output = installer(&tree, &[&format!("--prefix={prefix_text}"), "--uninstall"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(files(&prefix), ["bin/other"]);
    for folder in ["share/doc/lockstead", "lib/cmake/lockstead-cluster"] {
        assert!(!prefix.join(folder).exists(), "{folder}");
    }
}

#[test]
fn the_installer_says_what_is_wrong() {
    let folder = scratch("wrong");
    programs(&folder, "1");
    let made = package(&folder, &folder.join("out")).expect("packed");
    said_by(Command::new("tar").arg("-xzf").arg(&made[0]).current_dir(&folder)).expect("whole");
    let name = made[0].file_name().and_then(|name| name.to_str()).expect("text");
    let tree = folder.join(name.trim_end_matches(".tar.gz"));
    for (args, status, word) in [
        (&["--prefix"][..], 2, "wants a folder"),
        (&["--perfix=x"], 2, "means nothing"),
        (&["--prefix", "/dev/null/below"], 1, "cannot write to /dev/null/below"),
    ] {
        let output = installer(&tree, args);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(word), "{args:?}: {output:?}");
    }
    fs::remove_file(folder.join("lockstead-bench")).expect("it is there");
    let failure = package(&folder, &folder.join("out")).expect_err("a program is missing");
    assert!(failure.contains("lockstead-bench"), "{failure}");
}

#[test]
fn the_debian_package_has_what_policy_asks_for() {
    let folder = scratch("debian");
    programs(&folder, "1");
    let made = package(&folder, &folder.join("out")).expect("packed");
    let Some(package) = made.get(1) else { return eprintln!("skipped: there is no dpkg-deb") };
    let listed = said_by(Command::new("dpkg-deb").arg("--contents").arg(package)).expect("whole");
    for file in [
        "./usr/bin/lockstead",
        "./usr/bin/lockstead-cluster",
        "./usr/lib/liblockstead-cluster.so.0.1.0",
        "./usr/lib/liblockstead-cluster.so.0 -> liblockstead-cluster.so.0.1.0",
        "./usr/include/lockstead_cluster.h",
        "./usr/lib/cmake/lockstead-cluster/lockstead-cluster-config.cmake",
        "./usr/share/man/man1/lockstead-run.1.gz",
        "./usr/share/man/man3/lks_cluster_mutex_acquire.3.gz",
        "./usr/share/man/man7/lockstead-cluster.7.gz",
        "./usr/share/doc/lockstead/copyright",
        "./usr/share/doc/lockstead/CHANGELOG.md.gz",
        "./usr/share/zsh/vendor-completions/_lockstead",
    ] {
        assert!(listed.lines().any(|line| line.ends_with(file)), "no {file} in {listed}");
    }
    assert!(listed.lines().all(|line| line.contains(" root/root ")), "{listed}");
    assert!(!listed.contains("install.sh"), "{listed}");
    let control = said_by(
        Command::new("dpkg-deb").arg("--info").args([package.as_os_str(), "triggers".as_ref()]),
    );
    assert_eq!(control.as_deref(), Ok("activate-noawait ldconfig\n"), "a shared library's cache");
    let unpacked = folder.join("unpacked");
    said_by(Command::new("dpkg-deb").arg("--extract").args([package, &unpacked])).expect("whole");
    let found = fs::read_to_string(unpacked.join("usr/lib/pkgconfig/lockstead-cluster.pc"));
    assert!(found.expect("a file").starts_with("prefix=/usr\n"), "the package knows its prefix");
}

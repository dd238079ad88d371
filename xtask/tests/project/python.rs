//! The tests of the package for Python, with the wheel that `cargo xtask wheel` has made. Where there is
//! none they are skipped, for what makes it is not on every machine.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use xtask::library::newest_glibc;
use xtask::root;
use xtask::wheel::wheels;

/// The longest that the tests may take. They have limits of their own, which are shorter.
const LONGEST: Duration = Duration::from_secs(600);

#[test]
fn the_package_for_python_passes_its_tests() {
    let found = wheels(&root().join("target/wheels")).expect("a readable folder");
    let Some(wheel) = found.first() else {
        eprintln!("skipped: there is no wheel in target/wheels; cargo xtask wheel makes one");
        return;
    };
    let python = "python3";
    let new = "import sys; sys.exit(sys.version_info < (3, 9))";
    let is_new = Command::new(python).args(["-c", new]).status();
    if !is_new.is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no python3 of version 3.9 or newer");
        return;
    }
    // Unpacked, and not installed: that takes no pip and changes nothing elsewhere.
    let tree = root().join("target/wheel-test");
    let _ = fs::remove_dir_all(&tree);
    let unpack = ["-m", "zipfile", "-e"];
    let unpacked = Command::new(python).args(unpack).args([wheel, &tree]).status();
    assert!(unpacked.is_ok_and(|status| status.success()), "{} unpacks", wheel.display());
    let extension = tree.join("lockstead/_lockstead.abi3.so");
    let glibc = newest_glibc(&extension).unwrap_or_else(|error| panic!("{error}"));
    assert!(glibc <= (2, 34), "the wheel's name says manylinux_2_34: {glibc:?}");
    let program = tree.join("lockstead-0.1.0.data/scripts/lockstead");
    executable(&program);
    let log = fs::File::create(tree.join("log")).expect("a log");
    let mut tests = Command::new(python);
    tests.args(["-m", "unittest", "discover", "--start-directory"]);
    tests.arg(root().join("crates/python/tests"));
    tests.env("PYTHONPATH", &tree).env("LOCKSTEAD_COMMAND", &program).env_remove("PYTHONSAFEPATH");
    tests.env("PYTHONDONTWRITEBYTECODE", "1").stdin(Stdio::null());
    tests.stdout(log.try_clone().expect("a log")).stderr(log);
    let mut child = tests.spawn().expect("python starts");
    let end = Instant::now() + LONGEST;
    let status = loop {
        match child.try_wait().expect("python is waited for") {
            Some(status) => break Some(status),
            None if Instant::now() > end => break None,
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    if status.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    let log = fs::read_to_string(tree.join("log")).unwrap_or_default();
    assert!(status.is_some_and(|status| status.success()), "{status:?}\n{log}");
    eprintln!("{}: {}", wheel.display(), log.lines().rev().nth(2).unwrap_or_default());
}

/// Lets a file be executed, which unpacking forgets.
fn executable(file: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(file, mode).expect("the wheel has the command");
}

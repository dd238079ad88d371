//! Languages with a runtime.

use super::case::{Case, processes};
use super::{Running, installed, skip, source, watched};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the system's Python: one from a version manager is a script that starts dozens of
/// programs first.
fn python() -> Option<PathBuf> {
    let system = Path::new("/usr/bin/python3");
    if system.is_file() { Some(system.to_owned()) } else { installed("python3") }
}

#[test]
fn python3() {
    let Some(python) = python() else { return };
    let seen = Case::new(&python).arg(source("threads.py")).unharmed();
    assert_eq!(seen.status, Some(5));
    assert!(seen.stdout.contains("b'child\\n'"), "{}", seen.stdout);
    let all = processes(&seen.report, "python3");
    let threads = all.iter().map(|process| process["threads"]["peak"].as_u64()).max();
    assert!(threads.flatten() >= Some(8), "{:#}", seen.report);
    assert!(all.len() > 1, "those of the pools: {:#}", seen.report);
}

#[test]
fn python3_with_little_address_space() {
    let Some(python) = python() else { return };
    let text = "ulimit -v 4000000; exec \"$0\" -c 'import threading as t\n\
                e = t.Event()\n\
                ts = [t.Thread(target=e.wait) for _ in range(12)]\n\
                [x.start() for x in ts]; e.set(); [x.join() for x in ts]; print(len(ts))'";
    let seen = Case::new("/bin/sh").args(&["-c", text]).arg(&python).unharmed();
    assert_eq!((seen.status, &*seen.stdout), (Some(0), "12\n"));
    seen.had("python3", 13, 0);
}

#[test]
fn perl() {
    let Some(perl) = installed("perl") else { return };
    let text = "use threads; use threads::shared; my $n :shared = 0;
        $_->join for map { threads->create(sub { for (1..200) { lock($n); $n++ } }) } 1..4;
        print \"$n\\n\"; exit 3";
    let usable = Command::new(&perl).args(["-e", "use threads"]).output().expect("perl starts");
    if !usable.status.success() {
        return skip("this perl has no threads");
    }
    let seen = Case::new(&perl).args(&["-e", text]).unharmed();
    assert_eq!((seen.status, &*seen.stdout), (Some(3), "800\n"));
    seen.had("perl", 5, 800);
}

#[test]
fn node() {
    let Some(node) = installed("node") else { return };
    let seen = Case::new(&node).arg(source("workers.js")).unharmed();
    assert_eq!(seen.status, Some(7));
    seen.had("node", 9, 1000);
}

#[test]
fn java() {
    let (Some(java), Some(javac)) = (installed("java"), installed("javac")) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let made = Command::new(javac)
        .arg("-d")
        .arg(folder.path())
        .arg(source("Monitors.java"))
        .output()
        .expect("javac starts");
    if !made.status.success() {
        return skip(&format!("javac compiles nothing here: {made:?}"));
    }
    let seen = Case::new(&java).args(&["-Xmx128m", "-cp"]).arg(folder.path()).arg("Monitors");
    let seen = seen.unharmed();
    assert_eq!(seen.status, Some(6));
    seen.had("java", 16, 1000);
}

/// The VM thread ends while it holds a lock, on purpose.
#[test]
fn java_that_ends_by_itself() {
    let Some(java) = installed("java") else { return };
    let arguments = ["-Xmx64m", "-version"];
    let seen = Case::new(&java).args(&arguments).unharmed();
    assert_eq!(seen.status, Some(0));
    let reports = tempfile::tempdir().expect("a folder");
    let end = |options: &[&str]| {
        let json = reports.path().join("report.json");
        let mut command = watched(&json, &[&["--check"], options].concat());
        let ended = Running::start(command.arg(&java).args(arguments)).end();
        (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
    };
    let (status, text) = end(&[]);
    assert!(status == Some(0) && text.contains("suppressed by the shipped list: 1 "), "{text}");
    let (status, text) = end(&["--no-shipped-suppressions"]);
    assert!(text.contains("RULE: thread exit while holding"), "{text}");
    assert!(status == Some(3) && !text.contains("shipped list"), "{text}");
}

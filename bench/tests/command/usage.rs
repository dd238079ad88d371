//! Bad usage: status 2, the option by name, what is allowed, nothing on
//! standard output and nothing left behind.

use crate::common::{entries, succeed, text};

/// Runs with a folder as its temporary one and expects status 2 and `words`.
fn refuse(args: &[&str], words: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let child = crate::common::lockstead(args)
        .env("TMPDIR", folder.path())
        .current_dir(folder.path())
        .spawn()
        .expect("the command starts");
    let outcome = crate::common::finish(child);
    assert_eq!(outcome.status, 2, "{args:?}: {outcome:?}");
    assert_eq!(outcome.stdout, "", "{args:?}");
    for word in words {
        assert!(outcome.stderr.contains(word), "{args:?}: no {word:?} in {}", outcome.stderr);
    }
    assert_eq!(entries(folder.path()), [""; 0], "{args:?} left files");
}

#[test]
fn unknown_and_repeated_locks() {
    for bench in ["vfs", "uncontended", "contended"] {
        refuse(&["bench", bench, "--locks", "mutex"], &["--locks", "`mutex`", "semaphore-classic"]);
        refuse(&["bench", bench, "--locks", ""], &["--locks", "semaphore-classic"]);
        refuse(&["bench", bench, "--locks", "std,"], &["--locks", "semaphore-classic"]);
        refuse(&["bench", bench, "--locks", "std,std"], &["--locks", "`std`", "once"]);
    }
}

#[test]
fn a_lock_that_is_not_built_in_says_how_to_get_it() {
    for (lock, why) in lockstead_bench::locks::unavailable() {
        assert!(why.contains("install"), "{lock}: {why}");
        for bench in ["vfs", "uncontended", "contended"] {
            let locks = format!("std,{lock}");
            refuse(&["bench", bench, "--locks", &locks], &["--locks", lock.name(), &why]);
        }
    }
}

#[test]
fn impossible_numbers() {
    for tasks in ["0", "-1", "many", "1025", "99999999999999999999999", "1.5", ""] {
        refuse(&["bench", "vfs", &format!("--tasks={tasks}")], &["--tasks", "1 to 1024"]);
        let threads = format!("--threads={tasks}");
        refuse(&["bench", "contended", &threads], &["--threads", "1 to 1024"]);
    }
    for seconds in ["0", "-1", "soon", "inf", "NaN", "1e30", ""] {
        let seconds = format!("--seconds={seconds}");
        refuse(&["bench", "vfs", &seconds], &["--seconds", "0.1 to 86400"]);
        refuse(&["demo", &seconds], &["--seconds", "0.1 to 86400"]);
    }
}

#[test]
fn nonsense_durations() {
    for section in ["50", "1parsec", "-1us", "1us,,2us", "", "10000years", "99999999999999999s"] {
        let section = format!("--section={section}");
        refuse(&["bench", "contended", &section], &["--section", "allowed", "ns"]);
    }
    for think in ["x", "-1x", "infx", "NaNx", "0,1x,", "1e300x"] {
        let think = format!("--think={think}");
        refuse(&["bench", "contended", &think], &["--think", "allowed", "x"]);
    }
    refuse(&["bench", "contended", "--section", "1us,1000ns"], &["--section", "once"]);
    refuse(&["bench", "contended", "--threads", "2,2"], &["--threads", "once"]);
}

#[test]
fn directories_that_cannot_be_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let absent = folder.path().join("absent");
    let file = folder.path().join("file");
    std::fs::write(&file, "mine").expect("a file");
    // Nobody can create files in /proc, not even root.
    for dir in [text(&absent), text(&file), "/proc"] {
        let words = ["--dir", "writable directory", dir];
        refuse(&["bench", "vfs", "--locks", "std", "--dir", dir], &words);
        refuse(&["demo", "--seconds", "0.1", "--dir", dir], &words);
    }
    assert_eq!(entries(folder.path()), ["file"]);
    assert_eq!(std::fs::read_to_string(&file).expect("still there"), "mine");
    refuse(&["bench", "vfs", "--memory", "--dir", "/tmp"], &["--memory", "--dir"]);
}

#[test]
fn options_that_do_not_exist() {
    refuse(&["bench", "vfs", "--task", "4"], &["--task"]);
    refuse(&["bench", "pipes"], &["pipes"]);
    refuse(&[], &["Usage: lockstead"]);
    refuse(&["plot"], &["FILE.json", "--output"]);
}

#[test]
fn help() {
    for command in
        [&["demo"][..], &["bench", "vfs"], &["bench", "uncontended"], &["plot"], &["sim", "run"]]
    {
        let help = succeed(&[command, &["--help"]].concat()).stdout;
        assert!(help.contains("Examples:"), "{command:?}: {help}");
        assert!(help.contains(&format!("Usage: lockstead {}", command[0])), "{help}");
    }
}

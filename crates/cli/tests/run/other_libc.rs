//! Programs whose C library is none that the library can be put under: refused
//! by name, and unharmed where another program starts them.

use crate::common::{Outcome, finish, lockstead, run};
use crate::programs::{program, skip, started_by, with_musl};
use std::path::{Path, PathBuf};

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain name")
}

fn started_by_a_shell(program: &Path) -> Outcome {
    let command = ["run", "--no-report", "--", "/bin/sh", "-c", text(program)];
    finish(lockstead(&command).spawn().expect("the command starts"))
}

fn assert_refused(program: &Path, why: &str) {
    let outcome = run(&["run", "--", text(program)]);
    assert_eq!((outcome.status, &*outcome.stdout), (125, ""), "{outcome:?}");
    let expected = format!("cannot watch the locks of {}: {why}", program.display());
    for words in [&expected, "Instead: only programs of glibc 2.34", "lockstead dump PID"] {
        assert!(outcome.stderr.contains(words), "no {words:?} in {}", outcome.stderr);
    }
}

#[test]
fn programs_of_musl_are_refused_and_otherwise_left_alone() {
    let Some(program) = with_musl("plain.c") else { return };
    assert_refused(&program, "it uses musl, not glibc");
    let outcome = started_by_a_shell(&program);
    let said = (outcome.status, &*outcome.stdout, &*outcome.stderr);
    assert_eq!(said, (0, "counted to 2000\n", ""));
}

/// Returns the dynamic linker of this system's glibc, if it is where it always is.
fn linker() -> Option<PathBuf> {
    let path = PathBuf::from(match std::env::consts::ARCH {
        "aarch64" => "/lib/ld-linux-aarch64.so.1",
        _ => "/lib64/ld-linux-x86-64.so.2",
    });
    path.exists().then_some(path)
}

#[test]
fn programs_of_an_old_glibc_are_refused() {
    let Some(linker) = linker() else { return skip("no dynamic linker at its usual place") };
    // One that knows all versions but those from 2.34 on.
    let mut bytes = std::fs::read(linker).expect("readable");
    let newest = b"GLIBC_2.34";
    let places: Vec<usize> =
        (0..bytes.len() - newest.len()).filter(|&at| bytes[at..].starts_with(newest)).collect();
    assert!(!places.is_empty(), "it is older than that itself");
    for at in places {
        bytes[at + 9] = b'3';
    }
    let folder = tempfile::tempdir().expect("a folder");
    let old = folder.path().join("ld-linux-old.so");
    std::fs::write(&old, bytes).expect("written");
    let Some(program) = started_by("plain.c", &old) else { return };
    assert_refused(&program, &format!("its glibc, that of {}, is older", old.display()));
}

#[test]
fn the_same_program_is_watched_with_this_glibc() {
    let Some(program) = program("plain.c") else { return };
    let outcome = run(&["run", "--", text(&program)]);
    assert_eq!((outcome.status, &*outcome.stdout), (0, "counted to 2000\n"), "{outcome:?}");
    let reported = outcome.stderr.starts_with("lockstead: ") && outcome.stderr.contains("lock");
    assert!(reported && !outcome.stderr.contains("cannot"), "{}", outcome.stderr);
}

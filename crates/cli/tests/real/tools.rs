//! Tools that people use every day.

use super::case::{Case, processes};
use super::{compiled, installed, skip};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes bytes that compress somewhat to a file.
fn material(folder: &Path, size: usize) -> PathBuf {
    let mut text = String::with_capacity(size + 64);
    let mut seed = 12_345_u32;
    while text.len() < size {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let _ = writeln!(text, "line {} of {}", seed >> 20, text.len());
    }
    let file = folder.join("material");
    fs::write(&file, text).expect("written");
    file
}

#[test]
fn compressors() {
    let folder = tempfile::tempdir().expect("a folder");
    let material = material(folder.path(), 1_500_000);
    for (name, arguments) in [
        ("xz", &["-T4", "-1", "--block-size=200000", "-c"][..]),
        ("pigz", &["-p4", "-b", "128", "-n", "-c"]),
        ("zstd", &["-T4", "-B200000", "-c", "-q"]),
    ] {
        let Some(program) = installed(name) else { continue };
        let seen = Case::new(&program).args(arguments).input(&material).unharmed();
        assert_eq!(seen.status, Some(0));
        seen.had(name, 4, 4);
    }
}

#[test]
fn git() {
    let Some(git) = installed("git") else { return };
    let text = "set -e; export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
        export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
        export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
        \"$0\" init -q -b main .; mkdir -p some
        for i in $(seq 300); do echo \"needle $i\" > some/file$i; done
        \"$0\" add .; \"$0\" commit -q -m first
        for i in $(seq 40); do echo \"more $i\" >> some/file$i; done
        \"$0\" -c core.preloadIndex=true status --short | sort | head -3
        \"$0\" commit -q -a -m second
        \"$0\" grep -c --threads=4 needle | wc -l
        \"$0\" -c pack.threads=4 repack -q -a -d -f; \"$0\" fsck 2>&1
        \"$0\" log --stat --format=%H | tail -2; \"$0\" log -p | \"$0\" hash-object --stdin
        \"$0\" nonsense 2>/dev/null || exit 31";
    let seen = Case::new("/bin/sh").args(&["-c", text]).arg(&git).unharmed();
    assert_eq!(seen.status, Some(31), "{}", seen.stdout);
    assert!(seen.stdout.contains("300\n"), "{}", seen.stdout);
    // Those that grep and repack are threaded.
    seen.had("git", 8, 300);
}

/// Returns breakpoints, frames and values, without numbers that differ from run to run. News of
/// threads come anywhere, and gdb does not see the end of each.
fn without_numbers(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .filter(|line| ["Temporary breakpoint", "#", "$"].iter().any(|s| line.starts_with(s)))
        .map(|line| {
            let words = line.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
            words
                .map(|word| if word.contains(|c: char| c.is_ascii_digit()) { "N" } else { word })
                .collect()
        })
        .collect();
    lines.join("\n")
}

#[test]
fn a_program_in_gdb() {
    let Some(gdb) = installed("gdb") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let Some(load) = compiled(folder.path(), "load.c", &[]) else { return };
    let arguments = ["-q", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex"];
    let tried = Command::new(&gdb).args(arguments).arg("run").arg("/bin/true").output();
    let tried = tried.expect("gdb starts");
    if !String::from_utf8_lossy(&tried.stdout).contains("exited normally") {
        return skip(&format!("gdb may start no program here: {tried:?}"));
    }
    let seen = Case::new(&gdb)
        .args(&arguments)
        .args(&["tbreak main", "-ex", "run", "-ex", "bt", "-ex", "continue"])
        .args(&["-ex", "print $_exitcode", "--args"])
        .arg(&load)
        .args(&["200"])
        .edit(without_numbers)
        .unharmed();
    assert!(seen.stdout.contains("= 7"), "{}", seen.stdout);
    seen.had("load", 9, 1600);
}

#[test]
fn a_build() {
    let (Some(make), Some(_)) = (installed("make"), installed("cc")) else { return };
    let prepare = |folder: &Path| {
        let mut rules = String::from("all: joined\n");
        for i in 0..6 {
            fs::write(
                folder.join(format!("f{i}.c")),
                format!("int f{i}(void) {{ return {i}; }}\n"),
            )
            .expect("written");
            let _ = write!(rules, "joined: f{i}.o\nf{i}.o: f{i}.c\n\tcc -O1 -c -o $@ $<\n");
        }
        rules += "joined:\n\tcat f*.o | cksum > joined\n\tcat joined\n";
        fs::write(folder.join("Makefile"), rules).expect("written");
    };
    let sorted = |text: &str| {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines.join("\n")
    };
    let seen = Case::new(&make).args(&["-j3"]).prepare(prepare).edit(sorted).unharmed();
    assert_eq!(seen.status, Some(0));
    let silent = seen.report["silent_processes"].as_u64().expect("a number");
    let all = silent + seen.report["processes"].as_array().expect("an array").len() as u64;
    assert!(all >= 12, "make, its compilers and what these start: {:#}", seen.report);
}

#[test]
fn namespaces() {
    let Some(unshare) = installed("unshare") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let Some(load) = compiled(folder.path(), "load.c", &[]) else { return };
    for options in [&["-Ur"][..], &["-Urpf", "--mount-proc"], &["-Urm"], &["-Urin"]] {
        let tried = Command::new(&unshare).args(options).arg("/bin/true").output();
        if !tried.expect("unshare starts").status.success() {
            skip(&format!("unshare {options:?} is not allowed"));
            continue;
        }
        let seen = Case::new(&unshare).args(options).arg(&load).args(&["300"]).unharmed();
        assert_eq!(seen.status, Some(7), "{options:?}");
        let found = processes(&seen.report, "load").len();
        assert_eq!(found, 1, "{options:?}: {:#}", seen.report);
        seen.had("load", 9, 2400);
    }
}

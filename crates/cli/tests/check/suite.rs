//! Running the cases of a program, bare and under `lockstead run --check`.

use super::expected::{Case, Expected, Silent, cases};
use super::found::{complaints, findings};
use super::not_yet::NOT_YET;
use crate::programs::{Ended, program, start, under};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// What a case that does not hang ends with.
const OWN_STATUS: i32 = 7;
/// What `--check` ends with when something was found.
const FOUND_STATUS: i32 = 3;

/// How long a case that hangs has time to be reported.
const PATIENCE: Duration = Duration::from_secs(20);

/// Asserts that these are all programs that there are, and that no excuse is for another one.
pub(crate) fn all_are_run(sources: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/check");
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        let run = name.ends_with(".h") || sources.contains(&&*name);
        assert!(run, "nobody runs {name}");
    }
    for (source, name, reason) in NOT_YET {
        assert!(sources.contains(source) && !reason.is_empty(), "{source} {name}: {reason}");
    }
}

/// Runs all cases of a source, and fails with all that is wrong with them.
pub(crate) fn suite(source: &str) {
    let Some(program) = program(&format!("check/{source}")) else { return };
    let known = cases(source);
    let mut wrong = Vec::new();
    for (_, name, _) in NOT_YET.iter().filter(|(of, ..)| *of == source) {
        if !known.iter().any(|case| case.name == *name) {
            wrong.push(format!("{source} has no {name}, which is said to be wrong yet"));
        }
    }
    for case in known {
        let name = case.name.clone();
        let excused = NOT_YET.iter().any(|(of, excused, _)| (*of, *excused) == (source, &*name));
        let program = program.clone();
        // A thread of its own, so that one that panics does not hide the others.
        let ran = std::thread::spawn(move || tried(&program, &case)).join();
        match ran.unwrap_or_else(|_| Err("it panicked, see above".into())) {
            Ok(()) if excused => wrong.push(format!("{name}: works, and is said not to yet")),
            Err(what) if !excused => wrong.push(format!("{name}: {what}")),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{source}: {} wrong\n\n{}", wrong.len(), wrong.join("\n\n"));
}

/// Runs a case in all ways in which something is known of it.
fn tried(program: &Path, case: &Case) -> Result<(), String> {
    if (case.silent == Silent::No) == case.findings.is_empty() {
        return Err("its comment must say that it is silent or what is found".into());
    }
    let bare = bare(program, case);
    let own = bare.status.code();
    let right = if case.hangs { bare.stdout == "hangs\n" } else { own == Some(OWN_STATUS) };
    if !right || !bare.stderr.is_empty() {
        return Err(format!("it does not run by itself: {bare:?}"));
    }
    let strictly: Vec<_> = case.findings.iter().collect();
    let plainly: Vec<_> = strictly.iter().copied().filter(|finding| !finding.is_strict()).collect();
    if case.silent != Silent::EvenWhenStrict {
        checked(program, case, false, &plainly, &bare)?;
    }
    if case.silent == Silent::EvenWhenStrict || plainly.len() < strictly.len() {
        checked(program, case, true, &strictly, &bare)?;
    }
    Ok(())
}

fn bare(program: &Path, case: &Case) -> Ended {
    let mut command = Command::new(program);
    command.arg(&case.name);
    let running = start(command);
    if case.hangs {
        running.expect_line();
        return running.terminate();
    }
    running.end()
}

fn checked(
    program: &Path,
    case: &Case,
    strict: bool,
    expected: &[&Expected],
    bare: &Ended,
) -> Result<(), String> {
    let mut flags = vec!["--check", "--no-report"];
    flags.extend(case.flags.iter().map(String::as_str));
    flags.extend(strict.then_some("--strict"));
    let running = under(&flags, &[program.as_os_str(), OsStr::new(&case.name)]);
    let ended = if case.hangs {
        let since = Instant::now();
        while findings(&running.stderr()).len() < expected.len() && since.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        running.settle();
        running.terminate()
    } else {
        running.end()
    };
    let mut wrong = complaints(&ended.stderr, expected);
    let own = if expected.is_empty() { OWN_STATUS } else { FOUND_STATUS };
    if ended.status.code() != Some(own) {
        wrong.push(format!("it ends with {} and not with status {own}", ended.status));
    }
    if ended.stdout != bare.stdout {
        wrong.push(format!("it says {:?} and not {:?}", ended.stdout, bare.stdout));
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!("{}\n  with {flags:?}:\n{}", wrong.join("\n  "), ended.stderr))
}

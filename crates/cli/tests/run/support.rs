//! The programs that the tests run, and what is said of them without what
//! differs from run to run.

use crate::common::{Outcome, finish, lockstead};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

const SOURCE: &str = include_str!("locks.c");

/// The programs of `locks.c`, linked as usual and statically; or why there are
/// none.
static PROGRAMS: LazyLock<Result<Programs, String>> = LazyLock::new(build);

pub(crate) struct Programs {
    _folder: tempfile::TempDir,
    pub(crate) dynamic: PathBuf,
    /// Not every system has what it takes.
    pub(crate) fixed: Option<PathBuf>,
}

fn build() -> Result<Programs, String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        return Err("`lockstead run` exists for x86-64 Linux with glibc".into());
    }
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let [source, dynamic, fixed] = ["locks.c", "locks", "fixed"].map(|n| folder.path().join(n));
    std::fs::write(&source, SOURCE).map_err(|error| error.to_string())?;
    let compile = |to: &Path, options: &[&str]| {
        Command::new("cc")
            .args(["-g", "-O0", "-pthread", "-o"])
            .arg(to)
            .args(options)
            .arg(&source)
            .output()
            .map_err(|error| format!("no C compiler: {error}"))
    };
    let compiler = compile(&dynamic, &[])?;
    let text = String::from_utf8_lossy(&compiler.stderr);
    assert!(compiler.status.success(), "the test's own program does not compile: {text}");
    let fixed = compile(&fixed, &["-static"])?.status.success().then_some(fixed);
    Ok(Programs { _folder: folder, dynamic, fixed })
}

/// The programs; without them the reason is printed and the test is skipped.
pub(crate) fn programs() -> Option<&'static Programs> {
    match &*PROGRAMS {
        Ok(programs) => Some(programs),
        Err(reason) => {
            eprintln!("skipped: {reason}");
            None
        }
    }
}

/// `lockstead run OPTIONS -- locks ARGUMENTS` to its end.
pub(crate) fn watched(options: &[&str], arguments: &[&str]) -> Option<Outcome> {
    let program = programs()?.dynamic.to_str().expect("a plain name");
    let command = [&["run", "--no-report"], options, &["--", program], arguments].concat();
    Some(finish(lockstead(&command).spawn().expect("the command starts")))
}

/// The number of the line of `locks.c` with this remark.
pub(crate) fn line(remark: &str) -> String {
    let remark = format!("/* {remark} */");
    let mut lines = SOURCE.lines().enumerate().filter(|(_, line)| line.contains(&remark));
    let (number, _) = lines.next().unwrap_or_else(|| panic!("no line with {remark}"));
    assert!(lines.next().is_none(), "more than one line with {remark}");
    format!("locks.c:{}", number + 1)
}

/// The text with each process, thread and time replaced.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    let marks = [("(pid ", ")"), ("(tid ", ")"), ("since ", "s"), ("for ", "s:")];
    while let Some((at, (before, after))) =
        marks.iter().filter_map(|mark| Some((rest.find(mark.0)?, mark))).min_by_key(|(at, _)| *at)
    {
        let start = at + before.len();
        let is_number = rest[start..].starts_with(|c: char| c.is_ascii_digit());
        let end = rest[start..].find(after).filter(|_| is_number).map_or(start, |end| start + end);
        plain += &rest[..start];
        plain += if is_number { "#" } else { "" };
        rest = &rest[end..];
    }
    plain + rest
}

/// The findings in what the command printed, each a text.
pub(crate) fn findings(stderr: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in stderr.lines() {
        if line.starts_with("lockstead: ") {
            found.push(String::new());
        }
        if let Some(last) = found.last_mut() {
            *last += line;
            last.push('\n');
        }
    }
    found
}

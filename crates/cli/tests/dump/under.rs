//! Programs under `lockstead run` for `lockstead dump` to look at.

use crate::common::{Outcome, finish, start_copy};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

pub(crate) const SOURCE: &str = include_str!("held.c");
const DEADLINE: Duration = Duration::from_secs(60);

/// Folder with the program, and with a copy of the command that other users
/// may run too; or why there is none.
static BUILT: LazyLock<Result<tempfile::TempDir, String>> = LazyLock::new(build);

fn build() -> Result<tempfile::TempDir, String> {
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    let folder = tempfile::Builder::new().permissions(open).tempdir().expect("a folder");
    let source = folder.path().join("held.c");
    std::fs::write(&source, SOURCE).expect("written");
    let compiler = Command::new("cc")
        .args(["-g", "-O1", "-fno-inline", "-fno-optimize-sibling-calls", "-pthread", "-o"])
        .arg(folder.path().join("held"))
        .arg(&source)
        .output()
        .map_err(|error| format!("no C compiler: {error}"))?;
    let text = String::from_utf8_lossy(&compiler.stderr);
    assert!(compiler.status.success(), "the test's own program does not compile: {text}");
    std::fs::copy(env!("CARGO_BIN_EXE_lockstead"), folder.path().join("lockstead"))
        .expect("copied");
    Ok(folder)
}

/// A program under `lockstead run`, until the test has looked at it.
pub(crate) struct Watched {
    run: Child,
    pub(crate) pid: u32,
    user: Option<u32>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        for pid in [self.pid, self.run.id()] {
            // SAFETY: sends a signal to a process of this test, which has not
            // been waited for: by the test, or by the command, its parent.
            unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
        }
        let _ = self.run.wait();
    }
}

fn folder() -> Option<&'static Path> {
    match &*BUILT {
        Ok(folder) => Some(folder.path()),
        Err(why) => {
            eprintln!("skipped: {why}");
            None
        }
    }
}

fn command(folder: &Path, user: Option<u32>) -> Command {
    let mut command = Command::new(folder.join("lockstead"));
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    command.current_dir("/").stdin(Stdio::null());
    command
}

/// Starts the program of `held.c` under the command, as this user if one is
/// given, and waits until it has started all its threads.
pub(crate) fn watch(what: &str, user: Option<u32>) -> Option<Watched> {
    let folder = folder()?;
    let program: PathBuf = folder.join("held");
    let mut command = command(folder, user);
    command.args(["run", "--no-report", "--"]).arg(program).arg(what);
    let mut run = start_copy(command.stdout(Stdio::piped()).stderr(Stdio::null()));
    let mut line = String::new();
    BufReader::new(run.stdout.take().expect("piped")).read_line(&mut line).expect("readable");
    let pid = line.trim().parse().expect("the program writes its id");
    Some(Watched { run, pid, user })
}

impl Watched {
    pub(crate) fn dump(&self, flags: &[&str]) -> Outcome {
        let mut command = command(folder().expect("there"), self.user);
        command.arg("dump").arg(self.pid.to_string()).args(flags);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        finish(start_copy(&mut command))
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.dump(&["--json"]).stdout).expect("JSON")
    }

    /// Waits until so many threads wait, and returns the text.
    pub(crate) fn settled(&self, waiting: usize, flags: &[&str]) -> Outcome {
        let start = Instant::now();
        loop {
            let report = self.json();
            let threads = report["threads"].as_array().expect("an array");
            let waits = threads.iter().filter(|t| t["activity"] == "waiting").count();
            if waits == waiting {
                return self.dump(flags);
            }
            assert!(start.elapsed() < DEADLINE, "{waiting} threads should wait: {report:#}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends the command and leaves the program alone.
    pub(crate) fn abandon(&mut self) {
        self.run.kill().expect("it is mine");
        self.run.wait().expect("it is mine");
    }
}

/// Returns the text without times: `since T`, `for T`. A few holds are timed exactly, of the others
/// it says `at most`: which is which is chance.
pub(crate) fn timeless(text: &str) -> String {
    let mut out = String::new();
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        let is_number = word.parse::<f64>().is_ok();
        let unit = words.peek().map(|next| next.trim_end_matches([',', ')', '\n']));
        let unit = unit.and_then(|next| next.split(['\n', ',']).next());
        if let (true, Some(unit @ ("ns" | "µs" | "ms" | "s"))) = (is_number, unit) {
            let rest = words.next().and_then(|next| next.strip_prefix(unit)).unwrap_or_default();
            out += "T";
            out += rest;
        } else {
            out += word;
        }
        out += " ";
    }
    out.pop();
    out.replace("for at most T", "for T")
}

/// Returns `function() at held.c:N`: the first line after its start that has `text`.
pub(crate) fn at(function: &str, text: &str) -> String {
    let definition = format!("{function}(");
    let mut lines = SOURCE.lines().enumerate();
    lines
        .find(|(_, line)| line.contains(&definition) && !line.starts_with(' '))
        .unwrap_or_else(|| panic!("no function {function}"));
    let line = lines.find(|(_, line)| line.contains(text)).unwrap_or_else(|| panic!("no {text}"));
    format!("{function}() at held.c:{}", line.0 + 1)
}

//! Programs in C, compiled here, under `lockstead run`; and what is reported.

#![allow(dead_code, reason = "each file of tests uses its part")]

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Nothing in these tests takes longer, unless it hangs: a machine that does
/// much else at the same time is slow, not wrong.
const DEADLINE: Duration = Duration::from_secs(120);

/// How long a second report would have to show itself.
const SETTLE: Duration = Duration::from_millis(400);

/// Where the programs' sources lie.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

/// Why a test does nothing here; printed, so that it is seen.
pub(crate) fn skip(reason: &str) {
    println!("skipped: {reason}");
}

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));
static BUILT: LazyLock<Mutex<HashMap<String, Option<PathBuf>>>> = LazyLock::new(Mutex::default);

/// The program of a source, compiled once; `None`, and said, where there is no
/// compiler for it.
pub(crate) fn program(source: &str) -> Option<PathBuf> {
    compiled(source, &["-O0"])
}

/// The same, as a shared library.
pub(crate) fn library(source: &str) -> Option<PathBuf> {
    compiled(source, &["-O0", "-shared", "-fPIC"])
}

fn compiled(source: &str, options: &[&str]) -> Option<PathBuf> {
    // Held while compiling: other tests may want the same program.
    let mut built = BUILT.lock().expect("no test panics in here");
    if let Some(known) = built.get(source) {
        return known.clone();
    }
    let compiler = if source.ends_with(".c") { "cc" } else { "c++" };
    let to = FOLDER.path().join(source.replace(".c", "").replace("pp", ""));
    let output = Command::new(compiler)
        .args(["-g", "-Wall", "-pthread", "-o"])
        .arg(&to)
        .args(options)
        .arg(sources().join(source))
        .arg("-ldl")
        .output();
    let made = match output {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{source} does not compile: {text}");
            Some(to)
        }
        Err(error) => {
            skip(&format!("{source}: no {compiler}: {error}"));
            None
        }
    };
    built.insert(source.into(), made.clone());
    made
}

/// `name.c:12`, the line of a source that carries the comment `@mark`.
pub(crate) fn line(source: &str, mark: &str) -> String {
    let text = std::fs::read_to_string(sources().join(source)).expect("a source");
    let ends = |line: &str| {
        line.split("@").nth(1).is_some_and(|m| m.split_whitespace().next() == Some(mark))
    };
    let number = text.lines().position(ends).unwrap_or_else(|| panic!("{source}: no @{mark}"));
    format!("{source}:{}", number + 1)
}

/// A program that runs, under `lockstead run` or by itself; its process group is
/// killed when the test is done with it.
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Arc<Mutex<Vec<u8>>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    readers: Vec<JoinHandle<()>>,
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Starts a program under `lockstead run` with these flags.
pub(crate) fn under<A: AsRef<OsStr>>(flags: &[&str], program: &[A]) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstead"));
    command.arg("run").args(flags).arg("--").args(program);
    start(command)
}

/// Starts a command in a process group of its own.
pub(crate) fn start(mut command: Command) -> Running {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().expect("the command starts");
    let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let mut readers = Vec::new();
    let mut gather = |mut pipe: Box<dyn Read + Send>| {
        let text = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&text);
        readers.push(std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = pipe.read(&mut piece) {
                to.lock().expect("no panic").extend_from_slice(&piece[..length]);
            }
        }));
        text
    };
    let stdout = gather(Box::new(out.expect("piped")));
    let stderr = gather(Box::new(err.expect("piped")));
    Running { child, stdin, stdout, stderr, readers }
}

impl Running {
    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr.lock().expect("no panic")).into_owned()
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Writes to the program's standard input.
    pub(crate) fn say(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().expect("not closed yet");
        stdin.write_all(text.as_bytes()).expect("it reads");
    }

    /// Waits until standard error contains the text that often, and then as
    /// long as one more would need to come.
    pub(crate) fn expect(&self, text: &str, times: usize) {
        let start = Instant::now();
        while self.stderr().matches(text).count() < times {
            assert!(
                start.elapsed() < DEADLINE,
                "{} of {times} times {text:?} in:\n{}",
                self.stderr().matches(text).count(),
                self.stderr()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        self.settle();
    }

    /// Waits for what should not come.
    pub(crate) fn settle(&self) {
        std::thread::sleep(SETTLE);
    }

    /// Closes its input, waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        drop(self.stdin.take());
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                break status;
            }
            assert!(start.elapsed() < DEADLINE, "it does not end:\n{}", self.stderr());
            std::thread::sleep(Duration::from_millis(5));
        };
        // What it left behind may hold the pipes open.
        self.kill();
        for reader in self.readers.drain(..) {
            reader.join().expect("a reader ends");
        }
        let stdout = String::from_utf8_lossy(&self.stdout.lock().expect("no panic")).into_owned();
        Ended { status, stdout, stderr: self.stderr() }
    }

    /// Sends SIGTERM to `lockstead`, which passes it on, and waits for the end.
    pub(crate) fn terminate(self) -> Ended {
        // SAFETY: sends a signal to a child that has not been waited for.
        unsafe { libc::kill(self.pid(), libc::SIGTERM) };
        self.end()
    }

    fn kill(&self) {
        // SAFETY: sends a signal to the group that this child leads.
        unsafe { libc::kill(-self.pid(), libc::SIGKILL) };
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
        let _ = self.child.wait();
    }
}

/// A thread in a report.
#[derive(Debug, Default, PartialEq, Eq, Clone)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// What is said after "waits ", less the time.
    pub(crate) waits: String,
    pub(crate) waits_at: Vec<String>,
    /// What is said after "holds ".
    pub(crate) holds: String,
    pub(crate) holds_at: Vec<String>,
}

/// The reports whose first lines begin with `lockstead: KIND of`.
pub(crate) fn cycles(stderr: &str, kind: &str) -> Vec<Vec<Member>> {
    let head = format!("lockstead: {kind} of ");
    let mut lines = stderr.lines().peekable();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        if !line.starts_with(&head) {
            continue;
        }
        let mut members: Vec<Member> = Vec::new();
        let mut holds = false;
        while let Some(line) = lines.next_if(|line| line.starts_with("  ")) {
            let text = line.trim_start();
            match line.len() - text.len() {
                2 => {
                    let name = text.split('"').nth(1).unwrap_or(text).to_owned();
                    members.push(Member { name, ..Member::default() });
                    continue;
                }
                4 | 6 => {}
                _ => panic!("an unexpected line: {line}"),
            }
            let member = members.last_mut().expect("a thread comes first");
            if let Some(what) = text.strip_prefix("waits ").filter(|_| line.starts_with("    w")) {
                holds = false;
                let (what, since) = what.split_once(", since ").expect("how long");
                let timed = if since.contains("time-out") { ", timed" } else { "" };
                member.waits = format!("{what}{timed}");
            } else if let Some(what) = line.strip_prefix("    holds ") {
                holds = true;
                member.holds =
                    what.strip_suffix(", acquired at:").expect("where it was acquired").into();
            } else {
                let sites = if holds { &mut member.holds_at } else { &mut member.waits_at };
                sites.push(text.to_owned());
            }
        }
        found.push(members);
    }
    found
}

/// The only report of this kind; none of the other.
pub(crate) fn only(stderr: &str, kind: &str) -> Vec<Member> {
    let other = if kind == "DEADLOCK" { "CYCLE" } else { "DEADLOCK" };
    assert_eq!(cycles(stderr, other).len(), 0, "{stderr}");
    let mut found = cycles(stderr, kind);
    assert_eq!(found.len(), 1, "{stderr}");
    found.remove(0)
}

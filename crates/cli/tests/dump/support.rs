//! Programs that hang, and what `lockstead dump` says of them without what
//! differs from run to run.

use crate::common::{Outcome, PAUSE, run};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

pub(crate) const SOURCE: &str = include_str!("hang.c");
const DEADLINE: Duration = Duration::from_secs(30);
/// The number of the system call that threads sleep in for locks.
const FUTEX: &str = if cfg!(target_arch = "x86_64") { "202 " } else { "98 " };

/// The programs of `hang.c`, with and without symbols; or why there are none.
static PROGRAM: LazyLock<Result<Built, String>> = LazyLock::new(build);

pub(crate) struct Built {
    _folder: tempfile::TempDir,
    pub(crate) plain: PathBuf,
    pub(crate) stripped: PathBuf,
}

fn build() -> Result<Built, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (source, plain) = (folder.path().join("hang.c"), folder.path().join("hang"));
    let stripped = folder.path().join("bare");
    std::fs::write(&source, SOURCE).map_err(|error| error.to_string())?;
    for (to, options) in [(&plain, &["-g"][..]), (&stripped, &["-s"][..])] {
        let compiler = Command::new("cc")
            // Without a frame pointer each frame can be followed without registers.
            .args(["-O1", "-fno-inline", "-fomit-frame-pointer", "-pthread", "-o"])
            .arg(to)
            .args(options)
            .arg(&source)
            .output()
            .map_err(|error| format!("no C compiler: {error}"))?;
        let text = String::from_utf8_lossy(&compiler.stderr);
        assert!(compiler.status.success(), "the test's own program does not compile: {text}");
    }
    Ok(Built { _folder: folder, plain, stripped })
}

/// A program that hangs, until the test has looked at it.
pub(crate) struct Hung(pub(crate) Child);

impl Drop for Hung {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Hung {
    pub(crate) fn start(program: &mut Command) -> Hung {
        program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Hung(program.spawn().expect("the program starts"))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Waits until so many threads sleep in futex calls; false, and a reason,
    /// where that may not be read.
    pub(crate) fn settle(&self, sleepers: usize) -> bool {
        let start = Instant::now();
        loop {
            let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid())).expect("it runs");
            let calls: Vec<_> = tasks
                .filter_map(|task| Some(std::fs::read_to_string(task.ok()?.path().join("syscall"))))
                .collect();
            if calls.iter().any(|call| {
                call.as_ref().is_err_and(|e| e.kind() == std::io::ErrorKind::PermissionDenied)
            }) {
                eprintln!("skipped: one's own processes may not be read here");
                return false;
            }
            let asleep = |call: &&Result<String, _>| {
                call.as_ref().is_ok_and(|call: &String| call.starts_with(FUTEX))
            };
            if calls.iter().filter(asleep).count() == sleepers {
                return true;
            }
            assert!(start.elapsed() < DEADLINE, "{sleepers} threads should sleep: {calls:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until this is shown: other threads than those that wait for locks come to rest in
    /// their own time.
    #[track_caller]
    pub(crate) fn await_shown(&self, text: &str) {
        let start = Instant::now();
        while !plain(&self.dump(&["--all"]).stdout).contains(text) {
            assert!(start.elapsed() < DEADLINE, "{text:?} is never shown");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn dump(&self, flags: &[&str]) -> Outcome {
        run(&[&["dump", &self.pid().to_string()], flags].concat())
    }
}

/// Starts one of the programs of `hang.c`, and returns when so many of its threads sleep.
pub(crate) fn hang(which: &str, sleepers: usize) -> Option<Hung> {
    start(which, sleepers, |built| &built.plain)
}

pub(crate) fn start(which: &str, sleepers: usize, of: fn(&Built) -> &PathBuf) -> Option<Hung> {
    let hung = launch(which, of)?;
    hung.settle(sleepers).then_some(hung)
}

/// Starts one of the programs of `hang.c` that never come to rest.
pub(crate) fn start_unsettled(which: &str) -> Option<Hung> {
    launch(which, |built| &built.plain)
}

fn launch(which: &str, of: fn(&Built) -> &PathBuf) -> Option<Hung> {
    match &*PROGRAM {
        Ok(built) => Some(Hung::start(Command::new(of(built)).args(which.split(' ')))),
        Err(why) => {
            eprintln!("skipped: {why}");
            None
        }
    }
}

/// Returns the text without the numbers of threads that have names.
fn unnumbered(text: &str) -> String {
    let mut parts = text.split(" (tid ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out +=
            part.trim_start_matches(|digit: char| digit.is_ascii_digit()).trim_start_matches(')');
    }
    out
}

/// Returns the text with `pause` for the call that the C library makes of it where the kernel has none.
fn as_on_x86_64(text: &str) -> String {
    text.replace(&format!(" {PAUSE}()"), " pause()")
}

/// Returns the text with what differs from run to run left out: ids, addresses, times.
pub(crate) fn plain(text: &str) -> String {
    let text = as_on_x86_64(&unnumbered(text));
    let mut out = String::new();
    let mut after = "";
    // What the threads do that are not shown differs as well.
    let text: String = text
        .split_inclusive('\n')
        .map(|line| match (line.split_once(": "), line.rfind(": "), line.find(" (--all shows")) {
            (Some(("not shown", _)), Some(from), Some(to)) => line[..from].to_owned() + &line[to..],
            _ => line.to_owned(),
        })
        .collect();
    for word in text.split_inclusive([' ', '\n', ')']) {
        let bare = word.trim_end_matches([' ', '\n', ')', ':']);
        let end = &word[bare.len()..];
        if ["process", "thread", "by"].contains(&after) && bare.parse::<u32>().is_ok() {
            // A thread is known by the name that follows.
            out += if after == "thread" { "" } else { "N" };
            out += if after == "thread" { "" } else { end };
        } else if bare.starts_with("0x") {
            out += "0xN";
            out += end;
        } else {
            out += word;
        }
        after = bare;
    }
    out
}

/// Returns the line in `hang.c` of the first `text` after the start of `function`.
pub(crate) fn line(function: &str, text: &str) -> usize {
    let definition = format!("{function}(");
    let mut lines = SOURCE.lines().enumerate();
    lines
        .find(|(_, line)| line.starts_with("static") && line.contains(&definition))
        .unwrap_or_else(|| panic!("no function {function}"));
    lines.find(|(_, line)| line.contains(text)).unwrap_or_else(|| panic!("no {text}")).0 + 1
}

/// Returns the frames of a thread that called `lock` in `function` by `text`.
pub(crate) fn locking(function: &str, text: &str) -> String {
    let helper = SOURCE.lines().position(|l| l.contains("static void lock(")).expect("there") + 1;
    let at = line(function, text);
    format!("      lock() at hang.c:{helper}\n      {function}() at hang.c:{at}\n")
}

pub(crate) fn frame(function: &str, text: &str) -> String {
    format!("      {function}() at hang.c:{}\n", line(function, text))
}

/// Runs the dump and compares all of it.
pub(crate) fn expect(hung: &Hung, status: i32, text: &str) {
    let outcome = hung.dump(&[]);
    assert_eq!(plain(&outcome.stdout), text, "{outcome:?}");
    assert_eq!((outcome.status, outcome.stderr.as_str()), (status, ""), "{outcome:?}");
}

//! Programs that run, under `lockstead run` or by themselves.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Nothing in these tests takes longer, unless it hangs: a machine that does
/// much else at the same time is slow, not wrong.
const DEADLINE: Duration = Duration::from_secs(120);

/// How long a second report would have to show itself.
/// How often the command looks before nothing more is expected: every few milliseconds.
const LOOKS: u64 = 30;
/// The line of `/proc/PID/status` with the number of times that a thread went to sleep.
const SLEEPS: &str = "voluntary_ctxt_switches:";

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

    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout.lock().expect("no panic")).into_owned()
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Waits until standard error contains the text that often, and then as
    /// long as one more would need to come.
    pub(crate) fn expect(&self, text: &str, times: usize) {
        self.until(text, || self.stderr().matches(text).count() >= times);
        self.settle();
    }

    /// Waits for a line on standard output.
    pub(crate) fn expect_line(&self) -> String {
        self.until("a line", || self.stdout().contains('\n'));
        self.stdout().lines().next().unwrap_or_default().to_owned()
    }

    fn until(&self, what: &str, reached: impl Fn() -> bool) {
        let start = Instant::now();
        while !reached() {
            assert!(start.elapsed() < DEADLINE, "no {what:?} in:\n{}", self.stderr());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for what should not come: until the command has looked so often at the program, or
    /// has ended. Its first thread sleeps between two looks.
    pub(crate) fn settle(&self) {
        let sleeps = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).ok()?;
            let count = status.lines().find_map(|line| line.strip_prefix(SLEEPS))?;
            (!status.contains("\nState:\tZ")).then(|| count.trim().parse::<u64>().ok())?
        };
        let Some(before) = sleeps() else { return };
        self.until("looks of the command", || sleeps().is_none_or(|now| now >= before + LOOKS));
    }

    /// Writes to its input.
    pub(crate) fn say(&mut self, text: &str) {
        self.stdin.as_mut().expect("open").write_all(text.as_bytes()).expect("it reads");
    }

    /// Closes its input, waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        drop(self.stdin.take());
        self.end_with_open_input()
    }

    /// Waits for its end.
    pub(crate) fn end_with_open_input(mut self) -> Ended {
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
        Ended { status, stdout: self.stdout(), stderr: self.stderr() }
    }

    /// Sends SIGTERM to `lockstead`, which passes it on, and waits for the end.
    pub(crate) fn terminate(self) -> Ended {
        // SAFETY: sends a signal to a child that has not been waited for.
        unsafe { libc::kill(self.pid(), libc::SIGTERM) };
        self.end()
    }

    fn kill(&self) {
        // SAFETY: the call sends a signal to the group that this child leads.
        unsafe { libc::kill(-self.pid(), libc::SIGKILL) };
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
        let _ = self.child.wait();
    }
}

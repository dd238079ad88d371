//! Programs that people run, under `lockstead run`: as they are without it, and
//! with a report that says what is known of them. Each test runs a program both
//! ways under load; what is not installed is skipped, and said.

mod case;
mod native;
mod scripts;
mod server;
mod servers;
mod tools;

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Whatever is waited for comes within this time, unless it hangs.
const DEADLINE: Duration = Duration::from_secs(60);

/// Folders with programs that are not in everybody's path.
const MORE_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Prints why a test does nothing here.
fn skip(reason: &str) {
    println!("skipped: {reason}");
}

/// Returns the installed program of this name; `None`, with a message, if there is none.
fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .chain(MORE_FOLDERS.map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    if found.is_none() {
        skip(&format!("{name} is not installed"));
    }
    found
}

/// Returns a file that lies beside the tests.
fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/sources").join(name)
}

/// Compiles a source into `folder`; `None`, and said, where the compiler or a
/// library that the options want is not there.
fn compiled(folder: &Path, source_name: &str, options: &[&str]) -> Option<PathBuf> {
    let compiler = if source_name.ends_with(".c") { "cc" } else { "c++" };
    let compiler = installed(compiler)?;
    let program = folder.join(source_name.split('.').next().unwrap_or(source_name));
    let output = Command::new(compiler)
        .args(["-g", "-O1", "-pthread", "-o"])
        .arg(&program)
        .arg(source(source_name))
        .args(options)
        .output()
        .expect("the compiler starts");
    if !output.status.success() && !options.is_empty() {
        let text = String::from_utf8_lossy(&output.stderr);
        skip(&format!("{source_name} cannot be built with {options:?}: {text}"));
        return None;
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

fn is_root() -> bool {
    // SAFETY: `geteuid` takes no argument and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Returns the start of a command line that runs the program under `lockstead run`, with the report
/// in `json` and nothing else printed. All locks are in it that a test looks for, also those that
/// nobody waited for.
fn watched(json: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstead"));
    command.args(["run", "--no-report", "--sort", "acquisitions", "--json"]);
    command.arg(json).args(options).arg("--");
    command
}

/// A program in a process group of its own, which ends with it.
struct Running {
    child: Child,
    output: [Receiver<Vec<u8>>; 2],
    stopped: bool,
}

/// What a program that has ended left.
#[derive(Debug)]
struct Ended {
    status: ExitStatus,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Running {
    fn start(command: &mut Command) -> Running {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdout = collect(child.stdout.take().expect("piped"));
        let stderr = collect(child.stderr.take().expect("piped"));
        Running { child, output: [stdout, stderr], stopped: false }
    }

    fn signal(&self, signal: libc::c_int) {
        let pid = libc::pid_t::try_from(self.child.id()).expect("a process id");
        // SAFETY: sends a signal to a child that has not been waited for.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "signal {signal}");
    }

    fn end(mut self) -> Ended {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                break status;
            }
            assert!(start.elapsed() < DEADLINE, "did not end within {DEADLINE:?}");
            std::thread::sleep(Duration::from_millis(3));
        };
        let [stdout, stderr] =
            self.output.each_ref().map(|o| o.recv_timeout(DEADLINE).expect("the output ends"));
        self.stopped = true;
        Ended { status, stdout, stderr }
    }
}

impl Drop for Running {
    /// Leaves nothing behind when a test fails.
    fn drop(&mut self) {
        if !self.stopped {
            let group = libc::pid_t::try_from(self.child.id()).expect("a process id");
            // SAFETY: the group of a child that has not been waited for, made
            // by `start`.
            unsafe { libc::killpg(group, libc::SIGKILL) };
            let _ = self.child.wait();
        }
    }
}

fn collect(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    receiver
}

/// Waits until something is so.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < DEADLINE, "not within {DEADLINE:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn shown(text: &OsStr) -> String {
    text.to_string_lossy().into_owned()
}

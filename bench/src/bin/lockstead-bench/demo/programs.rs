//! The programs of the demonstration: three that deadlock under `lockstead run`, in C, Rust and
//! Python, and one that was started plainly, hangs, and is looked at with `lockstead dump`. They
//! are built on the spot, as far as what that needs is there.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::print;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

macro_rules! example {
    ($path:literal) => {
        include_str!(concat!("../../../../../crates/cli/examples/", $path))
    };
}

/// A program with a deadlock, as a file of its language.
struct Example {
    /// The words for what it is, in its heading.
    what: &'static str,
    file: &'static str,
    source: &'static str,
    /// The program that makes it or runs it, which has to be there.
    tool: &'static str,
    /// The arguments by which the tool builds it; nothing if it runs the file itself.
    build: &'static [&'static str],
    /// The words that start it.
    start: &'static [&'static str],
}

const TRANSFER: Example = Example {
    what: "a C program with a deadlock",
    file: "transfer.c",
    source: example!("c/transfer.c"),
    tool: "cc",
    build: &["-g", "-pthread", "-o", "transfer", "transfer.c"],
    start: &["./transfer"],
};

const ORDERS: Example = Example {
    what: "a Rust program whose mutexes are those of its standard library",
    file: "orders.rs",
    source: example!("rust/orders.rs"),
    tool: "rustc",
    build: &["-O", "-g", "orders.rs"],
    start: &["./orders"],
};

const KITCHEN: Example = Example {
    what: "a Python program",
    file: "kitchen.py",
    source: example!("python/kitchen.py"),
    tool: "python3",
    build: &[],
    start: &["python3", "kitchen.py"],
};

const HUNG: Example = Example {
    what: "a program that was started plainly and hangs",
    file: "hung.c",
    source: example!("c/hung.c"),
    tool: "cc",
    build: &["-g", "-pthread", "-o", "hung", "hung.c"],
    start: &["./hung"],
};

/// No step takes longer, or the demonstration says that it failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// The exit status of `lockstead dump` when there is a deadlock.
const DEADLOCK_FOUND: i32 = 3;

/// Shows the programs; of those that cannot be built or run here, says so.
///
/// # Errors
/// As [`Failure`].
pub(super) fn show(interrupt: &Interrupt) -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(|e| Failure::Run(format!("no folder: {e}")))?;
    let folder = folder.path();
    if command(&["--version"])?.output().is_err_and(|e| e.kind() == io::ErrorKind::NotFound) {
        return print(
            "1. to 3. deadlocks under `lockstead run`, and 4. a hung program under `lockstead \
             dump`:\nleft out, for `lockstead` is neither beside `lockstead-bench` nor in PATH\n\n",
        );
    }
    for (number, example) in (1..).zip([&TRANSFER, &ORDERS, &KITCHEN]) {
        print(&format!("{number}. {}, under `lockstead run`\n\n", example.what))?;
        if !example.prepare(folder)? {
            continue;
        }
        let start = example.start.join(" ");
        print(&format!("$ lockstead run --on-deadlock kill -- {start}\n"))?;
        let ended = command(&["run", "--no-report", "--on-deadlock", "kill", "--"])?
            .args(example.start)
            .current_dir(folder)
            .process_group(0)
            .spawn()
            .map(RunningProgram)
            .and_then(|mut run| run.finish(interrupt));
        let ended = ended.map_err(|e| failed("lockstead run", &e))?;
        print(&format!("{}\n", indented(&ended)))?;
    }
    print(&format!("4. {}: `lockstead dump`\n\n", HUNG.what))?;
    if !HUNG.prepare(folder)? {
        return Ok(());
    }
    print("$ ./hung &\n$ lockstead dump $!\n")?;
    let program = Command::new(folder.join("hung"))
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()
        .map(RunningProgram)
        .map_err(|e| failed("hung", &e))?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let dumped = command(&["dump", &program.0.id().to_string()])?
            .process_group(0)
            .spawn()
            .map(RunningProgram)
            .and_then(|mut dump| Ok((dump.finish(interrupt)?, dump.0.wait()?)));
        let (text, status) = dumped.map_err(|e| failed("lockstead dump", &e))?;
        // The three workers may not have got so far yet.
        if status.code() == Some(DEADLOCK_FOUND) || Instant::now() > deadline {
            return print(&format!("{}\n", indented(&text)));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

impl Example {
    /// Writes the source, and builds it if it has to be. Prints how, or why it cannot be had here;
    /// returns whether it can be started.
    fn prepare(&self, folder: &Path) -> Result<bool, Failure> {
        std::fs::write(folder.join(self.file), self.source)
            .map_err(|e| failed("writing an example", &e))?;
        let arguments = if self.build.is_empty() { &["--version"] } else { self.build };
        let mut tool = Command::new(self.tool);
        match tool.args(arguments).current_dir(folder).stdin(Stdio::null()).output() {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                let call = format!("{} {}", self.tool, arguments.join(" "));
                print(&format!("left out, for `{call}` failed:\n{}\n", indented(&said)))?;
                return Ok(false);
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                print(&format!("left out, for there is no `{}` here\n\n", self.tool))?;
                return Ok(false);
            }
            Err(e) => return Err(failed(self.tool, &e)),
        }
        if !self.build.is_empty() {
            print(&format!("$ {} {}\n", self.tool, self.build.join(" ")))?;
        }
        Ok(true)
    }
}

/// Returns the command `lockstead`, its standard output and error in one pipe each: beside this
/// program, else in PATH.
fn command(arguments: &[&str]) -> Result<Command, Failure> {
    let own = std::env::current_exe().map_err(|e| failed("lockstead-bench itself", &e))?;
    let beside = own.with_file_name("lockstead");
    let mut command = Command::new(if beside.is_file() { &beside } else { Path::new("lockstead") });
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command)
}

fn failed(what: &str, error: &io::Error) -> Failure {
    Failure::Run(format!("{what}: {error}"))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}").trim_end().to_owned() + "\n").collect()
}

/// A child in a process group of its own, all of which ends with this value.
struct RunningProgram(Child);

impl RunningProgram {
    /// Returns all that it prints until it ends.
    fn finish(&mut self, interrupt: &Interrupt) -> io::Result<String> {
        let drain = |stream: Option<Box<dyn Read + Send>>| {
            std::thread::spawn(move || {
                let mut text = String::new();
                stream.map_or(Ok(0), |mut stream| stream.read_to_string(&mut text))?;
                io::Result::Ok(text)
            })
        };
        let out = drain(self.0.stdout.take().map(|s| Box::new(s) as _));
        let err = drain(self.0.stderr.take().map(|s| Box::new(s) as _));
        let deadline = Instant::now() + PATIENCE;
        while self.0.try_wait()?.is_none() {
            if interrupt.flag().load(Ordering::Relaxed) || Instant::now() > deadline {
                self.end();
                return Err(io::Error::new(io::ErrorKind::TimedOut, "it did not end by itself"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let text = |t: std::thread::JoinHandle<io::Result<String>>| {
            t.join().map_err(|_| io::Error::other("the reader of its output panicked"))?
        };
        Ok(text(out)? + &text(err)?)
    }

    fn end(&mut self) {
        let group = self.0.id() as libc::pid_t;
        // SAFETY: signals to a group whose leader is a child of ours that has
        // not been waited for, or of which the group id is gone.
        unsafe { libc::kill(-group, libc::SIGKILL) };
        let _ = self.0.wait();
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            self.end();
        }
    }
}

//! The two programs of the demonstration: one that deadlocks under
//! `lockstead run`, one that was started plainly, hangs, and is looked at with
//! `lockstead dump`. Both are C, built on the spot by the system's compiler.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::print;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const TRANSFER: &str = include_str!("../../../../../crates/cli/examples/c/transfer.c");
const HUNG: &str = include_str!("../../../../../crates/cli/examples/c/hung.c");

/// No step takes longer, or the demonstration says that it failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// The exit status of `lockstead dump` when there is a deadlock.
const DEADLOCK_FOUND: i32 = 3;

/// Shows both programs; without a C compiler, says what would have been shown.
///
/// # Errors
/// As [`Failure`].
pub(super) fn show(interrupt: &Interrupt) -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(|e| Failure::Run(format!("no folder: {e}")))?;
    let Some(transfer) = build(folder.path(), "transfer", TRANSFER)? else {
        return print(
            "1. a deadlock under `lockstead run`, and 2. a hung program under `lockstead dump`:\n\
             left out, for there is no C compiler (`cc`) to build the two programs with\n\n",
        );
    };
    if command(&["--version"])?.output().is_err_and(|e| e.kind() == io::ErrorKind::NotFound) {
        return print(
            "1. a deadlock under `lockstead run`, and 2. a hung program under `lockstead dump`:\n\
             left out, for `lockstead` is neither beside `lockstead-bench` nor in PATH\n\n",
        );
    }
    print(
        "1. a program with a deadlock, under `lockstead run`\n\n\
         $ cc -g -pthread -o transfer transfer.c\n\
         $ lockstead run --on-deadlock kill -- ./transfer\n",
    )?;
    let ended = command(&["run", "--no-report", "--on-deadlock", "kill", "--"])?
        .arg(&transfer)
        .process_group(0)
        .spawn()
        .map(RunningProgram)
        .and_then(|mut run| run.finish(interrupt));
    print(&indented(&ended.map_err(|e| failed("lockstead run", &e))?))?;

    let Some(hung) = build(folder.path(), "hung", HUNG)? else {
        return Err(Failure::Run("the compiler built one program and not the other".into()));
    };
    print(
        "\n2. a program that was started plainly and hangs: `lockstead dump`\n\n\
         $ cc -g -pthread -o hung hung.c\n\
         $ ./hung &\n\
         $ lockstead dump $!\n",
    )?;
    let program = Command::new(&hung)
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

/// Returns the command `lockstead`, its standard output and error in one pipe each: beside this
/// program, else in PATH.
fn command(arguments: &[&str]) -> Result<Command, Failure> {
    let own = std::env::current_exe().map_err(|e| failed("lockstead-bench itself", &e))?;
    let beside = own.with_file_name("lockstead");
    let mut command = Command::new(if beside.is_file() { &beside } else { Path::new("lockstead") });
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command)
}

fn build(folder: &Path, name: &str, source: &str) -> Result<Option<PathBuf>, Failure> {
    let (file, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&file, source).map_err(|e| failed("writing an example", &e))?;
    let built = Command::new("cc")
        .args(["-g", "-pthread", "-o", name, &format!("{name}.c")])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output();
    match built {
        Ok(output) if output.status.success() => Ok(Some(program)),
        Ok(output) => Err(Failure::Run(format!(
            "the C compiler did not build {name}.c:\n{}",
            String::from_utf8_lossy(&output.stderr)
        ))),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(failed("cc", &e)),
    }
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

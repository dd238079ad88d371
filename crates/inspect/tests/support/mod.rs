//! Programs that the tests build with the system's compiler and look at.

#![allow(dead_code, reason = "each test file uses its part")]

use lockstead_inspect::unwind::Registers;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(20);

/// Builds `source` of `tests/programs`; `None`, with the reason printed, where
/// there is no compiler for it.
pub(crate) fn build(name: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
    let compiler = match source.rsplit('.').next() {
        Some("c") => "cc",
        Some("rs") => "rustc",
        _ => "c++",
    };
    if Command::new(compiler).arg("--version").output().is_err() {
        println!("skipped: no compiler {compiler}");
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let threads = Some("-pthread").filter(|_| compiler != "rustc");
    let output = Command::new(compiler)
        .args(flags)
        .args(threads)
        .arg(source)
        .arg("-o")
        .arg(&program)
        .output()
        .expect("the compiler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

/// A program that runs until the test has seen enough.
pub(crate) struct Running {
    child: Child,
    /// Addresses that it printed, by name.
    pub(crate) addresses: HashMap<String, u64>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a thread is in the middle of.
pub(crate) struct Asleep {
    pub(crate) call: i64,
    pub(crate) registers: Registers,
}

impl Running {
    /// Starts the program.
    pub(crate) fn start(program: &Path, args: &[&str]) -> Running {
        let end = Instant::now() + DEADLINE;
        let mut command = Command::new(program);
        command.args(args).stdout(Stdio::piped());
        let child = loop {
            match command.spawn() {
                // A child that another test has forked meanwhile may have a program that was just
                // copied open for writing, until it becomes its own.
                Err(busy)
                    if busy.kind() == ErrorKind::ExecutableFileBusy && Instant::now() < end =>
                {
                    std::thread::sleep(Duration::from_millis(5));
                }
                started => break started.expect("the program starts"),
            }
        };
        Running { child, addresses: HashMap::new() }
    }

    /// Reads the addresses that it prints, up to the line `ready`.
    pub(crate) fn read_addresses(&mut self) {
        let output = self.child.stdout.take().expect("piped");
        for line in BufReader::new(output).lines() {
            let line = line.expect("text");
            let Some((name, address)) = line.split_once(" 0x") else {
                assert_eq!(line, "ready");
                return;
            };
            let address = u64::from_str_radix(address, 16).expect("an address");
            self.addresses.insert(name.to_owned(), address);
        }
        panic!("the program ended early");
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it and waits for that.
    pub(crate) fn end(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("a child");
    }

    /// Returns threads with their names, once `count` threads of the name `name` sleep in the
    /// system call `call`. Returns `None`, with the reason printed, where the kernel does not show
    /// system calls.
    pub(crate) fn asleep(&self, name: &str, call: i64, count: usize) -> Option<Vec<Asleep>> {
        let since = Instant::now();
        loop {
            let mut found = Vec::new();
            let tasks = format!("/proc/{}/task", self.pid());
            for task in std::fs::read_dir(tasks).expect("the program runs") {
                let task = task.expect("an entry").path();
                let read = |file| std::fs::read_to_string(task.join(file));
                if read("comm").unwrap_or_default().trim_end() != name {
                    continue;
                }
                match read("syscall") {
                    Ok(text) => found.extend(parse(&text).filter(|t| t.call == call)),
                    Err(why) if why.kind() == std::io::ErrorKind::PermissionDenied => {
                        println!("skipped: system calls of threads are not shown here: {why}");
                        return None;
                    }
                    Err(_) => {}
                }
            }
            if found.len() == count {
                return Some(found);
            }
            assert!(since.elapsed() < DEADLINE, "{} of {count} threads sleep", found.len());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn parse(text: &str) -> Option<Asleep> {
    let fields: Vec<_> = text.split_ascii_whitespace().collect();
    let hex = |at: usize| u64::from_str_radix(fields.get(at)?.strip_prefix("0x")?, 16).ok();
    let registers = Registers::new(hex(8)?, hex(7)?);
    Some(Asleep { call: fields.first()?.parse().ok()?, registers })
}

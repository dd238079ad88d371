//! The library as a program meets it: the shared object, programs built with
//! the system's compiler, and this test in the place of the command.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod view;

use lockstead_inspect::ledger::{CallerRequest, Listener, MappedLedger};
use lockstead_ledger::hello::{Hello, Settings, VARIABLE};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

include!("../../shared_object.rs");

/// Whatever a test waits for has come by then, or never comes.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// One of the two libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Library {
    /// The one of `lockstead run`.
    Observing,
    /// The one of `lockstead run --check`.
    Checking,
}

/// Makes two tests of each function, one with each library.
macro_rules! with_both {
    ($($name:ident),+) => {
        mod observing {
            $(#[test] fn $name() { super::$name(crate::support::Library::Observing); })+
        }

        mod checking {
            $(#[test] fn $name() { super::$name(crate::support::Library::Checking); })+
        }
    };
}

impl Library {
    /// Returns the shared object, which the first call builds.
    pub(crate) fn path(self) -> &'static Path {
        static BUILT: [OnceLock<PathBuf>; 2] = [const { OnceLock::new() }; 2];
        let checks = self == Library::Checking;
        BUILT[usize::from(checks)].get_or_init(|| {
            let package = Path::new(env!("CARGO_MANIFEST_DIR"));
            let workspace = package.ancestors().nth(2).expect("a package of a workspace");
            let name = if checks { "check" } else { "preload" };
            // Where the command's build script has mostly built it before.
            let whole = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
            let whole = whole.expect("cargo's folder for tests lies in its target directory");
            let target_dir = whole.join(IMAGES).join(name);
            let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
            let cargo = Path::new(env!("CARGO"));
            let built = target_dir.join(&target).join("preload/liblockstead_preload.so");
            if !cargo.exists() && built.exists() {
                // These tests were built on another machine, and brought here with both libraries.
                return built;
            }
            build_shared_object(cargo.as_ref(), workspace, &target_dir, &target, checks, true)
                .expect("the shared object is built")
        })
    }

    /// Returns the bytes of the shared object.
    pub(crate) fn read(self) -> Vec<u8> {
        std::fs::read(self.path()).expect("the shared object")
    }
}

/// Builds `tests/programs/NAME.c`; `None`, with the reason printed, where there
/// is no compiler.
pub(crate) fn compile(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    compile_file(&folder.join(format!("{name}.c")), name)
}

/// Builds a C file into a program that is called so; `None` as [`compile`].
pub(crate) fn compile_file(file: &Path, name: &str) -> Option<PathBuf> {
    if Command::new("cc").arg("--version").output().is_err() {
        println!("skipped: no C compiler");
        return None;
    }
    // Tests run at the same time: each has a program of its own.
    let unique = format!("{name}-{:?}", thread::current().id());
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(unique);
    // Bound at once: what a look-up at the first call does is none of the call's.
    let output = Command::new("cc")
        .args([
            "-O1",
            "-g",
            "-pthread",
            "-Wall",
            "-Wextra",
            "-Werror",
            // Empty, so that a file may define it too.
            "-D_GNU_SOURCE=",
            "-Wl,-z,now",
        ])
        .arg(file)
        .arg("-o")
        .arg(&program)
        .output()
        .expect("the compiler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

/// A program that runs, with its output. Killed when this goes.
struct Running {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start(command: &mut Command) -> Running {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (send, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in output.lines() {
                if send.send(line.expect("text")).is_err() {
                    return;
                }
            }
        });
        Running { input: child.stdin.take(), child, lines }
    }

    /// Returns the next line that it prints; `None` at the end of its output.
    fn line(&self) -> Option<String> {
        match self.lines.recv_timeout(DEADLINE) {
            Ok(line) => Some(line),
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("the program says nothing for a minute"),
        }
    }

    fn end(&mut self) -> (String, ExitStatus) {
        drop(self.input.take());
        let rest: String =
            std::iter::from_fn(|| self.line()).flat_map(|line| [line, "\n".to_owned()]).collect();
        let since = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return (rest, status);
            }
            assert!(since.elapsed() < DEADLINE, "the program does not end");
            thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Returns output and exit status of a program that nobody observes.
pub(crate) fn run_natively(program: &Path, arguments: &[&str]) -> (String, ExitStatus) {
    Running::start(Command::new(program).args(arguments)).end()
}

/// A program with the library under it, and its ledger.
pub(crate) struct Observed {
    running: Running,
    ledger: Arc<MappedLedger>,
    /// Addresses that the program printed, by name.
    addresses: HashMap<String, u64>,
    listener: Listener,
    /// Ledgers of other processes that have called.
    children: Vec<OwnedFd>,
}

/// Returns the nanoseconds of `CLOCK_MONOTONIC`.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to a timespec on this stack.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns who has called with a ledger.
fn hellos(listener: &mut Listener) -> impl Iterator<Item = (Hello, OwnedFd)> {
    listener.calls().into_iter().filter_map(|call| match call {
        CallerRequest::Hello { hello, file, .. } => Some((*hello, file)),
        _ => None,
    })
}

impl Observed {
    /// Starts it with the library under it and takes its ledger.
    pub(crate) fn start(library: Library, program: &Path, arguments: &[&str]) -> Observed {
        Observed::start_with(library, program, arguments, true)
    }

    /// Starts the same; says whether its children record as well.
    pub(crate) fn start_with(
        library: Library,
        program: &Path,
        arguments: &[&str],
        follow: bool,
    ) -> Observed {
        Observed::start_asking(library, program, arguments, follow, false)
    }

    /// Starts the same; says whether it is to look for sleeping under locks too.
    pub(crate) fn start_asking(
        library: Library,
        program: &Path,
        arguments: &[&str],
        follow: bool,
        sleepy: bool,
    ) -> Observed {
        let mut listener = Listener::new().expect("a socket");
        let settings = Settings {
            token: listener.token().as_bytes(),
            follow,
            sleepy,
            semaphores: false,
            record: false,
            told: false,
        };
        let running = Running::start(
            Command::new(program)
                .args(arguments)
                .env("LD_PRELOAD", library.path())
                .env(VARIABLE, settings.to_string()),
        );
        let since = Instant::now();
        let mut children = Vec::new();
        let ledger = loop {
            let mut own = None;
            for (hello, file) in hellos(&mut listener) {
                if hello.pid == running.child.id() {
                    own = Some(file);
                } else {
                    children.push(file);
                }
            }
            if let Some(file) = own {
                break Arc::new(MappedLedger::new(file, true).expect("a ledger"));
            }
            assert!(since.elapsed() < DEADLINE, "the library has not called");
            thread::sleep(Duration::from_millis(2));
        };
        let weak = Arc::downgrade(&ledger);
        // Ends by itself when the ledger goes.
        thread::spawn(move || {
            while let Some(ledger) = weak.upgrade() {
                ledger.set_clock(now());
                drop(ledger);
                thread::sleep(Duration::from_millis(4));
            }
        });
        Observed { running, ledger, addresses: HashMap::new(), listener, children }
    }

    /// Reads what the program prints up to `stopped at PLACE`: lines
    /// `NAME 0xADDRESS` are remembered.
    pub(crate) fn reach(&mut self, place: &str) {
        loop {
            let line = self.running.line();
            let line = line.unwrap_or_else(|| panic!("the program has ended before {place}"));
            if let Some(found) = line.strip_prefix("stopped at ") {
                assert_eq!(found, place);
                return;
            }
            let (name, address) = line.split_once(" 0x").unwrap_or_else(|| panic!("{line}"));
            let address = u64::from_str_radix(address, 16).expect("an address");
            self.addresses.insert(name.to_owned(), address);
        }
    }

    /// Lets it go on after a stop.
    pub(crate) fn go_on(&mut self) {
        self.running.input.as_mut().expect("open").write_all(b"\n").expect("it listens");
    }

    /// Waits for its end. Returns what else it printed, and its status.
    pub(crate) fn end(&mut self) -> (String, ExitStatus) {
        self.running.end()
    }

    /// Returns the address that the program printed with this name.
    pub(crate) fn address(&self, name: &str) -> u64 {
        *self.addresses.get(name).unwrap_or_else(|| panic!("no address of {name}"))
    }

    /// Returns the ledger, also after the program's end.
    pub(crate) fn ledger(&self) -> lockstead_ledger::Ledger<'_> {
        self.ledger.view()
    }

    /// Returns the ledger of a forked child that has called; each once.
    pub(crate) fn child(&mut self) -> MappedLedger {
        let since = Instant::now();
        while self.children.is_empty() {
            self.children.extend(hellos(&mut self.listener).map(|(_, file)| file));
            assert!(since.elapsed() < DEADLINE, "no child has called");
            thread::sleep(Duration::from_millis(2));
        }
        MappedLedger::new(self.children.remove(0), true).expect("a ledger")
    }

    /// Asks until there is an answer.
    pub(crate) fn until<T>(&self, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
        let since = Instant::now();
        loop {
            if let Some(answer) = ask() {
                return answer;
            }
            assert!(since.elapsed() < DEADLINE, "never seen: {what}");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

//! Each kind of wait that a thread can be in, and what is said of it: by the closing lines of
//! `lockstead run`, by `lockstead run --watch`, and by `lockstead dump`. The table in
//! `docs/run.md` has the same kinds and the same words.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::programs::{Running, program, skip, start};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// What is said of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// It says who holds what is waited for, or who alone could end the wait.
    Explained(&'static str),
    /// What is waited for.
    Named(&'static str),
    /// It says that something cannot be known.
    Unknowable(&'static str),
}
use Said::{Explained, Named, Unknowable};

impl Said {
    fn word(self) -> &'static str {
        match self {
            Explained(_) => "explained",
            Named(_) => "named",
            Unknowable(_) => "cannot be known",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Explained(text) | Named(text) | Unknowable(text) => text,
        }
    }
}

/// A kind, by its name in `waits.c`; the closing lines, those of the watch before them, the dump.
type Row = (&'static str, Said, Said, Said);

/// `#` stands for a number.
const ROWS: &[Row] = &[
    (
        "mutex",
        Explained("held     100%  takes_lock() at"),
        Explained("by thread \"holder\" (tid #), acquired at:"),
        Explained("held by thread \"holder\" (tid #), which is asleep in pause()"),
    ),
    (
        "mutex-shared",
        Named("process-shared mutex, 1 waiting to the end"),
        Explained("by thread \"main\" (tid #) of waits (pid #), acquired at:"),
        Explained("held by #: it is shared between processes"),
    ),
    (
        "mutex-inherit",
        Explained("held     100%  takes_inherits() at"),
        Explained("by thread \"holder\" (tid #), acquired at:"),
        Explained("held by thread \"holder\" (tid #), which is asleep in pause()"),
    ),
    (
        "mutex-c11",
        Explained("held     100%  takes_plain() at"),
        Explained("by thread \"holder\" (tid #), acquired at:"),
        Explained("held by thread \"holder\" (tid #), which is asleep in pause()"),
    ),
    (
        "rwlock-read",
        Explained("held     100%  writes() at"),
        Explained("by thread \"holder\" (tid #), acquired at:"),
        Explained("held by thread \"holder\" (tid #), which is asleep in pause()"),
    ),
    (
        "rwlock-write",
        Explained("held     100%  reads() at"),
        Explained("by thread \"holder\" (tid #), acquired at:"),
        Unknowable("held by 1 reader; who they are is not in the lock"),
    ),
    (
        "spinlock",
        Explained("held     100%  takes_spin() at"),
        Explained("by thread \"holder\" (tid #), acquired at:"),
        Unknowable("not known to wait for a lock or to hold one that others want:"),
    ),
    (
        "stdio",
        Named("at the futex word #, of no lock that is recorded"),
        Explained("held by thread \"holder\" (tid #), which is asleep in pause()"),
        Explained("held by thread \"holder\" (tid #), which is asleep in pause()"),
    ),
    (
        "once",
        Named("at the futex word #, of no lock that is recorded"),
        Unknowable("a once has no owner in it: who runs the initialiser cannot be told"),
        Unknowable("a once has no owner in it: who runs the initialiser cannot be told"),
    ),
    (
        "condition",
        Named("ready (condition, 1 waiting to the end)"),
        Explained("a thread that signals it would end this"),
        Named("waits for condition variable ready"),
    ),
    (
        "semaphore",
        Named("permits (semaphore, 1 waiting to the end)"),
        Explained("a thread that calls sem_post for it would end this"),
        Unknowable("who will post it cannot be told"),
    ),
    (
        "barrier",
        Named("gate (barrier, 1 waiting to the end)"),
        Explained("the threads that have not come to it would end this"),
        Explained("barrier gate (1 of 2 threads have come)"),
    ),
    (
        "join",
        Named("for the end of a thread"),
        Named("for the end of a thread"),
        Explained("waits for the end of thread \"waits\" (tid #)"),
    ),
    (
        "futex",
        Named("word (futex, 1 waiting to the end"),
        Unknowable("a futex word of no known lock: who will wake it cannot be told"),
        Unknowable("a futex word of no known lock: who will wake it cannot be told"),
    ),
    (
        "flock",
        Explained("(flock) (held by process # \"waits\")"),
        Explained("    held by process # \"waits\"\n"),
        Explained("    held by process # \"waits\"\n"),
    ),
    (
        "record",
        Explained("(fcntl, of a range) (held by process # \"waits\")"),
        Explained("    held by process # \"waits\"\n"),
        Explained("    held by process # \"waits\"\n"),
    ),
    (
        "description",
        Explained("(fcntl, of an open file description) (held by process # \"waits\")"),
        Explained("    held by process # \"waits\"\n"),
        Explained("    held by process # \"waits\"\n"),
    ),
    (
        "flock-own",
        Explained("(flock) (held by process # \"waits\", this one)"),
        Explained("nothing outside the process can end any of these waits"),
        Explained("    held by process # \"waits\", this one\n"),
    ),
    (
        "sysv-semaphore",
        Explained("semaphore 0 of System V set # (process # \"waits\" changed it last"),
        Explained("process # \"waits\" changed it last; a semaphore has no other owner"),
        Explained("process # \"waits\" changed it last; a semaphore has no other owner"),
    ),
    (
        "sysv-queue",
        Named("in msgrcv(), for a message in System V message queue #"),
        Named("in msgrcv(), for a message in System V message queue #"),
        Named("is asleep in msgrcv(), for a message in System V message queue #"),
    ),
    (
        "posix-queue",
        Named("for POSIX message queue /lockstead-waits-#"),
        Named("for POSIX message queue /lockstead-waits-#"),
        Named("for POSIX message queue /lockstead-waits-#"),
    ),
    (
        "pipe-own",
        Explained("in read(), for pipe:[#], into which this process alone can write"),
        Explained("in read(), for pipe:[#], into which this process alone can write"),
        Explained("in read(), for pipe:[#], into which this process alone can write"),
    ),
    (
        "pipe-read",
        Explained("in read(), for pipe:[#] (process # \"waits\" has the other end)"),
        Explained("in read(), for pipe:[#] (process # \"waits\" has the other end)"),
        Explained("process # \"waits\" has the other end"),
    ),
    (
        "pipe-write",
        Explained("for room in pipe:[#] (process # \"waits\" has the other end)"),
        Explained("for room in pipe:[#] (process # \"waits\" has the other end)"),
        Explained("process # \"waits\" has the other end"),
    ),
    (
        "fifo",
        Named("for the other end of "),
        Named("for the other end of "),
        Named("1 in openat()"),
    ),
    (
        "eventfd",
        Explained("for an event counter, into which this process and the kernel alone can write"),
        Explained("for an event counter, into which this process and the kernel alone can write"),
        Explained("for an event counter, into which this process and the kernel alone can write"),
    ),
    (
        "timerfd",
        Named("in read(), for anon_inode:[timerfd]"),
        Named("in read(), for anon_inode:[timerfd]"),
        Named("1 in read()"),
    ),
    (
        "signalfd",
        Named("in read(), for anon_inode:[signalfd]"),
        Named("in read(), for anon_inode:[signalfd]"),
        Named("1 in read()"),
    ),
    (
        "socket-read",
        Named("in recvfrom(), for socket:[#]"),
        Named("in recvfrom(), for socket:[#]"),
        Named("1 in recvfrom()"),
    ),
    (
        "socket-accept",
        Named("in accept(), for socket:[#]"),
        Named("in accept(), for socket:[#]"),
        Named("1 in accept()"),
    ),
    (
        "poll",
        Named("in poll(), for pipe:[#]"),
        Named("in poll(), for pipe:[#]"),
        Named("1 in poll()"),
    ),
    ("select", Named("select6()"), Named("select6()"), Named("select6()")),
    (
        "epoll",
        Named("in epoll_wait(), for pipe:[#]"),
        Named("in epoll_wait(), for pipe:[#]"),
        Named("1 in epoll_wait()"),
    ),
    ("sleep", Named("nanosleep()"), Named("nanosleep()"), Named("nanosleep()")),
    ("pause", Named("in pause()"), Named("in pause()"), Named("1 in pause()")),
    (
        "sigwait",
        Named("in rt_sigtimedwait()"),
        Named("in rt_sigtimedwait()"),
        Named("1 in rt_sigtimedwait()"),
    ),
    (
        "child",
        Explained("in wait4(), for the end of its child # \"waits\""),
        Explained("in wait4(), for the end of its child # \"waits\""),
        Explained("in wait4(), for the end of its child # \"waits\""),
    ),
    (
        "vfork",
        Explained("for its new child to end or to call exec"),
        Explained("for its new child to end or to call exec"),
        Explained("for its new child to end or to call exec"),
    ),
];

/// The kinds in which all threads wait for events, and nobody is there who could make one.
const STUCK: &[&str] =
    &["once", "condition", "semaphore", "barrier", "futex", "flock-own", "pipe-own"];

/// Returns the text with `#` for each number.
fn numberless(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(at);
        // `SYS_exit_group0`, `pselect6`: a digit in a name is none.
        let in_name = before.ends_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let end = number.find(|c: char| !c.is_ascii_hexdigit() && c != 'x').unwrap_or(number.len());
        let end = if in_name || !number.starts_with("0x") {
            number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len())
        } else {
            end
        };
        out += before;
        out += if in_name { &number[..end] } else { "#" };
        rest = &number[end..];
    }
    out + rest
}

/// Returns what is said, with the calls that the C library makes where the kernel has not those of x86-64.
fn of_this_kernel(said: &str) -> String {
    if cfg!(target_arch = "x86_64") {
        return said.into();
    }
    let pause = said.replace("in pause()", "in ppoll()");
    pause.replace("in poll()", "in ppoll()").replace("in epoll_wait()", "in epoll_pwait()")
}

fn contains(text: &str, said: Said) -> bool {
    numberless(text).contains(&numberless(&of_this_kernel(said.text())))
}

/// The longest that a wait takes to be seen.
const DEADLINE: Duration = Duration::from_secs(100);

fn watched(waits: &Path, kind: &str, folder: &Path) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstead"));
    command.args(["run", "--watch", "300ms", "--"]).arg(waits).arg(kind).env("TMPDIR", folder);
    start(command)
}

/// Asserts what a run says in which the watch and the closing lines have had time to see the wait.
/// How long that takes depends on what else the machine does, so it is tried with more and more.
fn under_run(waits: &Path, (kind, closing, watch, _): Row, folder: &Path) {
    let begun = Instant::now();
    let mut patience = Duration::from_millis(500);
    loop {
        let running = watched(waits, kind, folder);
        assert_eq!(running.expect_line(), "waits", "{kind}");
        let since = Instant::now();
        while since.elapsed() < patience && !contains(&running.stderr(), watch) {
            std::thread::sleep(Duration::from_millis(10));
        }
        running.settle();
        let ended = running.terminate();
        if contains(&ended.stderr, watch) && contains(&ended.stderr, closing) {
            let claims = ["no thread waited for a lock (", "no thread acquired a lock"];
            assert!(!claims.iter().any(|claim| ended.stderr.contains(claim)), "{}", ended.stderr);
            let may_be_stuck = STUCK.contains(&kind);
            assert!(may_be_stuck || !ended.stderr.contains("STUCK"), "{}", ended.stderr);
            return;
        }
        let text = &ended.stderr;
        assert!(begun.elapsed() < DEADLINE, "{kind}: no {watch:?} and {closing:?} in:\n{text}");
        patience *= 2;
    }
}

/// Asserts what `dump` says of a process that runs by itself.
fn by_dump(waits: &Path, (kind, .., said): Row, folder: &Path) {
    let mut command = Command::new(waits);
    command.arg(kind).env("TMPDIR", folder).stdout(Stdio::piped());
    let running = start(command);
    assert_eq!(running.expect_line(), "waits", "{kind}");
    let pid = running.pid().to_string();
    let begun = Instant::now();
    loop {
        let outcome = crate::common::run(&["dump", &pid]);
        if outcome.stderr.contains("cannot be read") {
            return skip("one's own processes may not be read here");
        }
        if contains(&outcome.stdout, said) {
            break;
        }
        assert!(begun.elapsed() < DEADLINE, "{kind}: no {said:?} in:\n{outcome:?}");
    }
    // SAFETY: sends a signal to a child that has not been waited for.
    unsafe { libc::kill(running.pid(), libc::SIGTERM) };
    running.end();
}

fn each(what: fn(&Path, Row, &Path)) {
    let Some(waits) = program("waits.c") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    // Some at a time, since most of them sleep most of the time.
    let rows = Mutex::new(ROWS.iter());
    let next = || rows.lock().expect("nobody panics with it").next();
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                while let Some(&row) = next() {
                    what(&waits, row, folder.path());
                }
            });
        }
    });
}

#[test]
fn a_run_says_what_each_wait_is_for() {
    each(under_run);
}

#[test]
fn a_dump_says_what_each_wait_is_for() {
    each(by_dump);
}

#[test]
fn the_table_of_waits_is_that_of_the_tests() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/run.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, section) = page.split_once("### Every wait\n").expect("the section");
    let section = section.split("\n#").next().unwrap_or_default();
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let documented: Vec<Vec<String>> = rows.map(cells).collect();
    let tested: Vec<Vec<String>> = ROWS
        .iter()
        .map(|(kind, closing, watch, dump)| {
            let words = [closing, watch, dump].map(|said| said.word().to_owned());
            [vec![format!("`{kind}`")], words.to_vec()].concat()
        })
        .collect();
    let without_words = |row: &Vec<String>| [row[..1].to_vec(), row[2..].to_vec()].concat();
    assert_eq!(documented.iter().map(without_words).collect::<Vec<_>>(), tested);
    assert!(tested.len() >= 25);
}

/// Runs a kind with these flags until the text comes.
fn until(flags: &[&str], kind: &str, text: &str) -> Option<String> {
    let waits = program("waits.c")?;
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstead"));
    command.arg("run").args(flags).arg("--").arg(waits).arg(kind).env("TMPDIR", folder.path());
    let running = start(command);
    running.expect(text, 1);
    Some(running.terminate().stderr)
}

#[test]
fn a_cycle_of_semaphores_that_serve_as_mutexes_is_a_deadlock_though_another_thread_runs() {
    for flags in [&[][..], &["--check"]] {
        let Some(said) = until(flags, "semaphore-cycle", "lockstead: DEADLOCK") else { return };
        let said = numberless(&said);
        for words in [
            "DEADLOCK: # threads wait for each other, in waits (pid #)",
            "waits for second (semaphore), since",
            "holds first (semaphore), acquired at:",
            "It rests on how the semaphore was used",
        ] {
            assert!(said.contains(words), "no {words:?} with {flags:?}: {said}");
        }
        assert!(!said.contains("STUCK"), "one thread runs: {said}");
    }
}

#[test]
fn semaphores_that_nobody_has_given_back_may_be_signals() {
    // A deadlock would have been reported before.
    let said = until(&["--watch", "300ms"], "semaphore-unused-cycle", "lockstead: STUCK");
    let Some(said) = said else { return };
    assert!(said.contains("all 2 threads wait, none with a deadline"), "{said}");
    assert!(!said.contains("DEADLOCK"), "{said}");
}

#[test]
fn what_only_a_signal_can_end_is_told_when_the_limit_has_passed() {
    let flags = ["--watch", "300ms"];
    let Some(said) = until(&flags, "semaphore-handler", "lockstead: STUCK") else { return };
    assert!(said.contains("a signal could, or another process"), "{said}");
    assert!(!said.contains("nothing outside the process"), "{said}");
}

#[test]
fn a_process_that_nothing_can_wake_is_ended_like_one_in_a_deadlock() {
    let Some(waits) = program("waits.c") else { return };
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstead"));
    let json = tempfile::NamedTempFile::new().expect("a file");
    command.args(["run", "--on-deadlock", "kill", "--json"]).arg(json.path());
    let ended = start({
        command.arg("--").arg(waits).arg("semaphore");
        command
    });
    let ended = ended.end();
    assert_eq!(ended.status.code(), Some(3), "{}", ended.stderr);
    let text = std::fs::read_to_string(json.path()).expect("the report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let finding = &report["findings"][0];
    assert_eq!(finding["kind"], "stuck");
    let doing = finding["threads"][0]["doing"]["what"].as_str().unwrap_or_default();
    assert!(doing.contains("waits for semaphore permits"), "{finding:#}");
}

#[test]
fn a_cycle_of_streams_is_a_deadlock_though_another_thread_runs() {
    let flags = ["--watch", "300ms"];
    let Some(said) = until(&flags, "stdio-cycle", "lockstead: DEADLOCK") else { return };
    assert!(said.contains("2 threads wait for each other, in waits (pid"), "{said}");
    assert!(said.contains("(heap), as its word says") && said.contains("\"two\""), "{said}");
    assert!(!said.contains("STUCK"), "one thread runs: {said}");
    assert_eq!(said.matches("lockstead: DEADLOCK").count(), 2, "once, and listed: {said}");
}

#[test]
fn a_stopped_thread_is_not_said_to_wait_for_a_lock() {
    let Some(waits) = program("waits.c") else { return };
    let mut command = Command::new(waits);
    command.arg("stopped").stdout(Stdio::piped());
    let running = start(command);
    running.expect_line();
    let begun = Instant::now();
    loop {
        let outcome = crate::common::run(&["dump", &running.pid().to_string()]);
        if outcome.stdout.contains("is stopped by a signal or a debugger") {
            return;
        }
        assert!(begun.elapsed() < DEADLINE, "{outcome:?}");
    }
}

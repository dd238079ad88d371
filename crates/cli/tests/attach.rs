//! `lockstead attach` on programs that run already: what it reports, and that nothing stays behind.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod calls;
mod filters;
mod killed;
mod namespaces;
mod others;
mod waits;

use crate::common::{Outcome, finish, lockstead, run, text};
use crate::programs;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(60);

/// A program that runs, until its input is closed.
struct Running {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
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
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut running = Running { input: child.stdin.take(), output, child };
        assert_eq!(running.line(), "ready");
        running
    }

    /// Starts the busy program; `None`, and a reason, where it cannot be built.
    fn busy(threads: &str) -> Option<Running> {
        Running::busy_as(threads, |_| ())
    }

    /// Starts the busy program in some way.
    fn busy_as(threads: &str, how: impl FnOnce(&mut Command)) -> Option<Running> {
        let mut command = Command::new(programs::program("attach/busy.c")?);
        command.arg(threads).arg(programs::library("attach/plugin.c")?);
        how(&mut command);
        Some(Running::start(&mut command))
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the program writes text");
        line.trim_end().to_owned()
    }

    /// Has a program that reads single bytes go on.
    fn next(&mut self) {
        self.input.as_mut().expect("open").write_all(b"!").expect("it reads");
    }

    /// Has the program do something, and returns how often its threads have locked by then.
    fn tell(&mut self, what: &str) -> u64 {
        writeln!(self.input.as_mut().expect("open"), "{what}").expect("it reads");
        self.line().parse().expect("a number")
    }

    /// Waits until its threads have locked again.
    fn goes_on(&mut self) {
        let before = self.tell("");
        until("its threads go on", || self.tell("") > before);
    }

    fn ends_well(mut self) {
        drop(self.input.take());
        let status = self.child.wait().expect("it ends");
        assert_eq!(status.code(), Some(0), "its counts are wrong, or a wait was: {status}");
    }

    fn traces(&self) -> Traces {
        Traces::of(&self.pid())
    }
}

fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let start = Instant::now();
    while !reached() {
        assert!(start.elapsed() < DEADLINE, "{what}: not within {DEADLINE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What an attach could leave in a process.
#[derive(Debug, PartialEq, Eq)]
struct Traces {
    descriptors: usize,
    threads: usize,
    tracer: bool,
    files: Vec<String>,
}

impl Traces {
    fn of(pid: &str) -> Traces {
        let count =
            |what: &str| fs::read_dir(format!("/proc/{pid}/{what}")).expect("it runs").count();
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("it runs");
        let files = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        Traces {
            descriptors: count("fd"),
            threads: count("task"),
            tracer: !status.contains("TracerPid:\t0\n"),
            files: files.filter(|file| file.contains("lockstead")).map(str::to_owned).collect(),
        }
    }
}

/// Runs `attach` and expects that nothing goes wrong. `None`, and a reason, where processes may not be
/// traced.
fn attach(arguments: &[&str]) -> Option<Outcome> {
    let outcome = run(&[&["attach"], arguments].concat());
    let barred = [
        "ptrace_scope",
        "the kernel does not permit it",
        "cannot be traced",
        "a seccomp filter is on",
    ];
    if outcome.status == 125 && barred.iter().any(|word| outcome.stderr.contains(word)) {
        eprintln!("skipped: {}", outcome.stderr);
        return None;
    }
    assert_eq!(outcome.status, 0, "{outcome:?}");
    Some(outcome)
}

/// Starts `attach` and waits until it has come in. `None` where processes may not be traced.
fn attached(pid: &str) -> Option<(Child, BufReader<std::process::ChildStderr>)> {
    attach(&[pid, "--for", "10ms", "--no-report"])?;
    let mut command = lockstead(&["attach", pid, "--no-report"]).spawn().expect("it starts");
    let mut said = BufReader::new(command.stderr.take().expect("a pipe"));
    let mut line = String::new();
    said.read_line(&mut line).expect("text");
    assert!(line.starts_with("lockstead: attached to "), "{line}");
    Some((command, said))
}

fn interrupt(command: Child) -> Outcome {
    // SAFETY: sends a signal to a child that has not been waited for.
    unsafe { libc::kill(command.id().cast_signed(), libc::SIGINT) };
    finish(command)
}

#[test]
fn it_reports_as_run_does_and_leaves_nothing_behind() {
    let Some(mut running) = Running::busy("3") else { return };
    let before = running.traces();
    let pid = running.pid();
    let folder = tempfile::tempdir().expect("a folder");
    let [file, metrics] = ["report.json", "locks.prom"].map(|name| folder.path().join(name));
    let arguments = [&*pid, "--for", "300ms", "--no-report", "--json", text(&file)];
    let arguments = [&arguments[..], &["--metrics", text(&metrics)]].concat();
    let Some(outcome) = attach(&arguments) else { return };
    assert!(outcome.stderr.contains("lockstead: left attach-busy"), "{outcome:?}");
    let report = fs::read_to_string(&file).expect("written");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    crate::common::documented(&report);
    let process = &report["processes"][0];
    assert_eq!(process["pid"].to_string(), pid);
    let locks = process["locks"].as_array().expect("locks");
    let hot = locks.iter().find(|lock| lock["name"] == "hot").expect("it is waited for");
    assert!(hot["acquisitions"].as_u64().is_some_and(|count| count > 10), "{hot}");
    assert!(hot.to_string().contains("worker"), "{hot}");
    let metrics = fs::read_to_string(&metrics).expect("written");
    let mut lines = metrics.lines().filter(|line| line.contains("lock=\"hot\""));
    let shown = lines.find_map(|line| line.strip_prefix("lockstead_lock_acquisitions_total{"));
    let shown = shown.and_then(|line| line.rsplit(' ').next()).expect("its figure");
    // The program goes on between the moments at which the two are read.
    assert!(shown.parse::<u64>().is_ok_and(|count| count > 10), "{shown}");
    // The threads that slept all the time have not noticed; nor does any other.
    assert_eq!(running.traces(), before);
    for _ in 0..8 {
        attach(&[&pid, "--for", "10ms", "--no-report"]).expect("it was permitted before");
        assert_eq!(running.traces(), before);
    }
    running.goes_on();
    running.ends_well();
}

#[test]
fn what_is_loaded_later_is_seen_too() {
    let Some(mut running) = Running::busy("1") else { return };
    let Some((command, _said)) = attached(&running.pid()) else { return };
    running.tell("load");
    let pid = running.pid();
    until("the lock of the file that was loaded is seen", || {
        let look = run(&["dump", &pid, "--all"]);
        let top = run(&["top", &pid, "--batch", "-n", "1", "-d", "0.1"]);
        assert_eq!(top.status, 0, "{top:?}");
        look.stdout.contains("plugin_lock") || top.stdout.contains("plugin_lock")
    });
    let outcome = interrupt(command);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert_eq!(running.traces().files, [""; 0]);
    running.ends_well();
}

#[test]
fn a_ring_of_locks_that_were_held_before_is_a_deadlock() {
    let Some(program) = programs::program("attach/ring.c") else { return };
    let mut running = Running::start(&mut Command::new(program));
    if attach(&[&running.pid(), "--for", "10ms", "--no-report"]).is_none() {
        return;
    }
    // It ends by itself if it reports nothing.
    let mut command = lockstead(&["attach", &running.pid(), "--for", "30s", "--no-report"])
        .spawn()
        .expect("it starts");
    let said = BufReader::new(command.stderr.take().expect("a pipe"));
    let mut lines = said.lines().map(|line| line.expect("text"));
    assert!(lines.next().is_some_and(|line| line.starts_with("lockstead: attached to ")));
    writeln!(running.input.as_mut().expect("open"), "go").expect("it reads");
    let head = "DEADLOCK: 2 threads wait for each other";
    assert!(lines.any(|line| line.contains(head)), "the command ends without");
    // Of each thread: its name, what it waits for, two frames, what it holds.
    let text = lines.take(10).collect::<Vec<_>>().join("\n");
    for name in ["journal", "cache"] {
        let held = format!("holds {name} (mutex), as its word says");
        let wanted = format!("waits for {name} (mutex)");
        assert!(text.contains(&held) && text.contains(&wanted), "{text}");
    }
    command.kill().expect("killed");
    command.wait().expect("ended");
}

#[test]
fn a_program_goes_on_when_the_command_is_killed() {
    let Some(mut running) = Running::busy("2") else { return };
    let before = running.traces();
    let Some((mut command, _said)) = attached(&running.pid()) else { return };
    // The second one is refused, with the reason.
    let second = run(&["attach", &running.pid(), "--for", "10ms"]);
    assert_eq!(second.status, 125);
    assert!(second.stderr.contains("under lockstead already"), "{second:?}");
    command.kill().expect("killed");
    command.wait().expect("ended");
    running.goes_on();
    let refused = run(&["attach", &running.pid(), "--for", "10ms"]);
    assert_eq!(refused.status, 125, "{refused:?}");
    assert!(refused.stderr.contains("attach --detach"), "{refused:?}");
    let pid = running.pid();
    let cleaned = attach(&["--detach", &pid]).expect("permitted");
    assert!(cleaned.stderr.contains("took out what was left"), "{cleaned:?}");
    assert_eq!(running.traces(), before);
    let cleaned = attach(&["--detach", &pid]).expect("permitted");
    assert!(cleaned.stderr.contains("nothing was left"), "{cleaned:?}");
    attach(&[&pid, "--for", "10ms", "--no-report"]).expect("permitted");
    running.goes_on();
    running.ends_well();
}

/// The handler has interrupted a wait that began in the library, on another stack than its own.
#[test]
fn a_thread_that_handles_a_signal_elsewhere_is_waited_for() {
    let Some(mut running) = Running::busy("1") else { return };
    let before = running.traces();
    let Some((command, _said)) = attached(&running.pid()) else { return };
    running.tell("signal");
    let outcome = interrupt(command);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert_eq!(running.traces(), before);
    running.goes_on();
    running.ends_well();
}

#[test]
fn children_that_were_forked_meanwhile_are_left_as_well() {
    let Some(mut running) = Running::busy("1") else { return };
    let pid = running.pid();
    let Some((command, _said)) = attached(&pid) else { return };
    running.tell("fork");
    let children =
        fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("readable");
    let child = children.trim().to_owned();
    assert!(!Traces::of(&child).files.is_empty(), "a child has all that its parent had");
    let outcome = interrupt(command);
    let left = Traces::of(&child);
    // SAFETY: sends a signal to the child of a program that has not been waited for.
    unsafe { libc::kill(child.parse().expect("a number"), libc::SIGKILL) };
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert_eq!((left.files, left.tracer), (Vec::new(), false));
    running.ends_well();
}

#[test]
fn what_cannot_be_attached_to_is_refused_with_a_reason() {
    let refused = |pid: &str, reason: &str| {
        let outcome = run(&["attach", pid, "--for", "10ms"]);
        assert_eq!(outcome.status, 125, "{outcome:?}");
        assert!(outcome.stderr.contains(reason), "{reason}: {outcome:?}");
    };
    refused("4194303", "there is no such process");
    let Some(running) = Running::busy("1") else { return };
    if attach(&[&running.pid(), "--for", "10ms", "--no-report"]).is_none() {
        return;
    }
    if let Some(program) = programs::fixed("attach/alone.c") {
        let alone = Running::start(&mut Command::new(program));
        refused(&alone.pid(), "statically linked");
    }
    // SAFETY: sends a signal to a child that has not been waited for.
    unsafe { libc::kill(running.child.id().cast_signed(), libc::SIGSTOP) };
    let status = || fs::read_to_string(format!("/proc/{}/status", running.pid()));
    until("it is stopped", || status().is_ok_and(|status| status.contains("State:\tT")));
    refused(&running.pid(), "it is stopped");
    // SAFETY: sends a signal to a child that has not been waited for.
    unsafe { libc::kill(running.child.id().cast_signed(), libc::SIGCONT) };
    running.ends_well();
    let usage = run(&["attach", "1", "--for", "soon"]);
    assert_eq!(usage.status, 2, "{usage:?}");
    let usage = run(&["attach", "1", "--check"]);
    assert_eq!(usage.status, 2, "{usage:?}");
    assert!(usage.stderr.contains("`lockstead run --check -- PROGRAM`"), "{usage:?}");
}

#[test]
fn python_is_attached_to() {
    let script = "import sys, threading, time\nlock = threading.Lock()\n\
                  def work():\n    while True:\n        with lock: time.sleep(0.0005)\n\
                  for _ in range(2): threading.Thread(target=work, daemon=True).start()\n\
                  print('ready', flush=True)\nsys.stdin.read()\n";
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: no python3");
        return;
    }
    let mut running = Running::start(Command::new("python3").args(["-c", script]));
    let before = running.traces();
    let end = Instant::now() + Duration::from_secs(60);
    let (mut attached, mut seen) = (0, false);
    // On a busy machine the two threads may not meet in a tenth of a second.
    while attached < 3 || !seen {
        let Some(outcome) = attach(&[&running.pid(), "--for", "100ms"]) else { return };
        seen |= outcome.stderr.contains("lockstead: python3");
        attached += 1;
        assert_eq!(running.traces(), before);
        assert!(seen || Instant::now() < end, "no wait in {attached} times: {outcome:?}");
    }
    drop(running.input.take());
    assert!(running.child.wait().expect("it ends").success());
}

#[test]
fn rust_is_attached_to() {
    let source = "use std::sync::*;use std::thread;use std::time::Duration;\n\
        fn main(){let m=Arc::new((Mutex::new(0u64),Condvar::new()));\n\
        let w=m.clone();thread::spawn(move||{let mut g=w.0.lock().unwrap();loop{g=w.1.wait(g).unwrap();}});\n\
        for _ in 0..2{let m=m.clone();thread::spawn(move||loop{*m.0.lock().unwrap()+=1;\n\
        let g=m.0.lock().unwrap();thread::sleep(Duration::from_micros(200));drop(g);});}\n\
        println!(\"ready\");let mut l=String::new();std::io::stdin().read_line(&mut l).unwrap();}\n";
    let folder = tempfile::tempdir().expect("a folder");
    let (file, program) = (folder.path().join("locks.rs"), folder.path().join("locks"));
    fs::write(&file, source).expect("written");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut compiler = Command::new(rustc);
    compiler.args(["-O", "--edition", "2021", "-o"]).args([&program, &file]);
    match compiler.output() {
        Ok(output) if output.status.success() => {}
        other => {
            eprintln!("skipped: no rustc: {other:?}");
            return;
        }
    }
    let mut running = Running::start(&mut Command::new(&program));
    let before = running.traces();
    let end = Instant::now() + Duration::from_secs(60);
    let (mut attached, mut seen) = (0, false);
    // On a busy machine the two threads may not meet in a tenth of a second.
    while attached < 3 || !seen {
        let Some(outcome) = attach(&[&running.pid(), "--for", "100ms"]) else { return };
        seen |= outcome.stderr.contains("waited");
        attached += 1;
        assert_eq!(running.traces(), before);
        assert!(seen || Instant::now() < end, "no wait in {attached} times: {outcome:?}");
    }
    drop(running.input.take());
    assert!(running.child.wait().expect("it ends").success());
}

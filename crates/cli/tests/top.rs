//! `lockstead top` on a real program: as text, and on a terminal.

mod keys;
mod screen;

use crate::common::{Outcome, finish, lockstead};
use crate::report::support::{line, program};
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};

/// A program under `lockstead run` in which three threads wait for `hot`, until
/// its input is closed.
struct Running {
    run: Option<Child>,
    input: Option<ChildStdin>,
}

impl Running {
    fn start() -> Option<Running> {
        let mut command = lockstead(&["run", "--no-report", "--", program()?, "stay"]);
        let mut run = command.stdin(Stdio::piped()).spawn().expect("the command starts");
        let mut output = BufReader::new(run.stdout.take().expect("a pipe"));
        let mut ready = String::new();
        output.read_line(&mut ready).expect("the program writes text");
        assert_eq!(ready, "ready\n");
        let input = run.stdin.take();
        Some(Running { run: Some(run), input })
    }

    fn pid(&self) -> String {
        self.run.as_ref().expect("it runs").id().to_string()
    }

    fn end(mut self) {
        drop(self.input.take());
        let outcome = finish(self.run.take().expect("it runs"));
        assert_eq!(outcome.status, 0, "{outcome:?}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A test that failed: the program ends with its input.
        drop(self.input.take());
        if let Some(mut run) = self.run.take() {
            let _ = run.wait();
        }
    }
}

fn top(arguments: &[&str]) -> Outcome {
    crate::common::run(&[&["top"], arguments].concat())
}

#[test]
fn a_look_shows_who_waits_and_who_holds() {
    let Some(running) = Running::start() else { return };
    // The number of the `lockstead run`: the program below it is found.
    let outcome = top(&[&running.pid(), "-n", "2", "-d", "0.2"]);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""));
    let looks: Vec<&str> = outcome.stdout.trim_end().split("\n\n").collect();
    assert_eq!(looks.len(), 2, "{}", outcome.stdout);
    for look in looks {
        assert!(!look.contains('\x1b'));
        let row = |start: &str| {
            let found = look.lines().find(|line| line.trim_start().starts_with(start));
            found.unwrap_or_else(|| panic!("no {start} in\n{look}")).to_owned()
        };
        assert!(look.starts_with("lockstead top: worst (pid "), "{look}");
        assert!(look.contains("4 threads: 3 wait for a lock, 0 idle; 0 acq/s"), "{look}");
        let hot = row("hot");
        let cells: Vec<&str> = hot.split_whitespace().collect();
        // Three threads waited all the time, and do.
        let waiting: f64 = cells[1].trim_end_matches('%').parse().expect("a number");
        assert!((299.0..301.0).contains(&waiting), "{hot}");
        assert_eq!(&cells[2..5], ["0", "0%", "3"], "{hot}");
        let worker = row("worker-1 (");
        assert!(worker.contains("hot"), "{worker}");
        assert!(worker.contains(&format!("worker() at worst.c:{}", line("waits"))), "{worker}");
        let held = look.split("HELD NOW  1\n").nth(1).expect("one lock is held");
        assert!(held.contains(&format!("run() at worst.c:{}", line("holds"))), "{held}");
        assert!(held.contains("worst ("), "the name of main's thread: {held}");
    }
    running.end();
}

#[test]
fn a_filter_leaves_out_the_other_locks() {
    let Some(running) = Running::start() else { return };
    for (filter, is_there) in [("HOT", true), ("cold", false)] {
        let outcome = top(&[&running.pid(), "-n", "1", "-d", "0.2", "--filter", filter]);
        assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""));
        let said = &outcome.stdout;
        assert_eq!(said.contains("worker-1 ("), is_there, "{said}");
        assert_eq!(
            said.contains("no lock that was used has this in its name"),
            !is_there,
            "{said}"
        );
        assert!(said.lines().next().expect("a title").contains(&format!("  /{filter}")), "{said}");
    }
    running.end();
}

#[test]
fn a_process_that_is_not_watched_gets_advice() {
    // Not this process: its children are watched, by other tests, and belong to it.
    let mut waits = Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat starts");
    let outcome = top(&[&waits.id().to_string()]);
    drop(waits.stdin.take());
    waits.wait().expect("it ends with its input");
    assert_eq!(outcome.status, 1);
    assert!(outcome.stderr.contains("lockstead run -- PROGRAM"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("lockstead dump"), "{}", outcome.stderr);
    assert_eq!(top(&["0"]).status, 2);
}

#[test]
fn it_ends_with_the_process() {
    let Some(running) = Running::start() else { return };
    let watcher = lockstead(&["top", &running.pid(), "-d", "0.1"]);
    let mut watcher = { watcher }.spawn().expect("the command starts");
    let mut output = BufReader::new(watcher.stdout.take().expect("a pipe"));
    let mut first = String::new();
    output.read_line(&mut first).expect("text");
    running.end();
    let outcome = finish(watcher);
    assert_eq!(outcome.status, 0);
    assert!(outcome.stderr.contains("has ended"), "{}", outcome.stderr);
}

//! Threads that wait when the command comes, and threads that wait when it goes.

use super::{Running, Traces, attach, attached, interrupt, until};
use crate::common::{Outcome, finish, lockstead, run};
use crate::programs;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command};

/// Each waits in another function; there is one that waits in vain.
#[test]
fn threads_that_wait_for_locks_do_not_keep_the_library() {
    let Some(program) = programs::program("attach/held.c") else { return };
    let mut running = Running::start(&mut Command::new(program));
    let before = running.traces();
    let Some((command, mut said)) = attached(&running.pid()) else { return };
    running.next();
    assert_eq!(running.line(), "waiting");
    assert!(!running.traces().files.is_empty());
    let outcome = interrupt(command);
    let mut text = String::new();
    said.read_to_string(&mut text).expect("text");
    let stacks = || run(&["dump", &running.pid(), "--all"]).stdout;
    assert_eq!(outcome.status, 0, "{text}{}", stacks());
    let left = running.traces();
    assert_eq!((left.files, left.descriptors), (Vec::new(), before.descriptors));
    // Waits that were led past the library, and are attached to again.
    attach(&[&running.pid(), "--for", "10ms", "--no-report"]).expect("it was permitted before");
    running.next();
    running.ends_well();
}

/// Nobody else sleeps in the program than one thread, in a wait for a semaphore.
#[test]
fn a_thread_that_waits_for_a_semaphore_makes_the_calls() {
    let Some(program) = programs::program("attach/posted.c") else { return };
    let running = Running::start(&mut Command::new(program));
    let before = running.traces();
    for _ in 0..2 {
        let Some(_) = attach(&[&running.pid(), "--for", "10ms", "--no-report"]) else { return };
        assert_eq!(running.traces(), before);
    }
    // SAFETY: sends a signal to a child that has not been waited for.
    unsafe { libc::kill(running.child.id().cast_signed(), libc::SIGUSR1) };
    running.ends_well();
}

/// Runs `attach` on the program that crosses locks, told so, until it has said `wanted`. Returns what it
/// says then, to its end; `None`, and a reason, where that cannot be.
fn says_of_crossed(how: &str, wanted: &str) -> Option<Outcome> {
    let program = programs::program("attach/crossed.c")?;
    let running = Running::start(Command::new(program).arg(how));
    says(running, wanted)
}

/// Does the same on a program, which learns by the end of its input that the command has come.
fn says(mut running: Running, wanted: &str) -> Option<Outcome> {
    let pid = running.pid();
    attach(&[&pid, "--for", "10ms", "--no-report"])?;
    let arguments = ["attach", &pid, "--for", "60s", "--watch", "500ms"];
    let mut command = lockstead(&arguments).spawn().expect("it starts");
    let mut said = BufReader::new(command.stderr.take().expect("a pipe"));
    let mut text = String::new();
    while !text.contains(wanted) {
        if text.contains("lockstead: attached to ") && running.input.is_some() {
            drop(running.input.take());
        }
        assert_ne!(said.read_line(&mut text).expect("text"), 0, "without {wanted:?}: {text}");
    }
    // SAFETY: sends a signal to a child that has not been waited for.
    unsafe { libc::kill(command.id().cast_signed(), libc::SIGINT) };
    said.read_to_string(&mut text).expect("text");
    let status = command.wait().expect("it ends").code().expect("not killed");
    Some(Outcome { status, stdout: String::new(), stderr: text })
}

/// A stop has the kernel go on with a wait that has a limit, as another call.
#[test]
fn a_wait_with_a_limit_is_one_after_an_attach_too() {
    let Some(program) = programs::program("attach/crossed.c") else { return };
    let running = Running::start(Command::new(program).arg("timed"));
    let pid = running.pid();
    for _ in 0..2 {
        let outcome = finish(lockstead(&["dump", &pid]).spawn().expect("it starts"));
        let cycle = "2 threads wait for each other, until a wait times out";
        assert!(outcome.stdout.contains(cycle), "{outcome:?}");
        let Some(_) = attach(&[&pid, "--for", "10ms", "--no-report"]) else { return };
    }
}

#[test]
fn a_deadlock_from_before_is_reported() {
    let Some(outcome) = says_of_crossed("before", "holds cache (mutex), as its word says") else {
        return;
    };
    assert_eq!(outcome.status, 0, "the waits are led past the library: {outcome:?}");
    let reports = outcome.stderr.lines().filter(|line| line.starts_with("lockstead: DEADLOCK: 2 "));
    assert_eq!(reports.count(), 1, "{outcome:?}");
}

#[test]
fn a_wait_from_before_closes_a_ring() {
    let Some(outcome) = says_of_crossed("half", "holds cache (mutex), as its word says") else {
        return;
    };
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.stderr.contains("DEADLOCK: 2 threads wait"), "{outcome:?}");
}

#[test]
fn a_wait_from_before_is_said() {
    let Some(outcome) = says_of_crossed("never", "BLOCKED") else { return };
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.stderr.contains("and before the command came"), "{outcome:?}");
    assert!(outcome.stderr.contains("for mutex cache; it began before"), "{outcome:?}");
    assert!(!outcome.stderr.contains("DEADLOCK"), "{outcome:?}");
}

/// A thread that had the lock for reading before the library came gives back its own, not another thread's.
#[test]
fn a_reader_from_before_leaves_the_others_their_locks() {
    let Some(program) = programs::program("attach/readers.c") else { return };
    let running = Running::start(&mut Command::new(program));
    let Some(outcome) = says(running, "DEADLOCK: 2 threads") else { return };
    assert_eq!(outcome.status, 0, "{outcome:?}");
}

/// Attaches to a program and has its thread begin to wait. Returns the command, what that says, and the
/// number of the thread, or why there is none; `None`, and a reason, where processes may not be traced.
fn begins(running: &mut Running) -> Option<(Child, BufReader<ChildStderr>, String)> {
    let (command, said) = attached(&running.pid())?;
    running.next();
    Some((command, said, running.line()))
}

/// Asks a command to leave.
fn signal(command: &Child) {
    // SAFETY: sends a signal to a child that has not been waited for.
    unsafe { libc::kill(command.id().cast_signed(), libc::SIGINT) };
}

/// Has the wait end for which the library is still there: then the command leaves, and nothing stays.
fn ends(mut running: Running, command: Child, before: Traces) {
    assert!(!running.traces().files.is_empty());
    running.next();
    let outcome = finish(command);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let left = running.traces();
    assert_eq!((left.files, left.descriptors), (Vec::new(), before.descriptors));
    running.ends_well();
}

/// Has the program wait in a thread, and tells the command to leave: it looks at the thread again and
/// again, which each time has that run, until the wait is over.
fn keeps_the_library(program: &mut Command) {
    let mut running = Running::start(program);
    let (before, pid) = (running.traces(), running.pid());
    let Some((mut command, _said, thread)) = begins(&mut running) else { return };
    if thread == "refused" {
        drop(interrupt(command));
        return eprintln!("skipped: no uretprobe can be had");
    }
    let switches = || {
        let status = fs::read_to_string(format!("/proc/{pid}/task/{thread}/status"));
        let status = status.expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|count| count.trim().parse::<u64>().ok()).expect("a number")
    };
    let first = switches();
    signal(&command);
    until("it is looked at for long", || {
        assert!(command.try_wait().expect("a child").is_none(), "the library has gone");
        switches() > first + 50
    });
    ends(running, command, before);
}

/// The C library has the address of the next handler in hand while it calls one.
#[test]
fn a_thread_in_a_fork_keeps_the_library() {
    let Some(program) = programs::program("attach/forked.c") else { return };
    keeps_the_library(&mut Command::new(program));
}

/// The thread stands still in the kernel and comes to no stop, and the child runs in its memory: it makes
/// a call that leads to the library before it ends.
#[test]
fn a_child_in_the_memory_of_its_parent_keeps_the_library() {
    let Some(program) = programs::program("attach/forked.c") else { return };
    let mut running = Running::start(Command::new(program).arg("vfork"));
    let (before, pid) = (running.traces(), running.pid());
    let Some((mut command, _said, thread)) = begins(&mut running) else { return };
    signal(&command);
    until("the command asks the thread to stop", || {
        assert!(command.try_wait().expect("a child").is_none(), "it has left");
        let status = fs::read_to_string(format!("/proc/{pid}/task/{thread}/status"));
        !status.expect("it runs").contains("TracerPid:\t0\n")
    });
    ends(running, command, before);
}

/// The command has ten seconds of patience. It does not leave through the child, as it would through one
/// with a copy of the memory.
#[test]
fn a_child_that_stays_in_the_memory_of_its_parent_is_left_alone() {
    let Some(program) = programs::program("attach/forked.c") else { return };
    let mut running = Running::start(Command::new(program).arg("vfork"));
    let (before, pid) = (running.traces(), running.pid());
    let Some((command, mut said, _thread)) = begins(&mut running) else { return };
    let outcome = interrupt(command);
    let mut text = String::new();
    said.read_to_string(&mut text).expect("text");
    // SAFETY: compares this process with itself, and touches no memory.
    if unsafe { libc::syscall(libc::SYS_kcmp, libc::getpid(), libc::getpid(), 1, 0, 0) } != 0 {
        return eprintln!("skipped: without kcmp it does not know such a child");
    }
    assert_eq!(outcome.status, 1, "{text}");
    assert!(text.contains(&format!("`lockstead attach --detach {pid}`")), "{text}");
    assert!(!running.traces().files.is_empty(), "{text}");
    running.next();
    // The child has ended, and the thread goes on.
    attach(&["--detach", &pid]).expect("it was permitted before");
    let left = running.traces();
    assert_eq!((left.files, left.descriptors), (Vec::new(), before.descriptors));
    running.ends_well();
}

/// What the handler has interrupted lies below its stack, and returns to the library.
#[test]
fn a_thread_that_handles_a_signal_above_its_wait_keeps_the_library() {
    let Some(program) = programs::program("attach/kept.c") else { return };
    keeps_the_library(Command::new(program).arg("above"));
}

/// The kernel alone knows that the wait returns to the library.
#[test]
fn a_thread_whose_return_address_is_taken_keeps_the_library() {
    let Some(program) = programs::program("attach/kept.c") else { return };
    keeps_the_library(Command::new(program).arg("probed"));
}

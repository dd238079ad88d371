//! A thread that is borrowed in a system call, or while it computes: the call goes on with what it had, and
//! registers are as they were.

use super::{Running, attach, until};
use crate::programs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// What a program has said of a call that it made.
#[derive(Debug)]
struct Said {
    answer: i64,
    /// The time at which it ended.
    end: i64,
    handled: i64,
    differing: i64,
}

fn number(running: &mut Running) -> i64 {
    running.line().parse().expect("a number")
}

/// Has the program say how it was.
fn said(running: &mut Running) -> Said {
    running.next();
    let mut next = || number(running);
    Said { answer: next(), end: next(), handled: next(), differing: next() }
}

/// Returns the time of the clock that the program reads.
fn now() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes a time of this frame.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn program() -> Option<PathBuf> {
    programs::program("attach/calls.c")
}

fn start(kind: &str, limit: Duration) -> Option<(Running, i64)> {
    let mut command = Command::new(program()?);
    let mut running = Running::start(command.args([kind, limit.as_millis().to_string().as_str()]));
    let start = number(&mut running);
    Some((running, start))
}

fn once(running: &Running) -> Option<()> {
    attach(&[&running.pid(), "--for", "10ms", "--no-report"]).map(drop)
}

/// Has a call with a limit be attached to twice: it ends with this answer, neither before its time nor as if it
/// had begun when the command came.
fn goes_on(kind: &str, answer: i64) {
    const AHEAD: Duration = Duration::from_secs(1);
    let nanos = |time: Duration| i64::try_from(time.as_nanos()).expect("a short time");
    let mut took = Duration::ZERO;
    for _ in 0..4 {
        // The program takes whole milliseconds.
        let limit = Duration::from_secs((3 * AHEAD + 4 * took).as_secs());
        let Some((mut running, start)) = start(kind, limit) else { return };
        let clock = Instant::now();
        let Some(()) = once(&running) else { return };
        until("the call lasts for some time", || now() > start + nanos(AHEAD));
        let came = now();
        once(&running).expect("it was permitted before");
        took = clock.elapsed();
        let left = now();
        let said = said(&mut running);
        assert_eq!((said.answer, said.handled, said.differing), (answer, 0, 0), "{said:?}");
        assert!(said.end >= start + nanos(limit), "it ended too early: {said:?}, begun at {start}");
        if left < start + nanos(limit) && said.end < came + nanos(limit) {
            return;
        }
        // The machine is slow, and the call was over, or the program woke late; or it always begins anew.
    }
    panic!(
        "no call lasted as long as two attaches, which took {took:?}, and ended by its first limit"
    );
}

#[test]
fn a_sleep_goes_on_with_the_time_that_it_had_left() {
    goes_on("nanosleep", 0);
}

#[test]
fn a_sleep_by_a_clock_goes_on_with_the_time_that_it_had_left() {
    goes_on("clock_nanosleep", 0);
}

#[test]
fn a_sleep_to_a_time_ends_then() {
    goes_on("until", 0);
}

#[test]
fn a_wait_on_a_word_goes_on_with_the_time_that_it_had_left() {
    goes_on("futex", i64::from(-libc::ETIMEDOUT));
}

#[test]
fn a_wait_for_descriptors_goes_on_with_the_time_that_it_had_left() {
    goes_on("ppoll", 0);
}

/// Has a call without a limit be attached to twice, and ended by `end`.
fn is_ended(kind: &str, end: impl FnOnce(&mut Running)) -> Option<Said> {
    let (mut running, _) = start(kind, Duration::ZERO)?;
    once(&running)?;
    once(&running).expect("it was permitted before");
    end(&mut running);
    Some(said(&mut running))
}

fn signal(running: &mut Running) {
    // SAFETY: sends a signal to a child that has not been waited for.
    unsafe { libc::kill(running.child.id().cast_signed(), libc::SIGUSR1) };
}

#[test]
fn a_read_gets_what_comes_afterwards() {
    let Some(said) = is_ended("read", Running::next) else { return };
    assert_eq!((said.answer, said.handled, said.differing), (1, 0, 0), "{said:?}");
}

/// The call has other signals blocked than the program has.
#[test]
fn a_wait_for_a_signal_ends_with_that() {
    for kind in ["pause", "sigsuspend"] {
        let Some(said) = is_ended(kind, signal) else { return };
        let interrupted = i64::from(-libc::EINTR);
        assert_eq!((said.answer, said.handled, said.differing), (interrupted, 1, 0), "{said:?}");
    }
}

/// The kernel answers so after any stop.
#[test]
fn a_wait_for_events_is_interrupted() {
    let Some((mut running, _)) = start("epoll", Duration::ZERO) else { return };
    let Some(()) = once(&running) else { return };
    let said = said(&mut running);
    let interrupted = i64::from(-libc::EINTR);
    assert_eq!((said.answer, said.handled, said.differing), (interrupted, 0, 0), "{said:?}");
}

/// Has a program that computes be attached to three times, and returns what it says then.
fn computes(kind: &str) -> Option<Said> {
    let (mut running, _) = start(kind, Duration::ZERO)?;
    for _ in 0..3 {
        once(&running)?;
    }
    Some(said(&mut running))
}

#[test]
fn registers_of_a_thread_that_computes_are_kept() {
    for kind in ["computes", "long"] {
        let Some(said) = computes(kind) else { return };
        assert!(said.answer > 0 && said.differing == 0, "{kind}: {said:?}");
    }
}

/// The frame has them by which a thread comes back when there is no command any more.
#[test]
fn registers_are_kept_when_the_command_is_killed() {
    const PLACES: u64 = 6;
    let Some(library) = programs::library("attach/dies.c") else { return };
    for kind in ["computes", "long"] {
        let Some((mut running, _)) = start(kind, Duration::ZERO) else { return };
        let Some(()) = once(&running) else { return };
        let pid = running.pid();
        let count = super::killed::calls(&pid, &library);
        let mut killed = 0;
        for place in 1..=PLACES {
            let at = (place * count / (PLACES + 1)).to_string();
            killed += u64::from(super::killed::is_killed(&pid, &library, ("DIES_AT", &at)));
            attach(&["--detach", &pid]).expect("it was permitted before");
        }
        assert!(killed >= PLACES / 2, "{kind}: killed {killed} times");
        let said = said(&mut running);
        assert!(said.answer > 0 && said.differing == 0, "{kind}: {said:?}");
    }
}

/// A thread that came back into the middle of a section would go on there, and the kernel would not know it.
#[test]
fn a_restartable_section_is_not_broken() {
    let Some((mut running, _)) = start("section", Duration::ZERO) else { return };
    for _ in 0..8 {
        let Some(()) = once(&running) else { return };
    }
    let said = said(&mut running);
    assert_eq!(said.differing, 0, "{said:?}");
    if said.answer == 0 {
        println!("skipped: the C library has registered no place for sections");
    }
}

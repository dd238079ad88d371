//! What the command has to say when nobody reads, and of what it cannot see.
#![cfg(target_os = "linux")]

use crate::programs::{program, skip, under};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Nobody reads what the command writes, and there is no room for more.
#[test]
fn a_reader_that_is_stuck_saves_no_deadlocked_program_and_keeps_no_signal_out() {
    let Some(corners) = program("corners.c") else { return };
    let (reader, mut full) = std::io::pipe().expect("a pipe");
    // SAFETY: the call sets a flag of a descriptor that `full` keeps open.
    let set = unsafe { libc::fcntl(full.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    assert_eq!(set, 0);
    while full.write(&[b'x'; 4096]).is_ok() {}
    // SAFETY: the call clears a flag of a descriptor that `full` keeps open.
    unsafe { libc::fcntl(full.as_raw_fd(), libc::F_SETFL, 0) };
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstead"))
        .args(["run", "--on-deadlock", "kill", "--"])
        .arg(corners)
        .arg("adaptive-cross")
        .stdout(Stdio::null())
        .stderr(full)
        .spawn()
        .expect("it starts");
    let pid = command.id();
    let children = || std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let start = Instant::now();
    let mut until = |what: &str, reached: &mut dyn FnMut() -> bool| {
        while !reached() {
            if start.elapsed() > Duration::from_secs(60) {
                let _ = command.kill();
                panic!("not in time: {what}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    if children().is_err() {
        skip("the kernel does not tell a process's children");
    } else {
        until("the program starts", &mut || children().is_ok_and(|text| !text.is_empty()));
        until("the program is killed", &mut || children().is_ok_and(|text| text.is_empty()));
        let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        until("the command ends", &mut || {
            // One that comes before the command knows of the end is the program's.
            // SAFETY: sends a signal to a child that has not been waited for.
            unsafe { libc::kill(pid.cast_signed(), libc::SIGTERM) };
            stat().contains(") Z ")
        });
    }
    let _ = command.kill();
    command.wait().expect("it ends");
    drop(reader);
}

#[test]
fn a_process_without_room_for_a_ledger_is_told_of() {
    let Some(stale) = program("stale.c") else { return };
    // Blocks of files; the shell's unit is at most a KiB.
    let script = format!("ulimit -f 100; exec {} wiped", stale.display());
    let ended = under(&["--no-report"], &["sh", "-c", &script]).end();
    assert_eq!((ended.stdout.as_str(), ended.status.code()), ("went on\n", Some(0)));
    let told = "stale): no ledger could be made in it: ";
    assert!(ended.stderr.starts_with("lockstead: not watched: process "), "{}", ended.stderr);
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
}

//! Programs that become others, and threads that have of their own what most share.

use super::{Running, attach, attached};
use crate::common::{finish, run, text};
use crate::programs;
use std::process::Command;

/// Starts the program so; `None`, and a reason, where it cannot be built.
fn start(how: &[&str]) -> Option<Running> {
    let program = programs::program("attach/other.c")?;
    Some(Running::start(Command::new(program).args(how)))
}

#[test]
fn a_program_that_another_one_replaces_is_left_alone() {
    let Some(mut running) = start(&["exec"]) else { return };
    let Some((command, _said)) = attached(&running.pid()) else { return };
    running.next();
    assert_eq!(running.line(), "after");
    for _ in 0..20 {
        running.next();
        assert_eq!(running.line(), "locked", "its locks are its own");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // It ends by itself.
    let outcome = finish(command);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(running.traces().files.is_empty());
    running.ends_well();
}

#[test]
fn a_thread_with_descriptors_of_its_own_makes_the_file_among_these() {
    let folder = tempfile::tempdir().expect("a folder");
    let victim = folder.path().join("victim");
    std::fs::write(&victim, "").expect("written");
    let Some(mut running) = start(&["table", text(&victim)]) else { return };
    if attach(&[&running.pid(), "--for", "50ms"]).is_none() {
        return;
    }
    assert_eq!(std::fs::metadata(&victim).expect("it is there").len(), 0, "it was written to");
    running.next();
    running.ends_well();
}

#[test]
fn what_lies_below_a_stack_that_a_program_has_given_is_not_written_to() {
    let Some(mut running) = start(&["slice"]) else { return };
    // There is no thread that has room, or hardly one on aarch64.
    let outcome = run(&["attach", &running.pid(), "--for", "50ms"]);
    let is_refused = outcome.status == 125;
    assert!(is_refused || cfg!(target_arch = "aarch64") && outcome.status == 0, "{outcome:?}");
    running.next();
    running.ends_well();
}

/// The file has its own use for a name of the C library's.
#[test]
fn a_function_of_another_file_is_called_as_before() {
    let Some(library) = programs::library("attach/own.c") else { return };
    let Some(mut running) = start(&["deep", text(&library)]) else { return };
    if attach(&[&running.pid(), "--for", "300ms", "--no-report"]).is_none() {
        return;
    }
    running.next();
    running.ends_well();
}

#[test]
fn a_program_is_read_from_its_own_mounts() {
    let (Some(program), Some(other)) =
        (programs::program("attach/other.c"), programs::program("attach/alone.c"))
    else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    // Older than the process, as what lies outside a container mostly is.
    let place = folder.path().join("program");
    std::fs::copy(other, &place).expect("copied");
    let is_old = || {
        let written = std::fs::metadata(&place).and_then(|found| found.modified());
        written.expect("a time").elapsed().is_ok_and(|age| age.as_secs() > 3)
    };
    super::until("the file is older than the process", is_old);
    let script = "mount --bind \"$0\" \"$1\" && exec \"$1\" leaderless";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).args([&program, &place]);
    let apart = Command::new("unshare").args(["--mount", "true"]).output();
    if !apart.is_ok_and(|output| output.status.success()) {
        return eprintln!("skipped: no other mount namespace");
    }
    let running = Running::start(&mut command);
    let pid = running.pid();
    super::until("both wait", || run(&["dump", &pid]).status == 3);
    let outcome = run(&["dump", &pid]);
    assert!(outcome.stdout.contains("crosses() at other.c"), "{outcome:?}");
}

#[test]
fn a_process_without_its_first_thread_is_seen_and_attached_to() {
    let Some(running) = start(&["leaderless"]) else { return };
    let pid = running.pid();
    let is_ended = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it is there");
        status.contains("State:\tZ")
    };
    super::until("its first thread ends", is_ended);
    super::until("both wait", || run(&["dump", &pid]).status == 3);
    let outcome = run(&["dump", &pid]);
    assert!(outcome.stdout.contains("crosses() at other.c"), "{outcome:?}");
    if attach(&[&pid, "--for", "10ms", "--no-report"]).is_none() {
        return;
    }
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten();
    for thread in threads {
        let maps = std::fs::read_to_string(thread.path().join("maps")).unwrap_or_default();
        assert!(!maps.contains("lockstead"), "{maps}");
    }
}

//! Runs the command that the user gave for a hang.

use super::watch::Hang;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long the command may take: a debugger reads the symbols of a large program in that time.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Runs `command` with the shell and waits for it, for at most `limit`; then it is ended, with all
/// that it has started in its process group. Its output goes to standard error, for standard output
/// is the program's. Returns what is to be said of its end.
pub(crate) fn run(command: &str, program: u32, hang: &Hang, limit: Duration) -> Option<String> {
    match shell(command, program, hang, limit) {
        Ok(None) => None,
        Ok(Some(end)) => Some(format!("lockstead: the command of --on-hang {end}")),
        Err(error) => Some(format!("lockstead: the command of --on-hang did not start: {error}")),
    }
}

fn shell(command: &str, program: u32, hang: &Hang, limit: Duration) -> io::Result<Option<String>> {
    let pids: Vec<String> = hang.pids.iter().map(u32::to_string).collect();
    let output = io::stderr().as_fd().try_clone_to_owned()?;
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .env("LOCKSTEAD_PID", program.to_string())
        .env("LOCKSTEAD_PIDS", pids.join(" "))
        .env("LOCKSTEAD_HUNG_SECONDS", hang.since.elapsed().as_secs().to_string())
        .stdin(Stdio::null())
        .stdout(output)
        .process_group(0)
        .spawn()?;
    // SAFETY: the call takes and returns numbers only, and touches no memory of ours.
    let handle = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) };
    let ended = match i32::try_from(handle) {
        Ok(handle @ 0..) => {
            // SAFETY: this function has just opened the descriptor, so nobody else owns it.
            readable(&unsafe { OwnedFd::from_raw_fd(handle) }, limit)
        }
        // Without a handle there is no limit to keep.
        _ => true,
    };
    if !ended {
        let group = libc::pid_t::try_from(child.id()).unwrap_or(libc::pid_t::MAX);
        // SAFETY: the call takes numbers only; nobody has waited for the child, so that its number,
        // which is its group's, is its own.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
    let status = child.wait()?;
    Ok(match (ended, status.success()) {
        (true, true) => None,
        (true, false) => Some(format!("ended with {status}")),
        (false, _) => Some(format!("was ended after {} s", limit.as_secs())),
    })
}

fn readable(handle: &OwnedFd, limit: Duration) -> bool {
    let mut wanted = libc::pollfd { fd: handle.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let limit = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: the kernel reads and writes one entry, which this frame borrows exclusively.
    unsafe { libc::poll(&mut wanted, 1, limit) > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn hang() -> Hang {
        Hang { pids: vec![7, 9], threads: 3, since: Instant::now() }
    }

    #[test]
    fn the_command_finds_the_processes_in_its_environment() {
        let test = r#"test "$LOCKSTEAD_PID" = 7 && test "$LOCKSTEAD_PIDS" = "7 9" \
                      && test "$LOCKSTEAD_HUNG_SECONDS" -ge 0"#;
        assert_eq!(run(test, 7, &hang(), LIMIT), None);
    }

    #[test]
    fn a_command_that_fails_or_does_not_end_is_told_of() {
        let failed = run("exit 5", 7, &hang(), LIMIT).expect("it failed");
        assert!(failed.contains("exit status: 5"), "{failed}");
        // It would not end by itself, nor would what it starts.
        let late = run("sleep 1000 & sleep 1000", 7, &hang(), Duration::from_millis(1));
        assert!(late.expect("it was ended").contains("was ended after"));
    }
}

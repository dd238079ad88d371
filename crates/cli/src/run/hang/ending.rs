//! Ends the processes of a run that hangs.
//!
//! # Protocol
//! 1. The picture is printed; [`Ending::told`] says so. Where nobody reads it, the processes are
//!    ended all the same after a while.
//! 2. Each process gets SIGABRT, which leaves a core where that is enabled, and on which a program
//!    may say its own.
//! 3. Who is there after [`GRACE`] gets SIGKILL.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long a process has between SIGABRT and SIGKILL.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
/// How long the picture may take.
const PRINTING: Duration = Duration::from_secs(30);
/// How often to look whether something is due.
const LOOK: Duration = Duration::from_millis(50);

/// The end of the processes of a run.
pub(crate) struct Ending {
    processes: Vec<OwnedFd>,
    /// The picture has been printed.
    told: Arc<AtomicBool>,
    /// The time at which the picture is waited for no longer.
    printed: Instant,
    /// The time at which SIGKILL is due, once SIGABRT was sent.
    kill: Option<Instant>,
    next: Option<Instant>,
}

impl Ending {
    /// Prepares the end of these processes.
    pub(crate) fn new(pids: &[u32], told: Arc<AtomicBool>, now: Instant) -> Self {
        // By descriptor: a number may be another's by then.
        let open = |&pid: &u32| {
            // SAFETY: the call takes and returns numbers only, and touches no memory of ours.
            let handle = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
            let handle = i32::try_from(handle).ok().filter(|&handle| handle >= 0)?;
            // SAFETY: this function has just opened the descriptor, so nobody else owns it.
            Some(unsafe { OwnedFd::from_raw_fd(handle) })
        };
        Ending {
            processes: pids.iter().filter_map(open).collect(),
            told,
            printed: now + PRINTING,
            kill: None,
            next: Some(now),
        }
    }

    /// Returns when to come again.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Does what is due.
    pub(crate) fn step(&mut self, now: Instant) {
        if self.next.is_none_or(|next| now < next) {
            return;
        }
        self.next = Some(now + LOOK);
        match self.kill {
            None if self.told.load(Relaxed) || now >= self.printed => {
                self.signal(libc::SIGABRT);
                self.kill = Some(now + GRACE);
            }
            Some(kill) if now >= kill => {
                self.signal(libc::SIGKILL);
                self.next = None;
            }
            _ => {}
        }
    }

    fn signal(&self, signal: libc::c_int) {
        for process in &self.processes {
            // SAFETY: the call takes numbers; null asks for the usual information.
            unsafe {
                libc::syscall(
                    libc::SYS_pidfd_send_signal,
                    process.as_raw_fd(),
                    signal,
                    std::ptr::null::<libc::siginfo_t>(),
                    0,
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    /// Starts a shell that waits on, and says when it is ready.
    fn waits(prepare: &str) -> std::process::Child {
        let mut child = Command::new("sh")
            .args([
                "-c",
                &format!("{prepare}; echo; while :; do read -r x || exec sleep 1000; done"),
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut line = [0];
        child.stdout.as_mut().expect("piped").read_exact(&mut line).expect("a line");
        child
    }

    #[test]
    fn the_picture_comes_first_then_abort_then_kill() {
        let (mut plain, mut deaf) = (waits(":"), waits("trap '' ABRT"));
        let (told, now) = (Arc::new(AtomicBool::new(false)), Instant::now());
        let mut ending = Ending::new(&[plain.id(), deaf.id()], told.clone(), now);
        ending.step(now);
        assert_eq!(plain.try_wait().expect("a child"), None, "nothing was printed yet");
        told.store(true, Relaxed);
        ending.step(now + LOOK);
        assert_eq!(plain.wait().expect("a child").signal(), Some(libc::SIGABRT));
        ending.step(now + GRACE);
        assert!(ending.next().is_some(), "there is time left");
        ending.step(now + GRACE + 2 * LOOK);
        assert_eq!(deaf.wait().expect("a child").signal(), Some(libc::SIGKILL));
        assert_eq!(ending.next(), None);
    }

    #[test]
    fn a_picture_that_nobody_reads_is_not_waited_for_for_ever() {
        let mut plain = waits(":");
        let now = Instant::now();
        let mut ending = Ending::new(&[plain.id()], Arc::default(), now);
        ending.step(now + PRINTING);
        assert_eq!(plain.wait().expect("a child").signal(), Some(libc::SIGABRT));
    }
}

//! Busy processes beside a measurement: the load of a machine that has other work.
//!
//! # Role
//! A hog wants its processor all the time and touches nothing that others do. It is a
//! copy of this process that never comes back from a loop: what it does needs no memory
//! and no lock.
//!
//! # Invariants
//! - A hog does not outlive whoever started it: it is killed when [`Hogs`] is dropped,
//!   and by the kernel when the thread that made it ends in whatever way. (A thread that
//!   ends before its hog has run leaves it to the drop; a process that does, does not.)

use crate::Error;
use std::io;
use std::time::Duration;

/// The largest number of hogs.
pub const MAX_HOGS: usize = 256;

/// Processes that do nothing, all the time. Killed and waited for when dropped.
pub(crate) struct Hogs(Vec<libc::pid_t>);

impl Hogs {
    /// Starts so many busy processes.
    ///
    /// # Errors
    /// [`Error::Process`] if the machine does not allow that many processes; none is left.
    pub(crate) fn start(number: usize) -> Result<Self, Error> {
        let mut hogs = Self(Vec::new());
        // SAFETY: by CALL-NUMBERS the call takes numbers and touches no memory of ours.
        let parent = unsafe { libc::getpid() };
        for _ in 0..number {
            // SAFETY: the child makes system calls and loops; it uses nothing that another
            // thread of the parent may have been changing.
            let pid = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
            match pid {
                0 => be_busy(parent),
                1.. => hogs.0.push(pid as libc::pid_t),
                _ => {
                    let source = io::Error::last_os_error();
                    return Err(Error::Process { what: "cannot start a busy process", source });
                }
            }
        }
        Ok(hogs)
    }

    /// Returns the processor time that they have used.
    pub(crate) fn cpu(&self) -> Duration {
        self.0.iter().map(|&pid| cpu_of(pid)).sum()
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for &pid in &self.0 {
            // SAFETY: children that have not been waited for: the numbers are theirs. The
            // status is not looked at.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
                while libc::waitpid(pid, std::ptr::null_mut(), 0) == -1
                    && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
                {
                }
            }
        }
    }
}

/// Computes until it is killed: the life of a hog.
fn be_busy(parent: libc::pid_t) -> ! {
    // SAFETY: system calls on constants. A group of its own: SIGINT at the terminal is the
    // parent's to handle; and no handler of the parent's shall run here. The parent may
    // have ended before it was asked to take the child along.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_NAME, c"lockstead-busy".as_ptr());
        libc::setpgid(0, 0);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::signal(signal, libc::SIG_DFL);
        }
        if libc::getppid() != parent {
            libc::_exit(0);
        }
    }
    loop {
        std::hint::spin_loop();
    }
}

/// Returns the processor time of a child that has not been waited for.
fn cpu_of(pid: libc::pid_t) -> Duration {
    let mut clock = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: by CALL-LOCALS the pointers are to live local variables, which the call fills in.
    let code = unsafe {
        match libc::clock_getcpuclockid(pid, &raw mut clock) {
            0 => libc::clock_gettime(clock, &raw mut time),
            code => code,
        }
    };
    if code == 0 { Duration::new(time.tv_sec as u64, time.tv_nsec as u32) } else { Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn hogs_use_processor_time_and_end_with_their_owner() {
        let hogs = Hogs::start(2).expect("two processes");
        let start = Instant::now();
        while hogs.cpu() < Duration::from_millis(5) {
            assert!(start.elapsed() < Duration::from_secs(30), "no processor time in 30 s");
            std::thread::sleep(Duration::from_millis(1));
        }
        let pids = hogs.0.clone();
        drop(hogs);
        for pid in pids {
            // SAFETY: by CALL-NUMBERS: signal 0 asks whether the process exists, and does nothing
            // to it.
            let alive = unsafe { libc::kill(pid, 0) } == 0;
            assert!(!alive, "process {pid} is left");
        }
    }

    #[test]
    fn no_hogs_use_nothing() {
        assert_eq!(Hogs::start(0).expect("nothing to start").cpu(), Duration::ZERO);
    }

    #[test]
    fn a_hog_ends_with_the_thread_that_started_it() {
        let pid = std::thread::spawn(|| {
            let hogs = std::mem::ManuallyDrop::new(Hogs::start(1).expect("a process"));
            // Until it is in its loop.
            let start = Instant::now();
            while hogs.cpu() < Duration::from_millis(5) {
                assert!(start.elapsed() < Duration::from_secs(30), "no processor time in 30 s");
                std::thread::sleep(Duration::from_millis(1));
            }
            hogs.0[0]
        })
        .join()
        .expect("the thread ends");
        let start = Instant::now();
        // SAFETY: a child of this process; the status is not looked at.
        while unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) } == 0 {
            assert!(start.elapsed() < Duration::from_secs(30), "the hog goes on");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

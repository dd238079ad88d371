//! Worker processes: this same program, started anew, told what to do by its
//! arguments, killed when the parent has seen enough.
//!
//! Not `fork` alone: the parent has threads, and a child of one would begin
//! with locks that nobody holds any more. Not `std::process::Command`, because
//! a process that is the first of a new namespace must be *created* there.
//!
//! # Invariants
//! - **WORKER-CHILD** The number of a [`WorkerProcess`] that is not `reaped` is that of a child
//!   that nobody has waited for, so that the kernel gives it to no other process.

use crate::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The descriptors of a worker's files: this, and those after it.
const FIRST_FILE: RawFd = 3;
/// Files that a worker can get.
const MOST_FILES: usize = 4;

/// The first argument of a worker. Not an option for users: without the files
/// that the parent hands on a worker can do nothing.
pub(in crate::shared) const MARKER: &CStr = c"--lockstead-bench-worker";
/// The job to end at once: what workers of a storm become that call `exec`.
pub(in crate::shared) const END: &CStr = c"end";

/// What a worker process is to do, handed over as JSON.
pub(crate) trait WorkerJob: Serialize + DeserializeOwned {
    /// The second argument of a worker: says of which type the third one is.
    const NAME: &'static str;

    /// Does it, in the worker.
    fn work(self, files: HandedFiles) -> Result<(), Error>;
}

/// The descriptors that the parent has handed on, in its order.
pub(crate) struct HandedFiles {
    next: i32,
}

impl HandedFiles {
    /// Returns the files of a worker that has just begun.
    pub(super) fn handed_on() -> Self {
        HandedFiles { next: FIRST_FILE }
    }

    pub(super) fn next(&mut self) -> OwnedFd {
        let file = self.next;
        self.next += 1;
        // SAFETY: the parent has put an open file there. `next` counts up, so each is given out
        // once, and nothing else in this process has opened or closed anything before.
        unsafe { OwnedFd::from_raw_fd(file) }
    }
}

/// The namespace of process ids in which a worker lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkerPlace {
    /// It lives in the namespace of its parent.
    Here,
    /// It lives in a namespace of its own, where its number is 1.
    Own(Namespaces),
}

/// How this user makes namespaces of process ids.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Namespaces {
    flags: libc::c_int,
}

impl Namespaces {
    /// Tries how namespaces can be made here.
    ///
    /// # Errors
    /// [`Error::Namespaces`] if neither privilege nor user namespaces allow it.
    pub fn find() -> Result<Self, Error> {
        let mut refused = io::Error::from_raw_os_error(libc::EPERM);
        for flags in [libc::CLONE_NEWPID, libc::CLONE_NEWPID | libc::CLONE_NEWUSER] {
            // SAFETY: the child, a copy of this thread, makes one system call.
            match unsafe { clone(flags) } {
                // SAFETY: by CALL-NUMBERS the call ends this process and touches no memory.
                Ok(0) => unsafe { libc::_exit(0) },
                Ok(pid) => {
                    drop(WorkerProcess { pid, reaped: false });
                    return Ok(Namespaces { flags });
                }
                Err(error) => refused = error,
            }
        }
        Err(Error::Namespaces { source: refused })
    }

    /// Has the next child of this process, which has one thread, be the first of a new namespace.
    pub(crate) fn enter(self) -> io::Result<()> {
        // SAFETY: by CALL-NUMBERS the call takes numbers and touches no memory of ours.
        match unsafe { libc::unshare(self.flags) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// A process that works for this one. Killed and waited for when dropped.
#[derive(Debug)]
pub(crate) struct WorkerProcess {
    pid: libc::pid_t,
    reaped: bool,
}

impl WorkerProcess {
    /// Starts one, with these files.
    pub(crate) fn start<J: WorkerJob>(
        job: &J,
        files: &[BorrowedFd<'_>],
        place: WorkerPlace,
    ) -> Result<WorkerProcess, Error> {
        assert!(files.len() <= MOST_FILES, "a worker has room for {MOST_FILES} files");
        let json = serde_json::to_string(job).expect("plain fields");
        let text = |text: &str| CString::new(text).expect("names and JSON have no zero bytes");
        let arguments = [c"lockstead".to_owned(), MARKER.to_owned(), text(J::NAME), text(&json)];
        let pointers = |strings: &[CString]| -> Vec<_> {
            strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let (argv, envp) = (pointers(&arguments), pointers(environment()));
        let files: Vec<RawFd> = files.iter().map(AsRawFd::as_raw_fd).collect();
        let flags = match place {
            WorkerPlace::Here => 0,
            WorkerPlace::Own(namespaces) => namespaces.flags,
        };
        // SAFETY: the child makes system calls on memory that exists, and ends or
        // becomes another program.
        match unsafe { clone(flags) } {
            // SAFETY: this is the child; the lists end as they should.
            Ok(0) => unsafe { become_worker(&files, &argv, &envp) },
            Ok(pid) => Ok(WorkerProcess { pid, reaped: false }),
            Err(source) => Err(Error::Process { what: "cannot start a worker process", source }),
        }
    }

    /// Makes one of a copy of this process, in the namespaces of its parent: much faster than
    /// one that begins as a new program. It ends when `work` has returned.
    ///
    /// The calling thread is the only one that the child has. So no other thread may keep a
    /// lock that `work` needs; those of the C library itself are seen to by `fork`.
    pub(crate) fn fork(work: impl FnOnce() -> Result<(), Error>) -> Result<WorkerProcess, Error> {
        // SAFETY: the child goes on with a copy of this memory, of which it uses what other
        // threads do not lock, as said above; and ends here.
        match unsafe { libc::fork() } {
            0 => {
                live_as_worker();
                let status = match work() {
                    Ok(()) => 0,
                    Err(error) => {
                        eprintln!("lockstead: a worker process: {error}");
                        1
                    }
                };
                // SAFETY: the child ends, without what its parent would do at its own end.
                unsafe { libc::_exit(status) }
            }
            -1 => {
                let source = io::Error::last_os_error();
                Err(Error::Process { what: "cannot start a worker process", source })
            }
            pid => Ok(WorkerProcess { pid, reaped: false }),
        }
    }

    /// Sends SIGKILL, and does not wait.
    pub(crate) fn kill(&self) {
        if !self.reaped {
            // SAFETY: a child that has not been waited for: the number is its own.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
        }
    }

    /// Stops it, or has it go on.
    pub(crate) fn set_stopped(&self, stopped: bool) {
        if !self.reaped {
            // SAFETY: by WORKER-CHILD the number is that of a child that nobody has waited for.
            unsafe { libc::kill(self.pid, if stopped { libc::SIGSTOP } else { libc::SIGCONT }) };
        }
    }

    /// Sends a signal with a number.
    pub(crate) fn signal_with(&self, signal: libc::c_int, number: usize) {
        let value = libc::sigval { sival_ptr: std::ptr::without_provenance_mut(number) };
        if !self.reaped {
            // SAFETY: by WORKER-CHILD the number is that of a child that nobody has waited for.
            unsafe { libc::sigqueue(self.pid, signal, value) };
        }
    }

    /// Sends SIGKILL, and takes the private memory away. Returns false if it has ended by then.
    pub(crate) fn kill_and_release(&self) -> io::Result<bool> {
        // SAFETY: a child that has not been waited for; numbers.
        let process = unsafe { libc::syscall(libc::SYS_pidfd_open, self.pid, 0) };
        if process < 0 {
            let error = io::Error::last_os_error();
            self.kill();
            return Err(error);
        }
        // SAFETY: a descriptor that was just made, and is nobody else's.
        let process = unsafe { OwnedFd::from_raw_fd(process as RawFd) };
        self.kill();
        // SAFETY: numbers. The memory is that of a process that is dying.
        let code = unsafe { libc::syscall(libc::SYS_process_mrelease, process.as_raw_fd(), 0) };
        match io::Error::last_os_error() {
            _ if code == 0 => Ok(true),
            error if error.raw_os_error() == Some(libc::ESRCH) => Ok(false),
            error => Err(error),
        }
    }

    /// Lists its threads, as this process numbers them.
    pub(crate) fn threads(&self) -> Vec<libc::pid_t> {
        let folder = std::fs::read_dir(format!("/proc/{}/task", self.pid));
        let names = folder.into_iter().flatten().flatten().map(|entry| entry.file_name());
        names.filter_map(|name| name.to_str()?.parse().ok()).collect()
    }

    pub(crate) fn pid(&self) -> libc::pid_t {
        self.pid
    }

    /// Returns its status if it has stopped or ended since the last time, where it is traced.
    pub(crate) fn changed(&mut self) -> Option<libc::c_int> {
        if self.reaped {
            return None;
        }
        let mut status = 0;
        // SAFETY: a child that has not been waited for to its end; room for its status.
        let done = unsafe { libc::waitpid(self.pid, &raw mut status, libc::WNOHANG) };
        self.reaped = done == self.pid && !libc::WIFSTOPPED(status);
        (done == self.pid).then_some(status)
    }

    /// Returns its status if it has ended.
    pub(crate) fn ended(&mut self) -> Option<libc::c_int> {
        self.wait(libc::WNOHANG)
    }

    /// Waits for its end, and returns its status.
    pub(crate) fn reap(&mut self) -> libc::c_int {
        self.wait(0).unwrap_or(0)
    }

    fn wait(&mut self, options: libc::c_int) -> Option<libc::c_int> {
        if self.reaped {
            return None;
        }
        let mut status = 0;
        loop {
            // SAFETY: by CALL-LOCALS the pointers are to live local variables, which the call
            // fills in.
            match unsafe { libc::waitpid(self.pid, &raw mut status, options) } {
                0 => return None,
                -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                _ => {
                    self.reaped = true;
                    return Some(status);
                }
            }
        }
    }

    /// Tells whether its first thread sleeps.
    pub(crate) fn sleeps(&self) -> bool {
        WorkerProcess::process_sleeps(self.pid)
    }

    /// Tells whether the first thread of this process sleeps.
    pub(crate) fn process_sleeps(pid: libc::pid_t) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name, in brackets, may contain anything.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
    }

    /// Returns the processor time that it has used; nothing once it has ended.
    pub(crate) fn cpu(&self) -> Duration {
        let mut clock = 0;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: by CALL-LOCALS the pointers are to live local variables, which the call fills
        // in.
        let code = unsafe {
            match libc::clock_getcpuclockid(self.pid, &raw mut clock) {
                0 => libc::clock_gettime(clock, &raw mut time),
                code => code,
            }
        };
        if code == 0 {
            Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
        } else {
            Duration::ZERO
        }
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        self.kill();
        self.reap();
    }
}

/// Does this in a child, and ends it; an error if it is false, or there can be no child.
/// `what` makes system calls, and allocates nothing.
pub(super) fn try_in_child(what: impl FnOnce() -> bool) -> io::Result<()> {
    // SAFETY: the child, a copy of this thread, makes system calls and ends.
    match unsafe { clone(0) }? {
        // SAFETY: by CALL-NUMBERS the call ends this process and touches no memory.
        0 => unsafe { libc::_exit(i32::from(!what())) },
        pid => match (WorkerProcess { pid, reaped: false }).reap() {
            0 => Ok(()),
            status => Err(io::Error::other(ending(status))),
        },
    }
}

/// Starts a child that waits to be killed.
pub(super) fn wait_for_child() -> io::Result<WorkerProcess> {
    // SAFETY: the child, a copy of this thread, makes one system call again and again.
    match unsafe { clone(0) }? {
        0 => loop {
            // SAFETY: by CALL-NUMBERS the call waits for a signal and touches no memory.
            unsafe { libc::pause() };
        },
        pid => Ok(WorkerProcess { pid, reaped: false }),
    }
}

/// Starts a child that outlives this process, and returns its number. It ends by itself within a
/// minute, should nobody kill it.
pub(super) fn leave_child() -> io::Result<libc::pid_t> {
    // SAFETY: the child, a copy of this thread, makes system calls again and again.
    match unsafe { clone(0) }? {
        0 => loop {
            // SAFETY: waits for a signal, of which one comes in a minute and ends it.
            unsafe {
                libc::alarm(60);
                libc::pause();
            }
        },
        pid => Ok(pid),
    }
}

/// Returns how a process ended, in words.
pub(crate) fn ending(status: libc::c_int) -> String {
    if libc::WIFSIGNALED(status) {
        format!("signal {}", libc::WTERMSIG(status))
    } else {
        format!("status {}", libc::WEXITSTATUS(status))
    }
}

/// Waits until `done`, looking often, at most `patience`.
pub(crate) fn until(patience: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + patience;
    loop {
        if done() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Does what `fork` does, and no more: the C library does not learn of it.
///
/// # Safety
/// The child may make system calls, and nothing else, until it executes a
/// program or ends.
unsafe fn clone(flags: libc::c_int) -> io::Result<libc::pid_t> {
    // SAFETY: the child goes on with a copy of this memory and this stack.
    let pid = unsafe {
        libc::syscall(libc::SYS_clone, (flags | libc::SIGCHLD) as libc::c_ulong, 0, 0, 0, 0)
    };
    if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid as libc::pid_t) }
}

/// Becomes a worker with these files open: executes the program of this process anew.
///
/// # Safety
/// In a fresh child; both lists of strings end with a null pointer.
unsafe fn become_worker(
    files: &[RawFd],
    argv: &[*const libc::c_char],
    envp: &[*const libc::c_char],
) -> ! {
    // SAFETY: system calls. The copies far up are made first, so that none of the
    // files is overwritten before it has its place.
    unsafe {
        live_as_worker();
        let mut copies = [-1; MOST_FILES];
        for (copy, &file) in copies.iter_mut().zip(files) {
            *copy = libc::fcntl(file, libc::F_DUPFD, FIRST_FILE + MOST_FILES as RawFd);
        }
        for (place, &copy) in (FIRST_FILE..).zip(&copies[..files.len()]) {
            libc::dup2(copy, place);
            libc::close(copy);
        }
        libc::execve(c"/proc/self/exe".as_ptr(), argv.as_ptr(), envp.as_ptr());
        libc::_exit(127)
    }
}

/// Does what every worker begins with.
fn live_as_worker() {
    // SAFETY: by CALL-NUMBERS the call takes numbers and touches no memory of ours.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // SIGINT at the terminal is the parent's to handle.
        libc::setpgid(0, 0);
    }
}

/// Returns the environment, made once: starting a worker again copies nothing.
fn environment() -> &'static [CString] {
    static ENVIRONMENT: OnceLock<Vec<CString>> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        std::env::vars_os()
            .filter_map(|(name, value)| {
                CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok()
            })
            .collect()
    })
}

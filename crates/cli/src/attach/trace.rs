//! Threads of another process, held by `ptrace`.
//!
//! # Role
//! A thread that is held stands still; nothing was sent to it. It is let go when [`Held`] goes. All of
//! it is done by one thread of this command, and with the end of that the kernel lets go of
//! everything: no program stands still because the command was killed.

use lockstead_inspect::arch::{self, HeldRegisters};
use lockstead_inspect::proc::status::StatusFile;
use std::io;
use std::ptr;
use std::time::{Duration, Instant};

/// The time between two looks whether a thread stands still.
const PAUSE: Duration = Duration::from_micros(50);
/// How long a drop waits for its thread to stand still.
const LAST: Duration = Duration::from_millis(50);
const GET_SIGMASK: libc::c_uint = 0x420a;
const SET_SIGMASK: libc::c_uint = 0x420b;
const GET_SYSCALL_INFO: libc::c_uint = 0x420e;
const GET_FILTER: libc::c_uint = 0x420c;
const GET_SECTIONS: libc::c_uint = 0x420f;
/// The general registers, in the kernel's word for all processors (`NT_PRSTATUS`).
const GENERAL: libc::c_int = 1;
/// The bytes of a set of signals.
const SIGNALS: usize = 8;

/// How a thread came to stand still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It was asked to.
    Asked,
    /// The process is stopped by a signal such as SIGSTOP.
    Job,
    /// It is about to get this signal.
    Signal(libc::c_int),
    /// It begins a system call or comes back from one.
    Call,
}

/// The side of a system call on which a thread stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallSide {
    /// It is about to make the call of this number.
    Before(u64),
    /// It has made one, which returned this.
    After(i64),
}

/// A thread that stands still.
#[derive(Debug)]
pub(super) struct Held {
    number: libc::pid_t,
    /// What is delivered when it goes on.
    signal: libc::c_int,
    stands: bool,
    has_ended: bool,
}

impl Drop for Held {
    fn drop(&mut self) {
        // One that runs is not let go: it would stay this thread's, and nobody could hold it again.
        if !self.stands && !self.has_ended && self.interrupt().is_ok() {
            let _ = self.wait(Instant::now() + LAST);
        }
        if self.stands {
            let _ = self.request(libc::PTRACE_DETACH, self.signal);
        }
    }
}

/// Asks a thread to stand still; [`stands`](Asked::stands) waits for it.
#[derive(Debug)]
pub(super) struct Asked(Held);

impl Asked {
    /// Asks the thread `tid`.
    ///
    /// # Errors
    /// `ESRCH`: it has ended. Else another process traces it, or it is not permitted.
    pub(super) fn new(tid: u32) -> io::Result<Asked> {
        let number = libc::pid_t::try_from(tid).map_err(|_| io::ErrorKind::InvalidInput)?;
        let held = Held { number, signal: 0, stands: false, has_ended: false };
        let options = libc::PTRACE_O_TRACESYSGOOD;
        let asked = held.request(libc::PTRACE_SEIZE, options);
        match asked.and_then(|()| held.request(libc::PTRACE_INTERRUPT, 0)) {
            Ok(()) => Ok(Asked(held)),
            // The kernel says that it is not permitted to trace what is ending.
            Err(_) if has_ended(tid) => Err(io::Error::from_raw_os_error(libc::ESRCH)),
            Err(error) => Err(error),
        }
    }

    /// Waits until it stands still, at most until `deadline`. `None` if it has ended.
    ///
    /// # Errors
    /// The time is over: one that does not stand still soon goes on when the calling thread ends.
    pub(super) fn stands(self, deadline: Instant) -> io::Result<Option<(Held, Stop)>> {
        let mut held = self.0;
        match held.wait(deadline)? {
            Some(stop) => Ok(Some((held, stop))),
            None => Ok(None),
        }
    }
}

/// Tells whether a thread has ended: the first one's number stays as long as there are others, and
/// that of a process until somebody has asked for its status.
fn has_ended(tid: u32) -> bool {
    let status = StatusFile::read(&format!("/proc/{tid}/status"));
    status.map_or(true, |status| {
        status.text("State").is_some_and(|state| state.starts_with(['Z', 'X']))
    })
}

impl Held {
    /// Waits until the thread stands still. `None` if it has ended.
    fn wait(&mut self, deadline: Instant) -> io::Result<Option<Stop>> {
        self.stands = false;
        loop {
            let mut status = 0;
            // SAFETY: asks about a thread of which this one is the tracer, into a number of this
            // frame.
            let found =
                unsafe { libc::waitpid(self.number, &mut status, libc::__WALL | libc::WNOHANG) };
            if found == self.number {
                if !libc::WIFSTOPPED(status) {
                    self.has_ended = true;
                    return Ok(None);
                }
                self.stands = true;
                let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
                self.signal = 0;
                return Ok(Some(match (event, signal) {
                    (libc::PTRACE_EVENT_STOP, libc::SIGTRAP) => Stop::Asked,
                    (libc::PTRACE_EVENT_STOP, _) => Stop::Job,
                    (0, signal) if signal == libc::SIGTRAP | 0x80 => Stop::Call,
                    (0, signal) => {
                        self.signal = signal;
                        Stop::Signal(signal)
                    }
                    _ => Stop::Job,
                }));
            }
            if found == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD) {
                self.has_ended = true;
                return Ok(None);
            }
            if Instant::now() >= deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Lets it go on to the next system call's beginning or end, and waits for that. `None` if it has
    /// ended.
    ///
    /// # Errors
    /// The time is over, or the system says so.
    pub(super) fn go_to_call(&mut self, deadline: Instant) -> io::Result<Option<Stop>> {
        let signal = std::mem::take(&mut self.signal);
        self.request(libc::PTRACE_SYSCALL, signal)?;
        self.wait(deadline)
    }

    /// Lets it go on to the next side of a system call, and says which; `None` if it has come to another
    /// stop before.
    ///
    /// # Errors
    /// It has got a signal, has ended, the time is over, or the system says so.
    pub(super) fn go(&mut self, deadline: Instant) -> io::Result<Option<CallSide>> {
        match self.go_to_call(deadline)? {
            Some(Stop::Call) => self.side(),
            Some(Stop::Signal(signal)) => Err(io::Error::other(format!(
                "the thread got signal {signal} in a call that lockstead had it make"
            ))),
            // Somebody stops the process, or asked for this stop before.
            Some(Stop::Asked | Stop::Job) => Ok(None),
            None => Err(io::Error::other("the thread has ended")),
        }
    }

    /// Gives it these registers, and has it stand still anew before it comes back to its program, where
    /// the kernel decides whether a system call that was interrupted begins again. `None` if it has
    /// ended.
    ///
    /// # Errors
    /// As [`Self::go_to_call`].
    pub(super) fn stand_anew(
        &mut self,
        registers: &HeldRegisters,
        deadline: Instant,
    ) -> io::Result<Option<Stop>> {
        self.interrupt()?;
        self.set_registers(registers)?;
        self.go_on(deadline)
    }

    /// Asks it to stand still when it goes on.
    pub(super) fn interrupt(&self) -> io::Result<()> {
        self.request(libc::PTRACE_INTERRUPT, 0)
    }

    /// Lets it go on to its next stop, which is at no system call. `None` if it has ended.
    ///
    /// # Errors
    /// As [`Self::go_to_call`].
    pub(super) fn go_on(&mut self, deadline: Instant) -> io::Result<Option<Stop>> {
        let signal = std::mem::take(&mut self.signal);
        self.request(libc::PTRACE_CONT, signal)?;
        self.wait(deadline)
    }

    /// Returns its number.
    pub(super) fn number(&self) -> libc::pid_t {
        self.number
    }

    /// Returns its registers.
    pub(super) fn registers(&self) -> io::Result<HeldRegisters> {
        arch::read_registers(self.number)
    }

    /// Gives it other registers.
    pub(super) fn set_registers(&self, registers: &HeldRegisters) -> io::Result<()> {
        let mut part = libc::iovec {
            iov_base: ptr::from_ref(registers).cast_mut().cast(),
            iov_len: size_of::<HeldRegisters>(),
        };
        let kind = ptr::without_provenance_mut::<libc::c_void>(GENERAL as usize);
        // SAFETY: the kernel reads the structure, which the caller borrows to this function.
        checked(unsafe {
            libc::ptrace(libc::PTRACE_SETREGSET, self.number, kind, ptr::from_mut(&mut part))
        })
    }

    /// Returns where its own variables are; these are its registers.
    pub(super) fn thread_pointer(&self, registers: &HeldRegisters) -> io::Result<u64> {
        arch::thread_pointer(self.number, registers)
    }

    /// Returns the signals that it has blocked.
    pub(super) fn blocked(&self) -> io::Result<u64> {
        let mut set = 0_u64;
        let size = ptr::without_provenance_mut::<libc::c_void>(SIGNALS);
        // SAFETY: the kernel writes eight bytes, to a number of this frame.
        checked(unsafe { libc::ptrace(GET_SIGMASK, self.number, size, ptr::from_mut(&mut set)) })?;
        Ok(set)
    }

    /// Has it block these signals.
    pub(super) fn block(&self, set: u64) -> io::Result<()> {
        let size = ptr::without_provenance_mut::<libc::c_void>(SIGNALS);
        // SAFETY: the kernel reads eight bytes of this frame.
        checked(unsafe { libc::ptrace(SET_SIGMASK, self.number, size, ptr::from_ref(&set)) })
    }

    /// Says on which side of a system call it stands; `None` if on neither.
    pub(super) fn side(&self) -> io::Result<Option<CallSide>> {
        /// `struct ptrace_syscall_info`, of which the first part is the same for all.
        #[repr(C)]
        struct Info {
            side: u8,
            padding: [u8; 3],
            machine: u32,
            pc: u64,
            sp: u64,
            first: u64,
            rest: [u64; 7],
        }
        let mut info =
            Info { side: 0, padding: [0; 3], machine: 0, pc: 0, sp: 0, first: 0, rest: [0; 7] };
        let size = ptr::without_provenance_mut::<libc::c_void>(size_of::<Info>());
        // SAFETY: the kernel writes at most so many bytes, to a structure of this frame.
        checked(unsafe {
            libc::ptrace(GET_SYSCALL_INFO, self.number, size, ptr::from_mut(&mut info))
        })?;
        Ok(match info.side {
            1 => Some(CallSide::Before(info.first)),
            2 => Some(CallSide::After(info.first.cast_signed())),
            _ => None,
        })
    }

    /// Returns where it says in which restartable section it is (`struct rseq`), 0 if it has not told the kernel
    /// of such a place.
    ///
    /// # Errors
    /// The kernel does not tell: it is older than 5.13, or was built without such sections.
    pub(super) fn sections(&self) -> io::Result<u64> {
        /// What the kernel fills in, `struct ptrace_rseq_configuration`.
        #[repr(C)]
        struct Configuration {
            place: u64,
            size: u32,
            signature: u32,
            rest: [u32; 2],
        }
        let mut told = Configuration { place: 0, size: 0, signature: 0, rest: [0; 2] };
        let size = ptr::without_provenance_mut::<libc::c_void>(size_of::<Configuration>());
        // SAFETY: the kernel writes at most so many bytes, to a structure of this frame.
        checked(unsafe {
            libc::ptrace(GET_SECTIONS, self.number, size, ptr::from_mut(&mut told))
        })?;
        Ok(told.place)
    }

    /// Returns the program of one of its filters of system calls; `None` if it has no more of them.
    ///
    /// # Errors
    /// The caller is not privileged, or the kernel was built without this.
    pub(super) fn filter(&self, index: usize) -> io::Result<Option<Vec<libc::sock_filter>>> {
        let index = ptr::without_provenance_mut::<libc::c_void>(index);
        // SAFETY: without a place to write to the kernel only says how long the program is.
        let length = unsafe {
            libc::ptrace(GET_FILTER, self.number, index, ptr::null_mut::<libc::c_void>())
        };
        if length == -1 {
            let error = io::Error::last_os_error();
            return if error.raw_os_error() == Some(libc::ENOENT) { Ok(None) } else { Err(error) };
        }
        let empty = libc::sock_filter { code: 0, jt: 0, jf: 0, k: 0 };
        let mut program = vec![empty; usize::try_from(length).unwrap_or(0)];
        // SAFETY: the kernel writes so many instructions: the thread stands still, so its filters are
        // those of before.
        checked(unsafe { libc::ptrace(GET_FILTER, self.number, index, program.as_mut_ptr()) })?;
        Ok(Some(program))
    }

    fn request(&self, what: libc::c_uint, number: libc::c_int) -> io::Result<()> {
        let data = ptr::without_provenance_mut::<libc::c_void>(number.unsigned_abs() as usize);
        // SAFETY: requests that take a number, or nothing, and touch no memory of ours.
        checked(unsafe { libc::ptrace(what, self.number, ptr::null_mut::<libc::c_void>(), data) })
    }
}

fn checked(answer: libc::c_long) -> io::Result<()> {
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Runs `work` in a thread of its own, so that nothing is held when it has come to an end, however.
///
/// # Errors
/// No thread can be had, or the work has panicked.
pub(super) fn apart<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> io::Result<R> {
    let thread = std::thread::Builder::new().spawn(|| {
        // Whoever stands still waits for this thread to be on a processor.
        // SAFETY: takes numbers; on Linux it is this thread's priority, and the worst that can happen
        // is that it stays as it is.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
        work()
    })?;
    thread.join().map_err(|_| io::Error::other("lockstead failed while it traced the process"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_ended_is_not_said_to_be_forbidden() {
        let mut child = std::process::Command::new("true").spawn().expect("a process");
        let tid = child.id();
        let end = Instant::now() + Duration::from_secs(60);
        while !has_ended(tid) {
            assert!(Instant::now() < end, "true does not end");
            std::thread::yield_now();
        }
        // Its number stays until its status has been asked for.
        for _ in 0..2 {
            let asked = Asked::new(tid).expect_err("it has ended");
            assert_eq!(asked.raw_os_error(), Some(libc::ESRCH));
            child.wait().expect("its status");
        }
    }

    #[test]
    fn one_that_did_not_stand_still_in_time_can_be_held_again() {
        /// A program that ends with the test, however that ends.
        struct Ending(std::process::Child);
        impl Drop for Ending {
            fn drop(&mut self) {
                let _ = self.0.kill().and_then(|()| self.0.wait());
            }
        }
        let program = std::process::Command::new("sleep").arg("1000").spawn();
        let program = Ending(program.expect("a program"));
        let bound = || Instant::now() + Duration::from_secs(30);
        match Asked::new(program.0.id()) {
            Ok(asked) => {
                let (mut held, _) = asked.stands(bound()).expect("in time").expect("it is there");
                let late = held.go_on(Instant::now()).expect_err("it sleeps on");
                assert_eq!(late.kind(), io::ErrorKind::TimedOut);
                drop(held);
                let asked = Asked::new(program.0.id()).expect("nobody holds it");
                let (_, stop) = asked.stands(bound()).expect("in time").expect("it is there");
                assert_eq!(stop, Stop::Asked);
            }
            Err(error) => println!("skipped: processes may not be traced here: {error}"),
        }
    }
}

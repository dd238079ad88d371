//! The registers and the stack of a thread that runs, and the registers of one that sleeps.
//!
//! # Role
//! Of a thread that sleeps the kernel tells the stack pointer; of one that runs
//! it tells nothing, and its stack changes while it is read. So it is held for
//! as long as it takes to copy registers and stack, some ten microseconds. Beside
//! `lockstead attach` this is the one place that stops anything: threads that run
//! for `lockstead run` alone, whose program cannot be somebody else's; threads that
//! sleep in a few calls that go on by themselves also for `lockstead dump`, where
//! their registers are needed to tell who holds a lock, and it is not forbidden.
//!
//! # What the thread notices
//! Nothing but the time. No signal is sent to it; one that arrives in the
//! meantime is delivered. A thread that has begun a system call since it was
//! seen running starts that call again; the few calls that do not start again
//! (`epoll_wait` and its like) return `EINTR`, as they do after `SIGSTOP` and
//! `SIGCONT`. It is therefore looked at once more right before.
//!
//! A sleep on a futex word without a limit begins anew, with the same arguments,
//! and finds out by itself if it was woken meanwhile. One with a limit would go on
//! as another system call, whose own number is not known wherever it is made
//! ([`task::doing`]); `nanosleep` does so too, but nobody waits for a sleeper's sleep.
//!
//! # Progress
//! A thread that cannot be held within a second is let go. Who holds it is a
//! thread of its own: with the end of that, the kernel lets go of everything.

use crate::arch::{self, HeldRegisters};
use crate::memory::{ProcessMemory, ReadableMemory, SavedMemory};
use crate::proc::futex::{FutexWait, FutexWaitKind};
use crate::proc::task::{self, SleepingCall, TaskDoing};
use crate::unwind::Registers;
use lockstead_ledger::hello::{Settings, VARIABLE};
use std::io;
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

/// How long it may take until the thread is held. It stops when it is next on a
/// processor, for which it may have to wait.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time between two looks whether it is held.
const PAUSE: Duration = Duration::from_micros(50);
/// Bytes of stack that are copied: some thousand ordinary frames.
const STACK: usize = 256 << 10;
/// A function that calls no other keeps its variables below the stack pointer.
const RED_ZONE: u64 = 128;

/// A thread at one moment at which it ran.
pub struct Still {
    /// The values of its registers.
    pub registers: Registers,
    /// A copy of its stack.
    pub stack: SavedMemory,
}

impl Still {
    /// Copies what the thread `tid` of the process `pid` is at.
    ///
    /// # Errors
    /// It does not run, it has ended, it may not be traced, or somebody else
    /// traces it.
    pub fn of(pid: u32, tid: u32) -> io::Result<Still> {
        let copy = thread::Builder::new().spawn(move || copy(pid, tid))?;
        copy.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    }
}

/// What a thread that sleeps has in its registers.
#[derive(Clone, Copy, Debug)]
pub struct SleepingRegisters {
    /// The values of its registers.
    pub registers: Registers,
    /// The start of its own variables.
    pub thread_pointer: u64,
    /// How often it had been taken off a processor when it slept again. While that is so and it
    /// sleeps, it has not run, and they hold.
    pub switches: (u64, u64),
}

/// Reads the registers of threads of the process `pid` that sleep in the calls in which they were
/// found, one after the other. Those that do something else by now, or whose sleep would not begin
/// anew, are left out.
#[must_use]
pub fn of_sleepers(pid: u32, threads: Vec<(u32, SleepingCall)>) -> Vec<(u32, SleepingRegisters)> {
    let switches = if is_told(pid) { OWN_SWITCHES + 1 } else { OWN_SWITCHES };
    let mut found = Vec::new();
    let mut rest = threads.into_iter();
    while rest.len() != 0 {
        let read = move || {
            let mut read = Vec::new();
            for (tid, call) in rest.by_ref() {
                let sleeper = of_sleeper(pid, tid, &call, switches);
                let is_free = sleeper.is_ok();
                read.extend(sleeper.ok().flatten().map(|registers| (tid, registers)));
                // What this thread has not let go, its end does: the next one reads the others.
                if !is_free {
                    break;
                }
            }
            (read, rest)
        };
        let reader = thread::Builder::new().spawn(read);
        let Some((read, left)) = reader.ok().and_then(|reader| reader.join().ok()) else { break };
        found.extend(read);
        rest = left;
    }
    found
}

/// What a held thread adds to its count of voluntary switches: it stands still, and sleeps again.
/// Under `lockstead run --syscalls` it sleeps once more, until the command has heard of the call.
const OWN_SWITCHES: u64 = 2;

/// Tells whether the kernel tells a command of the futex calls of this process.
fn is_told(pid: u32) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mut entries = environment.split(|&byte| byte == 0);
    entries.any(|entry| {
        let value =
            entry.strip_prefix(VARIABLE.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        value.and_then(Settings::parse).is_some_and(|settings| settings.told)
    })
}

/// Tells whether a call that is interrupted begins anew or goes on, whatever it is called with.
fn begins_anew(pid: u32, call: &SleepingCall) -> bool {
    // Newer processors have no such call.
    #[cfg(target_arch = "x86_64")]
    if call.number == libc::SYS_pause {
        return true;
    }
    match call.number {
        libc::SYS_nanosleep
        | libc::SYS_clock_nanosleep
        | libc::SYS_wait4
        | libc::SYS_waitid
        | libc::SYS_flock
        // It is one that was interrupted before, and goes on as it did then.
        | libc::SYS_restart_syscall => true,
        // A socket may have a time limit, and a file system may be a program that is told.
        libc::SYS_read => {
            let file = std::fs::read_link(format!("/proc/{pid}/fd/{}", call.arguments[0]));
            file.is_ok_and(|file| file.to_string_lossy().starts_with("pipe:"))
        }
        _ => FutexWait::decode(call).is_some_and(|wait| {
            !wait.timed() && matches!(wait.operation, FutexWaitKind::Wait { .. })
        }),
    }
}

/// The bytes of the longest instruction that asks the kernel.
const LONGEST_CALL: u64 = 4;

/// Reads the registers of one sleeper.
///
/// # Errors
/// It could not be let go, since it does not stand still: it sleeps no more, or where nothing can interrupt
/// it, or it has ended.
fn of_sleeper(
    pid: u32,
    tid: u32,
    call: &SleepingCall,
    own_switches: u64,
) -> io::Result<Option<SleepingRegisters>> {
    let number = libc::pid_t::try_from(tid).map_err(|_| io::ErrorKind::InvalidInput)?;
    let sleeps = || match task::doing(pid, tid) {
        Ok(TaskDoing::Call(now)) => {
            let goes_on = now.number == libc::SYS_restart_syscall;
            now == *call || goes_on && (now.sp, now.pc) == (call.sp, call.pc)
        }
        _ => false,
    };
    if !begins_anew(pid, call) || !sleeps() {
        return Ok(None);
    }
    let Some((before, _)) = task::switches(pid, tid) else { return Ok(None) };
    if request(libc::PTRACE_SEIZE, number, ptr::null_mut(), 0).is_err() {
        return Ok(None);
    }
    let held = if sleeps() { held_sleeper(number).ok() } else { None };
    let_go(number)?;
    let Some(held) = held else { return Ok(None) };
    let start = Instant::now();
    // Right after it was let go it looks as if it slept: it does when it has been taken off again.
    let switches = loop {
        let Some(switches) = task::switches(pid, tid) else { return Ok(None) };
        if switches.0 >= before + own_switches && sleeps() {
            break switches;
        }
        if start.elapsed() > PATIENCE {
            return Ok(None);
        }
        thread::sleep(PAUSE);
    };
    // More of them, and it has been woken in between.
    let same =
        arch::stack_pointer(&held.registers) == call.sp && switches.0 == before + own_switches;
    let registers = Registers::all(&held.registers);
    // On aarch64 the kernel has set it back to the call already, which is made anew.
    let is_of_call = (0..=LONGEST_CALL).any(|back| registers.pc() + back == call.pc);
    Ok((same && is_of_call).then(|| SleepingRegisters {
        registers: registers.at(call.pc),
        thread_pointer: held.thread_pointer,
        switches,
    }))
}

fn copy(pid: u32, tid: u32) -> io::Result<Still> {
    let number = libc::pid_t::try_from(tid).map_err(|_| io::ErrorKind::InvalidInput)?;
    runs(pid, tid)?;
    request(libc::PTRACE_SEIZE, number, ptr::null_mut(), 0)?;
    // If this fails, it may stand still for a signal nevertheless: the end of
    // this thread lets it go on with that, a request to detach without it.
    let copied = copy_seized(pid, tid, number)?;
    let_go(number)?;
    Ok(copied)
}

fn runs(pid: u32, tid: u32) -> io::Result<()> {
    match task::doing(pid, tid)? {
        TaskDoing::Running => Ok(()),
        _ => Err(io::ErrorKind::WouldBlock.into()),
    }
}

fn copy_seized(pid: u32, tid: u32, number: libc::pid_t) -> io::Result<Still> {
    runs(pid, tid)?;
    let registers = hold(number)?;
    let mut bytes = vec![0; STACK];
    let low = arch::stack_pointer(&registers).saturating_sub(RED_ZONE) & !63;
    let length = ProcessMemory::new(pid).read(low, &mut bytes)?;
    bytes.truncate(length);
    Ok(Still { registers: Registers::all(&registers), stack: SavedMemory::new(low, bytes) })
}

/// Makes a thread stand still that is traced, and returns its registers.
fn hold(number: libc::pid_t) -> io::Result<HeldRegisters> {
    request(libc::PTRACE_INTERRUPT, number, ptr::null_mut(), 0)?;
    let start = Instant::now();
    // The kernel says "no such process" of a thread that is not held yet.
    loop {
        match arch::read_registers(number) {
            Ok(registers) => return Ok(registers),
            Err(error)
                if error.raw_os_error() != Some(libc::ESRCH) || start.elapsed() > PATIENCE =>
            {
                return Err(error);
            }
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

/// Lets a thread go on that stands still, with the signal that it was about to get.
fn let_go(number: libc::pid_t) -> io::Result<()> {
    let signal = signal_on_its_way(number);
    request(libc::PTRACE_DETACH, number, ptr::null_mut(), signal)
}

/// What a thread that sleeps has while it is held.
struct HeldSleeper {
    registers: HeldRegisters,
    thread_pointer: u64,
}

fn held_sleeper(number: libc::pid_t) -> io::Result<HeldSleeper> {
    let registers = hold(number)?;
    let thread_pointer = arch::thread_pointer(number, &registers)?;
    Ok(HeldSleeper { registers, thread_pointer })
}

/// Returns the signal that a thread which stands still is about to get; 0 for none.
fn signal_on_its_way(tid: libc::pid_t) -> libc::c_int {
    // SAFETY: the structure has numbers only, of which all zeroes are a valid value.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    match request(libc::PTRACE_GETSIGINFO, tid, ptr::from_mut(&mut info).cast(), 0) {
        // Held because it was asked for, or because it is stopped anyway.
        Ok(()) if info.si_code >> 8 == libc::PTRACE_EVENT_STOP => 0,
        Ok(()) => info.si_signo,
        Err(_) => 0,
    }
}

/// Makes a request without an address. `data` must be null or what the request writes to; `signal`
/// is the data of requests that take a number.
fn request(
    what: libc::c_uint,
    tid: libc::pid_t,
    data: *mut libc::c_void,
    signal: libc::c_int,
) -> io::Result<()> {
    let data = if data.is_null() {
        ptr::without_provenance_mut(signal.unsigned_abs() as usize)
    } else {
        data
    };
    // SAFETY: the requests of this file write the structure that `data` was
    // made from, which its caller borrows exclusively, or nothing.
    match unsafe { libc::ptrace(what, tid, ptr::null_mut::<libc::c_void>(), data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};
    use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};

    /// A program that does what is asked, until the test is over.
    struct Running(Child);

    impl Running {
        fn start(script: &str) -> Running {
            let mut command = Command::new("sh");
            command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
            Running(command.spawn().expect("a shell"))
        }

        fn state(&self) -> Option<TaskDoing> {
            task::doing(self.0.id(), self.0.id()).ok()
        }

        fn until(&self, reached: impl Fn(Option<TaskDoing>) -> bool) {
            let start = Instant::now();
            while !reached(self.state()) {
                assert!(start.elapsed() < Duration::from_secs(10), "{:?}", self.state());
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    impl Drop for Running {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_thread_that_runs_is_copied_and_goes_on() {
        let program = Running::start("while :; do :; done");
        let pid = program.0.id();
        program.until(|doing| doing == Some(TaskDoing::Running));
        for _ in 0..50 {
            match Still::of(pid, pid) {
                Ok(still) => {
                    let mut bytes = [0; 4096];
                    let low = still.registers.stack_pointer().expect("known") - RED_ZONE;
                    assert!(still.stack.read(low, &mut bytes).is_ok_and(|length| length > 128));
                }
                // The shell may be in a system call.
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        let status = || std::fs::read_to_string(format!("/proc/{pid}/status"));
        program.until(|_| status().is_ok_and(|status| status.contains("TracerPid:\t0\n")));
        program.until(|doing| doing == Some(TaskDoing::Running));
    }

    #[test]
    fn a_sleeper_that_was_held_can_be_held_again() {
        let program = Running(Command::new("sleep").arg("1000").spawn().expect("a program"));
        let pid = program.0.id();
        let is_asleep = |doing| match doing {
            Some(TaskDoing::Call(call)) => {
                let numbers = [libc::SYS_nanosleep, libc::SYS_clock_nanosleep];
                numbers.contains(&call.number) || call.number == libc::SYS_restart_syscall
            }
            _ => false,
        };
        for _ in 0..2 {
            program.until(is_asleep);
            let Some(TaskDoing::Call(call)) = program.state() else { panic!("it sleeps") };
            let held = of_sleepers(pid, vec![(pid, call)]);
            let [(_, held)] = held.as_slice() else { panic!("{call:?}") };
            assert_eq!(held.registers.pc(), call.pc, "behind the call, and not at it");
        }
        program.until(is_asleep);
    }

    /// How many signals have come, in memory that a forked child shares; and what the child installs.
    static CAME: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

    extern "C" fn count(_: libc::c_int) {
        // SAFETY: the child installs this after the memory was made, which is never unmapped.
        unsafe { &*CAME.load(Relaxed) }.fetch_add(1, Relaxed);
    }

    /// The child counts in its handler. A shell's trap would not do: `bash` forgets some of those that
    /// come while it loops without a system call, though the kernel has delivered each.
    #[test]
    fn signals_that_come_while_it_is_held_arrive() {
        let (rights, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a mapping of its own, at a place that the kernel chooses.
        let page = unsafe { libc::mmap(ptr::null_mut(), 4096, rights, kind, -1, 0) };
        assert_ne!(page, libc::MAP_FAILED);
        CAME.store(page.cast(), Relaxed);
        // SAFETY: the memory is zeroed, as large as the number, and stays.
        let came = unsafe { &*page.cast::<AtomicU32>() };
        // SAFETY: the child only makes calls that a handler may make, and never returns.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: as above; it ends with the test's thread, which is its parent.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::signal(libc::SIGUSR1, count as *const () as libc::sighandler_t);
            }
            came.store(1, Relaxed);
            loop {
                std::hint::spin_loop();
            }
        }
        assert!(pid > 0, "{}", io::Error::last_os_error());
        let _ends = Ends(pid);
        let wait_for = |count: u32| {
            let start = Instant::now();
            while came.load(Relaxed) < count {
                assert!(start.elapsed() < Duration::from_secs(10), "signal {count} has not come");
                thread::yield_now();
            }
            assert_eq!(came.load(Relaxed), count);
        };
        wait_for(1);
        let number = pid.unsigned_abs();
        let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is there");
        for round in 1..100 {
            // SAFETY: sends a signal to a child that has not been waited for.
            let send = || assert_eq!(unsafe { libc::kill(pid, libc::SIGUSR1) }, 0);
            // It comes at any moment of being held.
            send();
            let _ = Still::of(number, number);
            wait_for(2 * round);
            // It is what the thread stands still for.
            request(libc::PTRACE_SEIZE, pid, ptr::null_mut(), 0).expect("a child");
            send();
            let start = Instant::now();
            while !state().contains(") t ") {
                assert!(start.elapsed() < Duration::from_secs(10), "{}", state());
            }
            hold(pid).expect("held");
            let_go(pid).expect("held");
            wait_for(2 * round + 1);
        }
    }

    /// Ends a forked child.
    struct Ends(libc::pid_t);

    impl Drop for Ends {
        fn drop(&mut self) {
            // SAFETY: the child has not been waited for before, so that the number is its own.
            unsafe {
                libc::kill(self.0, libc::SIGKILL);
                libc::waitpid(self.0, ptr::null_mut(), 0);
            }
        }
    }

    #[test]
    fn a_thread_that_sleeps_is_left_alone() {
        let program = Running::start("read line");
        let pid = program.0.id();
        program.until(
            |doing| matches!(doing, Some(TaskDoing::Call(call)) if call.number == libc::SYS_read),
        );
        let error = Still::of(pid, pid).err().expect("not held");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(Still::of(u32::MAX, u32::MAX).is_err());
    }
}

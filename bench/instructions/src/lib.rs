//! Instructions of a piece of code, counted one by one.
//!
//! # Role
//! Exact and repeatable where time is neither, and without the privileges that
//! the processor's counters need: a child process repeats the code while the
//! parent single-steps it.
//!
//! # Protocol
//! 1. The child asks to be traced and stops itself, twice; the parent begins to step.
//! 2. The child runs the code K times, stops itself, 2K times, stops itself;
//!    then the same with an empty loop. The parent counts the steps between
//!    the stops.
//! 3. The difference of the long and the short run, less that of the empty
//!    loop, over K, is what one turn takes: all else occurs equally often.
//!
//! # Restartable sections
//! A stop within a restartable section ends it, which is how the mutex releases: code
//! that is stepped through would always go the other way. So before each step the
//! parent takes the section's descriptor away; the kernel then knows of none.
//!
//! # Limits
//! The child is a copy of the calling thread alone, as after any `fork`.

use lockstead_core::Platform;
use lockstead_linux::Linux;
use std::cell::Cell;
use std::io;

/// Turns of the short run. A multiple of what loops are unrolled by.
const TURNS: u64 = 32;

/// Seconds after which the child is ended.
const PATIENCE: u32 = 20;

/// What the child ends with when it may not be traced.
const REFUSED: libc::c_int = 3;

/// Why instructions cannot be counted.
#[derive(Debug, thiserror::Error)]
pub enum NotCounted {
    /// The system refuses to let a process trace its child.
    #[error("the system does not allow tracing (ptrace)")]
    Refused,
    /// The process cannot be forked or waited for.
    #[error("cannot run a child process: {0}")]
    Child(#[from] io::Error),
    /// The code did not come to its end in 20 seconds, or crashed.
    #[error("the counted code did not come to its end: signal {0}")]
    Unfinished(libc::c_int),
}

/// Counts the instructions that one call of `f` executes in user space, a system call counting as
/// one. `f` is called a few hundred times, in a forked child.
///
/// # Errors
/// [`NotCounted`].
///
/// # Example
/// ```
/// use lockstead_instructions::count_instructions;
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// let word = AtomicU32::new(0);
/// let exchange = || drop(word.compare_exchange(0, 0, Ordering::SeqCst, Ordering::Relaxed));
/// match count_instructions(exchange) {
///     Ok(count) => println!("{count} instructions"),
///     Err(why) => println!("not counted: {why}"),
/// }
/// ```
pub fn count_instructions(f: impl Fn()) -> Result<f64, NotCounted> {
    count(f, |_| 1)
}

/// Counts the instructions of one call of `f` that lock a line: those with the prefix for that,
/// and exchanges with memory; on aarch64 the instructions of LSE. Otherwise as
/// [`count_instructions`].
///
/// # Errors
/// [`NotCounted`].
pub fn count_locked(f: impl Fn()) -> Result<f64, NotCounted> {
    count(f, |tracee| u64::from(tracee.next_instruction().is_some_and(|bytes| locks(&bytes))))
}

/// Tells whether an instruction locks a line.
#[cfg(target_arch = "x86_64")]
fn locks(instruction: &[u8]) -> bool {
    let mut rest = instruction;
    while let [first, tail @ ..] = rest {
        match first {
            0xf0 => return true,
            // Prefixes: sizes, segments, repetition; then the one of 64 bits.
            0x66 | 0x67 | 0xf2 | 0xf3 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65 | 0x40..=0x4f => {
                rest = tail;
            }
            // An exchange locks by itself, unless it is one of registers.
            0x86 | 0x87 => return tail.first().is_some_and(|modes| modes >> 6 != 3),
            _ => return false,
        }
    }
    false
}

/// Tells whether an instruction is one of LSE: on comparison, or of the others but the load that is
/// encoded among them.
#[cfg(target_arch = "aarch64")]
fn locks(instruction: &[u8]) -> bool {
    instruction.first_chunk().is_some_and(|bytes| {
        let code = u32::from_le_bytes(*bytes);
        code & 0x3fa0_7c00 == 0x08a0_7c00
            || code & 0x3f20_0c00 == 0x3820_0000 && code & 0x3fff_fc00 != 0x38bf_c000
    })
}

/// Returns the sum of what `weigh` says of each instruction, before it is executed.
fn count(f: impl Fn(), weigh: impl Fn(&Tracee) -> u64) -> Result<f64, NotCounted> {
    // The thread joins here, so that its child's sections are known.
    Linux::me();
    let _stays = StaysHere::new();
    // SAFETY: the child calls `f`, whose effects stay in the child, and system
    // calls, and ends by `_exit`.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error().into()),
        0 => child(f),
        pid => Tracee { pid, ended: Cell::new(false) }.count(&weigh),
    }
}

fn child(f: impl Fn()) -> ! {
    // SAFETY: none of these calls takes memory; the alarm ends the child, by
    // way of the parent, if `f` blocks.
    unsafe {
        if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) != 0 {
            libc::_exit(REFUSED);
        }
        libc::alarm(PATIENCE);
    }
    // The first calls resolve symbols and join tables.
    repeat(3, &f);
    // To the compiler they are any numbers: what calls a run takes the same instructions for each.
    let [short, long] = std::hint::black_box([TURNS, 2 * TURNS]);
    let empty = || ();
    // Twice: on aarch64 a stop that is stepped into takes a step more than the first.
    stop();
    stop();
    repeat_and_stop(short, &f);
    repeat_and_stop(long, &f);
    repeat_and_stop(short, &empty);
    repeat_and_stop(long, &empty);
    // SAFETY: ends the process; nothing of the parent's is flushed or dropped.
    unsafe { libc::_exit(0) }
}

#[inline(never)]
fn repeat_and_stop(turns: u64, f: &impl Fn()) {
    repeat(turns, f);
    stop();
}

fn stop() {
    // SAFETY: by CALL-NUMBERS the call stops this process until the parent lets it go on.
    unsafe { libc::raise(libc::SIGSTOP) };
}

#[inline(never)]
fn repeat(turns: u64, f: &impl Fn()) {
    for _ in 0..turns {
        f();
        // No instruction, but the compiler does not know: keeps turns apart,
        // and an empty loop in existence (a compiler fence alone does not).
        // SAFETY: the instructions do nothing: they touch neither memory nor registers that
        // matter.
        unsafe { std::arch::asm!("", options(nostack, preserves_flags)) };
    }
}

/// Keeps this thread, and the child that it starts, on the processor that it runs on, until it is
/// dropped. The two take turns by each instruction: one then hands the processor to the other,
/// instead of waking an idle one, which takes twenty times as long in a virtual machine.
struct StaysHere {
    /// Where it might run; `None` where it could not be kept here, and only takes longer.
    before: Option<libc::cpu_set_t>,
}

impl StaysHere {
    fn new() -> Self {
        // SAFETY: by ZEROED-BITS zero is a valid value of these plain C structures, and by
        // CALL-LOCALS the pointers are to live local variables.
        let before = unsafe {
            let mut before: libc::cpu_set_t = std::mem::zeroed();
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            let size = size_of::<libc::cpu_set_t>();
            let here = usize::try_from(libc::sched_getcpu());
            here.ok()
                .filter(|&here| here < libc::CPU_SETSIZE as usize)
                .filter(|&here| {
                    libc::CPU_SET(here, &mut one);
                    libc::sched_getaffinity(0, size, &raw mut before) == 0
                        && libc::sched_setaffinity(0, size, &raw const one) == 0
                })
                .map(|_| before)
        };
        StaysHere { before }
    }
}

impl Drop for StaysHere {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // SAFETY: by CALL-LOCALS the pointer is to a live variable.
            unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), before) };
        }
    }
}

/// The child, ended when dropped.
struct Tracee {
    pid: libc::pid_t,
    /// Whether it has ended and been waited for: the number may belong to somebody else.
    ended: Cell<bool>,
}

impl Tracee {
    fn count(&self, weigh: &impl Fn(&Tracee) -> u64) -> Result<f64, NotCounted> {
        match self.wait()? {
            CounterEvent::Signal(libc::SIGSTOP) => {}
            CounterEvent::Signal(other) => return Err(NotCounted::Unfinished(other)),
            CounterEvent::Ended => return Err(NotCounted::Refused),
        }
        self.steps_to_stop(weigh)?;
        let mut steps = [0.0; 4];
        for steps in &mut steps {
            *steps = self.steps_to_stop(weigh)? as f64;
        }
        let [short, long, empty_short, empty_long] = steps;
        Ok(((long - short) - (empty_long - empty_short)) / TURNS as f64)
    }

    fn steps_to_stop(&self, weigh: &impl Fn(&Tracee) -> u64) -> Result<u64, NotCounted> {
        let mut steps = 0;
        loop {
            self.forget_section();
            let weight = weigh(self);
            // SAFETY: the child is stopped, and ours; no memory is passed.
            if unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, self.pid, 0, 0) } != 0 {
                return Err(NotCounted::Refused);
            }
            match self.wait()? {
                CounterEvent::Signal(libc::SIGTRAP) => steps += weight,
                CounterEvent::Signal(libc::SIGSTOP) => return Ok(steps),
                CounterEvent::Signal(other) => return Err(NotCounted::Unfinished(other)),
                CounterEvent::Ended => return Err(NotCounted::Unfinished(0)),
            }
        }
    }

    /// Returns the first bytes of the instruction that comes next.
    fn next_instruction(&self) -> Option<[u8; 8]> {
        // SAFETY: by ZEROED-BITS zero is a valid value of this plain C structure.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        let mut place =
            libc::iovec { iov_base: (&raw mut registers).cast(), iov_len: size_of_val(&registers) };
        let (request, set) = (libc::PTRACE_GETREGSET, libc::NT_PRSTATUS);
        // SAFETY: the child is stopped, and ours; the pointers are to local variables.
        let read = unsafe { libc::ptrace(request, self.pid, set, &raw mut place) };
        if read != 0 {
            return None;
        }
        #[cfg(target_arch = "x86_64")]
        let at = registers.rip;
        #[cfg(target_arch = "aarch64")]
        let at = registers.pc;
        // SAFETY: reads the child's memory; -1 may be an error or what stands there, which
        // is no instruction.
        let word = unsafe { libc::ptrace(libc::PTRACE_PEEKTEXT, self.pid, at, 0) };
        (word != -1).then(|| word.to_ne_bytes())
    }

    /// Has the kernel look for no section when the child goes on.
    fn forget_section(&self) {
        let sections = lockstead_linux::sections();
        if !sections.is_null() {
            // SAFETY: the child is stopped, and a copy of the calling thread, whose
            // word that is: it is written there, not here.
            unsafe { libc::ptrace(libc::PTRACE_POKEDATA, self.pid, sections, 0) };
        }
    }

    fn wait(&self) -> Result<CounterEvent, NotCounted> {
        let mut status = 0;
        // SAFETY: by CALL-LOCALS the pointers are to live local variables, which the call fills
        // in.
        while unsafe { libc::waitpid(self.pid, &raw mut status, 0) } != self.pid {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error.into());
            }
        }
        if libc::WIFSTOPPED(status) {
            return Ok(CounterEvent::Signal(libc::WSTOPSIG(status)));
        }
        self.ended.set(true);
        Ok(CounterEvent::Ended)
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        if self.ended.get() {
            return;
        }
        // SAFETY: the child is ours and has not been waited for to its end, so
        // the number is still its own.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, std::ptr::null_mut(), 0);
        }
    }
}

enum CounterEvent {
    /// It was stopped by this signal, which is `SIGTRAP` after a step.
    Signal(libc::c_int),
    Ended,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    /// Counts the instructions of `f`. Returns `None`, with a message, where tracing is forbidden.
    fn count(f: impl Fn()) -> Option<f64> {
        match count_instructions(f) {
            Ok(count) => Some(count),
            Err(why @ NotCounted::Refused) => {
                println!("skipped: {why}");
                None
            }
            Err(why) => panic!("{why}"),
        }
    }

    #[test]
    fn counts_exactly() {
        assert!(count(|| ()).is_none_or(|count| count == 0.0));
        let block = || {
            // SAFETY: the instructions do nothing: they touch neither memory nor registers that
            // matter.
            unsafe { std::arch::asm!("nop", "nop", "nop", "nop", "nop", options(nomem, nostack)) };
        };
        assert_eq!(count(block).unwrap_or(5.0), 5.0);
    }

    #[test]
    fn locked_instructions_are_told_from_others() {
        #[cfg(target_arch = "aarch64")]
        for (code, expected) in [
            // casa w0, w1, [x2]; casal x0, x1, [x2]; ldaddal w0, w1, [x2]; swpl x0, x1, [x2].
            (0x88e0_7c41_u32, true),
            (0xc8e0_fc41, true),
            (0xb8e0_0041, true),
            (0xf860_8041, true),
            // ldapr w0, [x1]; ldar w0, [x1]; stlr wzr, [x0]; ldxr w0, [x1]; nop; none.
            (0xb8bf_c020, false),
            (0x88df_fc20, false),
            (0x889f_fc1f, false),
            (0x885f_7c20, false),
            (0xd503_201f, false),
            (0, false),
        ] {
            assert_eq!(locks(&code.to_le_bytes()), expected, "{code:x}");
        }
        #[cfg(target_arch = "x86_64")]
        for (bytes, expected) in [
            (&[0xf0, 0x0f, 0xb1, 0x0f][..], true),
            (&[0xf0, 0x48, 0x0f, 0xc1, 0x07], true),
            (&[0x66, 0xf0, 0x0f, 0xb1, 0x0f], true),
            (&[0x87, 0x07], true),
            (&[0x48, 0x87, 0x07], true),
            (&[0x48, 0x87, 0xc7], false),
            (&[0x0f, 0xb1, 0x0f], false),
            (&[0x89, 0x07], false),
            (&[], false),
        ] {
            assert_eq!(locks(bytes), expected, "{bytes:x?}");
        }
        use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
        let word = AtomicU64::new(0);
        let three = || {
            word.fetch_add(1, SeqCst);
            word.swap(7, SeqCst);
            // On aarch64 a store is none.
            word.store(word.load(SeqCst), SeqCst);
            #[cfg(target_arch = "aarch64")]
            word.fetch_or(1, SeqCst);
        };
        match count_locked(three) {
            Ok(count) => assert_eq!(count, 3.0),
            Err(why @ NotCounted::Refused) => println!("skipped: {why}"),
            Err(why) => panic!("{why}"),
        }
    }

    #[test]
    fn more_work_counts_more() {
        let work = |turns: u64| {
            move || {
                for turn in 0..turns {
                    black_box(turn);
                }
            }
        };
        if let (Some(little), Some(much)) = (count(work(10)), count(work(100))) {
            assert!(much > little + 90.0, "{little} and {much}");
        }
    }

    #[test]
    fn code_that_crashes_is_an_error() {
        match count_instructions(|| std::process::abort()) {
            Err(NotCounted::Unfinished(_) | NotCounted::Refused) => {}
            other => panic!("{other:?}"),
        }
    }
}

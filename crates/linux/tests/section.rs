//! The section in which a release is restarted, stopped at each of its instructions: whatever interrupts
//! it there, the thread goes on at the section's exit, and the release has not happened.
//!
//! A child releases a word, and its parent makes it go step by step. A stop in a section ends it, so the
//! parent takes the section's descriptor away before each step, and puts it back at the instruction
//! that is meant.

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use lockstead_core::{Atomic64, Halves, Ordering, Platform};
use lockstead_linux::{Linux, U64, sections};

/// The largest number of a slot.
const MOST: u32 = 0xf_ffff;
/// What a waiter adds to the word.
const FLAG: u64 = 1 << 24;
/// Seconds after which the child is ended.
const PATIENCE: u32 = 60;
/// What the child ends with: it may not be traced, it has released, it has not.
const REFUSED: i32 = 3;
const RELEASED: i32 = 4;
const LEFT: i32 = 5;

/// What a child and its parent share.
#[repr(C)]
struct Shared {
    word: U64,
    /// Where the child's handler was told that its thread was interrupted.
    interrupted: AtomicUsize,
    /// The processor on which the child ended.
    processor: AtomicU64,
}

/// A descriptor as the kernel reads it, `struct rseq_cs`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
struct Descriptor {
    version_and_flags: [u32; 2],
    start: usize,
    length: usize,
    exit: usize,
}

/// What comes between two instructions.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Interruption {
    /// Nothing, and there is no descriptor: a release that nobody protects.
    None,
    /// The thread goes on to the end.
    Stop,
    /// A signal for which there is a handler.
    Signal,
    /// It runs on another processor.
    Migration,
}

static SHARED: AtomicUsize = AtomicUsize::new(0);

fn shared() -> &'static Shared {
    let memory = match SHARED.load(SeqCst) {
        0 => {
            let (protection, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
            let size = size_of::<Shared>();
            // SAFETY: the kernel chooses a place for the mapping where nothing is.
            let new = unsafe { libc::mmap(core::ptr::null_mut(), size, protection, flags, -1, 0) };
            assert_ne!(new, libc::MAP_FAILED);
            SHARED.store(new.expose_provenance(), SeqCst);
            new
        }
        at => core::ptr::with_exposed_provenance_mut(at),
    };
    // SAFETY: mapped above, never unmapped, and zeros are a value of it.
    unsafe { &*memory.cast::<Shared>() }
}

extern "C" fn handler(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel gives a handler the registers of what it has interrupted.
    let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
    #[cfg(target_arch = "x86_64")]
    let at = registers.gregs[libc::REG_RIP as usize] as usize;
    #[cfg(target_arch = "aarch64")]
    let at = registers.pc as usize;
    shared().interrupted.store(at, SeqCst);
}

/// Releases the word once, which its parent steps through.
fn child(shared: &Shared) -> ! {
    // SAFETY: a zeroed action is valid, and the handler is of the type that the flag says; the other
    // calls take numbers.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGUSR1, &raw const action, core::ptr::null_mut());
        if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) != 0 {
            libc::_exit(REFUSED);
        }
        libc::alarm(PATIENCE);
        libc::raise(libc::SIGSTOP);
    }
    let released = shared.word.erase_low(MOST, Ordering::Release);
    // SAFETY: the call takes no argument and touches no memory.
    let processor = unsafe { libc::sched_getcpu() };
    shared.processor.store(processor as u64, SeqCst);
    // SAFETY: ends the process; nothing of the parent's is flushed or dropped.
    unsafe { libc::_exit(if released { RELEASED } else { LEFT }) };
}

/// The child, ended when dropped; and whether it has ended before.
struct Tracee(libc::pid_t, Cell<bool>);

impl Tracee {
    /// Lets it go on in some way, and returns how it stops or ends.
    fn go(&self, how: libc::c_uint, signal: libc::c_int) -> libc::c_int {
        // SAFETY: the child is stopped, and ours; no memory is passed.
        let done = unsafe { libc::ptrace(how, self.0, 0, signal) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
        self.wait()
    }

    fn wait(&self) -> libc::c_int {
        let mut status = 0;
        // SAFETY: the child is our own, and the kernel writes into `status`, which lives.
        assert_eq!(unsafe { libc::waitpid(self.0, &raw mut status, 0) }, self.0);
        self.1.set(!libc::WIFSTOPPED(status));
        status
    }

    /// Returns where it is.
    fn at(&self) -> usize {
        // SAFETY: plain bits, which the call fills in; the child is stopped.
        let registers = unsafe {
            let mut registers: libc::user_regs_struct = core::mem::zeroed();
            let mut place = libc::iovec {
                iov_base: (&raw mut registers).cast(),
                iov_len: size_of_val(&registers),
            };
            let (request, set) = (libc::PTRACE_GETREGSET, libc::NT_PRSTATUS);
            assert_eq!(libc::ptrace(request, self.0, set, &raw mut place), 0);
            registers
        };
        #[cfg(target_arch = "x86_64")]
        return registers.rip as usize;
        #[cfg(target_arch = "aarch64")]
        return registers.pc as usize;
    }

    /// Returns the address of the descriptor that it has told the kernel of; 0: none.
    fn descriptor(&self) -> usize {
        // SAFETY: the child is stopped, and a copy of this thread, whose word that is.
        unsafe { libc::ptrace(libc::PTRACE_PEEKDATA, self.0, sections(), 0) as usize }
    }

    fn tell(&self, descriptor: usize) {
        // SAFETY: as in `descriptor`: it is written there, not here.
        let done = unsafe { libc::ptrace(libc::PTRACE_POKEDATA, self.0, sections(), descriptor) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        if self.1.get() {
            return;
        }
        // SAFETY: the child is ours and has not been waited for to its end, so the number is its own.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, core::ptr::null_mut(), 0);
        }
    }
}

/// Has the calling thread run on this processor alone, or `pid`.
fn pin(pid: libc::pid_t, processor: usize) -> bool {
    // SAFETY: the set is plain bits, which the kernel reads.
    unsafe {
        let mut one: libc::cpu_set_t = core::mem::zeroed();
        libc::CPU_SET(processor, &mut one);
        libc::sched_setaffinity(pid, size_of::<libc::cpu_set_t>(), &raw const one) == 0
    }
}

/// How a release went.
#[derive(Debug)]
struct Release {
    /// How the child ended.
    code: i32,
    section: Descriptor,
    /// The value of the word behind it.
    word: u64,
    interrupted: usize,
    processor: u64,
}

/// Has a child release, and interrupts it before instruction `step` of the section, where a waiter
/// also announces itself. `None`: there are not so many, or the system does not allow it, which is said.
fn release(step: usize, interruption: Interruption) -> Option<Release> {
    let shared = shared();
    let me = u64::from(Linux::me().get());
    shared.word.get().store(me, SeqCst);
    shared.interrupted.store(0, SeqCst);
    // SAFETY: the child makes no call that is not safe after a fork, and ends without returning.
    let tracee = match unsafe { libc::fork() } {
        -1 => panic!("{}", std::io::Error::last_os_error()),
        0 => child(shared),
        pid => Tracee(pid, Cell::new(false)),
    };
    let status = tracee.wait();
    if !libc::WIFSTOPPED(status) {
        assert_eq!(libc::WEXITSTATUS(status), REFUSED, "{status:x}");
        println!("skipped: the system does not allow tracing (ptrace)");
        return None;
    }
    let mut told = 0;
    while told == 0 {
        let status = tracee.go(libc::PTRACE_SINGLESTEP, 0);
        assert!(libc::WIFSTOPPED(status), "no section: {status:x}");
        told = tracee.descriptor();
    }
    // SAFETY: the code and its descriptor are the same here, for the child is a copy.
    let section = unsafe { *core::ptr::with_exposed_provenance::<Descriptor>(told) };
    let end = section.start + section.length;
    tracee.tell(0);
    for _ in 0..step {
        tracee.go(libc::PTRACE_SINGLESTEP, 0);
    }
    let at = tracee.at();
    if !(section.start..end).contains(&at) {
        return None;
    }
    let before = shared.word.get().fetch_or(FLAG, SeqCst);
    assert_eq!(before, me, "the last instruction of a section is its only store");
    if interruption != Interruption::None {
        tracee.tell(told);
    }
    if interruption == Interruption::Migration && !pin(tracee.0, 1) {
        println!("skipped: one processor");
        return None;
    }
    let signal = if interruption == Interruption::Signal { libc::SIGUSR1 } else { 0 };
    if interruption == Interruption::Stop {
        // One step: it is at the exit, or has made the exit's first instruction.
        tracee.go(libc::PTRACE_SINGLESTEP, 0);
        let at = tracee.at();
        assert!(!(section.start..end).contains(&at), "it goes on inside: {at:x}, {section:x?}");
    }
    let status = tracee.go(libc::PTRACE_CONT, signal);
    assert!(libc::WIFEXITED(status), "{status:x}");
    Some(Release {
        code: libc::WEXITSTATUS(status),
        section,
        word: shared.word.load(Ordering::SeqCst),
        interrupted: shared.interrupted.load(SeqCst),
        processor: shared.processor.load(SeqCst),
    })
}

/// Interrupts a release at each instruction. Returns at how many.
fn at_each(interruption: Interruption, mut judge: impl FnMut(usize, &Release)) -> usize {
    let me = u64::from(Linux::me().get());
    for step in 0.. {
        let Some(release) = release(step, interruption) else { return step };
        if interruption != Interruption::None {
            assert_eq!(release.code, LEFT, "{step}: {release:x?}");
            assert_eq!(release.word, me | FLAG, "{step}: the release sees who waits");
        }
        judge(step, &release);
    }
    unreachable!("a section ends")
}

#[test]
fn a_section_that_is_interrupted_anywhere_is_left_by_its_exit() {
    Linux::me();
    if sections().is_null() {
        return println!("skipped: releases cannot be restarted here");
    }
    // Its children are started on one processor, to move to the other.
    let moves = pin(0, 0);
    let stopped = at_each(Interruption::Stop, |_, _| ());
    if stopped == 0 {
        return;
    }
    assert!(stopped >= 3, "a look, a decision and a store: {stopped}");
    let signalled = at_each(Interruption::Signal, |step, release| {
        let exit = release.section.exit;
        assert_eq!(release.interrupted, exit, "{step}: a handler finds the thread at the exit");
    });
    assert_eq!(signalled, stopped);
    if moves {
        let moved = at_each(Interruption::Migration, |step, release| {
            assert_eq!(release.processor, 1, "{step}: it has moved");
        });
        assert!(moved == stopped || moved == 0, "{moved} of {stopped}");
    }
    // Without the kernel behind it the store erases the flag of who has come after the look.
    let mut lost = 0;
    at_each(Interruption::None, |_, release| lost += usize::from(release.word == 0));
    assert!(lost > 0, "the descriptor is what protects a release");
}

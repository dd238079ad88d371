//! x86-64.

mod leaving;

pub(crate) use leaving::Exits;

use super::saved::{ReturnFrame, Saved};
use crate::attach::memory::TargetMemory;
use crate::attach::trace::Held;
use lockstead_inspect::arch::HeldRegisters;
use lockstead_inspect::memory::ReadableMemory;
use lockstead_inspect::proc::status::StatusFile;
use lockstead_inspect::proc::task::SleepingCall;
use std::io;
use std::ptr;
use std::time::Instant;

/// What a function may use below the stack pointer without moving it.
pub(crate) const RED_ZONE: u64 = 128;
/// This machine, as filters have it (`AUDIT_ARCH_X86_64`).
pub(crate) const MACHINE: u32 = 0xc000_003e;
/// The calls that the loader, the allocator and the library make on this processor alone.
pub(crate) const CALLS: &[libc::c_long] = &[libc::SYS_access, libc::SYS_readlink];
/// Sleeps of this processor's that begin again by themselves, or go on.
pub(crate) const SLEEPS: &[libc::c_long] = &[libc::SYS_poll, libc::SYS_select, libc::SYS_pause];
/// Sleeps of this processor's that end when somebody looks.
pub(crate) const ENDING: &[libc::c_long] = &[libc::SYS_epoll_wait];

/// The kinds of relocations that lead to a function: a word that may be read, an entry of the table of
/// addresses, one of the table through which calls go.
pub(crate) mod relocation {
    pub(crate) const DIRECT: u32 = 1;
    pub(crate) const DATA: u32 = 6;
    pub(crate) const CALL: u32 = 7;
}

/// The bytes of the kernel's frame: the return address, `struct ucontext`, and more than is read.
const FRAME: u64 = 512;
/// `mov $15, %rax; syscall`: where handlers return to.
const RESTORER: &[u8] = &[0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05];
/// The registers that the processor keeps beside the general ones, as the kernel hands them out.
const XSTATE: usize = 0x202;
/// The largest that these can be.
const MOST_XSTATE: usize = 16 << 10;

/// The registers beside the general ones.
pub(crate) type Extended = Vec<u8>;

/// Tells whether a thread of the process has a shadow stack, on which calls from outside are not.
pub(crate) fn has_shadow_stack(pid: u32, tids: &[u32]) -> bool {
    tids.iter().any(|tid| {
        let status = StatusFile::read(&format!("/proc/{pid}/task/{tid}/status"));
        status.is_ok_and(|status| {
            status.text("x86_Thread_features").is_some_and(|features| features.contains("shstk"))
        })
    })
}

/// Where the C library's descriptor of a thread lies, from the thread pointer on: no less than all of it.
pub(crate) const DESCRIPTOR: (i64, usize) = (0, 0xa00);

/// The file that has the place that handlers return to, as its name begins.
pub(crate) const RESTORES: &str = "libc.so.6";

/// Returns how far from the beginning of that file's code the place is.
pub(crate) fn restorer(code: &[u8]) -> Option<usize> {
    code.windows(RESTORER.len()).position(|bytes| bytes == RESTORER)
}

/// Reads the distance of `errno` from the thread pointer in the code of `__errno_location`: it loads
/// that from a word, adds the thread pointer, and returns.
pub(crate) fn errno_of(function: u64, memory: &TargetMemory) -> Option<u64> {
    const ENDBR: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
    const LOAD: &[u8] = &[0x48, 0x8b, 0x05];
    const ADD: &[u8] = &[0x64, 0x48, 0x03, 0x04, 0x25, 0, 0, 0, 0, 0xc3];
    let code = memory.bytes(function, 32).ok()?;
    let skipped = if code.starts_with(ENDBR) { ENDBR.len() } else { 0 };
    let rest = code[skipped..].strip_prefix(LOAD)?;
    let (distance, rest) = rest.split_first_chunk::<4>()?;
    if !rest.starts_with(ADD) {
        return None;
    }
    let next = function + (skipped + LOAD.len() + 4) as u64;
    let word = next.checked_add_signed(i32::from_le_bytes(*distance).into())?;
    memory.read_u64(word)
}

/// Returns where the jumps in some code lead, and perhaps other places: what looks like a jump may be a part
/// of something else.
pub(crate) fn jumps(code: &[u8], start: u64) -> Vec<u64> {
    /// The code of a jump to a distance of four bytes.
    const JUMP: u8 = 0xe9;
    let jumps = code.windows(5).enumerate().filter(|(_, bytes)| bytes[0] == JUMP);
    let leads = jumps.map(|(at, bytes)| {
        let distance = i32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
        (start + at as u64 + 5).wrapping_add_signed(distance.into())
    });
    leads.collect()
}

/// Returns the program counter.
pub(crate) fn program_counter(registers: &HeldRegisters) -> u64 {
    registers.rip
}

/// Returns the register that has the return address of what runs: none, for calls put it on the stack.
pub(crate) fn link(_: &HeldRegisters) -> Option<u64> {
    None
}

/// Returns the registers that functions keep, and the others.
pub(crate) fn words(r: &mut HeldRegisters) -> (Vec<&mut u64>, Vec<&mut u64>) {
    let kept = vec![&mut r.rbx, &mut r.rbp, &mut r.r12, &mut r.r13, &mut r.r14, &mut r.r15];
    let others = vec![
        &mut r.rax, &mut r.rcx, &mut r.rdx, &mut r.rsi, &mut r.rdi, &mut r.r8, &mut r.r9,
        &mut r.r10, &mut r.r11,
    ];
    (kept, others)
}

/// Returns the system call that a thread that stands still has slept in, without its arguments.
pub(crate) fn interrupted(registers: &HeldRegisters, _: &TargetMemory) -> Option<SleepingCall> {
    let (number, answer) = (registers.orig_rax.cast_signed(), registers.rax.cast_signed());
    let again = (-516..=-512).contains(&answer) || answer == -i64::from(libc::EINTR);
    let (arguments, sp, pc) = ([0; 6], registers.rsp, registers.rip);
    (number >= 0 && again).then_some(SleepingCall { number, arguments, sp, pc })
}

/// Returns an address as it is in a word of the stack.
pub(crate) fn address_in(word: u64, _: impl Fn(u64) -> bool) -> u64 {
    word
}

/// How a thread stands: its registers say all.
pub(crate) type Standing = HeldRegisters;

/// Says how a thread stands that was asked to. `None` if it has gone on meanwhile.
///
/// # Errors
/// What the kernel says.
pub(crate) fn standing(
    held: &mut Held,
    _: &TargetMemory,
    _: Instant,
) -> io::Result<Option<Standing>> {
    held.registers().map(Some)
}

/// A thread as it was before it was borrowed.
type SavedThread = Saved<Standing, Extended>;

/// Returns the registers with which a thread stands.
pub(crate) fn registers_of(standing: &Standing) -> &HeldRegisters {
    standing
}

/// Returns the registers beside the general ones of a thread that is held.
///
/// # Errors
/// What the kernel says.
pub(crate) fn extended(tid: libc::pid_t) -> io::Result<Extended> {
    let mut bytes = vec![0_u8; MOST_XSTATE];
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    extended_by(tid, libc::PTRACE_GETREGSET, &mut part)?;
    bytes.truncate(part.iov_len);
    Ok(bytes)
}

fn set_extended(tid: libc::pid_t, bytes: &[u8]) -> io::Result<()> {
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    extended_by(tid, libc::PTRACE_SETREGSET, &mut part)
}

fn extended_by(tid: libc::pid_t, what: libc::c_uint, part: &mut libc::iovec) -> io::Result<()> {
    let kind = ptr::without_provenance_mut::<libc::c_void>(XSTATE);
    // SAFETY: the kernel reads or writes the bytes of `part`, which its maker borrows so.
    checked(unsafe { libc::ptrace(what, tid, kind, ptr::from_mut(part)) })
}

fn checked(answer: libc::c_long) -> io::Result<()> {
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes the frame by which a thread comes back by itself, below the address `below`: the registers beside
/// the general ones as the kernel leaves them to a handler, and under these its frame.
///
/// # Errors
/// The registers are unlike those that are known.
pub(crate) fn frame(saved: &SavedThread, below: u64) -> io::Result<ReturnFrame> {
    /// Where the kernel says what follows, in the bytes that the processor leaves alone.
    const SAID: usize = 464;
    let mut bytes = saved.extended.clone();
    if bytes.len() < SAID + 48 {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let area = (below - bytes.len() as u64 - 64) & !63;
    // The stack pointer where a function begins is eight more than a multiple of sixteen.
    let sp = ((area - FRAME) & !15) - 8;
    let length = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::Unsupported)?;
    let features: [u8; 8] = std::array::from_fn(|at| bytes[SAID + at]);
    bytes[SAID..SAID + 4].copy_from_slice(&0x4650_5853_u32.to_ne_bytes());
    bytes[SAID + 4..SAID + 8].copy_from_slice(&(length + 4).to_ne_bytes());
    bytes[SAID + 8..SAID + 16].copy_from_slice(&features);
    bytes[SAID + 16..SAID + 20].copy_from_slice(&length.to_ne_bytes());
    bytes.extend(0x4650_5845_u32.to_ne_bytes());
    Ok(ReturnFrame { sp, pieces: vec![(area, bytes), (sp, frame_bytes(saved, area))] })
}

/// Returns the kernel's frame: the address to return to, and a `struct ucontext`.
fn frame_bytes(saved: &SavedThread, area: u64) -> Vec<u8> {
    /// The registers beside the general ones are there, and those of segments are to be kept.
    const FLAGS: u64 = 1 | 2 | 4;
    /// No mode of a stack for handlers: the thread keeps the one that it has.
    const NO_STACK: u64 = 0x7f;
    let r = as_after_a_signal(&saved.standing);
    let segments = r.cs & 0xffff | (r.ss & 0xffff) << 48;
    let words = [
        vec![saved.restorer, FLAGS, 0, 0, NO_STACK, 0],
        vec![r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15],
        vec![r.rdi, r.rsi, r.rbp, r.rbx, r.rdx, r.rax, r.rcx, r.rsp],
        vec![r.rip, r.eflags, segments, 0, 0, 0, 0, area],
        vec![0; 8],
        vec![saved.blocked],
    ];
    words.iter().flatten().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Returns the registers with which a thread goes on after a handler: a system call that was
/// interrupted begins again, or says so if that cannot be.
fn as_after_a_signal(of: &HeldRegisters) -> HeldRegisters {
    let mut registers = begun_again(of);
    if registers.rax == libc::SYS_restart_syscall.cast_unsigned() {
        // The end of a handler's frame has the kernel forget how it goes on.
        registers.rip = of.rip;
        registers.rax = i64::from(-libc::EINTR).cast_unsigned();
    }
    registers
}

/// Returns the registers with which a thread begins the system call again that was interrupted,
/// or goes on with it.
fn begun_again(of: &HeldRegisters) -> HeldRegisters {
    const AGAIN: [i64; 3] = [-512, -513, -514];
    const GOES_ON: i64 = -516;
    let mut registers = *of;
    let answer = registers.rax.cast_signed();
    if registers.orig_rax.cast_signed() >= 0 {
        if AGAIN.contains(&answer) {
            registers.rax = registers.orig_rax;
            registers.rip -= 2;
        } else if answer == GOES_ON {
            registers.rax = libc::SYS_restart_syscall.cast_unsigned();
            registers.rip -= 2;
        }
    }
    registers.orig_rax = u64::MAX;
    registers
}

/// Has a thread begin a function, with at most six arguments, above the frame whose stack pointer is `sp`.
///
/// # Errors
/// What the kernel says; the thread comes back by itself.
pub(crate) fn begin(
    held: &mut Held,
    memory: &TargetMemory,
    saved: &SavedThread,
    sp: u64,
    (function, arguments): (u64, &[u64]),
    _: Instant,
) -> io::Result<()> {
    /// The direction of strings, and the step by step of debuggers.
    const NOT: u64 = 0x400 | 0x100;
    memory.write(sp, &saved.restorer.to_ne_bytes())?;
    let argument = |at: usize| arguments.get(at).copied().unwrap_or(0);
    let mut registers = saved.standing;
    (registers.rip, registers.rsp) = (function, sp);
    (registers.rdi, registers.rsi, registers.rdx) = (argument(0), argument(1), argument(2));
    (registers.rcx, registers.r8, registers.r9) = (argument(3), argument(4), argument(5));
    (registers.rax, registers.orig_rax) = (0, u64::MAX);
    registers.eflags &= !NOT;
    held.set_registers(&registers)
}

/// Tells whether a thread with these registers stands at the call that would take down the frame whose
/// stack pointer is `sp`.
pub(crate) fn is_back(registers: &HeldRegisters, restorer: u64, sp: u64) -> bool {
    registers.rip == restorer + RESTORER.len() as u64 && registers.rsp == sp + 8
}

/// Gives a thread that [`is_back`] what it was at.
///
/// # Errors
/// What the kernel says; the thread comes back by itself.
pub(crate) fn come_back(held: &mut Held, saved: &SavedThread, deadline: Instant) -> io::Result<()> {
    set_extended(held.number(), &saved.extended)?;
    held.block(saved.blocked)?;
    // The call that it stands at is left out.
    held.set_registers(&begun_again(&saved.standing))?;
    held.go(deadline)?;
    // The kernel does for it now what it would have done when it was asked to stand: whether a
    // call begins again is decided by the signals that are there.
    held.stand_anew(&saved.standing, deadline)?;
    Ok(())
}

//! aarch64.
//!
//! # System calls that were interrupted
//! When a thread has come to the stop that it was asked to make, the kernel has wound it back already: it
//! stands before the instruction of the call, with the argument that the answer had replaced, and the kernel
//! alone knows which answer that was. So it does not tell one that was interrupted from one that is about to
//! make the call, and what begins again otherwise (`restart_syscall`) looks like what begins anew. Hence
//! [`standing`] has a thread that is to be borrowed make the call once more, under the tracer's eyes: at its
//! end the kernel shows the answer, before it winds back.
//!
//! At the end the thread gets that answer at the end of another system call, so that the kernel decides anew
//! whether the call begins again, or says that a signal has come. The first argument, which
//! the kernel puts back then, is the one that the other call had.

mod code;
mod leaving;

pub(crate) use code::{errno_of, jumps};
pub(crate) use leaving::Exits;

use super::saved::{ReturnFrame, Saved};
use crate::attach::memory::TargetMemory;
use crate::attach::trace::{CallSide, Held, Stop};
use lockstead_inspect::arch::HeldRegisters;
use lockstead_inspect::memory::ReadableMemory;
use lockstead_inspect::proc::shown::shown_as;
use lockstead_inspect::proc::task::SleepingCall;
use std::fs;
use std::io;
use std::ptr;
use std::time::Instant;

/// What a function may use below the stack pointer without moving it.
pub(crate) const RED_ZONE: u64 = 0;
/// This machine, as filters have it (`AUDIT_ARCH_AARCH64`).
pub(crate) const MACHINE: u32 = 0xc000_00b7;
/// The calls that the loader, the allocator and the library make on this processor alone.
pub(crate) const CALLS: &[libc::c_long] = &[libc::SYS_faccessat, libc::SYS_readlinkat];
/// Sleeps of this processor's that begin again by themselves, or go on.
pub(crate) const SLEEPS: &[libc::c_long] = &[];
/// Sleeps of this processor's that end when somebody looks.
pub(crate) const ENDING: &[libc::c_long] = &[];

/// The kinds of relocations that lead to a function: a word that may be read, an entry of the table of
/// addresses, one of the table through which calls go.
pub(crate) mod relocation {
    pub(crate) const DIRECT: u32 = 257;
    pub(crate) const DATA: u32 = 1025;
    pub(crate) const CALL: u32 = 1026;
}

/// The instruction of a system call, `svc #0`, and its length.
const CALL: u32 = 0xd400_0001;
const INSTRUCTION: u64 = 4;
/// `mov x8, #139; svc #0`: where handlers return to.
const RESTORER: [u8; 8] = [0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];
/// The number of the call there.
const SIGRETURN: u64 = libc::SYS_rt_sigreturn.cast_unsigned();
/// What the kernel has answered that winds a call back: `ERESTARTSYS`, `ERESTARTNOINTR`, `ERESTARTNOHAND`,
/// and `ERESTART_RESTARTBLOCK`, after which another call goes on with it.
const AGAIN: [i64; 3] = [-512, -513, -514];
const GOES_ON: i64 = -516;

/// Sets of registers: those of vectors, the number of the system call, those of longer
/// vectors, and of the matrices' mode.
const VECTORS: usize = 2;
const CALL_NUMBER: usize = 0x404;
const LONG_VECTORS: usize = 0x405;
const STREAMING: usize = 0x40b;
const MATRIX: usize = 0x40c;
/// The bytes of the set of vectors, and of the head of a set whose size depends on the processor.
const VECTORS_SIZE: usize = 528;
const HEAD: usize = 16;
/// The largest that a set can be.
const MOST: usize = 72 << 10;

/// The registers beside the general ones.
#[derive(Debug)]
pub(crate) struct Extended {
    vectors: Vec<u8>,
    /// Those of longer vectors, where the thread has something in them.
    long: Option<Vec<u8>>,
}

/// Tells whether a thread of the process has a stack that the processor guards, on which calls from outside
/// are not.
pub(crate) fn has_shadow_stack(pid: u32, _: &[u32]) -> bool {
    /// The processor has such stacks.
    const GUARDED: u64 = 1 << 32;
    // SAFETY: reads a number that the kernel has given this process.
    if unsafe { libc::getauxval(libc::AT_HWCAP) } & GUARDED == 0 {
        return false;
    }
    let maps = fs::read_to_string(format!("/proc/{}/smaps", shown_as(pid))).unwrap_or_default();
    let mut flags = maps.lines().filter_map(|line| line.strip_prefix("VmFlags:"));
    flags.any(|flags| flags.split_whitespace().any(|flag| flag == "ss"))
}

/// Where the C library's descriptor of a thread lies, from the thread pointer on: no less than all of it.
pub(crate) const DESCRIPTOR: (i64, usize) = (-0xa00, 0xa00);

/// The file that has the place that handlers return to, as its name begins: the kernel's code that every
/// program has.
pub(crate) const RESTORES: &str = "linux-vdso";

/// Returns how far from the beginning of that file's code the place is.
pub(crate) fn restorer(code: &[u8]) -> Option<usize> {
    let all = code.windows(RESTORER.len()).step_by(INSTRUCTION as usize);
    Some(INSTRUCTION as usize * all.into_iter().position(|bytes| bytes == RESTORER)?)
}

/// Returns the program counter.
pub(crate) fn program_counter(registers: &HeldRegisters) -> u64 {
    registers.pc
}

/// Returns the register that has the return address of what runs, if it has saved it nowhere.
pub(crate) fn link(registers: &HeldRegisters) -> Option<u64> {
    Some(registers.regs[30])
}

/// Returns the registers that functions keep, and the others.
pub(crate) fn words(r: &mut HeldRegisters) -> (Vec<&mut u64>, Vec<&mut u64>) {
    let (others, kept) = r.regs[..30].split_at_mut(19);
    (kept.iter_mut().collect(), others.iter_mut().collect())
}

/// Returns the system call that a thread that stands still has slept in, or is about to make, without its
/// arguments: neither holds a lock that it will not hold in the call.
pub(crate) fn interrupted(
    registers: &HeldRegisters,
    memory: &TargetMemory,
) -> Option<SleepingCall> {
    let calls = |at: u64| memory.read_u64(at).is_some_and(|code| code as u32 == CALL);
    let pc = registers.pc;
    let after = if calls(pc) {
        pc + INSTRUCTION
    } else if registers.regs[0].cast_signed() == -i64::from(libc::EINTR)
        && calls(pc.wrapping_sub(INSTRUCTION))
    {
        pc
    } else {
        return None;
    };
    let number = i64::try_from(registers.regs[8]).ok()?;
    Some(SleepingCall { number, arguments: [0; 6], sp: registers.sp, pc: after })
}

/// Returns an address as it is in a word of the stack, which may have a signature above it.
pub(crate) fn address_in(word: u64, is: impl Fn(u64) -> bool) -> u64 {
    let lowest = |bits: u32| word & ((1 << bits) - 1);
    [word, lowest(52), lowest(48)].into_iter().find(|&at| is(at)).unwrap_or(word)
}

/// How a thread stands.
#[derive(Debug)]
pub(crate) struct Standing {
    registers: HeldRegisters,
    /// What the kernel has answered to the call that the thread stands before, if it was in one.
    answer: Option<i64>,
}

/// Says how a thread stands that was asked to. `None` if it has gone on meanwhile, or has registers that are
/// not saved here.
///
/// # Errors
/// What the kernel says, or the time is over.
pub(crate) fn standing(
    held: &mut Held,
    memory: &TargetMemory,
    deadline: Instant,
) -> io::Result<Option<Standing>> {
    let registers = held.registers()?;
    if has_matrix(held.number()) || !fits(&extended(held.number())?) {
        return Ok(None);
    }
    let at = memory.read_u64(registers.pc);
    if at.is_none_or(|code| code as u32 != CALL) {
        return Ok(Some(Standing { registers, answer: None }));
    }
    if held.go_to_call(deadline)? != Some(Stop::Call)
        || !matches!(held.side()?, Some(CallSide::Before(_)))
    {
        return Ok(None);
    }
    held.interrupt()?;
    if held.go_to_call(deadline)? != Some(Stop::Call) {
        return Ok(None);
    }
    let Some(CallSide::After(answer)) = held.side()? else { return Ok(None) };
    // Each stop ends what was asked for before.
    held.interrupt()?;
    if held.go_on(deadline)? != Some(Stop::Asked) {
        return Ok(None);
    }
    let now = held.registers()?;
    let stands = (now.pc, now.sp) == (registers.pc, registers.sp);
    let waits = answer == GOES_ON || AGAIN.contains(&answer);
    Ok((stands && waits).then_some(Standing { registers: now, answer: Some(answer) }))
}

/// A thread as it was before it was borrowed.
type SavedThread = Saved<Standing, Extended>;

/// Returns the registers with which a thread stands.
pub(crate) fn registers_of(standing: &Standing) -> &HeldRegisters {
    &standing.registers
}

/// Tells whether a thread is in the mode of long vectors for matrices, or has a matrix.
fn has_matrix(tid: libc::pid_t) -> bool {
    let streams = read(tid, STREAMING).is_ok_and(|head| head.get(12).is_some_and(|at| at & 1 != 0));
    let size = read(tid, MATRIX).ok().and_then(|head| head.first_chunk::<4>().copied());
    streams || size.is_some_and(|size| u32::from_ne_bytes(size) as usize > HEAD)
}

/// Reads a set of registers.
fn read(tid: libc::pid_t, set: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0_u8; MOST];
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    by_set(tid, libc::PTRACE_GETREGSET, set, &mut part)?;
    bytes.truncate(part.iov_len);
    Ok(bytes)
}

/// Writes a set of registers.
fn write(tid: libc::pid_t, set: usize, bytes: &[u8]) -> io::Result<()> {
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    by_set(tid, libc::PTRACE_SETREGSET, set, &mut part)
}

fn by_set(
    tid: libc::pid_t,
    what: libc::c_uint,
    set: usize,
    part: &mut libc::iovec,
) -> io::Result<()> {
    let set = ptr::without_provenance_mut::<libc::c_void>(set);
    // SAFETY: the kernel reads or writes the bytes of `part`, which its maker borrows so.
    match unsafe { libc::ptrace(what, tid, set, ptr::from_mut(part)) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Gives a thread that is at the beginning or the end of a system call the number of another one; -1 is none.
fn set_call(tid: libc::pid_t, number: i32) -> io::Result<()> {
    write(tid, CALL_NUMBER, &number.to_ne_bytes())
}

/// Returns the registers beside the general ones of a thread that is held.
///
/// # Errors
/// What the kernel says.
pub(crate) fn extended(tid: libc::pid_t) -> io::Result<Extended> {
    let long = read(tid, LONG_VECTORS).ok();
    // Else the set has the vectors that all processors have.
    let long = long.filter(|set| set.len() > HEAD && set[12] & 1 != 0);
    Ok(Extended { vectors: read(tid, VECTORS)?, long })
}

fn set_extended(tid: libc::pid_t, extended: &Extended) -> io::Result<()> {
    match &extended.long {
        Some(long) => write(tid, LONG_VECTORS, long),
        None => write(tid, VECTORS, &extended.vectors),
    }
}

/// The bytes of the kernel's frame: of what the signal is, of the context, and of the general registers.
const INFORMATION: usize = 128;
const CONTEXT: usize = 176;
const REGISTERS: usize = 288;
/// The room behind these, for records of the other registers.
const RECORDS: usize = 4096;

/// Returns the records of the registers beside the general ones, as the kernel leaves them to a handler.
fn records(extended: &Extended) -> Option<Vec<u8>> {
    const OF_VECTORS: u32 = 0x4650_8001;
    const OF_LONG: u32 = 0x5356_4501;
    let (registers, state) = extended.vectors.get(..VECTORS_SIZE)?.split_at(512);
    let mut records = Vec::new();
    let head = |kind: u32, size: usize| [kind, size as u32].map(u32::to_ne_bytes).concat();
    records.extend(head(OF_VECTORS, VECTORS_SIZE));
    records.extend(&state[..8]);
    records.extend(registers);
    if let Some(long) = &extended.long {
        let length = usize::from(u16::from_ne_bytes([long[8], long[9]]));
        // 32 vectors, 17 words of a bit for each byte of one.
        let size = length * 32 + length / 8 * 17;
        let bytes = long.get(HEAD..HEAD + size)?;
        records.extend(head(OF_LONG, (HEAD + size).next_multiple_of(16)));
        records.extend(u64::from(length as u16).to_ne_bytes());
        records.extend(bytes);
        records.resize(records.len().next_multiple_of(16), 0);
    }
    // The last one is empty.
    records.extend([0; 16]);
    (records.len() <= RECORDS).then_some(records)
}

fn fits(extended: &Extended) -> bool {
    records(extended).is_some()
}

/// Makes the frame by which a thread comes back by itself, below the address `below`.
///
/// # Errors
/// The registers are unlike those that are known.
pub(crate) fn frame(saved: &SavedThread, below: u64) -> io::Result<ReturnFrame> {
    /// No mode of a stack for handlers: the thread keeps the one that it has.
    const NO_STACK: u64 = 0x7f;
    let r = as_after_a_signal(&saved.standing);
    let mut bytes = vec![0; INFORMATION];
    let mut words = vec![0, 0, 0, NO_STACK, 0, saved.blocked];
    words.resize(CONTEXT / 8, 0);
    // The address of a fault, of which there is none.
    words.push(0);
    words.extend(r.regs.iter().chain([&r.sp, &r.pc, &r.pstate]));
    bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    bytes.resize(INFORMATION + CONTEXT + REGISTERS, 0);
    bytes.extend(records(&saved.extended).ok_or(io::ErrorKind::Unsupported)?);
    bytes.resize(INFORMATION + CONTEXT + REGISTERS + RECORDS, 0);
    let sp = (below - bytes.len() as u64) & !15;
    Ok(ReturnFrame { sp, pieces: vec![(sp, bytes)] })
}

/// Returns the registers with which a thread goes on after a handler: a system call that was
/// interrupted begins again, or says so if that cannot be.
fn as_after_a_signal(of: &Standing) -> HeldRegisters {
    let mut registers = of.registers;
    if of.answer == Some(GOES_ON) {
        // The end of a handler's frame has the kernel forget how it goes on.
        registers.pc += INSTRUCTION;
        registers.regs[0] = i64::from(-libc::EINTR).cast_unsigned();
    }
    registers
}

/// Has a thread begin a function, with at most six arguments, above the frame whose stack pointer is `sp`.
///
/// # Errors
/// What the kernel says; the thread comes back by itself.
pub(crate) fn begin(
    held: &mut Held,
    _: &TargetMemory,
    saved: &SavedThread,
    sp: u64,
    (function, arguments): (u64, &[u64]),
    deadline: Instant,
) -> io::Result<()> {
    /// That a jump through a register has come here, the step by step of debuggers, and that tags
    /// of memory are not looked at.
    const NOT: u64 = 3 << 10 | 1 << 21 | 1 << 25;
    if matches!(held.side()?, Some(CallSide::Before(_))) {
        // A filter that refuses what is no call puts its answer where the first argument is.
        let before = leave_out(held, saved)?;
        held.stand_anew(&before, deadline)?;
    }
    let mut registers = saved.standing.registers;
    for (at, place) in registers.regs[..6].iter_mut().enumerate() {
        *place = arguments.get(at).copied().unwrap_or(0);
    }
    (registers.pc, registers.sp, registers.regs[30]) = (function, sp, saved.restorer);
    registers.pstate &= !NOT;
    held.set_registers(&registers)
}

/// Has a thread that [`is_back`] make no call, and stand before the instructions of the restorer once
/// more. At any time it comes back by itself.
fn leave_out(held: &Held, saved: &SavedThread) -> io::Result<HeldRegisters> {
    let mut registers = held.registers()?;
    registers.pc = saved.restorer;
    held.set_registers(&registers)?;
    set_call(held.number(), -1)?;
    Ok(registers)
}

/// Tells whether a thread with these registers stands at the call that would take down the frame whose
/// stack pointer is `sp`.
pub(crate) fn is_back(registers: &HeldRegisters, restorer: u64, sp: u64) -> bool {
    registers.pc == restorer + RESTORER.len() as u64 && registers.sp == sp
}

/// Gives a thread that [`is_back`] what it was at.
///
/// # Errors
/// What the kernel says; the thread comes back by itself.
pub(crate) fn come_back(held: &mut Held, saved: &SavedThread, deadline: Instant) -> io::Result<()> {
    // At the beginning and the end of a call the kernel keeps one of the registers, x7, to itself.
    let mut before = leave_out(held, saved)?;
    held.stand_anew(&before, deadline)?;
    set_extended(held.number(), &saved.extended)?;
    let registers = saved.standing.registers;
    let Some(answer) = saved.standing.answer else {
        held.block(saved.blocked)?;
        return held.set_registers(&registers);
    };
    // The call that it makes now has the argument that is put back later.
    before.regs = registers.regs;
    held.set_registers(&before)?;
    while held.go(deadline)? != Some(CallSide::Before(SIGRETURN)) {}
    leave_out(held, saved)?;
    while !matches!(held.go(deadline)?, Some(CallSide::After(_))) {}
    // An error that is left there could be taken for a restart.
    before.regs[0] = 0;
    held.set_registers(&before)?;
    set_call(held.number(), registers.regs[8] as i32)?;
    held.block(saved.blocked)?;
    let mut after = registers;
    after.pc += INSTRUCTION;
    after.regs[0] = answer.cast_unsigned();
    // The kernel does for it now what it would have done when it was asked to stand: whether the call begins
    // again is decided by the signals that are there.
    held.stand_anew(&after, deadline)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_long_vectors_have_room_or_are_refused() {
        let vectors = vec![0; VECTORS_SIZE];
        let with = |length: u16| {
            let mut long = vec![0; HEAD];
            long[8..10].copy_from_slice(&length.to_ne_bytes());
            long.resize(HEAD + usize::from(length) * 35, 0);
            Extended { vectors: vectors.clone(), long: Some(long) }
        };
        let records = records(&with(64)).expect("it has room");
        // The vectors, their own head, 64 bytes of each of 32, 17 of 8, in sixteens, and the end.
        assert_eq!(records.len(), 528 + (16 + 32 * 64 + 17 * 8_usize).next_multiple_of(16) + 16);
        assert!(!fits(&with(256)));
    }
}

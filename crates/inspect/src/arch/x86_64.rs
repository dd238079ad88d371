//! x86-64.

use lockstead_unwind::arch::REGISTERS;
use std::io;

/// The registers of a thread that is held.
pub type HeldRegisters = libc::user_regs_struct;

/// Returns the program counter, and the registers by their numbers in DWARF.
#[must_use]
pub const fn by_number(from: &HeldRegisters) -> (u64, [u64; REGISTERS]) {
    let all = [
        from.rax, from.rdx, from.rcx, from.rbx, from.rsi, from.rdi, from.rbp, from.rsp, from.r8,
        from.r9, from.r10, from.r11, from.r12, from.r13, from.r14, from.r15, from.rip,
    ];
    (from.rip, all)
}

/// Returns the stack pointer.
#[must_use]
pub const fn stack_pointer(from: &HeldRegisters) -> u64 {
    from.rsp
}

/// Reads the registers of a thread that is traced and held.
///
/// # Errors
/// What the kernel says; `ESRCH` of one that is not held yet.
pub fn read_registers(tid: libc::pid_t) -> io::Result<HeldRegisters> {
    // SAFETY: the structure has numbers only, of which all zeroes are a valid value.
    let mut registers: HeldRegisters = unsafe { std::mem::zeroed() };
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: the kernel writes the structure, which this frame owns.
    match unsafe { libc::ptrace(libc::PTRACE_GETREGS, tid, none, &raw mut registers) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(registers),
    }
}

/// Returns where the thread's own variables are.
///
/// # Errors
/// None here: it is one of the registers.
pub fn thread_pointer(_: libc::pid_t, held: &HeldRegisters) -> io::Result<u64> {
    Ok(held.fs_base)
}

/// The number of the system call `futex`.
pub const FUTEX: i64 = 202;

/// The word of a spin lock of the C library's that is free.
pub const SPIN_FREE: u32 = 1;

/// Returns the number of the system call whose instruction ends this code: `mov $number, %eax; syscall`.
#[must_use]
pub fn number_before_call(code: &[u8]) -> Option<i64> {
    match *code {
        [.., 0xb8, a, b, c, d, 0x0f, 0x05] => Some(i32::from_le_bytes([a, b, c, d]).into()),
        _ => None,
    }
}

/// The place of a thread's number in the C library's record of it, in every library since the record has
/// these fields.
pub const RECORD_NUMBER: u64 = 0x2d0;
/// What the address of such a record is a multiple of.
pub const RECORD_ALIGNMENT: u64 = 64;

/// Tells whether the C library's record of a thread is at `address`: it starts with a pointer to itself,
/// repeated at offset 16. `word` reads the process's memory.
#[must_use]
pub fn is_record(address: u64, word: impl Fn(u64) -> Option<u64>) -> bool {
    word(address) == Some(address) && address.checked_add(16).and_then(word) == Some(address)
}

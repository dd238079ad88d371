//! aarch64.

use lockstead_unwind::arch::REGISTERS;
use std::io;

/// The registers of a thread that is held.
pub type HeldRegisters = libc::user_regs_struct;

/// Returns the program counter, and the registers by their numbers in DWARF.
#[must_use]
pub fn by_number(from: &HeldRegisters) -> (u64, [u64; REGISTERS]) {
    let all = std::array::from_fn(|number| from.regs.get(number).copied().unwrap_or(from.sp));
    (from.pc, all)
}

/// Returns the stack pointer.
#[must_use]
pub const fn stack_pointer(from: &HeldRegisters) -> u64 {
    from.sp
}

/// The sets of registers that the kernel hands out: the general ones, and the thread pointer.
const NT_PRSTATUS: usize = 1;
const NT_ARM_TLS: usize = 0x401;

/// Reads a set of registers into `into`.
///
/// # Safety
/// Any bytes are a valid `T`.
unsafe fn read_set<T>(tid: libc::pid_t, set: usize, into: &mut T) -> io::Result<()> {
    let mut part =
        libc::iovec { iov_base: std::ptr::from_mut(into).cast(), iov_len: size_of::<T>() };
    let set = std::ptr::without_provenance_mut::<libc::c_void>(set);
    // SAFETY: the kernel writes at most the length that the vector says, into what the caller lends.
    match unsafe { libc::ptrace(libc::PTRACE_GETREGSET, tid, set, &raw mut part) } {
        -1 => Err(io::Error::last_os_error()),
        _ if part.iov_len < size_of::<T>() => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

/// Reads the registers of a thread that is traced and held.
///
/// # Errors
/// What the kernel says; `ESRCH` of one that is not held yet.
pub fn read_registers(tid: libc::pid_t) -> io::Result<HeldRegisters> {
    // SAFETY: the structure has numbers only, of which all zeroes are a valid value.
    let mut registers: HeldRegisters = unsafe { std::mem::zeroed() };
    // SAFETY: the structure has numbers only, so that any bytes are one.
    unsafe { read_set(tid, NT_PRSTATUS, &mut registers) }?;
    Ok(registers)
}

/// Returns where the thread's own variables are, of a thread that is traced and held.
///
/// # Errors
/// What the kernel says.
pub fn thread_pointer(tid: libc::pid_t, _: &HeldRegisters) -> io::Result<u64> {
    let mut pointer = 0_u64;
    // SAFETY: a number of 64 bits has no bytes that are none.
    unsafe { read_set(tid, NT_ARM_TLS, &mut pointer) }?;
    Ok(pointer)
}

/// The number of the system call `futex`.
pub const FUTEX: i64 = 98;

/// The word of a spin lock of the C library's that is free.
pub const SPIN_FREE: u32 = 0;

/// Returns the number of the system call whose instruction ends this code: `mov x8, #number`, perhaps some
/// instructions that neither jump nor change the register, and `svc #0`.
#[must_use]
pub fn number_before_call(code: &[u8]) -> Option<i64> {
    const CALL: u32 = 0xd400_0001;
    const NUMBER: u32 = 8;
    let mut before = code.rchunks_exact(4).map(|code| {
        let code: [u8; 4] = code.try_into().expect("four bytes");
        u32::from_le_bytes(code)
    });
    if before.next()? != CALL {
        return None;
    }
    for code in before {
        // The same with the 32-bit name of the register, in the highest bit.
        if code & 0x7fe0_001f == 0x5280_0008 {
            return Some(i64::from(code >> 5 & 0xffff));
        }
        // Jumps and calls; and what may change the register: most name it in the lowest bits, what loads and
        // stores in any of four places.
        let is_branch = code >> 26 & 7 == 0b101;
        let names = |at: u32| code >> at & 31 == NUMBER;
        let is_memory = code >> 25 & 0b101 == 0b100;
        if is_branch || names(0) || is_memory && [5, 10, 16].into_iter().any(names) {
            return None;
        }
    }
    None
}

/// The place of a thread's number in the C library's record of it: behind a header of 192 bytes and the
/// links of the list of threads, in every library since 2.34.
pub const RECORD_NUMBER: u64 = 0xd0;
/// What the address of such a record is a multiple of.
pub const RECORD_ALIGNMENT: u64 = 16;
/// The place of the links.
const LINKS: u64 = 0xc0;

/// Tells whether the C library's record of a thread is at `address`: it is in a ring of such, so that both
/// its neighbours point back at it. `word` reads the process's memory.
#[must_use]
pub fn is_record(address: u64, word: impl Fn(u64) -> Option<u64>) -> bool {
    let Some(links) = address.checked_add(LINKS) else { return false };
    let neighbour = |at: u64| word(links.checked_add(at)?);
    // `next` first, then `prev`.
    let back = |neighbour: u64, at| neighbour.checked_add(at).and_then(&word) == Some(links);
    neighbour(0).is_some_and(|next| back(next, 8)) && neighbour(8).is_some_and(|prev| back(prev, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn the_number_of_a_call_stands_in_front_of_it() {
        const CALL: u32 = 0xd400_0001;
        const LOAD: u32 = 0xd280_0c48;
        let number = |code: &[u32]| {
            let bytes: Vec<u8> = code.iter().flat_map(|code| code.to_le_bytes()).collect();
            number_before_call(&bytes)
        };
        assert_eq!(number(&[LOAD, CALL]), Some(98));
        assert_eq!(number(&[0x5280_0c48, CALL]), Some(98), "mov w8");
        assert_eq!(number(&[0xd280_0c49, CALL]), None, "another register");
        assert_eq!(number(&[LOAD, 0xd400_0021]), None, "another call");
        // As the C library has it: `orr w1, w1, w2; mov w2, w5; mov x4, #0; sxtw x1, w1`.
        let others = [0x2a02_0021, 0x2a05_03e2, 0xd280_0004, 0x9340_7c21];
        assert_eq!(number(&[&[LOAD][..], &others, &[CALL]].concat()), Some(98));
        // `b.eq`, `bl`, `cbz x1`, `ret`, `mov x8, x1`, `ldp x7, x8, [sp]`, `ldr x1, [x8], #8`.
        for between in [
            0x5400_0040,
            0x9400_0010,
            0xb400_0041,
            0xd65f_03c0,
            0xaa01_03e8,
            0xa940_23e7,
            0xf840_8501,
        ] {
            assert_eq!(number(&[LOAD, between, CALL]), None, "{between:#x}");
        }
    }

    #[test]
    fn a_record_is_known_by_its_neighbours() {
        let (head, one) = (0x1000_u64, 0x2000_u64);
        let links = one + LINKS;
        let mut memory =
            HashMap::from([(links, head), (links + 8, head), (head, links), (head + 8, links)]);
        let read = |memory: &HashMap<u64, u64>| {
            let memory = memory.clone();
            is_record(one, move |at| memory.get(&at).copied())
        };
        assert!(read(&memory));
        memory.insert(head + 8, 0);
        assert!(!read(&memory));
        memory.insert(links, u64::MAX);
        assert!(!read(&memory));
    }
}

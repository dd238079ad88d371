//! aarch64, by its procedure call standard and its DWARF numbers.
//!
//! The return address is in a register, x30, which a function that calls others saves beside the frame
//! pointer. It may have been signed for that: the upper bits of the saved word are then no part of the
//! address, see [`without_signature`].

use core::iter;
use gimli::{AArch64, Register, Vendor};

/// The number of the frame pointer, x29.
pub const FP: Register = AArch64::X29;
/// The number of the stack pointer.
pub const SP: Register = AArch64::SP;
/// The number of the register that has the return address when a function begins, x30.
pub const RA: Register = AArch64::X30;
/// How many registers have numbers in the tables: x0 to x30 and the stack pointer.
pub const REGISTERS: usize = 32;
/// The registers that a function leaves as it found them, but for the stack pointer.
pub const KEPT: [Register; 11] = [
    AArch64::X19,
    AArch64::X20,
    AArch64::X21,
    AArch64::X22,
    AArch64::X23,
    AArch64::X24,
    AArch64::X25,
    AArch64::X26,
    AArch64::X27,
    AArch64::X28,
    AArch64::X29,
];
/// Whether a frame that is found by the frame pointer ends behind the pair that it points at: the pair may
/// lie anywhere in it.
pub const PAIR_ENDS_FRAME: bool = false;
/// How many bits an address of a program's has at most: 48, or 52 where kernel and processor have that
/// and the program has asked for it.
pub const ADDRESS_BITS: u32 = 52;
/// How many bits an address has: as a kernel is built, and what a program has asked for.
const EACH_ADDRESS_BITS: [u32; 6] = [ADDRESS_BITS, 48, 47, 42, 39, 36];

/// Whether a return address of which a table says nothing is in its register, where the call has put it.
pub(crate) const RETURNS_BY_REGISTER: bool = true;
/// The vendor whose instructions the tables have beside the common ones: that which says from where on a
/// return address is signed.
pub const VENDOR: Vendor = Vendor::AArch64;

/// Returns the address in a word that may be one with a signature above it, as `is_code` tells. The
/// signature takes the bits above those of an address.
#[must_use]
pub fn without_signature(word: u64, is_code: impl Fn(u64) -> bool) -> u64 {
    let lowest = EACH_ADDRESS_BITS.iter().map(|bits| word & ((1 << bits) - 1));
    iter::once(word).chain(lowest).find(|&address| is_code(address)).unwrap_or(word)
}

/// Returns what a register is called.
#[must_use]
pub fn register_name(register: Register) -> Option<&'static str> {
    AArch64::register_name(register)
}

/// The two instructions to which a signal handler returns: `mov x8, #139; svc #0`. Kernels have unwind
/// tables for them that are wrong on purpose, or none, so that unwinders go by the instructions.
pub const SIGNAL_RETURN: [u8; 8] = [0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];

/// The distances from the stack pointer, at [`SIGNAL_RETURN`], of what the kernel has saved of the
/// interrupted function: register 0 of 31, then the stack pointer and the program counter.
pub mod signal_frame {
    /// A `siginfo_t` of 128 bytes; of the `ucontext_t` flags, link, stack, the mask of signals in 128
    /// bytes, and what aligns the rest to 16; the address of a fault.
    pub const X0: u64 = 128 + 176 + 8;
    /// The distance of the frame pointer.
    pub const FP: u64 = X0 + 29 * 8;
    /// The distance of the register for the return address.
    pub const RA: u64 = X0 + 30 * 8;
    /// The distance of the stack pointer.
    pub const SP: u64 = X0 + 31 * 8;
    /// The distance of the program counter.
    pub const PC: u64 = X0 + 32 * 8;
}

#[cfg(test)]
mod tests {
    use super::without_signature;

    #[test]
    fn a_signature_is_taken_off_by_what_is_code() {
        let code = 0xffff_8123_4560_u64;
        let is_code = |address| address == code;
        assert_eq!(without_signature(code, is_code), code);
        assert_eq!(without_signature(0x002a_0000_0000_0000 | code, is_code), code);
        assert_eq!(without_signature(0xff7f_0000_0000_0000 | code, is_code), code);
        assert_eq!(without_signature(0x1234, is_code), 0x1234, "no code at all");
        let low = 0x55_5555_1234;
        assert_eq!(without_signature(0xff7f_ff80_0000_0000 | low, |at| at == low), low, "39 bits");
        let far = 0x000a_8123_4567_89a0_u64;
        assert_eq!(without_signature(0x7f50_0000_0000_0000 | far, |at| at == far), far, "52 bits");
    }
}

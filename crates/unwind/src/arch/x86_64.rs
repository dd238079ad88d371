//! x86-64, by the System V ABI and its DWARF numbers.

use gimli::{Register, Vendor, X86_64};

/// The number of the frame pointer, rbp.
pub const FP: Register = X86_64::RBP;
/// The number of the stack pointer, rsp.
pub const SP: Register = X86_64::RSP;
/// The number of the return address, and of the instruction pointer in expressions.
pub const RA: Register = X86_64::RA;
/// How many registers have numbers in the tables: the general ones and the return address.
pub const REGISTERS: usize = 17;
/// The registers that a function leaves as it found them, but for the stack pointer.
pub const KEPT: [Register; 6] =
    [X86_64::RBX, X86_64::RBP, X86_64::R12, X86_64::R13, X86_64::R14, X86_64::R15];
/// Whether a frame that is found by the frame pointer ends behind the pair that it points at.
pub const PAIR_ENDS_FRAME: bool = true;
/// How many bits an address of a program's has.
pub const ADDRESS_BITS: u32 = 47;

/// Whether a return address of which a table says nothing is in its register: it has none here.
pub(crate) const RETURNS_BY_REGISTER: bool = false;
/// The vendor whose instructions the tables have beside the common ones.
pub const VENDOR: Vendor = Vendor::Default;

/// Returns the address in a word that is one: nothing is above it here.
#[must_use]
pub fn without_signature(word: u64, _is_code: impl Fn(u64) -> bool) -> u64 {
    word
}

/// Returns what a register is called.
#[must_use]
pub fn register_name(register: Register) -> Option<&'static str> {
    X86_64::register_name(register)
}

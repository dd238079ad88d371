//! Writes instructions of the kernel's eBPF machine, as many as the programs here need.
//!
//! # Role
//! Gives `program.rs` its words, so that no compiler for eBPF is needed. Each function is one
//! instruction of the kernel's ABI; jumps are relative to the next one.

/// A register of the machine. `R0` holds results, `R1` to `R5` arguments, which calls destroy; `R6`
/// to
/// `R9` survive calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Register {
    R0,
    R1,
    R2,
    R6 = 6,
    R7,
    R8,
}

/// One instruction as the kernel reads it. A 64-bit constant takes two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(crate) struct Instruction {
    code: u8,
    /// The destination in the low half, the source in the high.
    registers: u8,
    offset: i16,
    immediate: i32,
}

const fn instruction(
    code: u8,
    to: Register,
    from: Register,
    offset: i16,
    immediate: i32,
) -> Instruction {
    let registers = if cfg!(target_endian = "little") {
        to as u8 | (from as u8) << 4
    } else {
        (to as u8) << 4 | from as u8
    };
    Instruction { code, registers, offset, immediate }
}

use Register::R0;

const ALU32: u8 = 0x04;
const ALU64: u8 = 0x07;
const FROM_REGISTER: u8 = 0x08;
const ADD: u8 = 0x00;
const MULTIPLY: u8 = 0x20;
const AND: u8 = 0x50;
const SHIFT_LEFT: u8 = 0x60;
const MOVE: u8 = 0xb0;

/// Makes the instruction `to = from`, 64 bits.
pub(crate) const fn copy(to: Register, from: Register) -> Instruction {
    instruction(ALU64 | MOVE | FROM_REGISTER, to, from, 0, 0)
}

/// Makes the instruction `to = value`.
pub(crate) const fn set(to: Register, value: i32) -> Instruction {
    instruction(ALU64 | MOVE, to, R0, 0, value)
}

/// Makes the instruction `to += from`, 64 bits.
pub(crate) const fn add(to: Register, from: Register) -> Instruction {
    instruction(ALU64 | ADD | FROM_REGISTER, to, from, 0, 0)
}

/// Makes the instruction `to *= value`, 32 bits.
pub(crate) const fn multiply32(to: Register, value: i32) -> Instruction {
    instruction(ALU32 | MULTIPLY, to, R0, 0, value)
}

/// Makes the instruction `to &= value`, 32 bits; the upper half becomes 0.
pub(crate) const fn and32(to: Register, value: i32) -> Instruction {
    instruction(ALU32 | AND, to, R0, 0, value)
}

/// Makes the instruction `to <<= value`, 64 bits.
pub(crate) const fn shift_left(to: Register, value: i32) -> Instruction {
    instruction(ALU64 | SHIFT_LEFT, to, R0, 0, value)
}

/// Makes the instruction `to = *(u32 *)(from + offset)`.
pub(crate) const fn load32(to: Register, from: Register, offset: i16) -> Instruction {
    instruction(0x61, to, from, offset, 0)
}

/// Makes the instruction `to = *(u64 *)(from + offset)`.
pub(crate) const fn load64(to: Register, from: Register, offset: i16) -> Instruction {
    instruction(0x79, to, from, offset, 0)
}

/// Makes the instruction `*(u32 *)(to + offset) = from`.
pub(crate) const fn store32(to: Register, from: Register, offset: i16) -> Instruction {
    instruction(0x63, to, from, offset, 0)
}

/// Makes the instruction `*(u32 *)(to + offset) = value`.
pub(crate) const fn store32_value(to: Register, offset: i16, value: i32) -> Instruction {
    instruction(0x62, to, R0, offset, value)
}

/// Makes the instruction that skips `skip` instructions if `left == value`, 64 bits.
pub(crate) const fn skip_if_equal(left: Register, value: i32, skip: i16) -> Instruction {
    instruction(0x15, left, R0, skip, value)
}

/// Makes the instruction that skips `skip` instructions if `left >= value`, 64 bits without sign.
pub(crate) const fn skip_if_not_below(left: Register, value: i32, skip: i16) -> Instruction {
    instruction(0x35, left, R0, skip, value)
}

/// Makes the instruction `R0 = function(R1, …)`.
pub(crate) const fn call(function: i32) -> Instruction {
    instruction(0x85, R0, R0, 0, function)
}

/// Makes the instruction that ends the program; its answer is `R0`.
pub(crate) const fn exit() -> Instruction {
    instruction(0x95, R0, R0, 0, 0)
}

/// Makes the instruction that puts into `to` the address `offset` bytes into the only element
/// of the map `map`.
pub(crate) const fn address_in_map(to: Register, map: i32, offset: i32) -> [Instruction; 2] {
    /// The source's place says that the constant is a map and an offset.
    const MAP_VALUE: u8 = 2;
    let registers = if cfg!(target_endian = "little") {
        to as u8 | MAP_VALUE << 4
    } else {
        (to as u8) << 4 | MAP_VALUE
    };
    [
        Instruction { code: 0x18, registers, offset: 0, immediate: map },
        Instruction { code: 0, registers: 0, offset: 0, immediate: offset },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes are those of the kernel's documentation of the instruction set.
    #[test]
    #[cfg(target_endian = "little")]
    fn instructions_are_encoded_as_the_kernel_reads_them() {
        let bytes = |i: Instruction| {
            let (offset, immediate) = (i.offset.to_le_bytes(), i.immediate.to_le_bytes());
            let [a, b] = offset;
            let [c, d, e, f] = immediate;
            [i.code, i.registers, a, b, c, d, e, f]
        };
        assert_eq!(size_of::<Instruction>(), 8);
        assert_eq!(bytes(set(Register::R0, 1)), [0xb7, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(bytes(copy(Register::R6, Register::R1)), [0xbf, 0x16, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(load64(Register::R7, Register::R6, 8)), [0x79, 0x67, 8, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(skip_if_equal(Register::R8, 0, -2)), [0x15, 8, 0xfe, 0xff, 0, 0, 0, 0]);
        let [first, second] = address_in_map(Register::R1, 5, 64);
        assert_eq!(bytes(first), [0x18, 0x21, 0, 0, 5, 0, 0, 0]);
        assert_eq!(bytes(second), [0, 0, 0, 0, 64, 0, 0, 0]);
        assert_eq!(bytes(exit()), [0x95, 0, 0, 0, 0, 0, 0, 0]);
    }
}

//! The moves of an emulated run through vector registers: compilers move two pointers at once so,
//! of which one may be a guard's.

use super::super::event::RunEnd;
use super::super::state::State;
use super::super::value::Value;
use super::state::X86;
use iced_x86::{Instruction, Mnemonic, OpKind};

type Wide = [Value; 4];

/// Does an instruction that moves whole vectors, or erases one. Returns `false` if it is another.
///
/// # Errors
/// The run cannot go on.
pub fn execute(state: &mut State<'_, X86>, instruction: &Instruction) -> Result<bool, RunEnd> {
    use Mnemonic as M;
    match instruction.mnemonic() {
        M::Movups
        | M::Movaps
        | M::Movdqu
        | M::Movdqa
        | M::Movupd
        | M::Movapd
        | M::Lddqu
        | M::Vmovups
        | M::Vmovaps
        | M::Vmovdqu
        | M::Vmovdqa
        | M::Vmovupd
        | M::Vmovapd
            if instruction.op_count() == 2 =>
        {
            let size = width(instruction);
            if !matches!(size, 16 | 32) {
                return Ok(false);
            }
            let value = read(state, instruction, 1, size)?;
            write(state, instruction, 0, value, size)?;
        }
        M::Movq | M::Vmovq | M::Movd | M::Vmovd => {
            let size = match instruction.mnemonic() {
                M::Movd | M::Vmovd => 4,
                _ => 8,
            };
            let value = read(state, instruction, 1, size)?;
            write(state, instruction, 0, value, size)?;
        }
        M::Xorps | M::Pxor | M::Xorpd
            if instruction.op_kind(1) == OpKind::Register
                && instruction.op0_register() == instruction.op1_register() =>
        {
            let zero = [Value::of(0), Value::of(0), Value::UNKNOWN, Value::UNKNOWN];
            state.processor.set_vector(instruction.op0_register(), zero);
        }
        M::Vxorps | M::Vpxor | M::Vxorpd
            if instruction.op_kind(2) == OpKind::Register
                && instruction.op1_register() == instruction.op2_register() =>
        {
            state.processor.set_vector(instruction.op0_register(), [Value::of(0); 4]);
        }
        M::Punpcklqdq if instruction.op_kind(1) == OpKind::Register => {
            let (low, high) = (instruction.op0_register(), instruction.op1_register());
            let (mut value, high) = (state.processor.vector(low), state.processor.vector(high));
            value[1] = high[0];
            state.processor.set_vector(low, value);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn width(instruction: &Instruction) -> usize {
    let of = |operand| match instruction.op_kind(operand) {
        OpKind::Register => instruction.op_register(operand).size(),
        _ => instruction.memory_size().size(),
    };
    of(0).min(of(1))
}

fn read(
    state: &State<'_, X86>,
    instruction: &Instruction,
    operand: u32,
    size: usize,
) -> Result<Wide, RunEnd> {
    // The upper half stays as it is, or is erased: it depends on the encoding.
    let mut value = [Value::of(0), Value::of(0), Value::UNKNOWN, Value::UNKNOWN];
    if instruction.op_kind(operand) == OpKind::Register {
        let register = instruction.op_register(operand);
        if register.is_gpr() {
            value[0] = state.processor.get(register);
        } else if register.is_xmm() || register.is_ymm() {
            let whole = state.processor.vector(register);
            let parts = size.div_ceil(8);
            value[..parts].copy_from_slice(&whole[..parts]);
        } else {
            return Err(RunEnd::BadCode);
        }
        value[0] = if size < 8 { value[0].zero_extended(size) } else { value[0] };
        return Ok(value);
    }
    let address = state.address(instruction).ok();
    for (at, part) in value.iter_mut().enumerate().take(size.div_ceil(8)) {
        *part = match address {
            Some(address) => state
                .memory
                .read(address.wrapping_add(8 * at as u64), size.min(8))
                .map_err(|_| RunEnd::NoMemory)?,
            None => Value::UNKNOWN,
        };
    }
    Ok(value)
}

fn write(
    state: &mut State<'_, X86>,
    instruction: &Instruction,
    operand: u32,
    value: Wide,
    size: usize,
) -> Result<(), RunEnd> {
    if instruction.op_kind(operand) == OpKind::Register {
        let register = instruction.op_register(operand);
        if register.is_gpr() {
            state.processor.set(register, value[0]);
        } else if register.is_xmm() || register.is_ymm() {
            state.processor.set_vector(register, value);
        } else {
            return Err(RunEnd::BadCode);
        }
        return Ok(());
    }
    let address = state.address(instruction)?;
    for (at, part) in value.iter().enumerate().take(size.div_ceil(8)) {
        state
            .memory
            .write(address.wrapping_add(8 * at as u64), *part, size.min(8))
            .map_err(|_| RunEnd::NoMemory)?;
    }
    Ok(())
}

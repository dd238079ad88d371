//! The moves of an emulated run through vector registers: compilers move two pointers at once so,
//! of which one may be a guard's.

use super::super::value::Value;
use super::decoded::Decoded;
use super::state::{Aarch64, bytes};
use yaxpeax_arm::armv8::a64::{Opcode, Operand, SIMDSizeCode};

/// Does an instruction that moves or erases vectors or parts of them. Returns `false` if it is
/// another.
#[must_use]
pub fn execute(processor: &mut Aarch64, instruction: &Decoded) -> bool {
    use Opcode as O;
    use Operand::{
        Imm64, ImmShift, Register, SIMDRegister, SIMDRegisterElements, SIMDRegisterElementsLane,
    };
    use SIMDSizeCode::{D, Q};
    let [first, second, third, _] = instruction.what.operands;
    match (instruction.what.opcode, first, second, third) {
        (
            O::MOVI,
            SIMDRegisterElements(_, to, _) | SIMDRegister(D, to),
            Imm64(0) | ImmShift(0, _),
            _,
        ) => processor.set_vector(to, [Value::of(0); 2]),
        (O::EOR, SIMDRegisterElements(_, to, _), a, b) if a == b => {
            processor.set_vector(to, [Value::of(0); 2]);
        }
        (
            O::ORR,
            SIMDRegisterElements(size, to, _),
            SIMDRegisterElements(_, a, _),
            SIMDRegisterElements(_, b, _),
        ) if a == b => {
            let [low, high] = processor.vector(a);
            processor.set_vector(to, [low, if size == Q { high } else { Value::of(0) }]);
        }
        (O::FMOV, SIMDRegister(size, to), Register(_, from), _) => {
            let value = processor.get(from).zero_extended(width(size));
            processor.set_vector(to, [value, Value::of(0)]);
        }
        (O::FMOV, SIMDRegister(size, to), SIMDRegister(_, from), _) => {
            let value = processor.vector(from)[0].zero_extended(width(size));
            processor.set_vector(to, [value, Value::of(0)]);
        }
        (O::FMOV, Register(of, to), SIMDRegister(size, from), _) => {
            let value = processor.vector(from)[0].zero_extended(width(size).min(bytes(of)));
            processor.set(to, value);
        }
        (O::DUP, SIMDRegisterElements(Q, to, D), Register(_, from), _) => {
            processor.set_vector(to, [processor.get(from); 2]);
        }
        (O::DUP, SIMDRegisterElements(Q, to, D), SIMDRegisterElementsLane(_, from, D, lane), _) => {
            processor.set_vector(to, [part(processor, from, D, lane); 2]);
        }
        (O::DUP, SIMDRegister(size, to), SIMDRegisterElementsLane(_, from, of, lane), _)
            if size == of =>
        {
            let value = part(processor, from, of, lane);
            processor.set_vector(to, [value, Value::of(0)]);
        }
        (O::INS, SIMDRegisterElementsLane(_, to, size, lane), Register(_, from), _) => {
            insert(processor, (to, size, lane), processor.get(from));
        }
        (
            O::INS,
            SIMDRegisterElementsLane(_, to, size, lane),
            SIMDRegisterElementsLane(_, from, of, from_lane),
            _,
        ) if size == of => {
            insert(processor, (to, size, lane), part(processor, from, of, from_lane));
        }
        (O::UMOV, Register(_, to), SIMDRegisterElementsLane(_, from, of, lane), _) => {
            processor.set(to, part(processor, from, of, lane));
        }
        (
            O::ZIP1,
            SIMDRegisterElements(Q, to, D),
            SIMDRegisterElements(_, a, _),
            SIMDRegisterElements(_, b, _),
        ) => processor.set_vector(to, [processor.vector(a)[0], processor.vector(b)[0]]),
        _ => return false,
    }
    true
}

const fn width(size: SIMDSizeCode) -> usize {
    match size {
        SIMDSizeCode::B => 1,
        SIMDSizeCode::H => 2,
        SIMDSizeCode::S => 4,
        SIMDSizeCode::D | SIMDSizeCode::Q => 8,
    }
}

/// Returns one of the numbers that a vector register has.
fn part(processor: &Aarch64, register: u16, size: SIMDSizeCode, lane: u8) -> Value {
    let at = usize::from(lane) * width(size);
    let half = processor.vector(register).get(at / 8).copied().unwrap_or(Value::UNKNOWN);
    half.shifted_down((at % 8 * 8) as u32).zero_extended(width(size))
}

fn insert(processor: &mut Aarch64, (register, size, lane): (u16, SIMDSizeCode, u8), value: Value) {
    let at = usize::from(lane) * width(size);
    let mut whole = processor.vector(register);
    if let Some(half) = whole.get_mut(at / 8) {
        *half = half.with(value, width(size), (at % 8 * 8) as u32);
    }
    processor.set_vector(register, whole);
}

//! The instructions of an emulated run that do not jump.
//!
//! # Role
//! Those that clean-up code is made of are done as the processor does them. Of all others it is known
//! by the group that they belong to what they write: that is not known afterwards. Loads and stores
//! of other kinds end a run.

use super::super::event::{Event, RunEnd};
use super::super::state::State;
use super::super::value::Value;
use super::arithmetic::{add, field, holds, of_logic, subtract};
use super::atomics;
use super::decoded::Decoded;
use super::memory;
use super::state::{Aarch64, Flags, bytes, moved};
use super::vector;
use yaxpeax_arm::armv8::a64::{Opcode, Operand, ShiftStyle};

/// How an instruction names the register that has the start of the thread's own variables.
const THREAD_POINTER: u16 = 0x5e82;

/// Does one instruction that does not jump; what others could see goes to `events`. `pc`: its
/// address.
///
/// # Errors
/// The run cannot go on.
pub fn execute(
    state: &mut State<'_, Aarch64>,
    instruction: &Decoded,
    pc: u64,
    events: &mut Vec<Event>,
) -> Result<(), RunEnd> {
    let done = vector::execute(&mut state.processor, instruction)
        || atomics::execute(state, instruction, pc, events)?
        || memory::execute(state, instruction, pc)?
        || system(state, instruction)?
        || calculate(&mut state.processor, instruction, pc)
        || select(&mut state.processor, instruction)
        || multiply(&mut state.processor, instruction)
        || bits(&mut state.processor, instruction);
    if done { Ok(()) } else { forget(&mut state.processor, instruction) }
}

/// Does what is for the processor's order, its registers and its signatures.
fn system(state: &mut State<'_, Aarch64>, instruction: &Decoded) -> Result<bool, RunEnd> {
    use Opcode as O;
    let [first, second, ..] = instruction.what.operands;
    match instruction.what.opcode {
        // `chkfeat`, which answers in a register.
        O::HINT if (first, second) == (Operand::ControlReg(5), Operand::Immediate(0)) => {
            state.processor.set(16, Value::UNKNOWN);
        }
        O::HINT | O::ISB | O::SB | O::DSB(_) | O::DMB(_) | O::SSBB | O::PSSBB => {}
        O::PRFM | O::PRFUM => {}
        // A signature in the register for the return address is seen through where it returns.
        O::PACIASP | O::PACIBSP | O::PACIAZ | O::PACIBZ => {}
        O::AUTIASP | O::AUTIBSP | O::AUTIAZ | O::AUTIBZ | O::XPACLRI | O::PACM => {}
        O::CLREX => state.processor.monitor = None,
        O::MRS => {
            let is_own = second == Operand::SystemReg(THREAD_POINTER);
            let pointer = state.thread_pointer.filter(|_| is_own);
            state.processor.set_operand(&first, pointer.map_or(Value::UNKNOWN, Value::of));
            // A random number comes with flags.
            if !is_own {
                state.processor.flags = Flags::default();
            }
        }
        // Of a user's registers one has the flags, others say how to reckon, or empty the vectors.
        O::MSR if first == Operand::SystemReg(THREAD_POINTER) => return Err(RunEnd::BadCode),
        O::MSR => {
            state.processor.flags = Flags::default();
            state.processor.forget_vectors();
        }
        // It may erase memory.
        O::SYS(_) | O::SYSL(_) => return Err(RunEnd::BadCode),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Returns the bytes of a general register that is named.
fn size_of(operand: &Operand) -> Option<usize> {
    match *operand {
        Operand::Register(size, _) | Operand::RegisterOrSP(size, _) => Some(bytes(size)),
        _ => None,
    }
}

/// Does sums, differences and operations on bits, and puts constants into registers.
fn calculate(processor: &mut Aarch64, instruction: &Decoded, pc: u64) -> bool {
    use Opcode as O;
    let (name, [to, first, second, _]) = (instruction.what.opcode, &instruction.what.operands);
    let Some(size) = size_of(to) else { return false };
    let value = match name {
        O::ADR | O::ADRP => {
            let Operand::PCOffset(by) = *first else { return false };
            let from = if name == O::ADRP { pc & !0xfff } else { pc };
            Value::of(from.wrapping_add_signed(by))
        }
        O::MOVZ | O::MOVN | O::MOVK => {
            let Operand::ImmShift(number, by) = *first else { return false };
            if usize::from(by) >= 8 * size {
                return false;
            }
            let number = Value::of(u64::from(number) << by);
            match name {
                O::MOVZ => number,
                O::MOVN => number.not(),
                _ => {
                    let Some(old) = processor.operand(to, size) else { return false };
                    old.and(Value::of(!(0xffff << by))).or(number)
                }
            }
        }
        _ => {
            let operand = |operand| processor.operand(operand, size);
            let Some((a, b)) = operand(first).zip(operand(second)) else { return false };
            let (value, flags) = match name {
                O::ADD | O::ADDS => add(a, b, Some(false), size),
                O::SUB | O::SUBS => subtract(a, b, Some(true), size),
                O::ADC | O::ADCS => add(a, b, processor.flags.carry, size),
                O::SBC | O::SBCS => subtract(a, b, processor.flags.carry, size),
                _ => {
                    let value = match name {
                        O::AND | O::ANDS => a.and(b),
                        O::BIC | O::BICS => a.and(b.not()),
                        O::ORR => a.or(b),
                        O::ORN => a.or(b.not()),
                        O::EOR if first == second => Value::of(0),
                        O::EOR => a.xor(b),
                        O::EON => a.xor(b.not()),
                        _ => return false,
                    };
                    (value, of_logic(value, size))
                }
            };
            if matches!(name, O::ADDS | O::SUBS | O::ADCS | O::SBCS | O::ANDS | O::BICS) {
                processor.flags = flags;
            }
            value
        }
    };
    processor.set_operand(to, value)
}

/// Does what depends on a condition.
fn select(processor: &mut Aarch64, instruction: &Decoded) -> bool {
    use Opcode as O;
    let (name, [to, first, second, last]) = (instruction.what.opcode, instruction.what.operands);
    let (Operand::ConditionCode(condition), Some(size)) = (last, size_of(&to)) else {
        return false;
    };
    let holds = holds(&processor.flags, condition);
    match name {
        O::CCMP | O::CCMN => {
            let Operand::Immediate(otherwise) = second else { return false };
            let operand = |operand| processor.operand(operand, size);
            let Some((a, b)) = operand(&to).zip(operand(&first)) else { return false };
            processor.flags = match (holds, name) {
                (Some(true), O::CCMP) => subtract(a, b, Some(true), size).1,
                (Some(true), _) => add(a, b, Some(false), size).1,
                (Some(false), _) => Flags {
                    negative: Some(otherwise & 8 != 0),
                    zero: Some(otherwise & 4 != 0),
                    carry: Some(otherwise & 2 != 0),
                    overflow: Some(otherwise & 1 != 0),
                },
                (None, _) => Flags::default(),
            };
        }
        O::CSEL | O::CSINC | O::CSINV | O::CSNEG => {
            let operand = |operand| processor.operand(operand, size);
            let Some((a, b)) = operand(&first).zip(operand(&second)) else { return false };
            let b = match name {
                O::CSINC => add(b, Value::of(1), Some(false), size).0,
                O::CSINV => b.not(),
                O::CSNEG => subtract(Value::of(0), b, Some(true), size).0,
                _ => b,
            };
            let value = match holds {
                Some(true) => a,
                Some(false) => b,
                None if a == b => a,
                None => Value::UNKNOWN,
            };
            processor.set_operand(&to, value);
        }
        _ => return false,
    }
    true
}

/// Does products, quotients, and moves of bits by a register.
fn multiply(processor: &mut Aarch64, instruction: &Decoded) -> bool {
    use Opcode as O;
    let (name, [to, first, second, third]) = (instruction.what.opcode, &instruction.what.operands);
    let (Some(size), Some(of)) = (size_of(to), size_of(first)) else { return false };
    let how = match name {
        O::LSLV => Some(ShiftStyle::LSL),
        O::LSRV => Some(ShiftStyle::LSR),
        O::ASRV => Some(ShiftStyle::ASR),
        O::RORV => Some(ShiftStyle::ROR),
        _ => None,
    };
    let known = matches!(
        name,
        O::MADD
            | O::MSUB
            | O::SMADDL
            | O::SMSUBL
            | O::UMADDL
            | O::UMSUBL
            | O::UMULH
            | O::SMULH
            | O::UDIV
            | O::SDIV
    );
    if how.is_none() && !known {
        return false;
    }
    let operand = |operand, size| processor.operand(operand, size);
    let Some((a, b)) = operand(first, of).zip(operand(second, of)) else { return false };
    let value = if let Some(how) = how {
        let by = b.get(1).map(|by| by as u32 % (8 * size as u32));
        by.map_or(Value::UNKNOWN, |by| moved(a, how, by, size))
    } else {
        let signed = |value: Value| value.sign_extended(of).get(8).map(u64::cast_signed);
        let (x, y) = (a.get(of), b.get(of));
        let (x_signed, y_signed) = (signed(a), signed(b));
        let rest = operand(third, size).and_then(|rest| rest.get(size));
        let unsigned_both = || x.zip(y);
        let signed_both = || x_signed.zip(y_signed);
        let product = |signed: bool| match signed {
            true => signed_both().map(|(x, y)| x.wrapping_mul(y).cast_unsigned()),
            false => unsigned_both().map(|(x, y)| x.wrapping_mul(y)),
        };
        let sum = |signed, minus: bool| {
            let (product, rest) = product(signed).zip(rest)?;
            Some(if minus { rest.wrapping_sub(product) } else { rest.wrapping_add(product) })
        };
        let number = match name {
            O::MADD | O::UMADDL => sum(false, false),
            O::MSUB | O::UMSUBL => sum(false, true),
            O::SMADDL => sum(true, false),
            O::SMSUBL => sum(true, true),
            O::UMULH => {
                unsigned_both().map(|(x, y)| ((u128::from(x) * u128::from(y)) >> 64) as u64)
            }
            O::SMULH => signed_both().map(|(x, y)| ((i128::from(x) * i128::from(y)) >> 64) as u64),
            O::UDIV => unsigned_both().map(|(x, y)| x.checked_div(y).unwrap_or(0)),
            _ => signed_both().map(|(x, y)| match y {
                0 => 0,
                _ => x.wrapping_div(y).cast_unsigned(),
            }),
        };
        number.map_or(Value::UNKNOWN, Value::of)
    };
    processor.set_operand(to, value)
}

/// Moves fields of bits, turns numbers round, and counts bits.
fn bits(processor: &mut Aarch64, instruction: &Decoded) -> bool {
    use Opcode as O;
    let (name, [to, first, second, third]) = (instruction.what.opcode, &instruction.what.operands);
    let Some(size) = size_of(to) else { return false };
    let Some(value) = processor.operand(first, size) else { return false };
    let width = 8 * size as u32;
    let value = match (name, *second, *third) {
        (O::UBFM | O::SBFM | O::BFM, Operand::Immediate(low), Operand::Immediate(high)) => {
            let into = processor.operand(to, size);
            if name == O::BFM && into.is_none() {
                return false;
            }
            let into = into.filter(|_| name == O::BFM);
            field(value, (low, high), size, name == O::SBFM, into)
        }
        (O::EXTR, _, Operand::Immediate(by)) if by < width => {
            let Some(lower) = processor.operand(second, size) else { return false };
            match by {
                0 => lower,
                _ => {
                    let upper = super::state::shifted_up(value, width - by);
                    lower.zero_extended(size).shifted_down(by).or(upper)
                }
            }
        }
        (O::CLZ | O::RBIT | O::REV, ..) => {
            let turned = value.get(size).map(|number| match name {
                O::CLZ => u64::from(number.leading_zeros()) - u64::from(64 - width),
                O::RBIT => number.reverse_bits() >> (64 - width),
                _ => number.swap_bytes() >> (64 - width),
            });
            turned.map_or(Value::UNKNOWN, Value::of)
        }
        _ => return false,
    };
    processor.set_operand(to, value)
}

/// Takes what an instruction writes for unknown.
fn forget(processor: &mut Aarch64, instruction: &Decoded) -> Result<(), RunEnd> {
    use Opcode as O;
    let first = instruction.what.operands[0];
    match instruction.group() {
        Group::Numbers => match first {
            Operand::Register(_, number) => {
                processor.set(number, Value::UNKNOWN);
                // Those that set flags alone have no register that they write.
                processor.flags = Flags::default();
                Ok(())
            }
            Operand::RegisterOrSP(_, number) if number != super::state::ZERO => {
                processor.set_pointer(number, Value::UNKNOWN);
                Ok(())
            }
            _ => Err(RunEnd::BadCode),
        },
        Group::Vectors => {
            match first {
                Operand::Register(_, number) => processor.set(number, Value::UNKNOWN),
                Operand::SIMDRegister(_, number)
                | Operand::SIMDRegisterElements(_, number, _)
                | Operand::SIMDRegisterElementsLane(_, number, _, _) => {
                    processor.set_vector(number, [Value::UNKNOWN; 2]);
                }
                _ => return Err(RunEnd::BadCode),
            }
            let compares = matches!(
                instruction.what.opcode,
                O::FCMP | O::FCMPE | O::FCCMP | O::FCCMPE | O::FJCVTZS
            );
            if compares {
                processor.flags = Flags::default();
            }
            Ok(())
        }
        Group::Others => Err(RunEnd::BadCode),
    }
}

/// What an instruction works on, as its encoding says.
enum Group {
    /// General registers, or constants and these.
    Numbers,
    /// The registers of vectors, or parts of them.
    Vectors,
    /// Memory, or the processor itself.
    Others,
}

impl Decoded {
    fn group(&self) -> Group {
        match self.word >> 25 & 0xf {
            0b1000 | 0b1001 | 0b0101 | 0b1101 => Group::Numbers,
            0b0111 | 0b1111 => Group::Vectors,
            _ => Group::Others,
        }
    }
}

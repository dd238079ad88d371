//! The instructions of an emulated run that do not jump.
//!
//! # Role
//! Those that clean-up code is made of are done as the processor does them. Of all others the
//! decoder says which registers, flags and memory they write: these are not known afterwards.

use super::super::event::{Change, Event, RunEnd};
use super::super::state::State;
use super::super::value::Value;
use super::arithmetic::{self, Shift, add, holds, shift, subtract};
use super::state::{Flags, X86};
use super::vector;
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

/// The most bytes that a repeated instruction may move.
const MOST_REPEATS: u64 = 16 << 10;

/// Does one instruction that does not jump; what others could see goes to `events`.
///
/// # Errors
/// The run cannot go on.
pub fn execute(
    state: &mut State<'_, X86>,
    instruction: &Instruction,
    events: &mut Vec<Event>,
) -> Result<(), RunEnd> {
    let seen = Locked::before(state, instruction);
    one(state, instruction)?;
    events.extend(seen.and_then(|seen| seen.after(state)));
    Ok(())
}

/// A locked instruction, as it was before it was done.
struct Locked {
    address: u64,
    size: usize,
    change: Change,
    before: Option<u64>,
}

impl Locked {
    fn before(state: &State<'_, X86>, instruction: &Instruction) -> Option<Locked> {
        let in_memory = (0..instruction.op_count().min(2))
            .any(|operand| instruction.op_kind(operand) == OpKind::Memory);
        let exchanges = instruction.mnemonic() == Mnemonic::Xchg;
        if !in_memory || !(exchanges || instruction.has_lock_prefix()) {
            return None;
        }
        let size = instruction.memory_size().size();
        let address = state.address(instruction).ok()?;
        let number = |value: Result<Value, _>| value.ok().and_then(|value: Value| value.get(size));
        let change = match instruction.mnemonic() {
            Mnemonic::Xchg => Change::Exchange,
            Mnemonic::Cmpxchg => Change::CompareExchange {
                expected: state.processor.full(Register::RAX).get(size),
                new: number(state.operand(instruction, 1)),
            },
            _ => Change::Update,
        };
        let before = state.memory.read(address, size).ok()?.get(size);
        Some(Locked { address, size, change, before })
    }

    fn after(self, state: &State<'_, X86>) -> Option<Event> {
        let after = state.memory.read(self.address, self.size).ok()?.get(self.size);
        let Locked { address, size, change, before } = self;
        Some(Event::Locked { address, size, change, before, after })
    }
}

fn one(state: &mut State<'_, X86>, instruction: &Instruction) -> Result<(), RunEnd> {
    use Mnemonic as M;
    if vector::execute(state, instruction)? {
        return Ok(());
    }
    let size = if instruction.op_count() > 0 { State::<X86>::size(instruction, 0) } else { 0 };
    // Numbers of other sizes are none of the general registers'.
    if !matches!(size, 0 | 1 | 2 | 4 | 8) {
        return forget(state, instruction);
    }
    match instruction.mnemonic() {
        M::Nop
        | M::Endbr64
        | M::Pause
        | M::Mfence
        | M::Sfence
        | M::Lfence
        | M::Prefetcht0
        | M::Prefetchw
        | M::Prefetchnta => {}
        M::Hlt => return Err(RunEnd::Stopped),
        M::Mov => {
            let value = state.operand(instruction, 1)?;
            state.set_operand(instruction, 0, value)?;
        }
        M::Movzx => {
            let value = state.operand(instruction, 1)?;
            state.set_operand(
                instruction,
                0,
                value.zero_extended(State::<X86>::size(instruction, 1)),
            )?;
        }
        M::Movsx | M::Movsxd => {
            let value = state.operand(instruction, 1)?;
            state.set_operand(
                instruction,
                0,
                value.sign_extended(State::<X86>::size(instruction, 1)),
            )?;
        }
        M::Lea => {
            let value = state.address(instruction).map_or(Value::UNKNOWN, Value::of);
            state.set_operand(instruction, 0, value)?;
        }
        M::Push => {
            let value = state.operand(instruction, 0)?;
            state.push(value)?;
        }
        M::Pop => {
            let value = state.pop()?;
            state.set_operand(instruction, 0, value)?;
        }
        M::Leave => {
            state.processor.set_full(Register::RSP, state.processor.full(Register::RBP));
            let value = state.pop()?;
            state.processor.set_full(Register::RBP, value);
        }
        M::Xchg => {
            let (a, b) = (state.operand(instruction, 0)?, state.operand(instruction, 1)?);
            state.set_operand(instruction, 0, b)?;
            state.set_operand(instruction, 1, a)?;
        }
        M::Cmpxchg => compare_exchange(state, instruction, size)?,
        M::Xadd => {
            let (a, b) = (state.operand(instruction, 0)?, state.operand(instruction, 1)?);
            let sum = add(&mut state.processor.flags, a, b, Some(false), size);
            state.set_operand(instruction, 1, a)?;
            state.set_operand(instruction, 0, sum)?;
        }
        M::Cdqe => {
            state.processor.set(Register::RAX, state.processor.get(Register::EAX).sign_extended(4))
        }
        M::Cwde => {
            state.processor.set(Register::EAX, state.processor.get(Register::AX).sign_extended(2))
        }
        M::Cqo | M::Cdq => {
            let (from, to, size) = match instruction.mnemonic() {
                M::Cqo => (Register::RAX, Register::RDX, 8),
                _ => (Register::EAX, Register::EDX, 4),
            };
            let sign = shift(
                &mut Flags::default(),
                Shift::Arithmetic,
                state.processor.get(from),
                Value::of(8 * size as u64 - 1),
                size,
            );
            state.processor.set(to, sign);
        }
        M::Stosb | M::Stosd | M::Stosq | M::Movsb | M::Movsq => strings(state, instruction)?,
        _ => return with_condition(state, instruction, size),
    }
    Ok(())
}

fn with_condition(
    state: &mut State<'_, X86>,
    instruction: &Instruction,
    size: usize,
) -> Result<(), RunEnd> {
    let condition = instruction.condition_code();
    let name = instruction.mnemonic();
    if condition == iced_x86::ConditionCode::None || instruction.is_jcc_short_or_near() {
        return calculate(state, instruction, size);
    }
    let holds = holds(&state.processor.flags, condition);
    if instruction.op_count() == 1 {
        let value = holds.map_or(Value::UNKNOWN, |holds| Value::of(holds.into()));
        state.set_operand(instruction, 0, value.zero_extended(1))?;
    } else if name_is_move(name) {
        let (old, new) = (state.operand(instruction, 0)?, state.operand(instruction, 1)?);
        let value = match holds {
            Some(true) => new,
            Some(false) => old,
            None if old == new => old,
            None => Value::UNKNOWN,
        };
        state.set_operand(instruction, 0, value)?;
    } else {
        forget(state, instruction)?;
    }
    Ok(())
}

fn name_is_move(name: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        name,
        M::Cmova
            | M::Cmovae
            | M::Cmovb
            | M::Cmovbe
            | M::Cmove
            | M::Cmovg
            | M::Cmovge
            | M::Cmovl
            | M::Cmovle
            | M::Cmovne
            | M::Cmovno
            | M::Cmovnp
            | M::Cmovns
            | M::Cmovo
            | M::Cmovp
            | M::Cmovs
    )
}

fn calculate(
    state: &mut State<'_, X86>,
    instruction: &Instruction,
    size: usize,
) -> Result<(), RunEnd> {
    use Mnemonic as M;
    let name = instruction.mnemonic();
    let operand = |state: &State<'_, X86>, number| state.operand(instruction, number);
    let same = instruction.op_count() == 2
        && instruction.op_kind(0) == OpKind::Register
        && instruction.op_kind(1) == OpKind::Register
        && instruction.op0_register() == instruction.op1_register();
    let value = match name {
        M::Xor | M::Sub if same => {
            state.processor.flags.of_logic(Value::of(0), size);
            Value::of(0)
        }
        M::Add | M::Adc | M::Sub | M::Sbb | M::Cmp => {
            let (a, b) = (operand(state, 0)?, operand(state, 1)?);
            let carry = match name {
                M::Adc | M::Sbb => state.processor.flags.carry,
                _ => Some(false),
            };
            match name {
                M::Add | M::Adc => add(&mut state.processor.flags, a, b, carry, size),
                _ => subtract(&mut state.processor.flags, a, b, carry, size),
            }
        }
        M::Inc | M::Dec => {
            let (carry, a) = (state.processor.flags.carry, operand(state, 0)?);
            let with = if name == M::Inc { add } else { subtract };
            let value = with(&mut state.processor.flags, a, Value::of(1), Some(false), size);
            state.processor.flags.carry = carry;
            value
        }
        M::Neg => {
            let a = operand(state, 0)?;
            subtract(&mut state.processor.flags, Value::of(0), a, Some(false), size)
        }
        M::Not => operand(state, 0)?.not(),
        M::And | M::Test | M::Or | M::Xor => {
            let (a, b) = (operand(state, 0)?, operand(state, 1)?);
            let value = match name {
                M::Or => a.or(b),
                M::Xor => a.xor(b),
                _ => a.and(b),
            };
            state.processor.flags.of_logic(value, size);
            value
        }
        M::Shl | M::Sal | M::Shr | M::Sar | M::Rol | M::Ror => {
            let how = match name {
                M::Shr => Shift::Right,
                M::Sar => Shift::Arithmetic,
                M::Rol => Shift::RotateLeft,
                M::Ror => Shift::RotateRight,
                _ => Shift::Left,
            };
            let (a, count) = (operand(state, 0)?, operand(state, 1)?);
            shift(&mut state.processor.flags, how, a, count, size)
        }
        M::Imul if instruction.op_count() >= 2 => {
            let last = instruction.op_count() - 1;
            let (a, b) = (operand(state, last - 1)?, operand(state, last)?);
            state.processor.flags = Flags::default();
            let both = a.get(size).zip(b.get(size));
            both.map_or(Value::UNKNOWN, |(a, b)| Value::of(a.wrapping_mul(b)))
        }
        M::Bt | M::Bts | M::Btr | M::Btc => {
            // Of a bit further off than the number itself nothing is known.
            let (a, at) = (operand(state, 0)?, operand(state, 1)?);
            let at = at.get(1).filter(|_| {
                instruction.op_kind(0) == OpKind::Register
                    || instruction.op_kind(1) != OpKind::Register
            });
            let Some(at) = at.map(|at| at % (8 * size as u64)) else {
                return forget(state, instruction);
            };
            let (bits, known) = a.parts();
            state.processor.flags.carry = (known >> at & 1 != 0).then_some(bits >> at & 1 != 0);
            match name {
                M::Bts => a.or(Value::of(1 << at)),
                M::Btr => a.and(Value::of(!(1 << at))),
                M::Btc => a.xor(Value::of(1 << at)),
                _ => return Ok(()),
            }
        }
        M::Bsf | M::Tzcnt | M::Bsr | M::Lzcnt | M::Popcnt => {
            let Some(number) = operand(state, 1)?.get(size).filter(|&number| number != 0) else {
                return forget(state, instruction);
            };
            state.processor.flags = Flags {
                zero: (name == M::Bsf || name == M::Bsr).then_some(false),
                ..Flags::default()
            };
            let above = number.leading_zeros() - (64 - 8 * size as u32);
            Value::of(
                match name {
                    M::Bsf | M::Tzcnt => number.trailing_zeros(),
                    M::Bsr => 8 * size as u32 - 1 - above,
                    M::Lzcnt => above,
                    _ => number.count_ones(),
                }
                .into(),
            )
        }
        _ => return forget(state, instruction),
    };
    if !matches!(name, M::Cmp | M::Test) {
        state.set_operand(instruction, 0, value)?;
    }
    Ok(())
}

fn compare_exchange(
    state: &mut State<'_, X86>,
    instruction: &Instruction,
    size: usize,
) -> Result<(), RunEnd> {
    let (old, new) = (state.operand(instruction, 0)?, state.operand(instruction, 1)?);
    let expected = state.processor.get(if size == 8 { Register::RAX } else { part_of_rax(size) });
    subtract(&mut state.processor.flags, expected, old, Some(false), size);
    match state.processor.flags.zero {
        Some(true) => state.set_operand(instruction, 0, new)?,
        Some(false) => state.processor.set(part_of_rax(size), old),
        None => {
            state.set_operand(instruction, 0, Value::UNKNOWN)?;
            state.processor.set(part_of_rax(size), Value::UNKNOWN);
        }
    }
    Ok(())
}

fn part_of_rax(size: usize) -> Register {
    match size {
        1 => Register::AL,
        2 => Register::AX,
        4 => Register::EAX,
        _ => Register::RAX,
    }
}

/// Fills or copies memory, upwards as all compilers do.
fn strings(state: &mut State<'_, X86>, instruction: &Instruction) -> Result<(), RunEnd> {
    let size = instruction.memory_size().size();
    let known = |state: &State<'_, X86>, register| {
        state.processor.full(register).get(8).ok_or(RunEnd::UnknownStore)
    };
    let times = match instruction.has_rep_prefix() {
        true => known(state, Register::RCX)?,
        false => 1,
    };
    if times.saturating_mul(size as u64) > MOST_REPEATS {
        return Err(RunEnd::Bound);
    }
    state.moved += times;
    let copies = matches!(instruction.mnemonic(), Mnemonic::Movsb | Mnemonic::Movsq);
    for _ in 0..times {
        let to = known(state, Register::RDI)?;
        let value = if copies {
            let from = known(state, Register::RSI)?;
            state.processor.set_full(Register::RSI, Value::of(from.wrapping_add(size as u64)));
            state.memory.read(from, size).map_err(|_| RunEnd::NoMemory)?
        } else {
            state.processor.full(Register::RAX)
        };
        state.memory.write(to, value, size).map_err(|_| RunEnd::NoMemory)?;
        state.processor.set_full(Register::RDI, Value::of(to.wrapping_add(size as u64)));
    }
    if instruction.has_rep_prefix() {
        state.processor.set_full(Register::RCX, Value::of(0));
    }
    Ok(())
}

/// Takes what an instruction writes for unknown.
pub(super) fn forget(state: &mut State<'_, X86>, instruction: &Instruction) -> Result<(), RunEnd> {
    let writes = |access| {
        matches!(
            access,
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        )
    };
    let mut information = InstructionInfoFactory::new();
    let used = information.info(instruction);
    for register in used.used_registers().iter().filter(|used| writes(used.access())) {
        let register = register.register();
        if register.full_register() == Register::RSP {
            return Err(RunEnd::BadCode);
        }
        if register.is_gpr() {
            state.processor.set_full(register, Value::UNKNOWN);
        } else if register.is_vector_register() {
            state.processor.set_vector(register, [Value::UNKNOWN; 4]);
        }
    }
    if used.used_memory().iter().any(|used| writes(used.access())) {
        let size = instruction.memory_size().size();
        if !(1..=64).contains(&size) || instruction.has_rep_prefix() {
            return Err(RunEnd::BadCode);
        }
        let address = state.address(instruction)?;
        for at in 0..size as u64 {
            state
                .memory
                .write(address.wrapping_add(at), Value::UNKNOWN, 1)
                .map_err(|_| RunEnd::NoMemory)?;
        }
    }
    if instruction.rflags_modified() != 0 {
        state.processor.flags = Flags::default();
    }
    Ok(())
}

/// Tells whether a conditional jump is taken.
#[must_use]
pub fn jumps(state: &State<'_, X86>, instruction: &Instruction) -> Option<bool> {
    arithmetic::holds(&state.processor.flags, instruction.condition_code())
}

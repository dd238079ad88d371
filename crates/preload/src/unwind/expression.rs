//! DWARF expressions, as far as unwind tables use them: the frames of signal
//! handlers, functions that realign their stack, and the stubs of the procedure
//! linkage table. No jumps, so that each ends.

use super::End;
use super::row::{Expression, RBP, RSP};
use super::stack::Memory;
use gimli::{Encoding, Format, Operation, Register};

/// The encoding of `.eh_frame` on x86-64.
const ENCODING: Encoding = Encoding { address_size: 8, format: Format::Dwarf32, version: 4 };

/// The number of the instruction pointer.
const RIP: Register = Register(16);

/// The registers that an expression may use; what is `None` is not known.
#[derive(Clone, Copy)]
pub(super) struct Registers {
    pub(super) pc: u64,
    pub(super) sp: u64,
    pub(super) bp: Option<u64>,
}

impl Registers {
    pub(super) fn get(&self, register: Register) -> Result<u64, End> {
        match register {
            RSP => Ok(self.sp),
            RBP => self.bp.ok_or(End::Unknown),
            RIP => Ok(self.pc),
            _ => Err(End::Unknown),
        }
    }
}

/// The evaluation's stack. The tables need four values.
struct Values {
    values: [u64; 8],
    len: usize,
}

impl Values {
    fn push(&mut self, value: u64) -> Result<(), End> {
        *self.values.get_mut(self.len).ok_or(End::Unknown)? = value;
        self.len += 1;
        Ok(())
    }

    fn pop(&mut self) -> Result<u64, End> {
        self.len = self.len.checked_sub(1).ok_or(End::Damaged)?;
        Ok(self.values[self.len])
    }

    fn binary(&mut self, operation: impl FnOnce(u64, u64) -> u64) -> Result<(), End> {
        let second = self.pop()?;
        let first = self.pop()?;
        self.push(operation(first, second))
    }

    fn compare(&mut self, holds: impl FnOnce(i64, i64) -> bool) -> Result<(), End> {
        self.binary(|first, second| u64::from(holds(first as i64, second as i64)))
    }
}

/// The value of `expression`, which starts with `initial` on its stack.
pub(super) fn value(
    expression: Expression<'_>,
    initial: Option<u64>,
    registers: &Registers,
    memory: &impl Memory,
) -> Result<u64, End> {
    let mut stack = Values { values: [0; 8], len: 0 };
    if let Some(value) = initial {
        stack.push(value)?;
    }
    let mut operations = expression.operations(ENCODING);
    while let Some(operation) = operations.next().map_err(|_| End::Damaged)? {
        match operation {
            Operation::RegisterOffset { register, offset, .. } => {
                stack.push(registers.get(register)?.wrapping_add_signed(offset))?;
            }
            Operation::Deref { size: 8, space: false, .. } => {
                let address = stack.pop()?;
                stack.push(memory.word(address).ok_or(End::OffStack)?)?;
            }
            Operation::UnsignedConstant { value } => stack.push(value)?,
            Operation::SignedConstant { value } => stack.push(value as u64)?,
            Operation::PlusConstant { value } => {
                let sum = stack.pop()?.wrapping_add(value);
                stack.push(sum)?;
            }
            Operation::Plus => stack.binary(u64::wrapping_add)?,
            Operation::Minus => stack.binary(u64::wrapping_sub)?,
            Operation::And => stack.binary(|a, b| a & b)?,
            Operation::Or => stack.binary(|a, b| a | b)?,
            Operation::Xor => stack.binary(|a, b| a ^ b)?,
            Operation::Shl => stack.binary(|a, b| if b < 64 { a << b } else { 0 })?,
            Operation::Shr => stack.binary(|a, b| if b < 64 { a >> b } else { 0 })?,
            Operation::Eq => stack.compare(|a, b| a == b)?,
            Operation::Ne => stack.compare(|a, b| a != b)?,
            Operation::Ge => stack.compare(|a, b| a >= b)?,
            Operation::Gt => stack.compare(|a, b| a > b)?,
            Operation::Le => stack.compare(|a, b| a <= b)?,
            Operation::Lt => stack.compare(|a, b| a < b)?,
            Operation::Nop => {}
            _ => return Err(End::Unknown),
        }
    }
    stack.pop()
}

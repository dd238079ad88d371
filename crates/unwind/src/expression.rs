//! Evaluates the expressions of unwind tables: those of the frames of signal handlers, of
//! functions that realign their stack, and of the stubs of the procedure linkage table.

use crate::{CalleeFrame, Stop};
use gimli::{Encoding, EndianSlice, Expression, Format, LittleEndian, Operation};

/// The encoding of expressions in `.eh_frame` on 64 bits.
const ENCODING: Encoding = Encoding { address_size: 8, format: Format::Dwarf32, version: 4 };

/// The most operations of one evaluation: real ones need a dozen, damaged ones may loop.
const PATIENCE: u32 = 1000;

/// The evaluation's stack. The tables need four values.
struct Values {
    values: [u64; 8],
    len: usize,
}

impl Values {
    fn push(&mut self, value: u64) -> Result<(), Stop> {
        *self.values.get_mut(self.len).ok_or(Stop::Unsupported)? = value;
        self.len += 1;
        Ok(())
    }

    fn pop(&mut self) -> Result<u64, Stop> {
        self.len = self.len.checked_sub(1).ok_or(Stop::Damaged)?;
        Ok(self.values[self.len])
    }

    /// Copies the value that lies `depth` below the top to the top.
    fn pick(&mut self, depth: u8) -> Result<(), Stop> {
        let index = self.len.checked_sub(1 + usize::from(depth)).ok_or(Stop::Damaged)?;
        self.push(self.values[index])
    }

    fn unary(&mut self, operation: impl FnOnce(u64) -> u64) -> Result<(), Stop> {
        let value = self.pop()?;
        self.push(operation(value))
    }

    fn binary(&mut self, operation: impl FnOnce(u64, u64) -> u64) -> Result<(), Stop> {
        let second = self.pop()?;
        let first = self.pop()?;
        self.push(operation(first, second))
    }

    fn compare(&mut self, holds: impl FnOnce(i64, i64) -> bool) -> Result<(), Stop> {
        self.binary(|first, second| u64::from(holds(first as i64, second as i64)))
    }
}

/// Returns the value of the expression `code`, which starts with `initial` on its stack.
pub(crate) fn value<'e>(
    code: &'e [u8],
    initial: Option<u64>,
    frame: &mut impl CalleeFrame<'e>,
) -> Result<u64, Stop> {
    let from = |start| {
        let rest = code.get(start..).ok_or(Stop::Damaged)?;
        Ok(Expression(EndianSlice::new(rest, LittleEndian)).operations(ENCODING))
    };
    let whole = Expression(EndianSlice::new(code, LittleEndian));
    let mut stack = Values { values: [0; 8], len: 0 };
    if let Some(value) = initial {
        stack.push(value)?;
    }
    let mut operations = from(0)?;
    for _ in 0..PATIENCE {
        let Some(operation) = operations.next().map_err(|_| Stop::Damaged)? else {
            return stack.pop();
        };
        match operation {
            Operation::RegisterOffset { register, offset, .. } => {
                let value = frame.register(register).ok_or(Stop::Unknown(register))?;
                stack.push(value.wrapping_add_signed(offset))?;
            }
            Operation::Deref { size: size @ 1..=8, space: false, .. } => {
                let address = stack.pop()?;
                let word = frame.word(address).ok_or(Stop::Unreadable(address))?;
                // The word starts with the byte asked for: the order is little-endian.
                stack.push(word & u64::MAX >> (64 - 8 * u32::from(size)))?;
            }
            Operation::UnsignedConstant { value } => stack.push(value)?,
            Operation::SignedConstant { value } => stack.push(value as u64)?,
            Operation::Drop => drop(stack.pop()?),
            Operation::Pick { index } => stack.pick(index)?,
            Operation::Swap => {
                let (last, first) = (stack.pop()?, stack.pop()?);
                stack.push(last)?;
                stack.push(first)?;
            }
            Operation::PlusConstant { value } => stack.unary(|a| a.wrapping_add(value))?,
            Operation::Neg => stack.unary(u64::wrapping_neg)?,
            Operation::Not => stack.unary(|a| !a)?,
            Operation::Plus => stack.binary(u64::wrapping_add)?,
            Operation::Minus => stack.binary(u64::wrapping_sub)?,
            Operation::Mul => stack.binary(u64::wrapping_mul)?,
            Operation::And => stack.binary(|a, b| a & b)?,
            Operation::Or => stack.binary(|a, b| a | b)?,
            Operation::Xor => stack.binary(|a, b| a ^ b)?,
            Operation::Shl => stack.binary(|a, b| if b < 64 { a << b } else { 0 })?,
            Operation::Shr => stack.binary(|a, b| if b < 64 { a >> b } else { 0 })?,
            Operation::Shra => stack.binary(|a, b| ((a as i64) >> b.min(63)) as u64)?,
            Operation::Eq => stack.compare(|a, b| a == b)?,
            Operation::Ne => stack.compare(|a, b| a != b)?,
            Operation::Ge => stack.compare(|a, b| a >= b)?,
            Operation::Gt => stack.compare(|a, b| a > b)?,
            Operation::Le => stack.compare(|a, b| a <= b)?,
            Operation::Lt => stack.compare(|a, b| a < b)?,
            Operation::Skip { target } | Operation::Bra { target } => {
                let jumps = matches!(operation, Operation::Skip { .. }) || stack.pop()? != 0;
                let here = operations.offset_from(&whole);
                if jumps {
                    operations = from(here.wrapping_add_signed(target.into()))?;
                }
            }
            Operation::Nop => {}
            _ => return Err(Stop::Unsupported),
        }
    }
    Err(Stop::Damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimli::Register;

    /// A frame whose registers hold their numbers, and whose memory holds its addresses.
    struct Numbers;

    impl<'e> CalleeFrame<'e> for Numbers {
        fn register(&self, register: Register) -> Option<u64> {
            (register.0 < 17).then(|| register.0.into())
        }

        fn word(&mut self, address: u64) -> Option<u64> {
            (address < 1 << 47).then_some(address)
        }

        fn expression(&self, _: u64, _: u64) -> Option<&'e [u8]> {
            None
        }
    }

    fn evaluated(code: &[u8]) -> Result<u64, Stop> {
        value(code, Some(0x1234), &mut Numbers)
    }

    #[test]
    fn the_expressions_of_real_tables_have_their_values() {
        assert_eq!(evaluated(&[]), Ok(0x1234));
        // "The word at rbp - 8", of a function that realigns its stack.
        let below = 6_u64.wrapping_sub(8);
        assert_eq!(evaluated(&[0x76, 0x78, 0x06]), Err(Stop::Unreadable(below)));
        assert_eq!(evaluated(&[0x77, 0x08, 0x06]), Ok(15));
        // A stub of the linkage table: rsp + 8 + ((rip & 15) >= 11) << 3.
        let stub = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        assert_eq!(evaluated(&stub), Ok(15));
    }

    #[test]
    fn jumps_are_followed_and_every_evaluation_ends() {
        // 1; if it is not zero jump over 2; else 2.
        assert_eq!(evaluated(&[0x31, 0x28, 1, 0, 0x32]), Ok(0x1234));
        assert_eq!(evaluated(&[0x30, 0x28, 1, 0, 0x32]), Ok(2));
        assert_eq!(evaluated(&[0x2f, 0xfd, 0xff]), Err(Stop::Damaged), "for ever");
        assert_eq!(evaluated(&[0x2f, 0xf0, 0xff]), Err(Stop::Damaged), "in front of it");
        assert_eq!(evaluated(&[0x2f, 0x10, 0]), Err(Stop::Damaged), "behind it");
    }

    #[test]
    fn noise_is_answered() {
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let code: [u8; 12] = core::array::from_fn(|_| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                (state >> 56) as u8
            });
            let _ = evaluated(&code);
        }
    }
}

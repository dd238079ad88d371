//! Expressions of unwind tables, evaluated with what is known.
//!
//! # Role
//! A few frames lie in a way that an offset cannot tell: those of functions
//! that align their stack, of calls through the linkage table, and the one the
//! kernel makes for signal handlers.

use super::Registers;
use super::row::Stop;
use super::window::Window;
use crate::memory::Memory;
use gimli::{Encoding, EndianSlice, EvaluationResult, Location, NativeEndian, Value};

/// Steps of one evaluation: real ones need a dozen, damaged ones may loop.
const MAX_STEPS: u32 = 1000;

/// An expression, out of its section.
#[derive(Debug)]
pub(super) struct Expression {
    pub(super) bytes: Vec<u8>,
    pub(super) encoding: Encoding,
    /// What the loader added to the addresses in it.
    pub(super) bias: u64,
}

/// The value of the expression, which starts with `initial` on its stack.
pub(super) fn evaluate(
    expression: &Expression,
    initial: Option<u64>,
    registers: &Registers,
    window: &mut Window,
    memory: &dyn Memory,
) -> Result<u64, Stop> {
    let code = gimli::Expression(EndianSlice::new(&expression.bytes, NativeEndian));
    let mut evaluation = code.evaluation(expression.encoding);
    evaluation.set_max_iterations(MAX_STEPS);
    if let Some(initial) = initial {
        evaluation.set_initial_value(initial);
    }
    let unsupported = |_| Stop::Unsupported;
    let mut state = evaluation.evaluate().map_err(unsupported)?;
    loop {
        state = match state {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresMemory { address, size, space: None, .. } => {
                let word = window.read(memory, address).map_err(Stop::Unreadable)?;
                let mask = match size {
                    1..8 => (1 << (8 * u32::from(size))) - 1,
                    8 => u64::MAX,
                    _ => return Err(Stop::Unsupported),
                };
                // The word starts with the byte asked for on a little-endian
                // machine, the only kind that is supported.
                evaluation.resume_with_memory(Value::Generic(word & mask)).map_err(unsupported)?
            }
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = match register {
                    gimli::X86_64::RA => Some(registers.pc),
                    _ => registers.get(register),
                };
                let value = Value::Generic(value.ok_or(Stop::Unknown(register))?);
                evaluation.resume_with_register(value).map_err(unsupported)?
            }
            EvaluationResult::RequiresRelocatedAddress(stated) => evaluation
                .resume_with_relocated_address(stated.wrapping_add(expression.bias))
                .map_err(unsupported)?,
            _ => return Err(Stop::Unsupported),
        };
    }
    match evaluation.as_result() {
        [piece] => match piece.location {
            Location::Address { address } => Ok(address),
            _ => Err(Stop::Unsupported),
        },
        _ => Err(Stop::Unsupported),
    }
}

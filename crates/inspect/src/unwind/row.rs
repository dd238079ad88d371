//! How one frame lies on the stack, and the step to its caller.
//!
//! # Role
//! A row of the unwind table, copied out of it so that it can be kept. It
//! tells where the frame ends (the *canonical frame address*), and where the
//! caller's registers are. Registers that nothing is said about keep their
//! value if the ABI makes the callee preserve them, and are lost otherwise.

use super::Registers;
use super::expression::{Expression, evaluate};
use super::window::Window;
use crate::memory::Memory;
use gimli::{
    CfaRule, EndianSlice, FrameDescriptionEntry, NativeEndian, Register, RegisterRule,
    UnwindSection, UnwindTableRow, X86_64,
};

/// What every function gives back as it found it.
const PRESERVED: [Register; 6] =
    [X86_64::RBX, X86_64::RBP, X86_64::R12, X86_64::R13, X86_64::R14, X86_64::R15];

/// Why there is no step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The table says that nobody called.
    Bottom,
    /// The step needs this register, whose value nobody knows.
    Unknown(Register),
    /// There is no memory at this address.
    Unreadable(u64),
    /// The table uses what stacks have no use for.
    Unsupported,
}

/// Where the frame ends.
#[derive(Debug)]
enum Cfa {
    Offset(Register, i64),
    Expression(Expression),
}

/// Where the caller's value of a register is.
#[derive(Debug)]
enum Rule {
    Lost,
    Same,
    SavedAt(i64),
    IsCfaPlus(i64),
    In(Register),
    SavedAtExpression(Expression),
    IsExpression(Expression),
    Constant(u64),
}

/// One row.
#[derive(Debug)]
pub(super) struct Row {
    cfa: Cfa,
    return_address: Rule,
    others: Vec<(Register, Rule)>,
    /// The frame that the kernel makes for a signal handler to return to.
    pub(super) signal: bool,
    /// Where the function starts, or the part of it that lies here.
    pub(super) function: u64,
}

type Reader<'a> = EndianSlice<'a, NativeEndian>;

impl Row {
    /// Copies a row of the table; `None` if an expression in it cannot be.
    pub(super) fn new<'a, S: UnwindSection<Reader<'a>>>(
        section: &S,
        row: &UnwindTableRow<usize>,
        entry: &FrameDescriptionEntry<Reader<'a>>,
        bias: u64,
    ) -> Option<Row> {
        let encoding = entry.cie().encoding();
        let copy = |e: &gimli::UnwindExpression<usize>| {
            let bytes = e.get(section).ok()?.0.slice().to_vec();
            Some(Expression { bytes, encoding, bias })
        };
        let rule = |rule: &RegisterRule<usize>| {
            Some(match rule {
                RegisterRule::SameValue => Rule::Same,
                RegisterRule::Offset(n) => Rule::SavedAt(*n),
                RegisterRule::ValOffset(n) => Rule::IsCfaPlus(*n),
                RegisterRule::Register(other) => Rule::In(*other),
                RegisterRule::Expression(e) => Rule::SavedAtExpression(copy(e)?),
                RegisterRule::ValExpression(e) => Rule::IsExpression(copy(e)?),
                RegisterRule::Constant(value) => Rule::Constant(*value),
                _ => Rule::Lost,
            })
        };
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => Cfa::Offset(*register, *offset),
            CfaRule::Expression(e) => Cfa::Expression(copy(e)?),
        };
        let mut return_address = Rule::Lost;
        let mut others = Vec::new();
        for (register, found) in row.registers() {
            let found = rule(found)?;
            if *register == X86_64::RA {
                return_address = found;
            } else {
                others.push((*register, found));
            }
        }
        let function = entry.initial_address().wrapping_add(bias);
        Some(Row { cfa, return_address, others, signal: entry.is_signal_trampoline(), function })
    }

    /// Whether the frame is found by the frame pointer.
    pub(super) fn is_by_frame_pointer(&self) -> bool {
        matches!(self.cfa, Cfa::Offset(X86_64::RBP, _))
    }

    /// Whether the frame pointer points at a pair of the caller's and the
    /// return address, as it does in the body of a function.
    pub(super) fn has_usual_shape(&self) -> bool {
        let saved = self.others.iter().find(|(register, _)| *register == X86_64::RBP);
        matches!(self.cfa, Cfa::Offset(X86_64::RBP, 16))
            && matches!(self.return_address, Rule::SavedAt(-8))
            && matches!(saved, Some((_, Rule::SavedAt(-16))))
    }

    /// The registers of the caller.
    pub(super) fn caller(
        &self,
        callee: &Registers,
        window: &mut Window,
        memory: &dyn Memory,
    ) -> Result<Registers, Stop> {
        if matches!(self.return_address, Rule::Lost) {
            return Err(Stop::Bottom);
        }
        let cfa = match &self.cfa {
            Cfa::Offset(register, offset) => {
                callee.get(*register).ok_or(Stop::Unknown(*register))?.wrapping_add_signed(*offset)
            }
            Cfa::Expression(e) => evaluate(e, None, callee, window, memory)?,
        };
        let mut value = |rule: &Rule, register: Register| {
            let saved = |window: &mut Window, at| window.read(memory, at).map_err(Stop::Unreadable);
            match rule {
                Rule::Lost => Err(Stop::Unknown(register)),
                Rule::Same => callee.get(register).ok_or(Stop::Unknown(register)),
                Rule::In(other) => callee.get(*other).ok_or(Stop::Unknown(*other)),
                Rule::SavedAt(n) => saved(window, cfa.wrapping_add_signed(*n)),
                Rule::IsCfaPlus(n) => Ok(cfa.wrapping_add_signed(*n)),
                Rule::SavedAtExpression(e) => {
                    let at = evaluate(e, Some(cfa), callee, window, memory)?;
                    saved(window, at)
                }
                Rule::IsExpression(e) => evaluate(e, Some(cfa), callee, window, memory),
                Rule::Constant(constant) => Ok(*constant),
            }
        };
        let pc = value(&self.return_address, X86_64::RA)?;
        let mut caller = Registers::new(pc, cfa);
        for register in PRESERVED {
            caller = caller.with(register, callee.get(register));
        }
        for (register, rule) in &self.others {
            // A register that cannot be restored is one that is not known; it
            // is an error only for who needs it.
            caller = caller.with(*register, value(rule, *register).ok());
        }
        Ok(caller)
    }
}

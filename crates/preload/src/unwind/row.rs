//! The rules that hold at one address of a function.
//!
//! A compiler writes them as a small program that starts with the rules at the
//! function's entry and changes them address by address. This runs it, for the
//! three values that a walk follows; the ready-made interpreter of `gimli` keeps
//! all registers and several KiB.

use super::End;
use super::table::{Bytes, Function};
use gimli::{CallFrameInstruction as Instruction, Register, UnwindExpression};

/// rbp, rsp and the return address, in the numbers of the x86-64 ABI.
pub(super) const RBP: Register = Register(6);
/// See [`RBP`].
pub(super) const RSP: Register = Register(7);
const RETURN: Register = Register(16);

/// A DWARF expression, as its bytes.
pub(super) type Expression<'a> = gimli::Expression<Bytes<'a>>;

/// How the caller's stack pointer (the canonical frame address) is found.
#[derive(Clone, Copy)]
pub(super) enum Cfa<'a> {
    /// A register and a distance.
    Register(Register, i64),
    /// The value of an expression.
    Expression(Expression<'a>),
}

/// How a register of the caller is found.
#[derive(Clone, Copy)]
pub(super) enum Saved<'a> {
    /// It still holds it.
    Same,
    /// It is lost; for the return address: there is no caller.
    Lost,
    /// In memory, at this distance from the canonical frame address.
    At(i64),
    /// It is the canonical frame address plus this.
    Value(i64),
    /// In another register.
    In(Register),
    /// In memory, at the address that the expression gives.
    AtExpression(Expression<'a>),
    /// It is what the expression gives.
    ValueExpression(Expression<'a>),
}

/// The rules at one address.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) cfa: Cfa<'a>,
    pub(super) rbp: Saved<'a>,
    pub(super) ra: Saved<'a>,
}

/// How deep a program may nest its "remember the rules". Compilers nest once.
const DEPTH: usize = 4;

/// How many instructions are run before a program is called damaged: some ten
/// times what the largest functions of large programs have.
const PATIENCE: usize = 1 << 16;

struct Machine<'a, 'f> {
    function: &'f Function<'a>,
    row: Row<'a>,
    remembered: [Row<'a>; DEPTH],
    depth: usize,
    /// The address from which `row` holds.
    location: u64,
    pc: u64,
    steps: usize,
}

/// The rules of `function` at `pc`.
pub(super) fn at<'a>(function: &Function<'a>, pc: u64) -> Result<Row<'a>, End> {
    let cie = function.fde.cie();
    if cie.return_address_register() != RETURN {
        return Err(End::Unknown);
    }
    // Before its first instruction a program has no rule for the frame address.
    let none = Row { cfa: Cfa::Register(RETURN, 0), rbp: Saved::Same, ra: Saved::Same };
    let mut machine = Machine {
        function,
        row: none,
        remembered: [none; DEPTH],
        depth: 0,
        location: function.fde.initial_address(),
        pc,
        steps: 0,
    };
    let mut shared = cie.instructions(&function.section, &function.bases);
    while let Some(instruction) = shared.next().map_err(|_| End::Damaged)? {
        if machine.run(instruction, &none)? {
            break;
        }
    }
    let initial = machine.row;
    let mut own = function.fde.instructions(&function.section, &function.bases);
    while let Some(instruction) = own.next().map_err(|_| End::Damaged)? {
        if machine.run(instruction, &initial)? {
            break;
        }
    }
    Ok(machine.row)
}

impl<'a> Machine<'a, '_> {
    /// Runs one instruction. True when the rules after it are for addresses
    /// beyond the one that was asked for.
    fn run(&mut self, instruction: Instruction<usize>, initial: &Row<'a>) -> Result<bool, End> {
        self.steps += 1;
        if self.steps > PATIENCE {
            return Err(End::Damaged);
        }
        let cie = self.function.fde.cie();
        let unit = cie.data_alignment_factor();
        let unsigned = |factored: u64| (factored as i64).wrapping_mul(unit);
        match instruction {
            Instruction::SetLoc { address } => return Ok(self.reach(address)),
            Instruction::AdvanceLoc { delta } => {
                let bytes = u64::from(delta).wrapping_mul(cie.code_alignment_factor());
                return Ok(self.reach(self.location.wrapping_add(bytes)));
            }
            Instruction::DefCfa { register, offset } => {
                self.row.cfa = Cfa::Register(register, offset as i64);
            }
            Instruction::DefCfaSf { register, factored_offset } => {
                self.row.cfa = Cfa::Register(register, factored_offset.wrapping_mul(unit));
            }
            Instruction::DefCfaRegister { register } => {
                let Cfa::Register(_, offset) = self.row.cfa else { return Err(End::Damaged) };
                self.row.cfa = Cfa::Register(register, offset);
            }
            Instruction::DefCfaOffset { offset } => self.move_cfa(offset as i64)?,
            Instruction::DefCfaOffsetSf { factored_offset } => {
                self.move_cfa(factored_offset.wrapping_mul(unit))?;
            }
            Instruction::DefCfaExpression { expression } => {
                self.row.cfa = Cfa::Expression(self.expression(expression)?);
            }
            Instruction::Undefined { register } => self.set(register, Saved::Lost),
            Instruction::SameValue { register } => self.set(register, Saved::Same),
            Instruction::Offset { register, factored_offset } => {
                self.set(register, Saved::At(unsigned(factored_offset)));
            }
            Instruction::OffsetExtendedSf { register, factored_offset } => {
                self.set(register, Saved::At(factored_offset.wrapping_mul(unit)));
            }
            Instruction::ValOffset { register, factored_offset } => {
                self.set(register, Saved::Value(unsigned(factored_offset)));
            }
            Instruction::ValOffsetSf { register, factored_offset } => {
                self.set(register, Saved::Value(factored_offset.wrapping_mul(unit)));
            }
            Instruction::Register { dest_register, src_register } => {
                self.set(dest_register, Saved::In(src_register));
            }
            Instruction::Expression { register, expression } => {
                self.set(register, Saved::AtExpression(self.expression(expression)?));
            }
            Instruction::ValExpression { register, expression } => {
                self.set(register, Saved::ValueExpression(self.expression(expression)?));
            }
            Instruction::Restore { register: RBP } => self.row.rbp = initial.rbp,
            Instruction::Restore { register: RETURN } => self.row.ra = initial.ra,
            Instruction::RememberState => {
                *self.remembered.get_mut(self.depth).ok_or(End::Unknown)? = self.row;
                self.depth += 1;
            }
            Instruction::RestoreState => {
                self.depth = self.depth.checked_sub(1).ok_or(End::Damaged)?;
                self.row = self.remembered[self.depth];
            }
            Instruction::Restore { .. } | Instruction::ArgsSize { .. } | Instruction::Nop => {}
            _ => return Err(End::Unknown),
        }
        Ok(false)
    }

    fn reach(&mut self, location: u64) -> bool {
        self.location = location;
        location > self.pc
    }

    fn move_cfa(&mut self, offset: i64) -> Result<(), End> {
        let Cfa::Register(register, _) = self.row.cfa else { return Err(End::Damaged) };
        self.row.cfa = Cfa::Register(register, offset);
        Ok(())
    }

    fn set(&mut self, register: Register, saved: Saved<'a>) {
        match register {
            RBP => self.row.rbp = saved,
            RETURN => self.row.ra = saved,
            _ => {}
        }
    }

    fn expression(&self, place: UnwindExpression<usize>) -> Result<Expression<'a>, End> {
        place.get(&self.function.section).map_err(|_| End::Damaged)
    }
}

//! The rules that hold at one address of a function.
//!
//! A compiler writes them as a small program that starts with the rules at the
//! function's entry and changes them address by address. This runs it, for the
//! three values that a walk follows; the ready-made interpreter of `gimli` keeps
//! all registers and several KiB.

use super::End;
use super::module::Image;
use super::table::Piece;
use gimli::{
    BaseAddresses, CallFrameInstruction as Instruction, CallFrameInstructionIter,
    CommonInformationEntry, EhFrame, EndianSlice, FrameDescriptionEntry, LittleEndian, Register,
    UnwindExpression, UnwindSection,
};

/// rbp, rsp and the return address, in the numbers of the x86-64 ABI.
pub(super) const RBP: Register = Register(6);
/// See [`RBP`].
pub(super) const RSP: Register = Register(7);
const RETURN: Register = Register(16);

/// Bytes of a module.
type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// A DWARF expression, as its bytes.
pub(super) type Expression<'a> = gimli::Expression<Bytes<'a>>;

/// Where an expression stands, counted from [`Found::piece`]. Smaller than the
/// expression, since rows are kept on the program's stack.
#[derive(Clone, Copy)]
pub(super) struct Place {
    offset: u32,
    len: u32,
}

/// How the caller's stack pointer (the canonical frame address) is found.
#[derive(Clone, Copy)]
pub(super) enum Cfa {
    /// A register and a distance.
    Register(Register, i32),
    /// The value of an expression.
    Expression(Place),
}

/// How a register of the caller is found.
#[derive(Clone, Copy)]
pub(super) enum Saved {
    /// It still holds it.
    Same,
    /// It is lost; for the return address: there is no caller.
    Lost,
    /// In memory, at this distance from the canonical frame address.
    At(i32),
    /// It is the canonical frame address plus this.
    Value(i32),
    /// In another register.
    In(Register),
    /// In memory, at the address that the expression gives.
    AtExpression(Place),
    /// It is what the expression gives.
    ValueExpression(Place),
}

/// The rules at one address.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) cfa: Cfa,
    pub(super) rbp: Saved,
    pub(super) ra: Saved,
}

/// The rules at an address, and what they are part of.
pub(super) struct Found {
    pub(super) row: Row,
    /// The function is what a signal handler returns to.
    pub(super) signal: bool,
    /// The address from which the places of expressions are counted.
    piece: u64,
}

impl Found {
    /// The expression at `place`.
    pub(super) fn expression<'a>(
        &self,
        place: Place,
        image: &'a impl Image,
    ) -> Result<Expression<'a>, End> {
        let address = self.piece.wrapping_add(u64::from(place.offset));
        let bytes = image.bytes(address, u64::from(place.len)).ok_or(End::Damaged)?;
        Ok(gimli::Expression(EndianSlice::new(bytes, LittleEndian)))
    }
}

/// How deep a program may nest its "remember the rules". Compilers nest once.
const DEPTH: usize = 4;

/// How many instructions are run before a program is called damaged: some ten
/// times what the largest functions of large programs have.
const PATIENCE: usize = 1 << 16;

struct Machine<'a, 'f> {
    cie: &'f CommonInformationEntry<Bytes<'a>>,
    row: Row,
    /// The rules at the function's entry.
    initial: Row,
    remembered: [Row; DEPTH],
    depth: usize,
    /// The address from which `row` holds.
    location: u64,
    pc: u64,
    steps: usize,
}

/// The rules at `pc`, if `piece` describes the function that holds it.
pub(super) fn at(piece: &Piece<'_>, pc: u64) -> Result<Option<Found>, End> {
    let section = EhFrame::new(piece.bytes, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(piece.address);
    let own = section.fde_from_offset(&bases, piece.own.into(), EhFrame::cie_from_offset);
    let Ok(fde) = &own else { return Err(End::Damaged) };
    if !fde.contains(pc) {
        return Ok(None);
    }
    let cie = fde.cie();
    if cie.return_address_register() != RETURN {
        return Err(End::Unknown);
    }
    let row = run(&section, &bases, fde, pc)?;
    Ok(Some(Found { row, signal: fde.is_signal_trampoline(), piece: piece.address }))
}

/// Runs the programs of `fde` up to `pc`. Apart, so that the stack for the rows
/// and that for parsing are not taken at the same time.
#[inline(never)]
fn run<'a>(
    section: &EhFrame<Bytes<'a>>,
    bases: &BaseAddresses,
    fde: &FrameDescriptionEntry<Bytes<'a>>,
    pc: u64,
) -> Result<Row, End> {
    // Before its first instruction a program has no rule for the frame address:
    // the return address, which it cannot mean, stands for that.
    let none = Row { cfa: Cfa::Register(RETURN, 0), rbp: Saved::Same, ra: Saved::Same };
    let mut machine = Machine {
        cie: fde.cie(),
        row: none,
        initial: none,
        remembered: [none; DEPTH],
        depth: 0,
        location: fde.initial_address(),
        pc,
        steps: 0,
    };
    machine.run_all(fde.cie().instructions(section, bases))?;
    machine.initial = machine.row;
    machine.run_all(fde.instructions(section, bases))?;
    Ok(machine.row)
}

impl<'a> Machine<'a, '_> {
    fn run_all(&mut self, mut program: CallFrameInstructionIter<'_, Bytes<'a>>) -> Result<(), End> {
        while let Some(instruction) = program.next().map_err(|_| End::Damaged)? {
            if self.run(instruction)? {
                break;
            }
        }
        Ok(())
    }

    /// Runs one instruction. True when the rules after it are for addresses
    /// beyond the one that was asked for.
    fn run(&mut self, instruction: Instruction<usize>) -> Result<bool, End> {
        self.steps += 1;
        if self.steps > PATIENCE {
            return Err(End::Damaged);
        }
        let unit = self.cie.data_alignment_factor();
        let bytes = |factored: i64| short(factored.wrapping_mul(unit));
        match instruction {
            Instruction::SetLoc { address } => return Ok(self.reach(address)),
            Instruction::AdvanceLoc { delta } => {
                let far = u64::from(delta).wrapping_mul(self.cie.code_alignment_factor());
                return Ok(self.reach(self.location.wrapping_add(far)));
            }
            Instruction::DefCfa { register, offset } => {
                self.row.cfa = Cfa::Register(register, short(offset as i64)?);
            }
            Instruction::DefCfaSf { register, factored_offset } => {
                self.row.cfa = Cfa::Register(register, bytes(factored_offset)?);
            }
            Instruction::DefCfaRegister { register } => {
                let Cfa::Register(_, offset) = self.row.cfa else { return Err(End::Damaged) };
                self.row.cfa = Cfa::Register(register, offset);
            }
            Instruction::DefCfaOffset { offset } => self.move_cfa(short(offset as i64)?)?,
            Instruction::DefCfaOffsetSf { factored_offset } => {
                self.move_cfa(bytes(factored_offset)?)?;
            }
            Instruction::DefCfaExpression { expression } => {
                self.row.cfa = Cfa::Expression(place(expression)?);
            }
            Instruction::Undefined { register } => self.set(register, Saved::Lost),
            Instruction::SameValue { register } => self.set(register, Saved::Same),
            Instruction::Offset { register, factored_offset } => {
                self.set(register, Saved::At(bytes(factored_offset as i64)?));
            }
            Instruction::OffsetExtendedSf { register, factored_offset } => {
                self.set(register, Saved::At(bytes(factored_offset)?));
            }
            Instruction::ValOffset { register, factored_offset } => {
                self.set(register, Saved::Value(bytes(factored_offset as i64)?));
            }
            Instruction::ValOffsetSf { register, factored_offset } => {
                self.set(register, Saved::Value(bytes(factored_offset)?));
            }
            Instruction::Register { dest_register, src_register } => {
                self.set(dest_register, Saved::In(src_register));
            }
            Instruction::Expression { register, expression } => {
                self.set(register, Saved::AtExpression(place(expression)?));
            }
            Instruction::ValExpression { register, expression } => {
                self.set(register, Saved::ValueExpression(place(expression)?));
            }
            Instruction::Restore { register: RBP } => self.row.rbp = self.initial.rbp,
            Instruction::Restore { register: RETURN } => self.row.ra = self.initial.ra,
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

    fn move_cfa(&mut self, offset: i32) -> Result<(), End> {
        let Cfa::Register(register, _) = self.row.cfa else { return Err(End::Damaged) };
        self.row.cfa = Cfa::Register(register, offset);
        Ok(())
    }

    fn set(&mut self, register: Register, saved: Saved) {
        match register {
            RBP => self.row.rbp = saved,
            RETURN => self.row.ra = saved,
            _ => {}
        }
    }
}

/// A distance within a frame.
fn short(distance: i64) -> Result<i32, End> {
    distance.try_into().map_err(|_| End::Unknown)
}

fn place(expression: UnwindExpression<usize>) -> Result<Place, End> {
    let small = |size: usize| u32::try_from(size).map_err(|_| End::Unknown);
    Ok(Place { offset: small(expression.offset)?, len: small(expression.length)? })
}

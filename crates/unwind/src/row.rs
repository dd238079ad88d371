//! Works out the rules that hold at one address of a function.
//!
//! A compiler writes them as a small program that starts with the rules at the
//! function's entry and changes them address by address. This runs it, for the
//! registers that a walk follows; the ready-made interpreter of `gimli` keeps
//! all registers and several KiB.

use crate::arch::{RETURNS_BY_REGISTER, VENDOR};
use crate::{Piece, RA, Stop, expression};
use gimli::{
    BaseAddresses, CallFrameInstruction as Instruction, CallFrameInstructionIter,
    CommonInformationEntry, EhFrame, EndianSlice, FrameDescriptionEntry, LittleEndian, Register,
    UnwindExpression, UnwindSection,
};

/// Bytes of a module.
pub type ModuleBytes<'a> = EndianSlice<'a, LittleEndian>;

/// The place of an expression, counted from [`FoundRow::base`]. Smaller than the expression, since
/// a walk inside a program keeps rows on that program's stack.
#[derive(Clone, Copy, Debug)]
pub struct ExpressionPlace {
    offset: u32,
    len: u32,
}

/// How the caller's stack pointer (the canonical frame address) is found.
#[derive(Clone, Copy, Debug)]
pub enum Cfa {
    /// It is the sum of a register and a distance.
    Register(Register, i32),
    /// It is the value of an expression.
    Expression(ExpressionPlace),
}

/// How a register of the caller is found.
#[derive(Clone, Copy, Debug)]
pub enum Saved {
    /// The register still holds it.
    Same,
    /// It is lost; for the return address: there is no caller.
    Lost,
    /// It is in memory, at this distance from the canonical frame address.
    At(i32),
    /// It is the canonical frame address plus this.
    Value(i32),
    /// The value is in another register.
    In(Register),
    /// It is in memory, at the address that the expression gives.
    AtExpression(ExpressionPlace),
    /// It is what the expression gives.
    ValueExpression(ExpressionPlace),
}

/// The registers, beside the return address, whose rules a walk keeps.
pub trait Followed: Copy {
    /// The rules of the ABI, for registers of which a table says nothing.
    const ABI: Self;

    /// Returns the rule of a register, if it is followed.
    fn rule(&mut self, register: Register) -> Option<&mut Saved>;
}

/// The rules at one address.
#[derive(Clone, Copy, Debug)]
pub struct Row<F> {
    /// How the canonical frame address is found.
    pub cfa: Cfa,
    /// How the return address is found, which may be signed.
    pub ra: Saved,
    /// How the other registers are found.
    pub followed: F,
}

/// The rules at an address, and what they are part of.
#[derive(Clone, Copy, Debug)]
pub struct FoundRow<F> {
    /// The rules that hold at the address.
    pub row: Row<F>,
    /// Whether the function is what a signal handler returns to.
    pub signal: bool,
    /// The place where the function starts, or the part of it that lies here.
    pub function: u64,
    /// The address or offset from which the places of expressions are counted.
    pub base: u64,
}

/// A frame that is left: what is known of its registers and its memory.
pub trait CalleeFrame<'e> {
    /// Returns the value of a register, if it is known; for [`RA`] on x86-64, where it is no
    /// register, the instruction pointer.
    fn register(&self, register: Register) -> Option<u64>;

    /// Returns the word at `address`, if it may be read.
    fn word(&mut self, address: u64) -> Option<u64>;

    /// Returns the `len` bytes of an expression at `at`, which is counted as
    /// [`FoundRow::base`] is.
    fn expression(&self, at: u64, len: u64) -> Option<&'e [u8]>;
}

/// The value of a register in the caller.
#[derive(Clone, Copy, Debug)]
pub struct RecoveredRegister {
    /// The register's value in the caller.
    pub value: u64,
    /// The place where in memory the value was found, if it was there.
    pub place: Option<u64>,
}

impl<F> FoundRow<F> {
    /// Returns where the expression at `place` stands, and its length in bytes.
    #[must_use]
    pub const fn place(&self, place: ExpressionPlace) -> (u64, u64) {
        (self.base.wrapping_add(place.offset as u64), place.len as u64)
    }

    /// Returns how far below the canonical frame address the pair lies of the caller's frame pointer and, above
    /// it, the return address; `None` where they are no neighbours.
    #[must_use]
    pub fn pair(&self) -> Option<u64>
    where
        F: Followed,
    {
        let mut followed = self.row.followed;
        match (*followed.rule(crate::FP)?, self.row.ra) {
            (Saved::At(pointer), Saved::At(ra))
                if ra == pointer.saturating_add(8) && pointer < 0 =>
            {
                Some(u64::from(pointer.unsigned_abs()))
            }
            _ => None,
        }
    }

    /// Returns the canonical frame address.
    ///
    /// # Errors
    /// [`Stop`], where it needs what `frame` does not know.
    pub fn frame_address<'e>(&self, frame: &mut impl CalleeFrame<'e>) -> Result<u64, Stop> {
        match self.row.cfa {
            Cfa::Register(register, distance) => {
                let value = frame.register(register).ok_or(Stop::Unknown(register))?;
                Ok(value.wrapping_add_signed(distance.into()))
            }
            Cfa::Expression(place) => self.evaluate(place, None, frame),
        }
    }

    /// Returns the caller's value of `register`, whose rule is `saved`; `address` is the
    /// canonical frame address.
    ///
    /// # Errors
    /// [`Stop`], where the rule needs what `frame` does not know. [`Stop::Bottom`] for a
    /// return address that is lost.
    pub fn recover<'e>(
        &self,
        register: Register,
        saved: Saved,
        address: u64,
        frame: &mut impl CalleeFrame<'e>,
    ) -> Result<RecoveredRegister, Stop> {
        let known = |register, frame: &mut _| {
            CalleeFrame::register(frame, register).ok_or(Stop::Unknown(register))
        };
        let value = match saved {
            Saved::Lost if register == RA => return Err(Stop::Bottom),
            Saved::Lost => return Err(Stop::Unknown(register)),
            Saved::Same => known(register, frame)?,
            Saved::In(other) => known(other, frame)?,
            Saved::Value(distance) => address.wrapping_add_signed(distance.into()),
            Saved::ValueExpression(place) => self.evaluate(place, Some(address), frame)?,
            Saved::At(_) | Saved::AtExpression(_) => {
                let place = match saved {
                    Saved::AtExpression(place) => self.evaluate(place, Some(address), frame)?,
                    Saved::At(distance) => address.wrapping_add_signed(distance.into()),
                    _ => return Err(Stop::Unsupported),
                };
                let value = frame.word(place).ok_or(Stop::Unreadable(place))?;
                return Ok(RecoveredRegister { value, place: Some(place) });
            }
        };
        Ok(RecoveredRegister { value, place: None })
    }

    fn evaluate<'e>(
        &self,
        place: ExpressionPlace,
        initial: Option<u64>,
        frame: &mut impl CalleeFrame<'e>,
    ) -> Result<u64, Stop> {
        let (at, len) = self.place(place);
        let code = frame.expression(at, len).ok_or(Stop::Damaged)?;
        expression::value(code, initial, frame)
    }
}

/// How deep a program may nest its "remember the rules". Compilers nest once.
const DEPTH: usize = 4;

/// How many instructions are run before a program is called damaged: some ten
/// times what the largest functions of large programs have.
const PATIENCE: usize = 1 << 16;

struct ExpressionMachine<'a, 'f, F> {
    cie: &'f CommonInformationEntry<ModuleBytes<'a>>,
    row: Row<F>,
    /// The rules at the function's entry.
    initial: Row<F>,
    remembered: [Row<F>; DEPTH],
    depth: usize,
    /// The address from which `row` holds.
    location: u64,
    pc: u64,
    steps: usize,
}

/// Returns the rules at `pc`, if `piece` describes the function that holds it. `base` is
/// what the places of expressions are counted from: where the caller finds `piece.bytes`.
///
/// # Errors
/// [`Stop::Damaged`] or [`Stop::Unsupported`].
pub fn at<F: Followed>(piece: &Piece<'_>, base: u64, pc: u64) -> Result<Option<FoundRow<F>>, Stop> {
    let mut section = EhFrame::new(piece.bytes, LittleEndian);
    section.set_vendor(VENDOR);
    let bases = BaseAddresses::default().set_eh_frame(piece.address);
    let own = section.fde_from_offset(&bases, piece.own.into(), EhFrame::cie_from_offset);
    let Ok(entry) = &own else { return Err(Stop::Damaged) };
    if !entry.contains(pc) {
        return Ok(None);
    }
    of_entry(&section, &bases, entry, base, pc).map(Some)
}

/// Returns the rules at `pc`, which `entry` of `section` describes. `base` is what the
/// places of expressions are counted from: where the caller finds the section.
///
/// # Errors
/// [`Stop::Damaged`] or [`Stop::Unsupported`].
pub fn of_entry<'a, F: Followed, S: UnwindSection<ModuleBytes<'a>>>(
    section: &S,
    bases: &BaseAddresses,
    entry: &FrameDescriptionEntry<ModuleBytes<'a>>,
    base: u64,
    pc: u64,
) -> Result<FoundRow<F>, Stop> {
    if entry.cie().return_address_register() != RA {
        return Err(Stop::Unsupported);
    }
    let row = run(section, bases, entry, pc)?;
    let (signal, function) = (entry.is_signal_trampoline(), entry.initial_address());
    Ok(FoundRow { row, signal, function, base })
}

/// Runs the programs of `entry` up to `pc`. Apart, so that the stack for the rows
/// and that for parsing are not taken at the same time.
#[inline(never)]
fn run<'a, F: Followed, S: UnwindSection<ModuleBytes<'a>>>(
    section: &S,
    bases: &BaseAddresses,
    entry: &FrameDescriptionEntry<ModuleBytes<'a>>,
    pc: u64,
) -> Result<Row<F>, Stop> {
    // Before its first instruction a program has no rule for the frame address:
    // the return address, which it cannot mean, stands for that.
    let ra = if RETURNS_BY_REGISTER { Saved::Same } else { Saved::Lost };
    let none = Row { cfa: Cfa::Register(RA, 0), ra, followed: F::ABI };
    let mut machine = ExpressionMachine {
        cie: entry.cie(),
        row: none,
        initial: none,
        remembered: [none; DEPTH],
        depth: 0,
        location: entry.initial_address(),
        pc,
        steps: 0,
    };
    machine.run_all(entry.cie().instructions(section, bases))?;
    machine.initial = machine.row;
    machine.run_all(entry.instructions(section, bases))?;
    Ok(machine.row)
}

impl<'a, F: Followed> ExpressionMachine<'a, '_, F> {
    fn run_all(
        &mut self,
        mut program: CallFrameInstructionIter<'_, ModuleBytes<'a>>,
    ) -> Result<(), Stop> {
        while let Some(instruction) = program.next().map_err(|_| Stop::Damaged)? {
            if self.run(instruction)? {
                break;
            }
        }
        Ok(())
    }

    /// Runs one instruction. Returns true when the rules after it are for addresses
    /// beyond the one that was asked for.
    fn run(&mut self, instruction: Instruction<usize>) -> Result<bool, Stop> {
        self.steps += 1;
        if self.steps > PATIENCE {
            return Err(Stop::Damaged);
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
                let Cfa::Register(_, offset) = self.row.cfa else { return Err(Stop::Damaged) };
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
            Instruction::Restore { register } => {
                let mut initial = self.initial;
                if let Some(rule) = initial.rule(register) {
                    self.set(register, *rule);
                }
            }
            Instruction::RememberState => {
                *self.remembered.get_mut(self.depth).ok_or(Stop::Unsupported)? = self.row;
                self.depth += 1;
            }
            Instruction::RestoreState => {
                self.depth = self.depth.checked_sub(1).ok_or(Stop::Damaged)?;
                self.row = self.remembered[self.depth];
            }
            // Signed or not, whoever walks takes a signature off.
            Instruction::NegateRaState | Instruction::ArgsSize { .. } | Instruction::Nop => {}
        }
        Ok(false)
    }

    fn reach(&mut self, location: u64) -> bool {
        self.location = location;
        location > self.pc
    }

    fn move_cfa(&mut self, offset: i32) -> Result<(), Stop> {
        let Cfa::Register(register, _) = self.row.cfa else { return Err(Stop::Damaged) };
        self.row.cfa = Cfa::Register(register, offset);
        Ok(())
    }

    fn set(&mut self, register: Register, saved: Saved) {
        if let Some(rule) = self.row.rule(register) {
            *rule = saved;
        }
    }
}

impl<F: Followed> Row<F> {
    fn rule(&mut self, register: Register) -> Option<&mut Saved> {
        if register == RA { Some(&mut self.ra) } else { self.followed.rule(register) }
    }
}

/// Returns a distance within a frame.
fn short(distance: i64) -> Result<i32, Stop> {
    distance.try_into().map_err(|_| Stop::Unsupported)
}

fn place(expression: UnwindExpression<usize>) -> Result<ExpressionPlace, Stop> {
    let small = |size: usize| u32::try_from(size).map_err(|_| Stop::Unsupported);
    Ok(ExpressionPlace { offset: small(expression.offset)?, len: small(expression.length)? })
}

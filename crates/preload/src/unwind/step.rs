//! From a frame to its caller's.

use super::expression::{self, Registers};
use super::row::{self, Cfa, Found, Saved};
use super::rules::{Base, CallersRbp, Rule};
use super::stack::Memory;
use super::{End, Image, Modules, Rules, Start, table};

/// A frame on the way.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub(super) pc: u64,
    sp: u64,
    bp: Option<u64>,
    /// A signal came before the instruction at `pc`; else a call went before it,
    /// and the rules to apply are those of the call.
    interrupted: bool,
}

impl Frame {
    pub(super) const fn of(start: Start) -> Self {
        Self { pc: start.pc, sp: start.sp, bp: Some(start.bp), interrupted: false }
    }
}

/// A frame that was left.
pub(super) struct Left {
    pub(super) caller: Frame,
    /// Where the caller's `pc` was found, if it was on the stack.
    pub(super) slot: Option<u64>,
    /// Nothing but the frame pointer said so.
    pub(super) guessed: bool,
}

/// Leaves `frame`, which is passed by value so that along frames whose rules are
/// known it stays in registers.
#[inline(always)]
pub(super) fn leave(
    modules: &impl Modules,
    rules: &Rules,
    frame: Frame,
    memory: &mut impl Memory,
) -> Result<Left, End> {
    // The rules remembered are those of calls.
    if !frame.interrupted
        && let Some(rule) = rules.get(frame.pc)
    {
        return by_rule(rule, &frame, memory);
    }
    by_table(modules, rules, &frame, memory)
}

/// By the module's tables. Apart, so that frames whose rule is known pay nothing
/// for its large stack frame.
#[cold]
#[inline(never)]
fn by_table(
    modules: &impl Modules,
    rules: &Rules,
    frame: &Frame,
    memory: &mut impl Memory,
) -> Result<Left, End> {
    let pc = if frame.interrupted { frame.pc } else { frame.pc.wrapping_sub(1) };
    let Some((image, header)) = modules.find(pc) else {
        return by_frame_pointer(frame, memory);
    };
    let Some(found) = look_up(&image, header, pc)? else {
        return by_frame_pointer(frame, memory);
    };
    match Rule::of(&found, &image) {
        Some(rule) if !found.signal => {
            if !frame.interrupted {
                rules.learn(frame.pc, rule);
            }
            by_rule(rule, frame, memory)
        }
        _ => by_row(&found, &image, frame, memory),
    }
}

/// What the module says about `pc`. Apart, so that the stack it takes is given
/// back before the rules are applied.
#[inline(never)]
fn look_up(image: &impl Image, header: u64, pc: u64) -> Result<Option<Found>, End> {
    match table::piece(image, header, pc)? {
        Some(piece) => row::at(&piece, pc),
        None => Ok(None),
    }
}

#[inline(always)]
fn by_rule(rule: Rule, frame: &Frame, memory: &impl Memory) -> Result<Left, End> {
    let Rule::Frame { base, distance, rbp } = rule else { return Err(End::Bottom) };
    let address = match base {
        Base::Rsp => frame.sp.wrapping_add(distance),
        Base::Rbp => frame.bp.ok_or(End::Unknown)?.wrapping_add(distance),
        Base::BelowRbp => {
            let place = frame.bp.ok_or(End::Unknown)?.wrapping_sub(distance);
            memory.word(place).ok_or(End::OffStack)?
        }
    };
    if address <= frame.sp {
        return Err(End::OffStack);
    }
    let slot = address - 8;
    let pc = memory.word(slot).ok_or(End::OffStack)?;
    let bp = match rbp {
        CallersRbp::Kept => frame.bp,
        CallersRbp::Lost => None,
        CallersRbp::Below(distance) => {
            Some(memory.word(address.wrapping_sub(distance)).ok_or(End::OffStack)?)
        }
    };
    arrive(Frame { pc, sp: address, bp, interrupted: false }, Some(slot), false)
}

/// By rules of any kind: signal handlers, assembler, the linker's stubs.
#[inline(never)]
fn by_row(
    found: &Found,
    image: &impl Image,
    frame: &Frame,
    memory: &mut impl Memory,
) -> Result<Left, End> {
    let registers = Registers { pc: frame.pc, sp: frame.sp, bp: frame.bp };
    let evaluate = |place, initial| {
        expression::value(found.expression(place, image)?, initial, &registers, memory)
    };
    let address = match found.row.cfa {
        Cfa::Register(register, distance) => {
            registers.get(register)?.wrapping_add_signed(distance.into())
        }
        Cfa::Expression(place) => evaluate(place, None)?,
    };
    // The value of a register in the caller, and where in memory it was.
    let recover = |saved, current| {
        let place = match saved {
            Saved::Same => return Ok((current, None)),
            Saved::Lost => return Ok((None, None)),
            Saved::Value(distance) => {
                return Ok((Some(address.wrapping_add_signed(distance.into())), None));
            }
            Saved::In(register) => return Ok((Some(registers.get(register)?), None)),
            Saved::ValueExpression(place) => {
                return Ok((Some(evaluate(place, Some(address))?), None));
            }
            Saved::At(distance) => address.wrapping_add_signed(distance.into()),
            Saved::AtExpression(place) => evaluate(place, Some(address))?,
        };
        Ok((Some(memory.word(place).ok_or(End::OffStack)?), Some(place)))
    };
    let (pc, slot) = recover(found.row.ra, Some(frame.pc))?;
    let pc = pc.ok_or(End::Bottom)?;
    let (bp, _) = recover(found.row.rbp, frame.bp)?;
    // The stack only grows towards the caller, unless a signal changed stacks.
    if (address <= frame.sp || memory.word(address & !7).is_none())
        && !(found.signal && memory.enter(address))
    {
        return Err(End::OffStack);
    }
    arrive(Frame { pc, sp: address, bp, interrupted: found.signal }, slot, false)
}

/// By the convention that rbp points at the caller's rbp, right below the return
/// address. Code that nothing describes may have used rbp for something else;
/// then it seldom points into this part of the stack, and at such a pair.
fn by_frame_pointer(frame: &Frame, memory: &impl Memory) -> Result<Left, End> {
    let bp = frame.bp.ok_or(End::Uncharted)?;
    // Below the stack pointer lies no frame that is still in use.
    if bp < frame.sp {
        return Err(End::Uncharted);
    }
    let slot = bp.wrapping_add(8);
    let (Some(callers), Some(pc)) = (memory.word(bp), memory.word(slot)) else {
        return Err(End::Uncharted);
    };
    // Neither the first page nor the stack holds code, and the caller's frame
    // pointer, if it has one, lies above.
    let plausible = pc == 0 || pc >= 4096 && pc >> 47 == 0 && memory.word(pc & !7).is_none();
    if !plausible || callers != 0 && callers <= bp {
        return Err(End::Uncharted);
    }
    let caller = Frame { pc, sp: bp + 16, bp: Some(callers), interrupted: false };
    arrive(caller, Some(slot), true)
}

/// Address 0 returns nowhere: some thread libraries end their stacks so.
#[inline(always)]
fn arrive(caller: Frame, slot: Option<u64>, guessed: bool) -> Result<Left, End> {
    if caller.pc == 0 { Err(End::Bottom) } else { Ok(Left { caller, slot, guessed }) }
}

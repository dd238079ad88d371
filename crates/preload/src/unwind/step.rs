//! Leaves a frame for its caller's.

use super::ends::{WalkEnd, WalkStart};
use super::module::LoadedModules;
use super::rules::{CallersRbp, FrameBase, FrameRule, Rules};
use super::stack::StackMemory;
use lockstead_unwind::{
    Followed, FoundRow, ModuleImage, RA, RBP, RSP, Register, Saved, Stop, at, piece,
};

/// A frame that the walk has come to.
#[derive(Clone, Copy)]
pub(super) struct WalkFrame {
    pub(super) pc: u64,
    sp: u64,
    bp: Option<u64>,
    /// A signal came before the instruction at `pc`; else a call went before it,
    /// and the rules to apply are those of the call.
    interrupted: bool,
}

impl WalkFrame {
    pub(super) const fn of(start: WalkStart) -> Self {
        Self { pc: start.pc, sp: start.sp, bp: Some(start.bp), interrupted: false }
    }
}

/// The outcome of leaving a frame.
pub(super) struct LeftFrame {
    pub(super) caller: WalkFrame,
    /// The place where the caller's `pc` was found, if that is on the stack.
    pub(super) slot: Option<u64>,
    /// Whether nothing but the frame pointer said so.
    pub(super) guessed: bool,
}

/// The rule of rbp, the one register that a walk follows beside rsp and the return address.
#[derive(Clone, Copy)]
pub(super) struct OnlyRbp(pub(super) Saved);

impl Followed for OnlyRbp {
    const ABI: Self = OnlyRbp(Saved::Same);

    fn rule(&mut self, register: Register) -> Option<&mut Saved> {
        (register == RBP).then_some(&mut self.0)
    }
}

/// What rules of any kind may use of a frame.
struct FrameKnowledge<'a, I, M> {
    frame: &'a WalkFrame,
    image: &'a I,
    memory: &'a M,
}

impl<'a, I: ModuleImage, M: StackMemory> lockstead_unwind::CalleeFrame<'a>
    for FrameKnowledge<'a, I, M>
{
    fn register(&self, register: Register) -> Option<u64> {
        match register {
            RSP => Some(self.frame.sp),
            RBP => self.frame.bp,
            RA => Some(self.frame.pc),
            _ => None,
        }
    }

    fn word(&mut self, address: u64) -> Option<u64> {
        self.memory.word(address)
    }

    fn expression(&self, at: u64, len: u64) -> Option<&'a [u8]> {
        self.image.bytes(at, len)
    }
}

/// Leaves `frame`, which is passed by value so that along frames whose rules are
/// known it stays in registers.
#[inline(always)]
pub(super) fn leave(
    modules: &impl LoadedModules,
    rules: &Rules,
    frame: WalkFrame,
    memory: &mut impl StackMemory,
) -> Result<LeftFrame, WalkEnd> {
    // The rules remembered are those of calls.
    if !frame.interrupted
        && let Some(rule) = rules.get(frame.pc)
    {
        return by_rule(rule, &frame, memory);
    }
    by_table(modules, rules, &frame, memory)
}

/// Leaves the frame by the module's tables. Apart, so that frames whose rule is known pay nothing
/// for its large stack frame.
#[cold]
#[inline(never)]
fn by_table(
    modules: &impl LoadedModules,
    rules: &Rules,
    frame: &WalkFrame,
    memory: &mut impl StackMemory,
) -> Result<LeftFrame, WalkEnd> {
    let pc = if frame.interrupted { frame.pc } else { frame.pc.wrapping_sub(1) };
    let Some((image, header)) = modules.find(pc) else {
        return by_frame_pointer(frame, memory);
    };
    let Some(found) = look_up(&image, header, pc)? else {
        return by_frame_pointer(frame, memory);
    };
    match FrameRule::of(&found, &image) {
        Some(rule) if !found.signal => {
            if !frame.interrupted {
                rules.learn(frame.pc, rule);
            }
            by_rule(rule, frame, memory)
        }
        _ => by_row(&found, &image, frame, memory),
    }
}

/// Returns what the module says about `pc`. Apart, so that the stack it takes is given
/// back before the rules are applied.
#[inline(never)]
fn look_up(
    image: &impl ModuleImage,
    header: u64,
    pc: u64,
) -> Result<Option<FoundRow<OnlyRbp>>, WalkEnd> {
    let Some(piece) = piece(image, header, pc)? else { return Ok(None) };
    Ok(at(&piece, piece.address, pc)?)
}

/// Leaves the frame by a rule that is remembered.
#[inline(always)]
fn by_rule(
    rule: FrameRule,
    frame: &WalkFrame,
    memory: &impl StackMemory,
) -> Result<LeftFrame, WalkEnd> {
    let FrameRule::Frame { base, distance, rbp } = rule else { return Err(WalkEnd::Bottom) };
    let address = match base {
        FrameBase::Rsp => frame.sp.wrapping_add(distance),
        FrameBase::Rbp => frame.bp.ok_or(WalkEnd::Unknown)?.wrapping_add(distance),
        FrameBase::BelowRbp => {
            let place = frame.bp.ok_or(WalkEnd::Unknown)?.wrapping_sub(distance);
            memory.word(place).ok_or(WalkEnd::OffStack)?
        }
    };
    if address <= frame.sp {
        return Err(WalkEnd::OffStack);
    }
    let slot = address - 8;
    let pc = memory.word(slot).ok_or(WalkEnd::OffStack)?;
    let bp = match rbp {
        CallersRbp::Kept => frame.bp,
        CallersRbp::Lost => None,
        CallersRbp::Below(distance) => {
            Some(memory.word(address.wrapping_sub(distance)).ok_or(WalkEnd::OffStack)?)
        }
    };
    arrive(WalkFrame { pc, sp: address, bp, interrupted: false }, Some(slot), false)
}

/// Leaves the frame by rules of any kind: signal handlers, assembler, the linker's stubs.
#[inline(never)]
fn by_row(
    found: &FoundRow<OnlyRbp>,
    image: &impl ModuleImage,
    frame: &WalkFrame,
    memory: &mut impl StackMemory,
) -> Result<LeftFrame, WalkEnd> {
    let mut left = FrameKnowledge { frame, image, memory: &*memory };
    let address = found.frame_address(&mut left)?;
    let ra = found.recover(RA, found.row.ra, address, &mut left)?;
    let bp = match found.recover(RBP, found.row.followed.0, address, &mut left) {
        Ok(recovered) => Some(recovered.value),
        // An error only for a frame further on that needs it.
        Err(Stop::Unknown(_)) => None,
        Err(stop) => return Err(stop.into()),
    };
    // The stack only grows towards the caller, unless a signal changed stacks.
    if (address <= frame.sp || memory.word(address & !7).is_none())
        && !(found.signal && memory.enter(address))
    {
        return Err(WalkEnd::OffStack);
    }
    let caller = WalkFrame { pc: ra.value, sp: address, bp, interrupted: found.signal };
    arrive(caller, ra.place, false)
}

/// Leaves the frame by the convention that rbp points at the caller's rbp, right below the return
/// address. Code that nothing describes may have used rbp for something else;
/// then it seldom points into this part of the stack, and at such a pair.
fn by_frame_pointer(frame: &WalkFrame, memory: &impl StackMemory) -> Result<LeftFrame, WalkEnd> {
    let bp = frame.bp.ok_or(WalkEnd::Uncharted)?;
    // Below the stack pointer lies no frame that is still in use.
    if bp < frame.sp {
        return Err(WalkEnd::Uncharted);
    }
    let slot = bp.wrapping_add(8);
    let (Some(callers), Some(pc)) = (memory.word(bp), memory.word(slot)) else {
        return Err(WalkEnd::Uncharted);
    };
    // Neither the first page nor the stack holds code, and the caller's frame
    // pointer, if it has one, lies above.
    let plausible = pc == 0 || pc >= 4096 && pc >> 47 == 0 && memory.word(pc & !7).is_none();
    if !plausible || callers != 0 && callers <= bp {
        return Err(WalkEnd::Uncharted);
    }
    let caller = WalkFrame { pc, sp: bp + 16, bp: Some(callers), interrupted: false };
    arrive(caller, Some(slot), true)
}

/// Ends the walk at address 0, which returns nowhere: some thread libraries end their
/// stacks so.
#[inline(always)]
fn arrive(caller: WalkFrame, slot: Option<u64>, guessed: bool) -> Result<LeftFrame, WalkEnd> {
    if caller.pc == 0 { Err(WalkEnd::Bottom) } else { Ok(LeftFrame { caller, slot, guessed }) }
}

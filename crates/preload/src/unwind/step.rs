//! Leaves a frame for its caller's.

use super::ends::{WalkEnd, WalkStart};
use super::module::LoadedModules;
use super::rules::Rules;
use super::stack::StackMemory;
use crate::arch::leaving::{Beside, FrameRule, return_address, signal_return};
use lockstead_unwind::arch::ADDRESS_BITS;
use lockstead_unwind::{
    FP, Followed, FoundRow, ModuleImage, RA, Register, SP, Saved, Stop, at, piece,
};

/// A frame that the walk has come to.
#[derive(Clone, Copy)]
pub(crate) struct WalkFrame {
    pub(crate) pc: u64,
    /// The stack pointer; see [`Beside::has_stack_pointer`].
    pub(crate) sp: u64,
    /// The frame pointer, if it is known.
    pub(crate) bp: Option<u64>,
    /// A signal came before the instruction at `pc`; else a call went before it,
    /// and the rules to apply are those of the call.
    pub(crate) interrupted: bool,
    pub(crate) beside: Beside,
}

impl WalkFrame {
    pub(super) const fn of(start: WalkStart) -> Self {
        Self::called(start.pc, start.sp, Some(start.bp))
    }

    /// Makes the frame of a function that called.
    #[inline(always)]
    pub(crate) const fn called(pc: u64, sp: u64, bp: Option<u64>) -> Self {
        Self { pc, sp, bp, interrupted: false, beside: Beside::CALLED }
    }
}

/// The outcome of leaving a frame.
pub(crate) struct LeftFrame {
    pub(crate) caller: WalkFrame,
    /// The place where the caller's `pc` was found, if that is on the stack.
    pub(crate) slot: Option<u64>,
    /// Whether nothing but the frame pointer said so.
    pub(crate) guessed: bool,
}

impl LeftFrame {
    /// Arrives at the caller, whose `pc` was found at `slot`. Ends the walk at address 0, which returns
    /// nowhere: some thread libraries end their stacks so.
    #[inline(always)]
    pub(crate) fn arrive(caller: WalkFrame, slot: Option<u64>) -> Result<Self, WalkEnd> {
        let left = LeftFrame { caller, slot, guessed: false };
        if caller.pc == 0 { Err(WalkEnd::Bottom) } else { Ok(left) }
    }
}

/// The rule of the frame pointer, the one register that a walk follows beside stack pointer and return address.
#[derive(Clone, Copy)]
pub(crate) struct OnlyPointer(pub(crate) Saved);

impl Followed for OnlyPointer {
    const ABI: Self = OnlyPointer(Saved::Same);

    fn rule(&mut self, register: Register) -> Option<&mut Saved> {
        (register == FP).then_some(&mut self.0)
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
            SP => self.frame.beside.has_stack_pointer().then_some(self.frame.sp),
            FP => self.frame.bp,
            RA => self.frame.beside.ra(self.frame.pc),
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
pub(crate) fn leave(
    modules: &impl LoadedModules,
    rules: &Rules,
    frame: WalkFrame,
    memory: &mut impl StackMemory,
) -> Result<LeftFrame, WalkEnd> {
    // The rules remembered are those of calls.
    if !frame.interrupted
        && let Some(rule) = rules.get(frame.pc)
    {
        return rule.leave(&frame, memory);
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
    if let Some(left) = signal_return(modules, frame, memory) {
        return left;
    }
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
            rule.leave(frame, memory)
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
) -> Result<Option<FoundRow<OnlyPointer>>, WalkEnd> {
    let Some(piece) = piece(image, header, pc)? else { return Ok(None) };
    Ok(at(&piece, piece.address, pc)?)
}

/// Leaves the frame by rules of any kind: signal handlers, assembler, the linker's stubs.
#[inline(never)]
fn by_row(
    found: &FoundRow<OnlyPointer>,
    image: &impl ModuleImage,
    frame: &WalkFrame,
    memory: &mut impl StackMemory,
) -> Result<LeftFrame, WalkEnd> {
    let mut left = FrameKnowledge { frame, image, memory: &*memory };
    let by_pair = || frame.bp?.checked_add(found.pair()?);
    let address = match found.frame_address(&mut left) {
        // The caller of a frame that was found by the frame pointer.
        Err(Stop::Unknown(SP)) => by_pair().ok_or(WalkEnd::Unknown)?,
        other => other?,
    };
    let ra = found.recover(RA, found.row.ra, address, &mut left)?;
    let bp = match found.recover(FP, found.row.followed.0, address, &mut left) {
        Ok(recovered) => Some(recovered.value),
        // An error only for a frame further on that needs it.
        Err(Stop::Unknown(_)) => None,
        Err(stop) => return Err(stop.into()),
    };
    // The stack only grows towards the caller, unless a signal changed stacks.
    // What was interrupted before it saved anything has an empty frame, where calls put nothing on the stack.
    let grows = address > frame.sp || address == frame.sp && may_be_empty(frame);
    if (!grows || memory.word(address & !7).is_none()) && !(found.signal && memory.enter(address)) {
        return Err(WalkEnd::OffStack);
    }
    let called = WalkFrame::called(return_address(ra.value), address, bp);
    LeftFrame::arrive(WalkFrame { interrupted: found.signal, ..called }, ra.place)
}

/// Tells whether the frame may have nothing in it: nothing but a signal leads to such a one, so that a walk
/// has few.
fn may_be_empty(frame: &WalkFrame) -> bool {
    frame.interrupted && cfg!(target_arch = "aarch64")
}

/// Leaves the frame by the convention that the frame pointer points at the caller's, right below the return
/// address. Code that nothing describes may have used the register for something else;
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
    let pc = return_address(pc);
    let is_address = pc >= 4096 && pc >> ADDRESS_BITS == 0;
    let plausible = pc == 0 || is_address && memory.word(pc & !7).is_none();
    if !plausible || callers != 0 && callers <= bp {
        return Err(WalkEnd::Uncharted);
    }
    let called = WalkFrame::called(pc, bp + 16, Some(callers));
    let left = LeftFrame::arrive(WalkFrame { beside: Beside::POINTED, ..called }, Some(slot))?;
    Ok(LeftFrame { guessed: true, ..left })
}

//! Steps from one frame to its caller, by a row of the unwind table that can be kept.

use super::registers::Registers;
use super::window::ReadWindow;
use crate::memory::ReadableMemory;
use crate::module::Module;
use lockstead_unwind::arch::KEPT;
use lockstead_unwind::{CalleeFrame, Cfa, FP, Followed, FoundRow, RA, Register, SP, Saved, Stop};
use std::sync::Arc;

/// The rules of all registers, by their numbers in DWARF.
#[derive(Clone, Copy, Debug)]
pub(super) struct All([Saved; Registers::COUNT]);

impl Followed for All {
    /// A callee keeps some; of the others the caller's values are lost, but for the stack pointer, which
    /// is the frame address.
    const ABI: Self = {
        let mut rules = [Saved::Lost; Registers::COUNT];
        let mut index = 0;
        while index < KEPT.len() {
            rules[KEPT[index].0 as usize] = Saved::Same;
            index += 1;
        }
        rules[SP.0 as usize] = Saved::Value(0);
        All(rules)
    };

    fn rule(&mut self, register: Register) -> Option<&mut Saved> {
        self.0.get_mut(usize::from(register.0))
    }
}

/// One row, and the file that its expressions are in.
#[derive(Debug)]
pub(super) struct RowInFile {
    found: FoundRow<All>,
    module: Arc<Module>,
    /// Whether the kernel made the frame, for a signal handler to return to.
    pub(super) signal: bool,
    /// The place where the function starts, or the part of it that lies here.
    pub(super) function: u64,
}

/// Where a frame is that is found by the frame pointer, in bytes.
#[cfg(target_arch = "aarch64")]
pub(super) struct Beside {
    /// How far the canonical frame address is above the frame pointer.
    pub(super) frame_above_pointer: u64,
    /// How far below it the caller's frame pointer lies, with the return address above that.
    pub(super) pair_below_frame: u64,
}

impl RowInFile {
    /// Keeps what was found in the bytes of `module`, which is loaded with `bias`.
    pub(super) fn new(found: FoundRow<All>, module: &Arc<Module>, bias: u64) -> Self {
        let function = found.function.wrapping_add(bias);
        RowInFile { found, module: module.clone(), signal: found.signal, function }
    }

    /// Tells whether the frame is found by the frame pointer.
    pub(super) fn is_by_frame_pointer(&self) -> bool {
        matches!(self.found.row.cfa, Cfa::Register(FP, _))
    }

    /// Tells whether the frame pointer points at a pair of the caller's and the
    /// return address, as it does in the body of a function.
    pub(super) fn has_usual_shape(&self) -> bool {
        matches!(self.found.row.cfa, Cfa::Register(FP, _)) && self.found.pair().is_some()
    }

    /// Tells whether the function has saved nothing so far: its frame is empty, and its return address in the
    /// register.
    #[cfg(target_arch = "aarch64")]
    pub(super) fn is_leaf(&self) -> bool {
        let row = self.found.row;
        matches!((row.cfa, row.ra), (Cfa::Register(SP, 0), Saved::Same))
    }

    /// Returns how far above the stack pointer the return address lies, if it is found by that.
    #[cfg(target_arch = "aarch64")]
    pub(super) fn returns_by(&self) -> Option<u64> {
        match (self.found.row.cfa, self.found.row.ra) {
            (Cfa::Register(SP, size), Saved::At(distance)) => {
                u64::try_from(size.checked_add(distance)?).ok()
            }
            _ => None,
        }
    }

    /// Returns where the return address lies of a frame that is found by the frame pointer, if that of the
    /// caller is saved beside it.
    #[cfg(target_arch = "aarch64")]
    pub(super) fn returns_beside(&self) -> Option<Beside> {
        let Cfa::Register(FP, above) = self.found.row.cfa else { return None };
        let frame_above_pointer = u64::try_from(above).ok()?;
        Some(Beside { frame_above_pointer, pair_below_frame: self.found.pair()? })
    }

    /// Returns where the return address lies in a frame that ends at `end`, if it lies in it.
    pub(super) fn return_place(&self, end: u64) -> Option<u64> {
        match self.found.row.ra {
            Saved::At(distance) => end.checked_add_signed(distance.into()),
            _ => None,
        }
    }

    /// Returns the registers of the caller.
    pub(super) fn caller(
        &self,
        callee: &Registers,
        window: &mut ReadWindow,
        memory: &dyn ReadableMemory,
    ) -> Result<Registers, Stop> {
        let found = &self.found;
        let mut frame = Callee { registers: callee, window, memory, module: &self.module };
        if matches!(found.row.ra, Saved::Lost) {
            return Err(Stop::Bottom);
        }
        let by_pair = || callee.get(FP)?.checked_add(found.pair()?);
        let address = match found.frame_address(&mut frame) {
            // The caller of code without tables, found by the frame pointer, which on some processors
            // does not say where the frame begins. It points at the pair.
            Err(Stop::Unknown(SP)) => by_pair().ok_or(Stop::Unknown(SP))?,
            other => other?,
        };
        let pc = found.recover(RA, found.row.ra, address, &mut frame)?.value;
        let mut caller = Registers::new(pc, address);
        for (number, &rule) in (0..).zip(&found.row.followed.0) {
            // A register that cannot be restored is not known: an error only for the row
            // that needs it.
            let value = found.recover(Register(number), rule, address, &mut frame).ok();
            caller = caller.with(Register(number), value.map(|recovered| recovered.value));
        }
        Ok(caller)
    }
}

/// The frame that is left.
struct Callee<'a> {
    registers: &'a Registers,
    window: &'a mut ReadWindow,
    memory: &'a dyn ReadableMemory,
    module: &'a Module,
}

impl<'a> CalleeFrame<'a> for Callee<'a> {
    fn register(&self, register: Register) -> Option<u64> {
        // On x86-64 it is no register, and what expressions call the instruction pointer.
        let is_pc = register == RA && cfg!(target_arch = "x86_64");
        if is_pc { Some(self.registers.pc) } else { self.registers.get(register) }
    }

    fn word(&mut self, address: u64) -> Option<u64> {
        self.window.read(self.memory, address).ok()
    }

    fn expression(&self, at: u64, len: u64) -> Option<&'a [u8]> {
        let start = usize::try_from(at).ok()?;
        self.module.bytes().get(start..start.checked_add(usize::try_from(len).ok()?)?)
    }
}

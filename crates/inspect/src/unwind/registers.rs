//! Holds what is known of the registers of a thread.

use crate::arch::{self, HeldRegisters};
use lockstead_unwind::arch::KEPT;
use lockstead_unwind::{FP, Register, SP};

/// What is known of a thread's registers, by their numbers in DWARF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    pub(super) pc: u64,
    known: [Option<u64>; Registers::COUNT],
}

impl Registers {
    /// All that the tables number.
    pub(super) const COUNT: usize = lockstead_unwind::arch::REGISTERS;

    /// Takes the program counter and the stack pointer, as `/proc/PID/task/TID/syscall` gives
    /// them.
    #[must_use]
    pub fn new(pc: u64, sp: u64) -> Self {
        let mut known = [None; Self::COUNT];
        known[usize::from(SP.0)] = Some(sp);
        Registers { pc, known }
    }

    /// Returns the same registers with the frame pointer.
    #[must_use]
    pub fn with_frame_pointer(self, bp: u64) -> Self {
        self.with(FP, Some(bp))
    }

    /// Returns the address of the instruction.
    #[must_use]
    pub fn pc(&self) -> u64 {
        self.pc
    }

    /// Takes all registers of a thread that is held.
    #[must_use]
    pub fn all(from: &HeldRegisters) -> Self {
        let (pc, known) = arch::by_number(from);
        Registers { pc, known: known.map(Some) }
    }

    /// Returns these registers with another program counter.
    #[must_use]
    pub fn at(self, pc: u64) -> Self {
        Registers { pc, ..self }
    }

    /// Returns the stack pointer, if it is known.
    #[must_use]
    pub fn stack_pointer(&self) -> Option<u64> {
        self.get(SP)
    }

    /// Returns the frame pointer, if it is known.
    #[must_use]
    pub fn frame_pointer(&self) -> Option<u64> {
        self.get(FP)
    }

    /// Tells whether all registers that a function leaves as it found them, but for the frame pointer, are known
    /// and the same as in `other`.
    #[must_use]
    pub fn keeps(&self, other: &Registers) -> bool {
        let kept = KEPT.into_iter().filter(|&register| register != FP);
        kept.into_iter().all(|one| self.get(one).is_some() && self.get(one) == other.get(one))
    }

    pub(crate) fn with(mut self, register: Register, value: Option<u64>) -> Self {
        if let Some(place) = self.known.get_mut(usize::from(register.0)) {
            *place = value;
        }
        self
    }

    pub(crate) fn get(&self, register: Register) -> Option<u64> {
        self.known.get(usize::from(register.0)).copied().flatten()
    }
}

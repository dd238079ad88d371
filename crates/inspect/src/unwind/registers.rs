//! Holds what is known of the registers of a thread.

use lockstead_unwind::{RBP, RSP, Register};

/// What is known of a thread's registers, by their numbers in DWARF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    pub(super) pc: u64,
    known: [Option<u64>; Registers::COUNT],
}

impl Registers {
    /// The general registers and the return address.
    pub(super) const COUNT: usize = 17;

    /// Takes the program counter and the stack pointer, as `/proc/PID/task/TID/syscall` gives
    /// them.
    #[must_use]
    pub fn new(pc: u64, sp: u64) -> Self {
        let mut known = [None; Self::COUNT];
        known[usize::from(RSP.0)] = Some(sp);
        Registers { pc, known }
    }

    /// Returns the same registers with the frame pointer.
    #[must_use]
    pub fn with_frame_pointer(self, bp: u64) -> Self {
        self.with(RBP, Some(bp))
    }

    /// Returns the address of the instruction.
    #[must_use]
    pub fn pc(&self) -> u64 {
        self.pc
    }

    /// Takes all registers of a thread that is held.
    #[must_use]
    pub fn all(from: &libc::user_regs_struct) -> Self {
        let known = [
            from.rax, from.rdx, from.rcx, from.rbx, from.rsi, from.rdi, from.rbp, from.rsp,
            from.r8, from.r9, from.r10, from.r11, from.r12, from.r13, from.r14, from.r15, from.rip,
        ];
        Registers { pc: from.rip, known: known.map(Some) }
    }

    /// Returns the stack pointer, if it is known.
    #[must_use]
    pub fn stack_pointer(&self) -> Option<u64> {
        self.get(RSP)
    }

    /// Returns the frame pointer, if it is known.
    #[must_use]
    pub fn frame_pointer(&self) -> Option<u64> {
        self.get(RBP)
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

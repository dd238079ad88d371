//! What a run is at.

use super::event::RunEnd;
use super::overlay::{NoMemory, Overlay};
use super::processor::Processor;

/// What a run is at.
#[derive(Clone)]
pub struct State<'p, P: Processor> {
    /// The registers and flags.
    pub processor: P,
    /// The memory, with what was written.
    pub memory: Overlay<'p>,
    /// The start of the thread's own variables, if it is known.
    pub thread_pointer: Option<u64>,
    /// What functions compare with to see whether their frames were overwritten: the one thing in
    /// a thread's own variables that is the same for all threads.
    pub canary: Option<u64>,
    /// The address of the next instruction.
    pub pc: u64,
    /// What single instructions and functions have moved, beside one word each.
    pub moved: u64,
}

/// Why an operand cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoOperand {
    /// Its address is not known.
    Unknown,
    /// There is no memory.
    Memory,
    /// The emulation has no such operands.
    Kind,
}

impl From<NoMemory> for NoOperand {
    fn from(_: NoMemory) -> Self {
        NoOperand::Memory
    }
}

impl From<NoMemory> for RunEnd {
    fn from(_: NoMemory) -> Self {
        RunEnd::NoMemory
    }
}

impl From<NoOperand> for RunEnd {
    fn from(why: NoOperand) -> Self {
        match why {
            NoOperand::Unknown => RunEnd::UnknownStore,
            NoOperand::Memory => RunEnd::NoMemory,
            NoOperand::Kind => RunEnd::BadCode,
        }
    }
}

impl<'p, P: Processor> State<'p, P> {
    /// Begins with the registers of a frame, at `pc`.
    #[must_use]
    pub fn new(memory: Overlay<'p>, processor: P, pc: u64) -> Self {
        State { processor, memory, thread_pointer: None, canary: None, pc, moved: 0 }
    }
}

//! What a run asks of a processor.
//!
//! # Role
//! A run's bounds, its calls and what others could see of it are the same everywhere. Instructions,
//! registers, and how functions are called are not: each processor has a folder with them. All of
//! them are built for tests, whatever these run on; the product has the one that it runs on.

use super::event::{Event, RunEnd};
use super::state::State;
use super::value::Value;

/// What a run is to do after an instruction, where that is the same for all processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It was done, and the program counter leads on.
    Done,
    /// It jumps to this address, which may be a function's that returns to the caller.
    Jumps(u64),
    /// It calls a function.
    Calls(Destination),
    /// It jumps to where a register or memory says.
    JumpsBy(Destination),
    /// It returns to this address.
    Returns(Value),
    /// It asks the kernel: the number of the call, and its first two arguments.
    AsksKernel([Value; 3]),
}

/// Where a call or a jump leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The place in memory that the address was taken from, if it was.
    pub slot: Option<u64>,
    /// The address that it leads to.
    pub address: Value,
}

impl Destination {
    /// Returns the destination of what says itself where it leads.
    #[must_use]
    pub const fn at(address: u64) -> Self {
        Destination { slot: None, address: Value::of(address) }
    }
}

/// A processor: its registers and flags.
pub trait Processor: Clone {
    /// An instruction that was decoded.
    type Instruction: Copy;

    /// The bytes of the longest instruction.
    const LONGEST: usize;
    /// The number of the system call `futex`.
    const FUTEX: u64;
    /// The numbers of the system calls that end a thread or all of them.
    const ENDING: [u64; 2];

    /// Decodes the instruction at `address`, of which these are the bytes; `None` if there is none.
    fn decode(bytes: &[u8], address: u64) -> Option<Self::Instruction>;

    /// Begins with these registers, by their numbers in unwind tables; the others are not known.
    fn with(known: impl Fn(u16) -> Option<u64>) -> Self;

    /// Does one instruction: that at the program counter, which leads behind it afterwards. What
    /// others could see goes to `events`.
    ///
    /// # Errors
    /// The run cannot go on.
    fn step(
        state: &mut State<'_, Self>,
        instruction: &Self::Instruction,
        events: &mut Vec<Event>,
    ) -> Result<Step, RunEnd>;

    /// Returns the first three arguments of a function that is called now.
    fn arguments(&self) -> [Value; 3];

    /// Tells whether the first argument is known to be one: where a landing pad gets the exception in its
    /// register, that has been written since.
    fn has_argument(&self) -> bool;

    /// Sets what a function returns, in one register or in two.
    fn set_results(&mut self, values: [Value; 2]);

    /// Forgets the registers that a function may change: all but those that it has to keep.
    fn forget_scratch(&mut self);

    /// Puts the address to which a function will return where it looks for it.
    ///
    /// # Errors
    /// That would be in memory that is not there.
    fn enter(state: &mut State<'_, Self>, returns_to: u64) -> Result<(), RunEnd>;

    /// Returns where a function returns to that has changed nothing yet, as if it did.
    ///
    /// # Errors
    /// That is in memory that is not there.
    fn leave(state: &mut State<'_, Self>) -> Result<Value, RunEnd>;
}

//! x86-64.
//!
//! | module | what it knows |
//! |---|---|
//! | [`state`] | registers, flags and operands |
//! | [`arithmetic`], [`mod@execute`], [`vector`] | the instructions |

pub mod arithmetic;
pub mod execute;
pub mod state;
pub mod vector;

pub use state::X86;

use super::event::{Event, RunEnd};
use super::processor::{Destination, Processor, Step};
use super::state::State;
use super::value::Value;
use execute::{execute, jumps};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

impl Processor for X86 {
    type Instruction = Instruction;

    const LONGEST: usize = 15;
    const FUTEX: u64 = 202;
    const ENDING: [u64; 2] = [60, 231];

    fn decode(bytes: &[u8], address: u64) -> Option<Instruction> {
        let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
        (!instruction.is_invalid()).then_some(instruction)
    }

    fn with(known: impl Fn(u16) -> Option<u64>) -> Self {
        X86::new(known)
    }

    fn step(
        state: &mut State<'_, Self>,
        instruction: &Instruction,
        events: &mut Vec<Event>,
    ) -> Result<Step, RunEnd> {
        state.pc = instruction.next_ip();
        Ok(match instruction.flow_control() {
            FlowControl::Next => {
                execute(state, instruction, events)?;
                Step::Done
            }
            FlowControl::ConditionalBranch => {
                if !instruction.is_jcc_short_or_near() {
                    return Err(RunEnd::BadCode);
                }
                if jumps(state, instruction).ok_or(RunEnd::UnknownJump)? {
                    state.pc = instruction.near_branch_target();
                }
                Step::Done
            }
            FlowControl::UnconditionalBranch => Step::Jumps(instruction.near_branch_target()),
            FlowControl::IndirectBranch => Step::JumpsBy(destination(state, instruction)?),
            FlowControl::Call if instruction.mnemonic() == Mnemonic::Syscall => {
                let asks = [Register::RAX, Register::RDI, Register::RSI];
                let asks = asks.map(|register| state.processor.full(register));
                for register in [Register::RAX, Register::RCX, Register::R11] {
                    state.processor.set_full(register, Value::UNKNOWN);
                }
                Step::AsksKernel(asks)
            }
            FlowControl::Call | FlowControl::IndirectCall => {
                Step::Calls(destination(state, instruction)?)
            }
            FlowControl::Return => Step::Returns(state.pop()?),
            FlowControl::Exception | FlowControl::Interrupt | FlowControl::XbeginXabortXend => {
                return Err(RunEnd::Stopped);
            }
        })
    }

    fn arguments(&self) -> [Value; 3] {
        [Register::RDI, Register::RSI, Register::RDX].map(|register| self.full(register))
    }

    fn has_argument(&self) -> bool {
        // An exception comes in another register.
        true
    }

    fn set_results(&mut self, [first, second]: [Value; 2]) {
        self.set_full(Register::RAX, first);
        self.set_full(Register::RDX, second);
    }

    fn forget_scratch(&mut self) {
        X86::forget_scratch(self);
    }

    fn enter(state: &mut State<'_, Self>, returns_to: u64) -> Result<(), RunEnd> {
        Ok(state.push(Value::of(returns_to))?)
    }

    fn leave(state: &mut State<'_, Self>) -> Result<Value, RunEnd> {
        Ok(state.pop()?)
    }
}

fn destination(state: &State<'_, X86>, instruction: &Instruction) -> Result<Destination, RunEnd> {
    let in_memory = instruction.op_kind(0) == OpKind::Memory;
    let slot = if in_memory { state.address(instruction).ok() } else { None };
    Ok(Destination { slot, address: state.operand(instruction, 0)? })
}

//! aarch64.
//!
//! | module | what it knows |
//! |---|---|
//! | [`decoded`] | what the decoder says of an instruction |
//! | [`state`] | registers, flags and operands |
//! | [`arithmetic`], [`execute`], [`memory`], [`atomics`], [`vector`] | the instructions |

pub mod arithmetic;
pub mod atomics;
pub mod decoded;
pub mod execute;
pub mod memory;
pub mod state;
pub mod vector;

pub use decoded::Decoded;
pub use state::Aarch64;

use super::event::{Event, RunEnd};
use super::processor::{Destination, Processor, Step};
use super::state::State;
use super::value::{Value, mask};
use arithmetic::holds;
use state::{LINK, bytes};
use yaxpeax_arm::armv8::a64::{Opcode, Operand};

impl Processor for Aarch64 {
    type Instruction = Decoded;

    const LONGEST: usize = 4;
    const FUTEX: u64 = 98;
    const ENDING: [u64; 2] = [93, 94];

    fn decode(bytes: &[u8], address: u64) -> Option<Decoded> {
        Decoded::of(bytes).filter(|_| address.is_multiple_of(4))
    }

    fn with(known: impl Fn(u16) -> Option<u64>) -> Self {
        Aarch64::new(known)
    }

    fn step(
        state: &mut State<'_, Self>,
        instruction: &Decoded,
        events: &mut Vec<Event>,
    ) -> Result<Step, RunEnd> {
        use Opcode as O;
        let pc = state.pc;
        state.pc = pc.wrapping_add(4);
        let [first, second, third, _] = instruction.what.operands;
        let to = |operand: Operand| match operand {
            Operand::PCOffset(by) => Ok(pc.wrapping_add_signed(by)),
            _ => Err(RunEnd::BadCode),
        };
        let mut branch = |taken: Option<bool>, target: Operand| {
            if taken.ok_or(RunEnd::UnknownJump)? {
                state.pc = to(target)?;
            }
            Ok(Step::Done)
        };
        let by = |processor: &Aarch64| match first {
            Operand::Register(_, number) => {
                let (slot, address) = (processor.slot(number), processor.get(number));
                Ok(Destination { slot, address })
            }
            _ => Err(RunEnd::BadCode),
        };
        match instruction.what.opcode {
            O::B => Ok(Step::Jumps(to(first)?)),
            O::BL => Ok(Step::Calls(Destination::at(to(first)?))),
            O::Bcc(condition) | O::BCcc(condition) => {
                branch(holds(&state.processor.flags, condition), first)
            }
            O::CBZ => branch(is_zero(&state.processor, first), second),
            O::CBNZ => branch(is_zero(&state.processor, first).map(|zero| !zero), second),
            O::TBZ => branch(bit(&state.processor, first, second).map(|set| !set), third),
            O::TBNZ => branch(bit(&state.processor, first, second), third),
            O::BR | O::BRAA | O::BRAB | O::BRAAZ | O::BRABZ => {
                Ok(Step::JumpsBy(by(&state.processor)?))
            }
            O::BLR | O::BLRAA | O::BLRAB | O::BLRAAZ | O::BLRABZ => {
                Ok(Step::Calls(by(&state.processor)?))
            }
            O::RET => Ok(Step::Returns(by(&state.processor)?.address)),
            O::RETAA | O::RETAB | O::RETAASPPC | O::RETABSPPC => {
                Ok(Step::Returns(state.processor.get(LINK)))
            }
            O::SVC => {
                let asks = [8, 0, 1].map(|number| state.processor.get(number));
                state.processor.set(0, Value::UNKNOWN);
                Ok(Step::AsksKernel(asks))
            }
            O::BRK | O::HLT | O::UDF | O::HVC | O::SMC | O::DCPS1 | O::DCPS2 | O::DCPS3 => {
                Err(RunEnd::Stopped)
            }
            _ => execute::execute(state, instruction, pc, events).map(|()| Step::Done),
        }
    }

    fn arguments(&self) -> [Value; 3] {
        [0, 1, 2].map(|number| self.get(number))
    }

    fn has_argument(&self) -> bool {
        self.has_written_first
    }

    fn set_results(&mut self, [first, second]: [Value; 2]) {
        self.set(0, first);
        self.set(1, second);
    }

    fn forget_scratch(&mut self) {
        self.forget();
    }

    fn enter(state: &mut State<'_, Self>, returns_to: u64) -> Result<(), RunEnd> {
        state.processor.set(LINK, Value::of(returns_to));
        Ok(())
    }

    fn leave(state: &mut State<'_, Self>) -> Result<Value, RunEnd> {
        Ok(state.processor.get(LINK))
    }
}

/// Tells whether a register is zero, if that is known.
fn is_zero(processor: &Aarch64, operand: Operand) -> Option<bool> {
    let Operand::Register(size, number) = operand else { return None };
    let value = processor.get(number);
    // A bit that is known to be set is enough to know that it is not zero.
    let set = value.parts().0 & mask(bytes(size)) != 0;
    if set { Some(false) } else { value.get(bytes(size)).map(|number| number == 0) }
}

/// Tells whether a bit of a register is set, if that is known.
fn bit(processor: &Aarch64, operand: Operand, at: Operand) -> Option<bool> {
    let (Operand::Register(_, number), Operand::Imm16(at)) = (operand, at) else { return None };
    let (bits, known) = processor.get(number).parts();
    let one = 1_u64.checked_shl(at.into())?;
    (known & one != 0).then_some(bits & one != 0)
}

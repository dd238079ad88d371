//! Registers, flags, operands.

use super::super::state::{NoOperand, State};
use super::super::value::{Value, mask};
use iced_x86::{Instruction, OpKind, Register};

/// The flags that code asks for; `None` where one is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// A carry out of the highest bit.
    pub carry: Option<bool>,
    /// An even number of bits in the lowest byte.
    pub parity: Option<bool>,
    /// A result of zero.
    pub zero: Option<bool>,
    /// The highest bit of the result.
    pub sign: Option<bool>,
    /// A signed result that does not fit.
    pub overflow: Option<bool>,
}

impl Flags {
    /// Sets those that follow from the result alone.
    pub fn of_result(&mut self, result: Value, size: usize) {
        let number = result.get(size);
        self.zero = number.map(|number| number == 0);
        self.sign = number.map(|number| number >> (8 * size - 1) & 1 != 0);
        self.parity = result.get(1).map(|byte| byte.count_ones() % 2 == 0);
        // A bit that is known to be set is enough to know that it is not zero.
        if result.parts().0 & mask(size) != 0 {
            self.zero = Some(false);
        }
    }

    /// Sets those of an operation on bits.
    pub fn of_logic(&mut self, result: Value, size: usize) {
        self.of_result(result, size);
        (self.carry, self.overflow) = (Some(false), Some(false));
    }
}

/// The registers and flags of x86-64.
#[derive(Clone)]
pub struct X86 {
    registers: [Value; 16],
    /// The 32 lower bytes of vector registers.
    vectors: [[Value; 4]; 16],
    /// The flags after the last instruction.
    pub flags: Flags,
}

/// The distance of what functions compare with from the start of a thread's own variables.
const CANARY: u64 = 0x28;

/// The numbers of registers in DWARF, in the order of the processor's own.
const DWARF: [u16; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];

impl X86 {
    /// Begins with the registers that `known` has, by their numbers in DWARF.
    pub(super) fn new(known: impl Fn(u16) -> Option<u64>) -> Self {
        X86 {
            registers: DWARF.map(|number| known(number).map_or(Value::UNKNOWN, Value::of)),
            vectors: [[Value::UNKNOWN; 4]; 16],
            flags: Flags::default(),
        }
    }

    /// Returns a register with all its bits, by any of its names.
    #[must_use]
    pub fn full(&self, register: Register) -> Value {
        let register = register.full_register();
        if !register.is_gpr64() {
            return Value::UNKNOWN;
        }
        self.registers.get(register.number()).copied().unwrap_or(Value::UNKNOWN)
    }

    /// Sets a register with all its bits.
    pub fn set_full(&mut self, register: Register, value: Value) {
        let register = register.full_register();
        if register.is_gpr64()
            && let Some(place) = self.registers.get_mut(register.number())
        {
            *place = value;
        }
    }

    /// Returns the part of a register that a name stands for.
    #[must_use]
    pub fn get(&self, register: Register) -> Value {
        let full = self.full(register);
        match register {
            Register::AH | Register::BH | Register::CH | Register::DH => full.shifted_down(8),
            _ => full,
        }
        .zero_extended(register.size())
    }

    /// Sets the part of a register that a name stands for; a part of 4 bytes erases those above.
    pub fn set(&mut self, register: Register, value: Value) {
        let full = match (register, register.size()) {
            (Register::AH | Register::BH | Register::CH | Register::DH, _) => {
                self.full(register).with(value, 1, 8)
            }
            (_, size @ (1 | 2)) => self.full(register).with(value, size, 0),
            (_, size) => value.zero_extended(size),
        };
        self.set_full(register, full);
    }

    /// Returns the lower bytes of a vector register.
    #[must_use]
    pub fn vector(&self, register: Register) -> [Value; 4] {
        self.vectors.get(register.number()).copied().unwrap_or([Value::UNKNOWN; 4])
    }

    /// Sets the lower bytes of a vector register.
    pub fn set_vector(&mut self, register: Register, value: [Value; 4]) {
        if let Some(place) = self.vectors.get_mut(register.number()) {
            *place = value;
        }
    }

    /// Forgets the registers that a function may change: all but those that it has to keep.
    pub fn forget_scratch(&mut self) {
        use Register::{R8, R9, R10, R11, RAX, RCX, RDI, RDX, RSI};
        for register in [RAX, RCX, RDX, RSI, RDI, R8, R9, R10, R11] {
            self.set_full(register, Value::UNKNOWN);
        }
        self.vectors = [[Value::UNKNOWN; 4]; 16];
        self.flags = Flags::default();
    }
}

impl State<'_, X86> {
    /// Returns the address that an instruction's memory operand is at.
    ///
    /// # Errors
    /// It is not known.
    pub fn address(&self, instruction: &Instruction) -> Result<u64, NoOperand> {
        let part = |register: Register| match register {
            Register::None | Register::RIP | Register::EIP => Ok(0),
            register => self.processor.get(register).get(8).ok_or(NoOperand::Unknown),
        };
        let base = part(instruction.memory_base())?;
        let index = part(instruction.memory_index())?;
        let scaled = index.wrapping_mul(instruction.memory_index_scale().into());
        let sum = base.wrapping_add(scaled).wrapping_add(instruction.memory_displacement64());
        match instruction.memory_segment() {
            Register::FS => Ok(self.thread_pointer.ok_or(NoOperand::Unknown)?.wrapping_add(sum)),
            Register::GS => Err(NoOperand::Unknown),
            _ => Ok(sum),
        }
    }

    /// Tells whether the memory operand is what functions compare with.
    fn is_canary(instruction: &Instruction) -> bool {
        instruction.memory_segment() == Register::FS
            && instruction.memory_displacement64() == CANARY
            && instruction.memory_base() == Register::None
            && instruction.memory_index() == Register::None
    }

    /// Returns the bytes of an operand.
    #[must_use]
    pub fn size(instruction: &Instruction, operand: u32) -> usize {
        match instruction.op_kind(operand) {
            OpKind::Register => instruction.op_register(operand).size(),
            OpKind::Memory => instruction.memory_size().size(),
            // An immediate is as large as what it is for; alone, it goes on the stack.
            _ if operand == 0 => 8,
            _ => Self::size(instruction, 0),
        }
    }

    /// Returns an operand of up to 8 bytes.
    ///
    /// # Errors
    /// It is in memory that is not there. A number at an address that is not known is not known.
    pub fn operand(&self, instruction: &Instruction, operand: u32) -> Result<Value, NoOperand> {
        match instruction.op_kind(operand) {
            OpKind::Register => Ok(self.processor.get(instruction.op_register(operand))),
            OpKind::Memory => {
                let size = instruction.memory_size().size();
                if !(1..=8).contains(&size) {
                    return Err(NoOperand::Kind);
                }
                if Self::is_canary(instruction)
                    && let Some(canary) = self.canary
                {
                    return Ok(Value::of(canary).zero_extended(size));
                }
                match self.address(instruction) {
                    Ok(address) => Ok(self.memory.read(address, size)?),
                    Err(_) => Ok(Value::UNKNOWN.zero_extended(size)),
                }
            }
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => {
                Ok(Value::of(instruction.near_branch_target()))
            }
            kind if is_immediate(kind) => {
                Ok(Value::of(instruction.immediate(operand)).zero_extended(8))
            }
            _ => Err(NoOperand::Kind),
        }
    }

    /// Sets an operand of up to 8 bytes.
    ///
    /// # Errors
    /// It is in memory that is not there, or at an address that is not known.
    pub fn set_operand(
        &mut self,
        instruction: &Instruction,
        operand: u32,
        value: Value,
    ) -> Result<(), NoOperand> {
        match instruction.op_kind(operand) {
            OpKind::Register => {
                self.processor.set(instruction.op_register(operand), value);
                Ok(())
            }
            OpKind::Memory => {
                let size = instruction.memory_size().size();
                if !(1..=8).contains(&size) {
                    return Err(NoOperand::Kind);
                }
                let address = self.address(instruction)?;
                Ok(self.memory.write(address, value, size)?)
            }
            _ => Err(NoOperand::Kind),
        }
    }

    /// Puts a number on the stack.
    ///
    /// # Errors
    /// The stack pointer is not known, or leads nowhere.
    pub fn push(&mut self, value: Value) -> Result<(), NoOperand> {
        let sp =
            self.processor.full(Register::RSP).get(8).ok_or(NoOperand::Unknown)?.wrapping_sub(8);
        self.memory.write(sp, value, 8)?;
        self.processor.set_full(Register::RSP, Value::of(sp));
        Ok(())
    }

    /// Takes a number from the stack.
    ///
    /// # Errors
    /// The stack pointer is not known, or leads nowhere.
    pub fn pop(&mut self) -> Result<Value, NoOperand> {
        let sp = self.processor.full(Register::RSP).get(8).ok_or(NoOperand::Unknown)?;
        let value = self.memory.read(sp, 8)?;
        self.processor.set_full(Register::RSP, Value::of(sp.wrapping_add(8)));
        Ok(value)
    }
}

fn is_immediate(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Immediate8
            | OpKind::Immediate8_2nd
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
    )
}

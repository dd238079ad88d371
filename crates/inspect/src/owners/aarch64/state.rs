//! Registers, flags, operands.

use super::super::value::{Value, mask};
use yaxpeax_arm::armv8::a64::{Operand, ShiftStyle, SizeCode};

/// The flags that code asks for; `None` where one is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// The highest bit of the result.
    pub negative: Option<bool>,
    /// A result of zero.
    pub zero: Option<bool>,
    /// A carry out of the highest bit, or no borrow.
    pub carry: Option<bool>,
    /// A signed result that does not fit.
    pub overflow: Option<bool>,
}

/// The number that an exclusive load has read, for the store that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Monitor {
    /// The address of the number.
    pub address: u64,
    /// The bytes of it.
    pub size: usize,
    /// The number that was there.
    pub before: Option<u64>,
    /// The register that has it.
    pub register: u16,
    /// The address of the load.
    pub at: u64,
    /// Whether the load has told what both do.
    pub told: bool,
}

/// The number by which instructions name the register of zeroes, or the stack pointer.
pub const ZERO: u16 = 31;
/// The register that a function finds its return address in.
pub const LINK: u16 = 30;

/// The registers and flags of aarch64.
#[derive(Clone)]
pub struct Aarch64 {
    /// x0 to x30, and the stack pointer.
    registers: [Value; 32],
    /// Where in memory each register was loaded from, if it was and nothing has changed it since.
    slots: [Option<u64>; 32],
    vectors: [[Value; 2]; 32],
    /// The flags after the last instruction that sets them.
    pub flags: Flags,
    /// What the last exclusive load has read, until a store or something else ends that.
    pub monitor: Option<Monitor>,
    /// Whether x0 has been written since the run began.
    pub(super) has_written_first: bool,
}

impl Aarch64 {
    /// Begins with the registers that `known` has, by their numbers in DWARF.
    pub(super) fn new(known: impl Fn(u16) -> Option<u64>) -> Self {
        Aarch64 {
            registers: std::array::from_fn(|number| {
                known(number as u16).map_or(Value::UNKNOWN, Value::of)
            }),
            slots: [None; 32],
            vectors: [[Value::UNKNOWN; 2]; 32],
            flags: Flags::default(),
            monitor: None,
            has_written_first: false,
        }
    }

    /// Returns a register, of which 31 is zero.
    #[must_use]
    pub fn get(&self, number: u16) -> Value {
        if number == ZERO { Value::of(0) } else { self.pointer(number) }
    }

    /// Returns a register, of which 31 is the stack pointer.
    #[must_use]
    pub fn pointer(&self, number: u16) -> Value {
        self.registers.get(usize::from(number)).copied().unwrap_or(Value::UNKNOWN)
    }

    /// Sets a register, of which 31 is nothing.
    pub fn set(&mut self, number: u16, value: Value) {
        if number != ZERO {
            self.set_pointer(number, value);
        }
    }

    /// Sets a register, of which 31 is the stack pointer.
    pub fn set_pointer(&mut self, number: u16, value: Value) {
        self.has_written_first |= number == 0;
        let number = usize::from(number);
        if let (Some(place), Some(slot)) =
            (self.registers.get_mut(number), self.slots.get_mut(number))
        {
            (*place, *slot) = (value, None);
        }
    }

    /// Remembers where in memory a register was loaded from.
    pub fn set_slot(&mut self, number: u16, address: u64) {
        if number != ZERO
            && let Some(slot) = self.slots.get_mut(usize::from(number))
        {
            *slot = Some(address);
        }
    }

    /// Returns where in memory a register was loaded from.
    #[must_use]
    pub fn slot(&self, number: u16) -> Option<u64> {
        self.slots.get(usize::from(number)).copied().flatten()
    }

    /// Returns a vector register: its lower half, and its upper one.
    #[must_use]
    pub fn vector(&self, number: u16) -> [Value; 2] {
        self.vectors.get(usize::from(number)).copied().unwrap_or([Value::UNKNOWN; 2])
    }

    /// Sets a vector register.
    pub fn set_vector(&mut self, number: u16, value: [Value; 2]) {
        if let Some(place) = self.vectors.get_mut(usize::from(number)) {
            *place = value;
        }
    }

    /// Forgets the registers that a function may change: all but those that it has to keep.
    pub(super) fn forget(&mut self) {
        for number in (0..=18).chain([LINK]) {
            self.set(number, Value::UNKNOWN);
        }
        self.forget_vectors();
        self.flags = Flags::default();
        self.monitor = None;
    }

    /// Forgets the vector registers.
    pub(super) fn forget_vectors(&mut self) {
        self.vectors = [[Value::UNKNOWN; 2]; 32];
    }

    /// Returns an operand that is read, with zeroes above its size; `None` if it is none of numbers.
    #[must_use]
    pub fn operand(&self, operand: &Operand, size: usize) -> Option<Value> {
        let value = match *operand {
            Operand::Register(_, number) => self.get(number),
            Operand::RegisterOrSP(_, number) => self.pointer(number),
            Operand::Immediate(number) => Value::of(number.into()),
            Operand::Imm64(number) => Value::of(number),
            Operand::Imm16(number) => Value::of(number.into()),
            Operand::ImmShift(number, by) if by < 64 => Value::of(u64::from(number) << by),
            Operand::RegShift(how, by, of, number) => {
                // Of a number that is extended only its lower part counts.
                let whole = self.get(number).zero_extended(bytes(of));
                moved(whole, how, by.into(), if extends(how) { size } else { bytes(of) })
            }
            _ => return None,
        };
        Some(value.zero_extended(size))
    }

    /// Sets the register that an operand names; a part of 4 bytes erases those above. Returns
    /// whether it names one.
    pub fn set_operand(&mut self, operand: &Operand, value: Value) -> bool {
        match *operand {
            Operand::Register(size, number) => self.set(number, value.zero_extended(bytes(size))),
            Operand::RegisterOrSP(size, number) => {
                self.set_pointer(number, value.zero_extended(bytes(size)));
            }
            _ => return false,
        }
        true
    }
}

/// Returns the bytes of a general register.
#[must_use]
pub const fn bytes(size: SizeCode) -> usize {
    match size {
        SizeCode::X => 8,
        SizeCode::W => 4,
    }
}

fn extends(how: ShiftStyle) -> bool {
    use ShiftStyle::{ASR, LSL, LSR, ROR};
    !matches!(how, LSL | LSR | ASR | ROR)
}

/// Returns a number of `size` bytes whose bits are moved, or of which a part is extended first.
#[must_use]
pub fn moved(value: Value, how: ShiftStyle, by: u32, size: usize) -> Value {
    use ShiftStyle as S;
    let width = 8 * size as u32;
    let value = match how {
        S::UXTB => value.zero_extended(1),
        S::UXTH => value.zero_extended(2),
        S::UXTW => value.zero_extended(4),
        S::SXTB => value.sign_extended(1),
        S::SXTH => value.sign_extended(2),
        S::SXTW => value.sign_extended(4),
        S::UXTX | S::SXTX | S::LSL | S::LSR | S::ASR | S::ROR => value,
    };
    if by >= width {
        return Value::UNKNOWN;
    }
    let result = match how {
        S::LSR => value.zero_extended(size).shifted_down(by),
        S::ASR => arithmetic(value.sign_extended(size), by),
        S::ROR if by == 0 => value,
        S::ROR => {
            let low = value.zero_extended(size).shifted_down(by);
            low.or(shifted_up(value, width - by).and(Value::of(mask(size))))
        }
        // A number of 4 bytes may become one of 8 by this.
        _ => shifted_up(value, by),
    };
    if matches!(how, S::LSL) && size == 4 { result } else { result.zero_extended(size) }
}

/// Returns the number `by` bits further up, with zeroes below.
#[must_use]
pub fn shifted_up(value: Value, by: u32) -> Value {
    let (bits, known) = value.parts();
    let below = (1_u64 << by) - 1;
    Value::partly(bits << by, known << by | below)
}

/// Returns the number `by` bits further down, with its sign above.
fn arithmetic(value: Value, by: u32) -> Value {
    let (bits, known) = value.parts();
    Value::partly((bits as i64 >> by).cast_unsigned(), (known as i64 >> by).cast_unsigned())
}

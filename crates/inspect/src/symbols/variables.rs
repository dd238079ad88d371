//! The variables that are in scope at a place in code, and what they are, by debug information.
//!
//! # Role
//! Finds the function around an address in DWARF, the scopes and inlined calls in it that the
//! address lies in, and their variables; computes where a variable lies and reads it.
//!
//! # Progress
//! Everything that is walked is counted: entries, units, steps of an expression. What asks for more
//! than the registers of the frame, its memory and its base has no value here.

use crate::memory::ReadableMemory;
use crate::unwind::Registers;
use gimli::constants as dw;
use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, EndianSlice, EvaluationResult, Expression,
    LittleEndian, Location, Register, Unit, UnitOffset, Value,
};
use object::{Object, ObjectSection};

/// The bytes of a section.
pub(super) type Slice<'d> = EndianSlice<'d, LittleEndian>;
type Entry<'d> = DebuggingInformationEntry<Slice<'d>>;

/// The units that are looked at one by one where no table tells which it is.
const MOST_UNITS: usize = 4096;
/// The variables of one function that are looked at.
const MOST_VARIABLES: usize = 512;
/// The steps of one expression.
const MOST_STEPS: u32 = 200;

/// What is known of a frame.
pub struct FrameValues<'m> {
    /// The registers of the frame.
    pub registers: Registers,
    /// The stack pointer of its caller.
    pub caller: Option<u64>,
    /// The memory of the process.
    pub memory: &'m dyn ReadableMemory,
}

/// A variable or an argument.
pub(super) struct Variable<'d> {
    pub(super) name: String,
    pub(super) type_: UnitOffset,
    location: AttributeValue<Slice<'d>>,
}

/// A member of a structure.
pub(super) struct Part<'d> {
    pub(super) name: Option<&'d str>,
    /// Its offset in bytes.
    pub(super) at: u64,
    pub(super) type_: UnitOffset,
}

/// The variables in scope at one place, the innermost scope's last.
pub(super) struct Variables<'d> {
    pub(super) dwarf: Dwarf<Slice<'d>>,
    pub(super) unit: Unit<Slice<'d>>,
    pub(super) all: Vec<Variable<'d>>,
    /// How the base of the function's frame is computed.
    base: Option<AttributeValue<Slice<'d>>>,
    pc: u64,
}

impl<'d> Variables<'d> {
    /// Returns those at `pc`, an address as the file states it; `entries` is the most that are
    /// read, and counted down.
    pub(super) fn at(dwarf: Dwarf<Slice<'d>>, pc: u64, entries: &mut usize) -> Option<Self> {
        let unit = unit_at(&dwarf, pc)?;
        let mut found = Variables { dwarf, unit, all: Vec::new(), base: None, pc };
        let (all, base) = found.collect(entries)?;
        (found.all, found.base) = (all, base);
        Some(found)
    }

    #[allow(clippy::type_complexity)]
    fn collect(
        &self,
        left: &mut usize,
    ) -> Option<(Vec<Variable<'d>>, Option<AttributeValue<Slice<'d>>>)> {
        let mut entries = self.unit.entries();
        let (mut all, mut base) = (Vec::new(), None);
        let (mut function, mut outside) = (None, None);
        while let Some(entry) = entries.next_dfs().ok()? {
            *left = left.checked_sub(1)?;
            let depth = entry.depth();
            if function.is_some_and(|function| depth <= function) {
                break;
            }
            if outside.is_some_and(|outside| depth > outside) {
                continue;
            }
            outside = None;
            match entry.tag() {
                dw::DW_TAG_subprogram if self.covers(entry) => {
                    function = Some(depth);
                    base = entry.attr_value(dw::DW_AT_frame_base);
                }
                dw::DW_TAG_lexical_block | dw::DW_TAG_inlined_subroutine if self.covers(entry) => {}
                dw::DW_TAG_subprogram
                | dw::DW_TAG_lexical_block
                | dw::DW_TAG_inlined_subroutine => outside = Some(depth),
                dw::DW_TAG_variable | dw::DW_TAG_formal_parameter if function.is_some() => {
                    all.extend(self.variable(entry));
                    if all.len() >= MOST_VARIABLES {
                        break;
                    }
                }
                _ => {}
            }
        }
        function.map(|_| (all, base))
    }

    fn covers(&self, entry: &Entry<'d>) -> bool {
        let Ok(mut ranges) = self.dwarf.die_ranges(&self.unit, entry) else { return false };
        while let Ok(Some(range)) = ranges.next() {
            if (range.begin..range.end).contains(&self.pc) {
                return true;
            }
        }
        false
    }

    fn variable(&self, entry: &Entry<'d>) -> Option<Variable<'d>> {
        let location = entry.attr_value(dw::DW_AT_location)?;
        let origin = self.reference(entry, dw::DW_AT_abstract_origin);
        let origin = origin.and_then(|at| self.unit.entry(at).ok());
        let told = origin.as_ref().unwrap_or(entry);
        let name = text(&self.dwarf, &self.unit, told)?.to_owned();
        Some(Variable { name, type_: self.reference(told, dw::DW_AT_type)?, location })
    }

    /// Returns the entry of the same unit that an attribute names.
    pub(super) fn reference(&self, entry: &Entry<'d>, name: gimli::DwAt) -> Option<UnitOffset> {
        match entry.attr_value(name)? {
            AttributeValue::UnitRef(at) => Some(at),
            AttributeValue::DebugInfoRef(at) => at.to_unit_offset(&self.unit.header),
            _ => None,
        }
    }

    /// Returns where a variable lies in a frame of the function, or what is known of its value;
    /// `bias` is what the loader added to the file's addresses.
    pub(super) fn value(
        &self,
        variable: &Variable<'d>,
        frame: &FrameValues<'_>,
        bias: u64,
    ) -> Option<VariableValue> {
        let expression = self.expression(variable.location)?;
        let evaluated = self.evaluate(expression, frame, bias, true)?;
        let mut pieces = Vec::new();
        for piece in evaluated {
            let size = piece.size_in_bits.map(|bits| bits / 8);
            let content = match piece.location {
                Location::Address { address } => Content::Memory(address),
                Location::Register { register } => {
                    frame.registers.get(register).map_or(Content::Unknown, Content::Value)
                }
                Location::Value { value } => {
                    value.to_u64(u64::MAX).map_or(Content::Unknown, Content::Value)
                }
                _ => Content::Unknown,
            };
            pieces.push((size, content));
        }
        Some(VariableValue { pieces })
    }

    /// Returns the expression that holds at this place.
    fn expression(&self, location: AttributeValue<Slice<'d>>) -> Option<Expression<Slice<'d>>> {
        if let AttributeValue::Exprloc(expression) = location {
            return Some(expression);
        }
        let mut list = self.dwarf.attr_locations(&self.unit, location).ok()??;
        for _ in 0..MOST_VARIABLES {
            let entry = list.next().ok()??;
            if (entry.range.begin..entry.range.end).contains(&self.pc) {
                return Some(entry.data);
            }
        }
        None
    }

    fn evaluate(
        &self,
        expression: Expression<Slice<'d>>,
        frame: &FrameValues<'_>,
        bias: u64,
        with_base: bool,
    ) -> Option<Vec<gimli::Piece<Slice<'d>>>> {
        let mut evaluation = expression.evaluation(self.unit.encoding());
        evaluation.set_max_iterations(MOST_STEPS);
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => return Some(evaluation.result()),
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = frame.registers.get(register)?;
                    evaluation.resume_with_register(Value::Generic(value))
                }
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    let value = number(frame.memory, address, usize::from(size))?;
                    evaluation.resume_with_memory(Value::Generic(value))
                }
                EvaluationResult::RequiresCallFrameCfa => {
                    evaluation.resume_with_call_frame_cfa(frame.caller?)
                }
                EvaluationResult::RequiresFrameBase if with_base => {
                    let base = self.base(frame, bias)?;
                    evaluation.resume_with_frame_base(base)
                }
                EvaluationResult::RequiresRelocatedAddress(address) => {
                    evaluation.resume_with_relocated_address(address.wrapping_add(bias))
                }
                _ => return None,
            }
            .ok()?;
        }
    }

    fn base(&self, frame: &FrameValues<'_>, bias: u64) -> Option<u64> {
        let expression = self.expression(self.base?)?;
        let pieces = self.evaluate(expression, frame, bias, false)?;
        match &pieces[..] {
            [piece] => match &piece.location {
                Location::Register { register: Register(number) } => {
                    frame.registers.get(Register(*number))
                }
                Location::Address { address } => Some(*address),
                Location::Value { value } => value.to_u64(u64::MAX).ok(),
                _ => None,
            },
            _ => None,
        }
    }
}

/// What is known of a variable.
pub(super) struct VariableValue {
    /// Its pieces from the first byte on, with the bytes of each; the size of the last may be open.
    pieces: Vec<(Option<u64>, Content)>,
}

enum Content {
    /// It lies in memory.
    Memory(u64),
    /// It has this value.
    Value(u64),
    Unknown,
}

impl VariableValue {
    /// Returns the number of `size` bytes at an offset in the variable.
    pub(super) fn read(&self, offset: u64, size: usize, frame: &FrameValues<'_>) -> Option<u64> {
        let mut inside = offset;
        for (length, content) in &self.pieces {
            if let Some(length) = *length {
                if inside >= length {
                    inside -= length;
                    continue;
                }
                if inside.checked_add(size as u64)? > length {
                    return None;
                }
            }
            return match *content {
                Content::Memory(address) => {
                    number(frame.memory, address.checked_add(inside)?, size)
                }
                Content::Value(value) if inside + size as u64 <= 8 => {
                    let shifted = value >> (8 * inside);
                    Some(if size == 8 { shifted } else { shifted & ((1 << (8 * size)) - 1) })
                }
                Content::Value(_) | Content::Unknown => None,
            };
        }
        None
    }
}

fn number(memory: &dyn ReadableMemory, address: u64, size: usize) -> Option<u64> {
    let mut bytes = [0; 8];
    let part = bytes.get_mut(..size)?;
    (memory.read(address, part).ok()? == size).then(|| u64::from_le_bytes(bytes))
}

/// Returns the debug information of a file.
pub(super) fn sections(bytes: &[u8]) -> Option<Dwarf<Slice<'_>>> {
    let file = object::File::parse(bytes).ok()?;
    Dwarf::load(|id: gimli::SectionId| {
        let section = file.section_by_name(id.name());
        // What is compressed is not read: a lock then keeps the name that it has without.
        let plain = section.filter(|section| {
            let range = section.compressed_file_range();
            range.is_ok_and(|range| range.format == object::CompressionFormat::None)
        });
        let data = plain.and_then(|section| section.data().ok()).unwrap_or_default();
        Ok::<_, gimli::Error>(Slice::new(data, LittleEndian))
    })
    .ok()
}

/// Returns the name of an entry.
pub(super) fn text<'d>(
    dwarf: &Dwarf<Slice<'d>>,
    unit: &Unit<Slice<'d>>,
    entry: &Entry<'d>,
) -> Option<&'d str> {
    let name = dwarf.attr_string(unit, entry.attr_value(dw::DW_AT_name)?).ok()?;
    std::str::from_utf8(name.slice()).ok()
}

/// Returns the unit that has the code at `pc`.
fn unit_at<'d>(dwarf: &Dwarf<Slice<'d>>, pc: u64) -> Option<Unit<Slice<'d>>> {
    let mut headers = dwarf.debug_aranges.headers();
    while let Ok(Some(header)) = headers.next() {
        let mut entries = header.entries();
        while let Ok(Some(entry)) = entries.next() {
            if entry.address() <= pc && pc - entry.address() < entry.length() {
                let header = dwarf.unit_header(header.debug_info_offset()).ok()?;
                return dwarf.unit(header).ok();
            }
        }
    }
    let mut headers = dwarf.units();
    for _ in 0..MOST_UNITS {
        let unit = dwarf.unit(headers.next().ok()??).ok()?;
        let mut ranges = dwarf.unit_ranges(&unit).ok()?;
        while let Ok(Some(range)) = ranges.next() {
            if (range.begin..range.end).contains(&pc) {
                return Some(unit);
            }
        }
    }
    None
}

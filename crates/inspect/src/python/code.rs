//! Code objects: names, lines, and the table of the blocks that are entered.

use super::layout::CodeLayout;
use super::lines;
use super::objects::Objects;
use std::rc::Rc;

/// The largest table of lines or blocks that is read.
const LARGEST: usize = 1 << 20;
/// The most variables, or values on the stack, that a function has.
const MOST: u32 = 1 << 16;
/// The most names of a code object that are looked through.
const NAMES: u64 = 512;

/// One code object, as far as it is read.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) address: u64,
    pub(super) file: String,
    pub(super) name: String,
    /// The name with its class in front: from 3.11.
    pub(super) qualified: Option<String>,
    /// The number of variables in front of the stack.
    pub(super) locals: u32,
    pub(super) stack_size: u32,
    /// The address of the first instruction.
    pub(super) instructions: u64,
    first_line: i64,
    lines: Vec<u8>,
    exceptions: Vec<u8>,
    layout: CodeLayout,
}

impl Code {
    /// Reads the code object at an address; `None` if it is none.
    pub(super) fn read(objects: &Objects<'_>, address: u64) -> Option<Rc<Code>> {
        if !objects.is(address, "code") {
            return None;
        }
        let (reader, layout) = (objects.reader, objects.layout.code);
        let text = |offset: u64| objects.text(reader.pointer(address, offset)?);
        let small = |offset: u64| reader.u32(address.checked_add(offset)?).filter(|&n| n <= MOST);
        let table = |offset: u64| objects.content(reader.pointer(address, offset)?, LARGEST);
        let first = reader.u32(address.checked_add(layout.first_line)?)?;
        let instructions = address.checked_add(layout.instructions)?;
        Some(Rc::new(Code {
            address,
            file: text(layout.file)?,
            name: text(layout.name)?,
            qualified: layout.qualified.and_then(text),
            locals: small(layout.locals)?,
            stack_size: small(layout.stack_size)?,
            instructions,
            first_line: i64::from(first.cast_signed()),
            lines: table(layout.lines).unwrap_or_default(),
            exceptions: layout.exceptions.and_then(table).unwrap_or_default(),
            layout,
        }))
    }

    /// Returns the line of the instruction at a byte offset.
    pub(super) fn line(&self, offset: u32) -> Option<u32> {
        lines::line(self.layout.line_table, &self.lines, self.first_line, offset)
    }

    /// Returns the name that is shown.
    pub(super) fn shown(&self) -> &str {
        self.qualified.as_deref().unwrap_or(&self.name)
    }

    /// Tells whether the code is of a file with this name, and of a function with this one.
    pub(super) fn is_of(&self, file: &str, function: &str) -> bool {
        self.is_in(file) && self.name == function
    }

    /// Tells whether the code is of a file whose path ends so.
    pub(super) fn is_in(&self, file: &str) -> bool {
        self.file.strip_suffix(file).is_some_and(|front| front.is_empty() || front.ends_with('/'))
    }

    /// Tells whether the code has a name among those that it looks up.
    pub(super) fn names(&self, objects: &Objects<'_>, name: &str) -> bool {
        let names = objects.reader.pointer(self.address, self.layout.names);
        names.is_some_and(|names| objects.texts(names, NAMES).iter().any(|known| known == name))
    }

    /// Returns how many values lie on the stack below the innermost block that the instruction at
    /// a byte offset is in, by the table of the code: these stay there until the block is left.
    pub(super) fn depth(&self, offset: u32) -> u32 {
        depth(&self.exceptions, offset / 2).unwrap_or(0).min(self.stack_size)
    }
}

/// Numbers of six bits a byte, the highest first, bit 6 where more follow; the first byte of an
/// entry has its high bit set. An entry has the start, the length, the handler, and the depth
/// with a flag in its lowest bit.
fn depth(table: &[u8], unit: u32) -> Option<u32> {
    let mut bytes = table.iter();
    let mut number = || {
        let mut number = 0_u32;
        loop {
            let byte = *bytes.next()?;
            number = number.wrapping_shl(6) | u32::from(byte & 63);
            if byte & 64 == 0 {
                return Some(number);
            }
        }
    };
    loop {
        let (start, length) = (number()?, number()?);
        let (_, depth) = (number()?, number()? >> 1);
        if start > unit {
            return None;
        }
        if unit - start < length {
            return Some(depth);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_block_of_an_instruction_says_the_depth() {
        // From 4 on for 70 units to depth 2, from 80 on for 3 units to depth 5.
        let table = [0x84, 0x41, 6, 50, 4, 0xc1, 16, 3, 0x41, 26, 11];
        let at = |unit| depth(&table, unit);
        assert_eq!([at(3), at(4), at(73), at(74)], [None, Some(2), Some(2), None]);
        assert_eq!([at(79), at(80), at(82), at(83)], [None, Some(5), Some(5), None]);
        assert_eq!(depth(&[0xff; 100], 1), None);
        assert_eq!(depth(&[], 1), None);
    }
}

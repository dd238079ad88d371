//! Code objects: names, lines, and the table of the blocks that are entered.

use super::bytecode;
use super::calls::Body;
use super::layout::{CodeLayout, FrameShape};
use super::lines;
use super::objects::Objects;
use std::cell::OnceCell;
use std::rc::Rc;

/// The largest table of lines or blocks that is read.
const LARGEST: usize = 1 << 20;
/// The most variables, or values on the stack, that a function has.
const MOST: u32 = 1 << 16;
/// The most names of a code object that are looked through.
const NAMES: u64 = 4096;
/// Where the code has the number of its instructions, from 3.11 on.
const UNITS: u64 = 16;

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
    /// The names that it looks up, by their addresses.
    names: OnceCell<Vec<(u64, String)>>,
    body: OnceCell<Option<Body>>,
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
            names: OnceCell::new(),
            body: OnceCell::new(),
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

    /// Returns the names that the code looks up, each with its address.
    pub(super) fn names(&self, objects: &Objects<'_>) -> &[(u64, String)] {
        self.names.get_or_init(|| {
            let tuple = objects.reader.pointer(self.address, self.layout.names);
            let items = tuple.map(|tuple| objects.items(tuple, NAMES)).unwrap_or_default();
            items.into_iter().map(|it| (it, objects.text(it).unwrap_or_default())).collect()
        })
    }

    /// Returns one of the constants.
    pub(super) fn constant(&self, objects: &Objects<'_>, index: u32) -> Option<u64> {
        let tuple = objects.reader.pointer(self.address, self.layout.constants)?;
        objects.item(tuple, index.into())
    }

    /// Returns what the code does, with its calls that concern locks; `None` if it cannot be read.
    pub(super) fn body(&self, objects: &Objects<'_>) -> Option<&Body> {
        let read = || {
            let bytes = match objects.layout.frame {
                FrameShape::Object { .. } => {
                    let bytes = objects.reader.pointer(self.address, self.layout.instructions)?;
                    objects.content(bytes, LARGEST)?
                }
                FrameShape::Record { .. } => {
                    let units = objects.reader.u64(self.address.checked_add(UNITS)?)?;
                    objects.reader.block(self.instructions, units.checked_mul(2)?, LARGEST)?
                }
            };
            Body::read(objects, self, &bytes, &self.exceptions)
        };
        self.body.get_or_init(read).as_ref()
    }

    /// Returns how many values lie on the stack below the innermost block that the instruction at
    /// a byte offset is in, by the table of the code: these stay there until the block is left.
    pub(super) fn depth(&self, offset: u32) -> u32 {
        depth(&self.exceptions, offset / 2).unwrap_or(0).min(self.stack_size)
    }
}

/// Returns the depth of the innermost entry that has an instruction.
fn depth(table: &[u8], unit: u32) -> Option<u32> {
    let behind = bytecode::entries(table).take_while(|entry| entry.start <= unit);
    behind.filter(|entry| unit - entry.start < entry.length).map(|entry| entry.depth).next()
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

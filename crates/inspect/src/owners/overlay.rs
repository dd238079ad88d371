//! The memory of another process with what an emulated run has written over it.
//!
//! # Role
//! Pages are read when the first byte of them is asked for, and kept for the runs of one look. A
//! run writes into cells of its own, which go with it: nothing reaches the process.
//!
//! # Bounds
//! Pages that are kept and cells that are written are both limited; beyond that memory cannot be
//! read or written, which ends a run.

use super::value::Value;
use crate::memory::ReadableMemory;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

const PAGE: u64 = 4096;
/// Pages that are kept for one look: 64 MiB.
const MOST_PAGES: usize = 16 << 10;
/// Cells that a run may write: 8 bytes each.
const MOST_CELLS: usize = 16 << 10;

/// The start of memory that is nobody's: no program can have addresses there. What allocation
/// functions return in a run lies there, and the exception that a landing pad is called with.
pub const NOWHERE: u64 = 0x00ee_0000_0000_0000;
const NOWHERE_END: u64 = 0x00ef_0000_0000_0000;

type Page = Rc<[u8; PAGE as usize]>;

/// The pages of a process that were read.
pub struct ReadPages<'m> {
    memory: &'m dyn ReadableMemory,
    pages: RefCell<HashMap<u64, Option<Page>>>,
}

impl<'m> ReadPages<'m> {
    /// Keeps none yet.
    #[must_use]
    pub fn new(memory: &'m dyn ReadableMemory) -> Self {
        ReadPages { memory, pages: RefCell::default() }
    }

    fn page(&self, number: u64) -> Option<Page> {
        let mut pages = self.pages.borrow_mut();
        if let Some(known) = pages.get(&number) {
            return known.clone();
        }
        if pages.len() >= MOST_PAGES {
            return None;
        }
        let mut bytes = [0; PAGE as usize];
        let read = self.memory.read(number.checked_mul(PAGE)?, &mut bytes);
        let page = matches!(read, Ok(length) if length == bytes.len()).then(|| Rc::new(bytes));
        pages.insert(number, page.clone());
        page
    }

    /// Fills `into` from `address` on, and says how many bytes there were.
    pub fn bytes(&self, address: u64, into: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < into.len() {
            let Some(at) = address.checked_add(filled as u64) else { break };
            let Some(page) = self.page(at / PAGE) else { break };
            let rest = &page[(at % PAGE) as usize..];
            let length = rest.len().min(into.len() - filled);
            into[filled..filled + length].copy_from_slice(&rest[..length]);
            filled += length;
        }
        filled
    }

    /// Returns the number of `size` bytes at `address`, at most 8.
    #[must_use]
    pub fn number(&self, address: u64, size: usize) -> Option<u64> {
        let mut bytes = [0; 8];
        let size = size.min(8);
        (self.bytes(address, &mut bytes[..size]) == size).then(|| u64::from_le_bytes(bytes))
    }
}

/// What one run wrote, over the pages.
#[derive(Clone)]
pub struct Overlay<'p> {
    pages: &'p ReadPages<'p>,
    /// The cells by their addresses over 8; each with the bits of it that were written.
    cells: HashMap<u64, (Value, u64)>,
}

/// An address that cannot be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory;

impl<'p> Overlay<'p> {
    /// Begins with nothing written.
    #[must_use]
    pub fn new(pages: &'p ReadPages<'p>) -> Self {
        Overlay { pages, cells: HashMap::new() }
    }

    /// Returns the pages below.
    #[must_use]
    pub fn pages(&self) -> &'p ReadPages<'p> {
        self.pages
    }

    fn cell(&self, number: u64) -> Result<Value, NoMemory> {
        let written = self.cells.get(&number).copied();
        if let Some((value, u64::MAX)) = written {
            return Ok(value);
        }
        let address = number * 8;
        let below = if is_nowhere(address) {
            Value::UNKNOWN
        } else {
            Value::of(self.pages.number(address, 8).ok_or(NoMemory)?)
        };
        let Some((value, mask)) = written else { return Ok(below) };
        let ((bits, known), (over, over_known)) = (below.parts(), value.parts());
        Ok(Value::partly(bits & !mask | over & mask, known & !mask | over_known & mask))
    }

    /// Returns the number of `size` bytes at `address`, at most 8.
    ///
    /// # Errors
    /// There is no such memory.
    pub fn read(&self, address: u64, size: usize) -> Result<Value, NoMemory> {
        let shift = (address % 8 * 8) as u32;
        let low = self.cell(address / 8)?.shifted_down(shift);
        let inside = 8 - (address % 8) as usize;
        if size <= inside {
            return Ok(low.zero_extended(size));
        }
        let high = self.cell((address / 8).checked_add(1).ok_or(NoMemory)?)?;
        let both = low.zero_extended(inside).with(high, size - inside, 8 * inside as u32);
        Ok(both.zero_extended(size))
    }

    /// Writes the lowest `size` bytes of a number, at most 8.
    ///
    /// # Errors
    /// There is no such memory, or the run has written too much.
    pub fn write(&mut self, address: u64, value: Value, size: usize) -> Result<(), NoMemory> {
        let offset = (address % 8) as usize;
        let inside = size.min(8 - offset);
        self.write_cell(address / 8, value, inside, 8 * offset as u32)?;
        if size > inside {
            let next = (address / 8).checked_add(1).ok_or(NoMemory)?;
            self.write_cell(next, value.shifted_down(8 * inside as u32), size - inside, 0)?;
        }
        Ok(())
    }

    fn write_cell(
        &mut self,
        number: u64,
        value: Value,
        size: usize,
        shift: u32,
    ) -> Result<(), NoMemory> {
        // Only what can be read can be written.
        self.cell(number)?;
        if self.cells.len() >= MOST_CELLS {
            return Err(NoMemory);
        }
        let (cell, mask) = self.cells.entry(number).or_default();
        *cell = cell.with(value, size, shift);
        *mask |= super::value::mask(size) << shift;
        Ok(())
    }
}

/// Tells whether an address is one that no program can have.
#[must_use]
pub fn is_nowhere(address: u64) -> bool {
    (NOWHERE..NOWHERE_END).contains(&address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SavedMemory;

    #[test]
    fn what_is_written_hides_what_was_read_and_goes_with_the_run() {
        let memory = SavedMemory::new(0x1000, (0..=255).cycle().take(8192).collect());
        let pages = ReadPages::new(&memory);
        let mut run = Overlay::new(&pages);
        assert_eq!(run.read(0x1004, 8).map(|v| v.get(8)), Ok(Some(0x0b0a_0908_0706_0504)));
        run.write(0x1006, Value::of(0xaabb_ccdd), 4).expect("there");
        assert_eq!(run.read(0x1004, 8).map(|v| v.get(8)), Ok(Some(0x0b0a_aabb_ccdd_0504)));
        run.write(0x1fff, Value::UNKNOWN, 2).expect("over two pages");
        assert_eq!(run.read(0x1ffe, 1).map(|v| v.get(1)), Ok(Some(0xfe)));
        assert_eq!(run.read(0x2000, 1).map(|v| v.get(1)), Ok(None));
        assert_eq!(run.read(0x2001, 1).map(|v| v.get(1)), Ok(Some(1)));
        assert_eq!(Overlay::new(&pages).read(0x1006, 1).map(|v| v.get(1)), Ok(Some(6)));
        assert_eq!(run.read(0x3000, 1), Err(NoMemory));
        assert_eq!(run.write(0x2ffe, Value::of(0), 8), Err(NoMemory));
        assert_eq!(run.read(u64::MAX - 3, 8), Err(NoMemory));
    }

    #[test]
    fn memory_that_is_nobodys_is_unknown_until_written() {
        let memory = SavedMemory::new(0, Vec::new());
        let pages = ReadPages::new(&memory);
        let mut run = Overlay::new(&pages);
        assert_eq!(run.read(NOWHERE + 4, 4).map(|v| v.get(4)), Ok(None));
        run.write(NOWHERE + 4, Value::of(7), 4).expect("there");
        assert_eq!(run.read(NOWHERE + 4, 4).map(|v| v.get(4)), Ok(Some(7)));
    }

    #[test]
    fn a_run_cannot_write_without_bound() {
        let memory = SavedMemory::new(0, Vec::new());
        let pages = ReadPages::new(&memory);
        let mut run = Overlay::new(&pages);
        let places = (0..).map(|at| NOWHERE + 8 * at);
        let written = places.take_while(|&at| run.write(at, Value::of(1), 8).is_ok()).count();
        assert_eq!(written, MOST_CELLS);
    }
}

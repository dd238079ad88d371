//! Unwind tables of one loaded file.
//!
//! # Role
//! From an address to the row that says how its frame lies on the stack. Every
//! file with code that exceptions may cross has `.eh_frame` among what is
//! loaded, with a sorted index in front; files that were built without have
//! perhaps `.debug_frame`, which is only searched then, and from its start.

use super::row::Row;
use crate::module::Module;
use gimli::{
    BaseAddresses, DebugFrame, EhFrame, EhFrameHdr, EhFrameOffset, EndianSlice,
    FrameDescriptionEntry, NativeEndian, Pointer, UnwindContext, UnwindSection,
};
use object::{Object, ObjectSection};
use std::sync::Arc;

type Reader<'a> = EndianSlice<'a, NativeEndian>;

/// Bytes of an address.
const ADDRESS: u8 = 8;

/// Tables of one file, where a process has loaded it.
pub(super) struct Table {
    module: Arc<Module>,
    bias: u64,
}

impl Table {
    pub(super) fn new(module: Arc<Module>, bias: u64) -> Self {
        Table { module, bias }
    }

    /// The row for the instruction at `address` of the process. A table that
    /// cannot be read has none.
    pub(super) fn row(&self, address: u64) -> Option<Row> {
        let stated = address.wrapping_sub(self.bias);
        self.by_index(stated).or_else(|| self.by_section(stated))
    }

    /// By the program headers alone: also there where a file has lost its
    /// section headers, and in a copy of memory.
    fn by_index(&self, stated: u64) -> Option<Row> {
        let range = self.module.eh_frame_hdr()?;
        let header = self.module.loaded(range.start)?;
        let bases = BaseAddresses::default().set_eh_frame_hdr(range.start);
        let header = EhFrameHdr::new(header, NativeEndian).parse(&bases, ADDRESS).ok()?;
        let Pointer::Direct(start) = header.eh_frame_ptr() else { return None };
        let bases = bases.set_eh_frame(start);
        let frames = self.frames(self.module.loaded(start)?);
        let entry = match header.table() {
            Some(table) => {
                let Pointer::Direct(found) = table.lookup(stated, &bases).ok()? else {
                    return None;
                };
                // In a damaged file the index may point in front of the table.
                let offset = usize::try_from(found.checked_sub(start)?).ok()?;
                frames
                    .fde_from_offset(&bases, EhFrameOffset(offset), EhFrame::cie_from_offset)
                    .ok()
                    .filter(|entry| entry.contains(stated))?
            }
            None => frames.fde_for_address(&bases, stated, EhFrame::cie_from_offset).ok()?,
        };
        self.row_of(&frames, &bases, &entry, stated)
    }

    fn by_section(&self, stated: u64) -> Option<Row> {
        let file = object::File::parse(self.module.bytes()).ok()?;
        let data = |name| {
            let section = file.section_by_name(name)?;
            Some((section.data().ok()?, section.address()))
        };
        if let Some((bytes, start)) = data(".eh_frame")
            && self.module.eh_frame_hdr().is_none()
        {
            let bases = BaseAddresses::default().set_eh_frame(start);
            let frames = self.frames(bytes);
            let entry = frames.fde_for_address(&bases, stated, EhFrame::cie_from_offset);
            if let Ok(entry) = entry {
                return self.row_of(&frames, &bases, &entry, stated);
            }
        }
        let (bytes, _) = data(".debug_frame")?;
        let mut frames = DebugFrame::new(bytes, NativeEndian);
        frames.set_address_size(ADDRESS);
        let bases = BaseAddresses::default();
        let entry = frames.fde_for_address(&bases, stated, DebugFrame::cie_from_offset).ok()?;
        self.row_of(&frames, &bases, &entry, stated)
    }

    fn frames<'a>(&self, bytes: &'a [u8]) -> EhFrame<Reader<'a>> {
        let mut frames = EhFrame::new(bytes, NativeEndian);
        frames.set_address_size(ADDRESS);
        frames
    }

    fn row_of<'a, S: UnwindSection<Reader<'a>>>(
        &self,
        section: &S,
        bases: &BaseAddresses,
        entry: &FrameDescriptionEntry<Reader<'a>>,
        stated: u64,
    ) -> Option<Row> {
        let mut context = UnwindContext::new();
        let row = entry.unwind_info_for_address(section, bases, &mut context, stated).ok()?;
        Row::new(section, row, entry, self.bias)
    }
}

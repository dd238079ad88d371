//! Leads from an address to the row for its frame, by the unwind tables of its file.
//!
//! # Role
//! Every file with code that exceptions may cross has `.eh_frame` among what is
//! loaded, with a sorted index in front; files that were built without have
//! perhaps `.debug_frame`, which is only searched then, and from its start.

use super::row::RowInFile;
use crate::module::Module;
use gimli::{BaseAddresses, DebugFrame, EhFrame, EhFrameHdr, LittleEndian, Pointer, UnwindSection};
use lockstead_unwind::{ModuleBytes, ModuleImage, at, of_entry, piece};
use object::{Object, ObjectSection};
use std::sync::Arc;

/// Bytes of an address.
const ADDRESS: u8 = 8;

/// The tables of one file, where a process has loaded it.
pub(super) struct ModuleTables {
    module: Arc<Module>,
    bias: u64,
}

/// The addresses are stated ones.
impl ModuleImage for Module {
    fn bytes(&self, address: u64, len: u64) -> Option<&[u8]> {
        self.loaded(address)?.get(..usize::try_from(len).ok()?)
    }
}

impl ModuleTables {
    pub(super) fn new(module: Arc<Module>, bias: u64) -> Self {
        ModuleTables { module, bias }
    }

    /// Returns the row for the instruction at `address` of the process. A table that
    /// cannot be read has none.
    pub(super) fn row(&self, address: u64) -> Option<RowInFile> {
        let stated = address.wrapping_sub(self.bias);
        self.by_index(stated).or_else(|| self.by_section(stated))
    }

    /// Looks by the program headers alone: they are also there where a file has lost its
    /// section headers, and in a copy of memory.
    fn by_index(&self, stated: u64) -> Option<RowInFile> {
        let header = self.module.eh_frame_hdr()?.start;
        if let Ok(found) = piece(&*self.module, header, stated) {
            let piece = found?;
            let found = at(&piece, self.offset(piece.bytes), stated).ok()??;
            return Some(RowInFile::new(found, &self.module, self.bias));
        }
        // Without an index, or with one that no linker writes, from the start.
        let bases = BaseAddresses::default().set_eh_frame_hdr(header);
        let header = EhFrameHdr::new(self.module.loaded(header)?, LittleEndian);
        let Pointer::Direct(start) = header.parse(&bases, ADDRESS).ok()?.eh_frame_ptr() else {
            return None;
        };
        let bytes = self.module.loaded(start)?;
        self.search(&EhFrame::new(bytes, LittleEndian), &bases.set_eh_frame(start), bytes, stated)
    }

    fn by_section(&self, stated: u64) -> Option<RowInFile> {
        let file = object::File::parse(self.module.bytes()).ok()?;
        let data = |name| {
            let section = file.section_by_name(name)?;
            Some((section.data().ok()?, section.address()))
        };
        if let Some((bytes, start)) = data(".eh_frame")
            && self.module.eh_frame_hdr().is_none()
        {
            let bases = BaseAddresses::default().set_eh_frame(start);
            let found = self.search(&EhFrame::new(bytes, LittleEndian), &bases, bytes, stated);
            if found.is_some() {
                return found;
            }
        }
        let (bytes, _) = data(".debug_frame")?;
        let mut frames = DebugFrame::new(bytes, LittleEndian);
        frames.set_address_size(ADDRESS);
        self.search(&frames, &BaseAddresses::default(), bytes, stated)
    }

    /// Looks through a section from its start.
    fn search<'a, S: UnwindSection<ModuleBytes<'a>>>(
        &self,
        section: &S,
        bases: &BaseAddresses,
        bytes: &[u8],
        stated: u64,
    ) -> Option<RowInFile> {
        let entry = section.fde_for_address(bases, stated, S::cie_from_offset).ok()?;
        let found = of_entry(section, bases, &entry, self.offset(bytes), stated).ok()?;
        Some(RowInFile::new(found, &self.module, self.bias))
    }

    /// Returns where `bytes`, a part of the module's, start among these.
    fn offset(&self, bytes: &[u8]) -> u64 {
        (bytes.as_ptr().addr() - self.module.bytes().as_ptr().addr()) as u64
    }
}

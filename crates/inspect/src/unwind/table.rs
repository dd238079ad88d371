//! Leads from an address to the row for its frame, by the unwind tables of its file.
//!
//! # Role
//! Every file with code that exceptions may cross has `.eh_frame` among what is
//! loaded, with a sorted index in front; files that were built without have
//! perhaps `.debug_frame`, which is only searched then, and from its start.

use super::row::RowInFile;
use crate::module::Module;
use crate::owners::lsda::{self, Landing};
use gimli::{BaseAddresses, DebugFrame, EhFrame, EhFrameHdr, LittleEndian, Pointer, UnwindSection};
use lockstead_unwind::arch::VENDOR;
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

/// Reads a section with the instructions that this processor's tables have.
fn eh_frame(bytes: &[u8]) -> EhFrame<ModuleBytes<'_>> {
    let mut section = EhFrame::new(bytes, LittleEndian);
    section.set_vendor(VENDOR);
    section
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

    /// Returns what an exception from the instruction at `address` of the process would do, if the
    /// function has a table for that.
    pub(super) fn landing(&self, address: u64) -> Option<Landing> {
        let stated = address.wrapping_sub(self.bias);
        let (function, table) = self.call_sites(stated)?;
        let found = lsda::landing(self.module.loaded(table)?, table, function, stated)?;
        Some(match found {
            Landing::Pad(pad) => Landing::Pad(pad.wrapping_add(self.bias)),
            Landing::Passes | Landing::Gap => found,
        })
    }

    /// Returns where the function around an address starts and where its table of calls is, as
    /// stated ones.
    fn call_sites(&self, stated: u64) -> Option<(u64, u64)> {
        let header = self.module.eh_frame_hdr()?.start;
        let (address, bytes, own) = match piece(&*self.module, header, stated) {
            Ok(piece) => piece.map(|piece| (piece.address, piece.bytes, Some(piece.own)))?,
            Err(_) => {
                let start = self.section_start(header)?;
                (start, self.module.loaded(start)?, None)
            }
        };
        let section = eh_frame(bytes);
        let bases = BaseAddresses::default().set_eh_frame(address);
        let entry = match own {
            Some(own) => section.fde_from_offset(&bases, own.into(), EhFrame::cie_from_offset),
            None => section.fde_for_address(&bases, stated, EhFrame::cie_from_offset),
        };
        let entry = entry.ok().filter(|entry| entry.contains(stated))?;
        match entry.lsda()? {
            Pointer::Direct(table) => Some((entry.initial_address(), table)),
            Pointer::Indirect(_) => None,
        }
    }

    /// Returns the stated address of the section that the index says it is for.
    fn section_start(&self, header: u64) -> Option<u64> {
        let bases = BaseAddresses::default().set_eh_frame_hdr(header);
        let index = EhFrameHdr::new(self.module.loaded(header)?, LittleEndian);
        match index.parse(&bases, ADDRESS).ok()?.eh_frame_ptr() {
            Pointer::Direct(start) => Some(start),
            Pointer::Indirect(_) => None,
        }
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
        let start = self.section_start(header)?;
        let bytes = self.module.loaded(start)?;
        self.search(&eh_frame(bytes), &bases.set_eh_frame(start), bytes, stated)
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
            let found = self.search(&eh_frame(bytes), &bases, bytes, stated);
            if found.is_some() {
                return found;
            }
        }
        let (bytes, _) = data(".debug_frame")?;
        let mut frames = DebugFrame::new(bytes, LittleEndian);
        frames.set_address_size(ADDRESS);
        frames.set_vendor(VENDOR);
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

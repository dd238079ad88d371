//! One ELF file of a process: its bytes, and where they are loaded.
//!
//! # Role
//! Reads the program headers and nothing else, so that opening a big binary
//! costs the same as opening a small one; symbols and unwind tables are read
//! by those who need them, when they do.
//!
//! # Addresses
//! A *stated* address is one as the file states it; the loader adds the same
//! *bias* to all of a file. Everything here is in stated addresses and offsets.

use crate::memory::{ReadableMemory, page_size};
use memmap2::Mmap;
use object::Endianness;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A part of the file that the loader maps.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LoadSegment {
    /// The place where its bytes lie in the file.
    offset: u64,
    /// The place where its bytes lie in [`Module::bytes`]: as in the file, or packed.
    position: u64,
    /// Its first stated address.
    stated: u64,
    /// Bytes that come from the file.
    in_file: u64,
    /// Bytes in memory; those past `in_file` are zero at the start.
    in_memory: u64,
    /// Whether it holds code.
    executable: bool,
}

#[derive(Debug)]
enum FileBytes {
    File(Mmap),
    Copied(Vec<u8>),
}

/// One ELF file, opened.
#[derive(Debug)]
pub struct Module {
    /// A path under which the very file can be opened again.
    path: PathBuf,
    /// The file that is kept open where `path` leads through it.
    _file: Option<File>,
    bytes: FileBytes,
    loads: Vec<LoadSegment>,
    eh_frame_hdr: Option<Range<u64>>,
}

/// More than any linker writes; what claims more is not read.
const MAX_SEGMENTS: usize = 4096;

/// The most bytes that are copied from the memory of a process.
const MAX_COPY: u64 = 256 << 20;

impl Module {
    /// Reads the headers of `file`, which can be opened again by `path`.
    /// `None` for what is no 64-bit ELF file.
    pub(crate) fn open(file: File, path: PathBuf, keep: bool) -> Option<Module> {
        // SAFETY: the mapping is private and read-only. The file may change
        // under it; what is read goes through parsers that check every offset
        // and takes no value on trust. A file cut short while it is mapped
        // would end this process with a bus error: programs are replaced, not
        // truncated, while they run (the kernel refuses it for executables).
        let map = unsafe { Mmap::map(&file) }.ok()?;
        let (loads, eh_frame_hdr) = headers(&map)?;
        let file = keep.then_some(file);
        Some(Module { path, _file: file, bytes: FileBytes::File(map), loads, eh_frame_hdr })
    }

    /// Copies what the process has loaded at `base`, where the file's first
    /// byte is mapped. For code whose file cannot be opened, and for the
    /// kernel's own page of code: the unwind tables are among what is loaded,
    /// the symbols are not.
    /// Also says what was added to the stated addresses.
    pub(crate) fn from_memory(memory: &dyn ReadableMemory, base: u64) -> Option<(Module, u64)> {
        let mut head = vec![0; 4096];
        let n = memory.read(base, &mut head).ok()?;
        head.truncate(n);
        let (mut loads, eh_frame_hdr) = headers(&head)?;
        // The first byte of the file is at `base`, so this load tells the bias.
        let bias = loads.iter().find(|l| l.offset == 0).map(|l| base.wrapping_sub(l.stated))?;
        // Only what holds the unwind tables: code and data can be large.
        let hdr = eh_frame_hdr.clone()?;
        loads.retain(|l| l.stated <= hdr.start && hdr.start - l.stated < l.in_file);
        let mut bytes = Vec::new();
        for load in &mut loads {
            if load.in_file > MAX_COPY {
                return None;
            }
            load.position = 0;
            bytes = vec![0; usize::try_from(load.in_file).ok()?];
            let mut filled = 0;
            while filled < bytes.len() {
                let from = bias.wrapping_add(load.stated).wrapping_add(filled as u64);
                match memory.read(from, &mut bytes[filled..]) {
                    Ok(n) if n > 0 => filled += n,
                    _ => return None,
                }
            }
        }
        let bytes = FileBytes::Copied(bytes);
        Some((Module { path: PathBuf::new(), _file: None, bytes, loads, eh_frame_hdr }, bias))
    }

    /// Returns a path under which the very file can be opened while the module lives; empty for a
    /// copy of memory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the bytes of the file, or those copied from memory.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match &self.bytes {
            FileBytes::File(map) => map,
            FileBytes::Copied(copy) => copy,
        }
    }

    /// Returns what must be added to a stated address in a process that has a mapping of `offset`
    /// of the file at `address`, with code in it or not.
    ///
    /// Mappings are of whole pages, and a page of the file may hold the end of
    /// one part and the start of the next: it is then mapped twice, and what
    /// the process may do with each tells them apart.
    #[must_use]
    pub fn bias(&self, address: u64, offset: u64, executable: bool) -> Option<u64> {
        self.bias_with(page_size(), address, offset, executable)
    }

    /// Does the same on a kernel with such pages.
    fn bias_with(&self, page: u64, address: u64, offset: u64, executable: bool) -> Option<u64> {
        let first_page = |l: &LoadSegment| l.offset / page * page;
        let load = self
            .loads
            .iter()
            .filter(|l| (first_page(l)..l.offset.saturating_add(l.in_file)).contains(&offset))
            .max_by_key(|l| (l.executable == executable, first_page(l) == offset))?;
        // From here on modulo 2^64: an offset in front of the part is negative.
        let stated = load.stated.wrapping_add(offset.wrapping_sub(load.offset));
        Some(address.wrapping_sub(stated))
    }

    /// Tells whether the stated address is of memory that the loader made for the
    /// file, zero-filled memory behind it included.
    #[must_use]
    pub fn covers(&self, stated: u64) -> bool {
        self.loads.iter().any(|l| l.stated <= stated && stated - l.stated < l.in_memory)
    }

    /// Returns the bytes from a stated address to the end of the part it lies in.
    #[must_use]
    pub fn loaded(&self, stated: u64) -> Option<&[u8]> {
        let load =
            self.loads.iter().find(|l| l.stated <= stated && stated - l.stated < l.in_file)?;
        let from = load.position.checked_add(stated - load.stated)?;
        let to = load.position.checked_add(load.in_file)?;
        let to = to.min(self.bytes().len() as u64);
        self.bytes().get(usize::try_from(from).ok()?..usize::try_from(to).ok()?)
    }

    /// Returns the stated addresses of the search table over the unwind information.
    #[must_use]
    pub fn eh_frame_hdr(&self) -> Option<Range<u64>> {
        self.eh_frame_hdr.clone()
    }
}

fn headers(bytes: &[u8]) -> Option<(Vec<LoadSegment>, Option<Range<u64>>)> {
    let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, bytes).ok()?;
    if segments.len() > MAX_SEGMENTS {
        return None;
    }
    let mut loads = Vec::new();
    let mut eh_frame_hdr = None;
    for segment in segments {
        let (stated, in_memory) = (segment.p_vaddr(endian), segment.p_memsz(endian));
        match segment.p_type(endian) {
            elf::PT_LOAD => loads.push(LoadSegment {
                offset: segment.p_offset(endian),
                position: segment.p_offset(endian),
                stated,
                in_file: segment.p_filesz(endian),
                in_memory,
                executable: segment.p_flags(endian).0 & elf::PF_X.0 != 0,
            }),
            elf::PT_GNU_EH_FRAME => eh_frame_hdr = Some(stated..stated.checked_add(in_memory)?),
            _ => {}
        }
    }
    Some((loads, eh_frame_hdr))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(offset: u64, stated: u64, in_file: u64, executable: bool) -> LoadSegment {
        LoadSegment { offset, position: offset, stated, in_file, in_memory: in_file, executable }
    }

    /// Returns a module as lld lays files out: no gaps in the file, a page apart in memory.
    fn packed() -> Module {
        let loads = vec![
            load(0, 0, 0x4de8, false),
            load(0x4df0, 0x5df0, 0x4680, true),
            load(0x9470, 0xb470, 0x2a78, false),
        ];
        let bytes = FileBytes::Copied(Vec::new());
        Module { path: PathBuf::new(), _file: None, bytes, loads, eh_frame_hdr: None }
    }

    #[test]
    fn parts_that_share_a_page_of_the_file_are_told_apart() {
        const BASE: u64 = 0x7f00_0000_0000;
        let module = packed();
        assert_eq!(module.bias_with(4096, BASE, 0, false), Some(BASE));
        assert_eq!(module.bias_with(4096, BASE + 0x5000, 0x4000, true), Some(BASE));
        assert_eq!(module.bias_with(4096, BASE + 0xb000, 0x9000, false), Some(BASE));
        // The second page of a part, where protection splits its mapping.
        assert_eq!(module.bias_with(4096, BASE + 0xc000, 0xa000, false), Some(BASE));
        assert_eq!(module.bias_with(4096, BASE, 0xf000, false), None);
    }

    #[test]
    fn a_part_is_mapped_from_the_beginning_of_the_kernels_page() {
        const BASE: u64 = 0x7f00_0000_0000;
        // As ld lays files out for pages of 64 KiB.
        let loads = vec![load(0, 0, 0x1_fa00, true), load(0x1_fdc0, 0x2_fdc0, 0x400, false)];
        let bytes = FileBytes::Copied(Vec::new());
        let module = Module { path: PathBuf::new(), _file: None, bytes, loads, eh_frame_hdr: None };
        for page in [4096, 16 << 10, 64 << 10] {
            let down = |at: u64| at / page * page;
            assert_eq!(module.bias_with(page, BASE, 0, true), Some(BASE));
            let data = module.bias_with(page, BASE + down(0x2_fdc0), down(0x1_fdc0), false);
            assert_eq!(data, Some(BASE), "{page}");
        }
    }
}

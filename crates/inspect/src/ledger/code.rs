//! The files of a program's code when the program has gone.
//!
//! # Role
//! While a process lives, its maps say which file lies where. Of one that has
//! ended before anybody looked, the ledger has the modules that its recorded
//! addresses lie in: path and load address. This makes maps of them, with what
//! the files themselves say.

use crate::maps::Maps;
use lockstead_ledger::ledger::{Ledger, LedgerPart};
use lockstead_ledger::module;
use object::LittleEndian;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// The least page there is: where the kernel's are larger, it mapped more in front and behind, to the same place.
const PAGE: u64 = 4096;

/// A file that was mapped for execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// The address where it begins.
    pub start: u64,
    /// What was added to the addresses in the file.
    pub bias: u64,
    /// The path; empty for the program itself.
    pub path: Vec<u8>,
}

/// Returns the modules in a ledger. Of several that lay at one address one after the other, the
/// one that was seen there last.
#[must_use]
pub fn modules(ledger: &Ledger<'_>) -> Vec<Code> {
    let mut found: Vec<(u64, Code)> = Vec::new();
    for record in &ledger.modules()[..ledger.used(LedgerPart::Modules)] {
        let start = record.start.load(Acquire);
        if start == 0 {
            continue;
        }
        let mut buffer = [0; module::PATH];
        let path = record.path(&mut buffer).to_vec();
        let code = Code { start, bias: record.bias.load(Relaxed), path };
        let seen = record.unloads.load(Relaxed);
        match found.iter_mut().find(|(_, other)| other.start == start) {
            Some(other) if other.0 > seen => {}
            Some(other) => *other = (seen, code),
            None => found.push((seen, code)),
        }
    }
    found.into_iter().map(|(_, code)| code).collect()
}

/// Maps as the process had them: those that were read while it lived, as text,
/// and for modules that they lack what the files say. `program` is the file of
/// the program itself.
#[must_use]
pub fn maps(read: &[u8], modules: &[Code], program: &Path) -> Maps {
    let known = Maps::parse(read);
    let mut text = read.to_vec();
    for code in modules {
        let path =
            if code.path.is_empty() { program } else { Path::new(OsStr::from_bytes(&code.path)) };
        if known.find(code.start).is_some() {
            continue;
        }
        // A file that is gone gives no names; its addresses stay numbers.
        for line in segments(path, code.bias).into_iter().flatten() {
            text.extend(line.into_bytes());
            text.extend(path.as_os_str().as_bytes());
            text.push(b'\n');
        }
    }
    Maps::parse(&text)
}

/// Returns a line of the maps for each loaded segment of a file, without its path.
fn segments(path: &Path, bias: u64) -> Option<Vec<String>> {
    let metadata = fs::metadata(path).ok()?;
    let bytes = fs::File::open(path).ok()?;
    // SAFETY: the file may change under the mapping, which then shows other
    // bytes; they are only ever parsed. One that shrinks would end this
    // process, as everywhere where the files of programs are mapped.
    let bytes = unsafe { memmap2::Mmap::map(&bytes).ok()? };
    let header = FileHeader64::<LittleEndian>::parse(&*bytes).ok()?;
    let mut lines = Vec::new();
    for segment in header.program_headers(LittleEndian, &*bytes).ok()? {
        if segment.p_type(LittleEndian) != elf::PT_LOAD {
            continue;
        }
        let flag = |bit: elf::ProgramFlags, letter: char| {
            if segment.p_flags(LittleEndian) & bit == bit { letter } else { '-' }
        };
        let address = segment.p_vaddr(LittleEndian);
        let start = bias.wrapping_add(address) & !(PAGE - 1);
        let end = bias
            .wrapping_add(address)
            .wrapping_add(segment.p_memsz(LittleEndian))
            .checked_next_multiple_of(PAGE)?;
        let mut line = String::new();
        let (r, w, x) = (flag(elf::PF_R, 'r'), flag(elf::PF_W, 'w'), flag(elf::PF_X, 'x'));
        write!(
            line,
            "{start:x}-{end:x} {r}{w}{x}p {:x} {:x}:{:x} {} ",
            segment.p_offset(LittleEndian) & !(PAGE - 1),
            libc::major(metadata.dev()),
            libc::minor(metadata.dev()),
            metadata.ino(),
        )
        .ok()?;
        lines.push(line);
    }
    Some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maps::Backing;

    #[test]
    fn made_maps_lead_to_the_same_place_as_the_real_ones() {
        let real = Maps::of(std::process::id()).expect("one's own maps");
        let here = made_maps_lead_to_the_same_place_as_the_real_ones as fn() as usize as u64;
        let wanted = real.find(here).expect("this code is mapped");
        let Backing::File { path, .. } = &wanted.backing else { panic!("{wanted:?}") };
        // Code before the first address of the file: its bias, for a
        // position-independent program.
        let start = real.iter().find(|m| m.inode == wanted.inode).expect("mapped").range.start;
        let module = |path: &[u8]| [Code { start, bias: start, path: path.to_vec() }];
        let made = maps(b"", &module(b""), path);
        let found = made.find(here).expect("covered");
        assert!(found.executable);
        assert_eq!(found.file_offset(here), wanted.file_offset(here));
        assert_eq!((found.inode, &found.backing), (wanted.inode, &wanted.backing));
        assert!(maps(b"", &module(b"/absent"), path).get(0).is_none());
        let line = format!("{start:x}-{:x} r-xp 0 0:0 0 /as/it/was\n", here + 1);
        let kept = maps(line.as_bytes(), &module(b""), path);
        assert_eq!(kept.iter().count(), 1, "what was read of the living process counts");
    }
}

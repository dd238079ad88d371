//! The address space of a process as `/proc/PID/maps` tells it.
//!
//! # Role
//! Says to which file and offset an address belongs. The text is parsed from
//! a byte string, so that the last one seen of a process serves after its end.
//! A line that does not parse is left out: the format only ever grew at its
//! end, and one odd line must not cost the report all others.

use crate::proc::shown::shown_as;
use std::ffi::OsString;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A file, by its device and its inode.
pub type FileIdentity = ((u32, u32), u64);

/// What lies behind a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Memory of the process alone: heaps, thread stacks, generated code.
    Anonymous,
    /// A file, by the path under which the process knew it.
    File {
        /// Path in the process's mount namespace.
        path: PathBuf,
        /// The path no longer leads to the file.
        deleted: bool,
    },
    /// A name of the kernel's: `[heap]`, `[stack]`, `[vdso]`, `anon_inode:…`.
    Special(String),
}

/// One line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapsLine {
    /// Addresses in the process.
    pub range: Range<u64>,
    /// The process may read it.
    pub readable: bool,
    /// The process may write it.
    pub writable: bool,
    /// The process may run code in it.
    pub executable: bool,
    /// Writes reach the file, and other processes that map it.
    pub shared: bool,
    /// The offset in the file of the first byte.
    pub offset: u64,
    /// Device of the file as the kernel prints it, major and minor.
    pub device: (u32, u32),
    /// Inode of the file, 0 without one.
    pub inode: u64,
    /// The file or memory behind the mapping.
    pub backing: Backing,
}

impl MapsLine {
    /// Returns the offset in the file behind `address`, which must lie in the mapping.
    #[must_use]
    pub fn file_offset(&self, address: u64) -> u64 {
        address.wrapping_sub(self.range.start).wrapping_add(self.offset)
    }
}

/// All mappings of a process at one moment, by ascending address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maps {
    mappings: Vec<MapsLine>,
}

impl Maps {
    /// Returns those of a living process.
    ///
    /// # Errors
    /// The process has ended, or belongs to somebody else.
    pub fn of(pid: u32) -> io::Result<Maps> {
        Ok(Maps::parse(&std::fs::read(format!("/proc/{}/maps", shown_as(pid)))?))
    }

    /// Returns those of a text that was read from `/proc/PID/maps`.
    #[must_use]
    pub fn parse(text: &[u8]) -> Maps {
        let mut mappings: Vec<_> = text.split(|&b| b == b'\n').filter_map(parse_line).collect();
        mappings.sort_by_key(|m| m.range.start);
        Maps { mappings }
    }

    /// Returns the mapping that covers `address`.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<&MapsLine> {
        self.get(self.index_of(address)?)
    }

    /// Returns which of the mappings covers `address`, counted from the lowest.
    #[must_use]
    pub fn index_of(&self, address: u64) -> Option<usize> {
        let after = self.mappings.partition_point(|m| m.range.start <= address);
        let found = after.checked_sub(1)?;
        self.mappings[found].range.contains(&address).then_some(found)
    }

    /// Returns one mapping, counted from the lowest.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&MapsLine> {
        self.mappings.get(index)
    }

    /// Returns all of them.
    pub fn iter(&self) -> std::slice::Iter<'_, MapsLine> {
        self.mappings.iter()
    }
}

fn parse_line(line: &[u8]) -> Option<MapsLine> {
    // Five fields parted by one space each, then padding, then the name, which
    // may hold spaces itself.
    let mut fields = line.splitn(6, |&b| b == b' ');
    let mut text = || std::str::from_utf8(fields.next()?).ok();
    let hex = |s: &str| u64::from_str_radix(s, 16).ok();
    let (start, end) = text()?.split_once('-')?;
    let range = hex(start)?..hex(end)?;
    let permissions = text()?.as_bytes();
    let offset = hex(text()?)?;
    let (major, minor) = text()?.split_once(':')?;
    let device = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
    let inode = text()?.parse().ok()?;
    let name = fields.next().unwrap_or_default().trim_ascii_start();
    let may = |at: usize, letter: u8| permissions.get(at) == Some(&letter);
    Some(MapsLine {
        range,
        readable: may(0, b'r'),
        writable: may(1, b'w'),
        executable: may(2, b'x'),
        shared: may(3, b's'),
        offset,
        device,
        inode,
        backing: backing(name),
    })
}

fn backing(name: &[u8]) -> Backing {
    if name.is_empty() || name.starts_with(b"[anon:") {
        return Backing::Anonymous;
    }
    if name[0] != b'/' {
        return Backing::Special(String::from_utf8_lossy(name).into_owned());
    }
    let (path, deleted) = match name.strip_suffix(b" (deleted)") {
        Some(path) => (path, true),
        None => (name, false),
    };
    Backing::File { path: PathBuf::from(OsString::from_vec(unescape(path))), deleted }
}

/// Returns a path as it is. The kernel writes a line feed in it as `\012`, and nothing else in such
/// a way: a backslash stands for itself.
fn unescape(path: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&first, others)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(b"\\012") {
            plain.push(b'\n');
            rest = after;
        } else {
            plain.push(first);
            rest = others;
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const TEXT: &[u8] = b"\
55d0c0000000-55d0c0001000 r--p 00000000 fe:01 1234                       /usr/bin/prog
55d0c0001000-55d0c0003000 r-xp 00001000 fe:01 1234                       /usr/bin/prog
a line that no kernel wrote
55d0c1000000-55d0c1021000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000021000 rw-p 00000000 00:00 0 
7f0000100000-7f0000101000 rw-s 00002000 00:05 77                         /tmp/a b\\012c (deleted)
7f0000200000-7f0000201000 r-xp 00000000 00:00 0                          [anon:code]
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]
";

    #[test]
    fn addresses_lead_to_files_and_offsets() {
        let maps = Maps::parse(TEXT);
        assert_eq!(maps.iter().count(), 7, "the odd line alone is left out");
        let code = maps.find(0x55d0_c000_2010).expect("mapped");
        assert!(code.executable && !code.writable && code.readable && !code.shared);
        assert_eq!(code.file_offset(0x55d0_c000_2010), 0x2010);
        assert_eq!((code.inode, code.device), (1234, (0xfe, 1)));
        assert_eq!(code.backing, Backing::File { path: "/usr/bin/prog".into(), deleted: false });
    }

    #[test]
    fn an_address_between_mappings_belongs_to_none() {
        let maps = Maps::parse(TEXT);
        assert_eq!(maps.find(0), None);
        assert_eq!(maps.find(0x55d0_c000_3000), None, "the end is exclusive");
        assert_eq!(maps.find(u64::MAX), None);
        assert_eq!(Maps::default().find(1), None);
    }

    #[test]
    fn names_keep_their_odd_characters() {
        let maps = Maps::parse(TEXT);
        let file = maps.find(0x7f00_0010_0000).expect("mapped");
        assert!(file.shared);
        assert_eq!(
            file.backing,
            Backing::File { path: Path::new("/tmp/a b\nc").into(), deleted: true }
        );
        let kind = |address| maps.find(address).map(|m| m.backing.clone());
        assert_eq!(kind(0x7f00_0000_0000), Some(Backing::Anonymous));
        assert_eq!(kind(0x7f00_0020_0000), Some(Backing::Anonymous));
        assert_eq!(kind(0x7ffd_0000_0000), Some(Backing::Special("[vdso]".into())));
    }

    #[test]
    fn this_process_maps_its_own_code() {
        let maps = Maps::of(std::process::id()).expect("one's own maps are readable");
        let here = this_process_maps_its_own_code as fn() as usize as u64;
        assert!(maps.find(here).expect("code is mapped").executable);
    }
}

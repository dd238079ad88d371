//! The files that the loader has loaded into the process, and their symbols and relocations, read
//! from its memory.

use super::memory::TargetMemory;
use lockstead_inspect::memory::ReadableMemory;
use lockstead_inspect::proc::shown::shown_as;
use std::fs;

const SYMBOL: u64 = 24;
const RELOCATION: usize = 24;
/// The most files, and the most of anything in one, that are believed.
const MOST_OBJECTS: usize = 20_000;
const MOST_BYTES: u64 = 256 << 20;

/// A file that is loaded.
#[derive(Clone, Debug, Default)]
pub(super) struct Object {
    /// The loader's record of it, which is also the handle of `dlopen`.
    pub(super) map: u64,
    /// What the loader calls it; the program itself has no name.
    pub(super) name: String,
    /// What the loader added to the addresses that the file states.
    pub(super) bias: u64,
    symbols: u64,
    strings: u64,
    strings_size: u64,
    hash: u64,
    versions: u64,
    needed_versions: u64,
    relocations: [(u64, u64); 2],
    /// Where the program headers lie, and how many: the kernel says so of the program itself.
    headers: Option<(u64, u64)>,
}

/// A word that leads to a function by its name.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    /// The address of the word.
    pub(super) at: u64,
    /// The name of the function.
    pub(super) name: String,
    /// The version that the file asks for.
    pub(super) version: Option<String>,
    /// Only calls go through this word; others may be read by the program.
    pub(super) is_for_calls: bool,
}

/// All files that are loaded, in the loader's order.
#[derive(Clone, Debug)]
pub(super) struct Objects {
    all: Vec<Object>,
}

impl Objects {
    /// Reads them; `None` if the program has no loader's list: it is static, or has not begun yet.
    pub(super) fn of(pid: u32, memory: &TargetMemory) -> Option<Objects> {
        let (debug, headers) = debugger_entry(pid, memory)?;
        let mut at = memory.read_u64(debug + 8)?;
        let mut all = Vec::new();
        while at != 0 && all.len() < MOST_OBJECTS {
            all.push(Object::read(at, memory)?);
            at = memory.read_u64(at + 24)?;
        }
        all.first_mut()?.headers = Some(headers);
        Some(Objects { all })
    }

    /// Returns the number of files that the loader has, and where its list ends: when another file is
    /// loaded, one of these changes.
    pub(super) fn mark(&self) -> (usize, u64, u64) {
        let sum = self.all.iter().fold(0_u64, |sum, object| sum.rotate_left(5) ^ object.bias);
        (self.all.len(), self.all.last().map_or(0, |last| last.map), sum)
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Object> {
        self.all.iter()
    }

    /// Returns the C library, if it is glibc.
    pub(super) fn libc(&self) -> Option<&Object> {
        self.all.iter().find(|object| object.base_name() == "libc.so.6")
    }
}

/// Returns the address of the loader's record for debuggers, and where the program headers of the
/// program lie, and how many.
fn debugger_entry(pid: u32, memory: &TargetMemory) -> Option<(u64, (u64, u64))> {
    const PHDR: u64 = 3;
    const COUNT: u64 = 5;
    const DT_DEBUG: u64 = 21;
    let auxiliary = fs::read(format!("/proc/{}/auxv", shown_as(pid))).ok()?;
    let words: Vec<u64> = auxiliary.chunks_exact(8).map(word).collect();
    let value = |kind| words.chunks_exact(2).find(|pair| pair[0] == kind).map(|pair| pair[1]);
    let (headers, count) = (value(PHDR)?, value(COUNT)?.min(256));
    let table = memory.bytes(headers, count as usize * 56).ok()?;
    let header = |kind: u32| {
        let mut all = table.chunks_exact(56);
        let found = all.find(|header| header[..4] == kind.to_ne_bytes())?;
        Some(word(&found[16..24]))
    };
    // Where the headers say that they lie themselves.
    let bias = header(6).map_or(0, |stated| headers.wrapping_sub(stated));
    let dynamic = header(2)?.wrapping_add(bias);
    let entry = entries(dynamic, memory).find(|(tag, _)| *tag == DT_DEBUG)?.1;
    (entry != 0).then_some((entry, (headers, count)))
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(std::array::from_fn(|at| bytes[at]))
}

/// Returns the entries of a dynamic section.
fn entries(at: u64, memory: &TargetMemory) -> impl Iterator<Item = (u64, u64)> {
    (0..512).map_while(move |index| {
        let tag = memory.read_u64(at + index * 16)?;
        let value = memory.read_u64(at + index * 16 + 8)?;
        (tag != 0).then_some((tag, value))
    })
}

impl Object {
    fn read(map: u64, memory: &TargetMemory) -> Option<Object> {
        let bias = memory.read_u64(map)?;
        let name = memory.read_u64(map + 8)?;
        let dynamic = memory.read_u64(map + 16)?;
        let name = if name == 0 { Some(Vec::new()) } else { memory.text(name, 4096) };
        let mut object = Object {
            map,
            name: String::from_utf8_lossy(&name?).into_owned(),
            bias,
            ..Object::default()
        };
        // The loader has added the bias, but where the section may not be written.
        let place = |value: u64| if value < bias { value.wrapping_add(bias) } else { value };
        let (mut plt_kind, mut all) = (0, [(0, 0); 2]);
        for (tag, value) in entries(dynamic, memory) {
            match tag {
                5 => object.strings = place(value),
                6 => object.symbols = place(value),
                10 => object.strings_size = value,
                7 => all[0].0 = place(value),
                8 => all[0].1 = value,
                23 => all[1].0 = place(value),
                2 => all[1].1 = value,
                20 => plt_kind = value,
                0x6fff_fef5 => object.hash = place(value),
                0x6fff_fff0 => object.versions = place(value),
                0x6fff_fffe => object.needed_versions = place(value),
                _ => {}
            }
        }
        // Relocations of the other kind are none of this machine's.
        if plt_kind != 7 {
            all[1] = (0, 0);
        }
        object.relocations = all;
        Some(object)
    }

    /// Returns the name without its folder.
    pub(super) fn base_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }

    /// Tells whether it is the loader, or the kernel's part of every program.
    pub(super) fn is_loader(&self) -> bool {
        let name = self.base_name();
        name.starts_with("ld-linux") || name.starts_with("linux-vdso") || name == "ld.so"
    }

    /// Returns the words of the file that lead to functions of the names that are `wanted`.
    pub(super) fn references(
        &self,
        memory: &TargetMemory,
        wanted: impl Fn(&str) -> bool,
    ) -> Vec<Reference> {
        use super::arch::relocation::{CALL, DATA, DIRECT};
        let tables = self.relocations.map(|(at, size)| match size {
            0..MOST_BYTES if at != 0 => memory.bytes(at, size as usize).unwrap_or_default(),
            _ => Vec::new(),
        });
        let entries = tables.iter().flat_map(|table| table.chunks_exact(RELOCATION));
        let of_functions: Vec<_> = entries
            .map(|entry| (word(&entry[..8]), word(&entry[8..16]), word(&entry[16..24])))
            .filter(|&(_, info, added)| matches!(info as u32, DIRECT | DATA | CALL) && added == 0)
            .collect();
        let Some(last) = of_functions.iter().map(|(_, info, _)| info >> 32).max() else {
            return Vec::new();
        };
        // All names at once: there are thousands.
        let symbols = memory.bytes(self.symbols, (last as usize + 1) * SYMBOL as usize);
        let strings = memory.bytes(self.strings, self.strings_size.min(MOST_BYTES) as usize);
        let (Ok(symbols), Ok(strings)) = (symbols, strings) else { return Vec::new() };
        let name = |index: u64| {
            let symbol = symbols.get(index as usize * SYMBOL as usize..)?.first_chunk::<4>()?;
            let rest = strings.get(u32::from_ne_bytes(*symbol) as usize..)?;
            std::str::from_utf8(&rest[..rest.iter().position(|&byte| byte == 0)?]).ok()
        };
        let found = of_functions.into_iter().filter_map(|(at, info, _)| {
            let name = name(info >> 32).filter(|name| wanted(name))?;
            Some(Reference {
                at: self.bias.wrapping_add(at),
                version: self.version(memory, info >> 32),
                name: name.to_owned(),
                is_for_calls: info as u32 == CALL,
            })
        });
        found.collect()
    }

    fn symbol_name(&self, memory: &TargetMemory, index: u64) -> Option<String> {
        let mut name = [0; 4];
        memory.read(self.symbols + index * SYMBOL, &mut name).ok().filter(|&n| n == 4)?;
        let text = memory.text(self.strings + u64::from(u32::from_ne_bytes(name)), 256)?;
        String::from_utf8(text).ok()
    }

    /// Returns the version of a symbol that the file asks for.
    fn version(&self, memory: &TargetMemory, index: u64) -> Option<String> {
        if self.versions == 0 || self.needed_versions == 0 {
            return None;
        }
        let number = memory.bytes(self.versions + index * 2, 2).ok()?;
        let number = u16::from_ne_bytes([number[0], number[1]]) & 0x7fff;
        let half = |bytes: &[u8], at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let full =
            |bytes: &[u8], at: usize| u32::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]));
        let mut file = self.needed_versions;
        for _ in 0..1024 {
            let need = memory.bytes(file, 16).ok()?;
            let mut one = file + u64::from(full(&need, 8));
            for _ in 0..half(&need, 2) {
                let entry = memory.bytes(one, 16).ok()?;
                if half(&entry, 6) == number {
                    let text = memory.text(self.strings + u64::from(full(&entry, 8)), 64)?;
                    return String::from_utf8(text).ok();
                }
                one += u64::from(full(&entry, 12));
            }
            match full(&need, 12) {
                0 => return None,
                next => file += u64::from(next),
            }
        }
        None
    }

    /// Returns the address of the function of this name that the file defines, in its default version.
    pub(super) fn function(&self, memory: &TargetMemory, name: &str) -> Option<u64> {
        self.defined(memory, name).map(|symbol| symbol.address)
    }

    /// Returns the function of this name, with its size.
    pub(super) fn defined(&self, memory: &TargetMemory, name: &str) -> Option<Defined> {
        let hash = name
            .bytes()
            .fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(byte.into()));
        let table = HashTable::of(self.hash, memory)?;
        let mut index = u64::from(table.bucket(memory, u64::from(hash))?);
        if index < table.offset {
            return None;
        }
        loop {
            let link = table.link(memory, index)?;
            if (link ^ hash) >> 1 == 0
                && let Some(symbol) = self.symbol(memory, index)
                && symbol.name == name
                && symbol.is_default
            {
                return Some(symbol);
            }
            if link & 1 != 0 {
                return None;
            }
            index += 1;
        }
    }

    /// Returns all functions that the file defines, in their default versions.
    pub(super) fn all_defined(&self, memory: &TargetMemory) -> Vec<Defined> {
        let Some(table) = HashTable::of(self.hash, memory) else { return Vec::new() };
        let mut found = Vec::new();
        for bucket in 0..table.buckets {
            let Some(index) = table.bucket(memory, bucket) else { break };
            let mut index = u64::from(index);
            while index >= table.offset {
                found.extend(self.symbol(memory, index).filter(|symbol| symbol.is_default));
                match table.link(memory, index) {
                    Some(link) if link & 1 == 0 => index += 1,
                    _ => break,
                }
            }
        }
        found
    }

    fn symbol(&self, memory: &TargetMemory, index: u64) -> Option<Defined> {
        const FUNCTION: u8 = 2;
        let entry = memory.bytes(self.symbols + index * SYMBOL, SYMBOL as usize).ok()?;
        let section = u16::from_ne_bytes([entry[6], entry[7]]);
        if entry[4] & 15 != FUNCTION || section == 0 {
            return None;
        }
        let hidden = match self.versions {
            0 => false,
            at => memory.bytes(at + index * 2, 2).ok()?[1] & 0x80 != 0,
        };
        Some(Defined {
            name: self.symbol_name(memory, index)?,
            address: self.bias.wrapping_add(word(&entry[8..16])),
            size: word(&entry[16..24]),
            is_default: !hidden,
        })
    }

    /// Returns the file's largest piece of code, and where it lies.
    pub(super) fn code(&self, memory: &TargetMemory) -> Option<(u64, Vec<u8>)> {
        let (start, end) = self.code_range(memory)?;
        Some((start, memory.bytes(start, (end - start) as usize).ok()?))
    }

    /// Returns where the file's largest piece of code lies.
    pub(super) fn code_range(&self, memory: &TargetMemory) -> Option<(u64, u64)> {
        let (at, count) = self.headers.or_else(|| {
            let header = memory.bytes(self.bias, 64).ok()?;
            let count = u16::from_ne_bytes([header[56], header[57]]);
            let at = self.bias.checked_add(word(&header[32..40]))?;
            header.starts_with(b"\x7fELF").then_some((at, count.into()))
        })?;
        let table = memory.bytes(at, count.min(128) as usize * 56).ok()?;
        let code = table.chunks_exact(56).filter(|header| header[0] == 1 && header[4] & 1 != 0);
        let largest = code.max_by_key(|header| word(&header[40..48]))?;
        let (start, size) = (self.bias + word(&largest[16..24]), word(&largest[40..48]));
        (size < MOST_BYTES).then_some((start, start + size))
    }
}

/// A function that a file defines.
#[derive(Clone, Debug)]
pub(super) struct Defined {
    pub(super) name: String,
    pub(super) address: u64,
    pub(super) size: u64,
    is_default: bool,
}

/// The table by which the loader finds symbols (`DT_GNU_HASH`).
struct HashTable {
    buckets: u64,
    offset: u64,
    first_bucket: u64,
}

impl HashTable {
    fn of(at: u64, memory: &TargetMemory) -> Option<HashTable> {
        if at == 0 {
            return None;
        }
        let head = memory.bytes(at, 16).ok()?;
        let number =
            |at: usize| u64::from(u32::from_ne_bytes(std::array::from_fn(|i| head[at + i])));
        let (buckets, offset, bloom) = (number(0), number(4), number(8));
        (buckets != 0).then_some(HashTable { buckets, offset, first_bucket: at + 16 + bloom * 8 })
    }

    fn bucket(&self, memory: &TargetMemory, hash: u64) -> Option<u32> {
        number(memory, self.first_bucket + hash % self.buckets * 4)
    }

    /// Returns the hash of a symbol, whose lowest bit says that it is the last of its bucket.
    fn link(&self, memory: &TargetMemory, index: u64) -> Option<u32> {
        number(memory, self.first_bucket + (self.buckets + index - self.offset) * 4)
    }
}

fn number(memory: &TargetMemory, at: u64) -> Option<u32> {
    let bytes = memory.bytes(at, 4).ok()?;
    Some(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

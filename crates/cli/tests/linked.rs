//! What the built command asks of the machine that it is started on: no library but the C library's
//! own, and no newer C library than the programs that it watches.

use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn, FileHeader, SectionHeader};
use object::{Endianness, FileKind};

/// The oldest C library that the documents promise.
const GLIBC: (u32, u32) = (2, 34);

/// Libraries that come with the GNU C library.
const THERE: [&str; 6] =
    ["libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux"];

/// Returns the libraries that a program is linked with, and the versions that it wants of them.
fn wants(file: &[u8]) -> (Vec<String>, Vec<String>) {
    let header = FileHeader64::<Endianness>::parse(file).expect("an ELF file");
    let endian = header.endian().expect("of one order");
    let sections = header.sections(endian, file).expect("with sections");
    let strings = |link| sections.strings(endian, file, link).expect("strings");
    let (mut needed, mut versions) = (Vec::new(), Vec::new());
    for section in sections.iter() {
        if let Some((entries, link)) = section.dynamic(endian, file).expect("entries") {
            for entry in entries.iter().filter(|entry| entry.tag(endian) == elf::DT_NEEDED) {
                needed.push(text(entry.string(endian, strings(link)).expect("a string")));
            }
        }
        if let Some((mut libraries, link)) = section.gnu_verneed(endian, file).expect("versions") {
            while let Some((_, mut wanted)) = libraries.next().expect("a library") {
                while let Some(version) = wanted.next().expect("a version") {
                    versions.push(text(version.name(endian, strings(link)).expect("a string")));
                }
            }
        }
    }
    (needed, versions)
}

/// Returns `GLIBC_2.34` as numbers; `None` for versions of other libraries.
fn glibc(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.strip_prefix("GLIBC_")?.split('.').map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[test]
fn the_command_starts_where_only_the_c_library_is() {
    let file = std::fs::read(env!("CARGO_BIN_EXE_lockstead")).expect("it was built");
    if FileKind::parse(&*file) != Ok(FileKind::Elf64) || !cfg!(target_env = "gnu") {
        eprintln!("skipped: no 64-bit program of the GNU C library");
        return;
    }
    let (needed, versions) = wants(&file);
    assert!(needed.iter().any(|name| name == "libc.so.6"), "{needed:?}");
    // Where the compiler has the unwinder as an archive, it is in the command: see build.rs.
    let unwinder = if cfg!(carried_unwinder) { None } else { Some("libgcc_s.so.1") };
    let is_there = |name: &str| THERE.iter().chain(&unwinder).any(|there| name.starts_with(there));
    let other: Vec<_> = needed.iter().filter(|name| !is_there(name)).collect();
    assert!(other.is_empty(), "linked with {other:?}");
    let newest = versions.iter().filter_map(|version| glibc(version)).max();
    if newest > Some(GLIBC) && wants_by_chance(&file) {
        eprintln!(
            "skipped: built with glibc {newest:?}, of which std takes what it could do without"
        );
        return;
    }
    assert!(newest.is_some_and(|newest| newest <= GLIBC), "wants glibc {newest:?}");
}

/// Tells whether all functions of a C library newer than [`GLIBC`] are ones without which the program
/// could do. Rust's std names some so, and a linker that finds them asks for the version that has them.
fn wants_by_chance(file: &[u8]) -> bool {
    let header = FileHeader64::<Endianness>::parse(file).expect("an ELF file");
    let endian = header.endian().expect("known");
    let sections = header.sections(endian, file).expect("with sections");
    let versions = sections.versions(endian, file).expect("versions").expect("some");
    let symbols = sections.symbols(endian, file, elf::SHT_DYNSYM).expect("symbols");
    symbols.enumerate().all(|(index, symbol)| {
        let version = versions.version(versions.version_index(endian, index).index());
        let name = version.expect("a version").map(|version| text(version.name()));
        let newer = name.and_then(|name| glibc(&name)) > Some(GLIBC);
        !newer || symbol.st_bind() == elf::STB_WEAK
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("a name")
}

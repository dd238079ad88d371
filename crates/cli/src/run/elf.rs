//! As much of an ELF file as says who starts it.

use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// An interpreter's path is one; the kernel takes no longer ones.
const LONGEST_PATH: u64 = 4096;
/// The most program headers that are read: a file with more lies.
const MOST_HEADERS: u64 = 4096;

const CLASS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
/// This command's processor, by its number, and as one that a person reads.
#[cfg(target_arch = "aarch64")]
pub(super) const PROCESSOR: (u16, &str) = (183, "aarch64");
#[cfg(not(target_arch = "aarch64"))]
pub(super) const PROCESSOR: (u16, &str) = (62, "x86-64");
const SEGMENT_INTERPRETER: u32 = 3;

/// What kind of program the file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Elf {
    /// It is for another kind of processor, which the text names.
    Foreign(String),
    /// The program starts without a loader.
    Static,
    /// It is started by the dynamic linker at this path.
    Dynamic(PathBuf),
}

/// Returns what programs are for that can be watched.
pub(crate) const fn processor() -> &'static str {
    PROCESSOR.1
}

/// Returns whether a file that begins like this is ELF.
pub(crate) fn is_elf(beginning: &[u8]) -> bool {
    beginning.starts_with(b"\x7fELF")
}

/// Reads the headers of an ELF file.
///
/// # Errors
/// The file cannot be read, or ends before it should.
pub(crate) fn read(file: &File) -> io::Result<Elf> {
    let mut header = [0; 64];
    // The header of a 32-bit file is shorter, and so may the file be.
    file.read_exact_at(&mut header[..20], 0)?;
    let number = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    if header[4] != CLASS_64 {
        return Ok(Elf::Foreign("a 32-bit program".into()));
    }
    if header[5] != LITTLE_ENDIAN || number(18) != PROCESSOR.0 {
        return Ok(Elf::Foreign("a program for another kind of processor".into()));
    }
    file.read_exact_at(&mut header, 0)?;
    let long = |bytes: &[u8], at: usize| {
        u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
    };
    let number = |at: usize| u64::from(u16::from_le_bytes([header[at], header[at + 1]]));
    let (headers, size, count) = (long(&header, 32), number(54), number(56));
    if size < 56 || count > MOST_HEADERS {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "its program headers make no sense",
        ));
    }
    for index in 0..count {
        let mut segment = [0; 56];
        file.read_exact_at(&mut segment, headers.saturating_add(index * size))?;
        let kind = u32::from_le_bytes(segment[..4].try_into().expect("four bytes"));
        if kind != SEGMENT_INTERPRETER {
            continue;
        }
        let length = long(&segment, 32).min(LONGEST_PATH);
        let mut path = vec![0; usize::try_from(length).unwrap_or(0)];
        file.read_exact_at(&mut path, long(&segment, 8))?;
        path.truncate(path.iter().position(|&byte| byte == 0).unwrap_or(path.len()));
        return Ok(Elf::Dynamic(PathBuf::from(std::ffi::OsString::from_vec(path))));
    }
    Ok(Elf::Static)
}

/// Tells whether a program is started by the dynamic linker of glibc, of whatever version.
pub(crate) fn is_for_glibc(file: &File) -> bool {
    matches!(read(file), Ok(Elf::Dynamic(interpreter)) if glibc_starts(&interpreter))
}

fn glibc_starts(interpreter: &Path) -> bool {
    interpreter.file_name().is_some_and(|name| name.as_bytes().starts_with(b"ld-linux"))
}

/// Checks that the dynamic linker at this path is that of glibc, and of one with the version symbol
/// `wanted`. The path alone tells other libraries apart; that the version is there shows in the
/// file's bytes.
pub(crate) fn is_glibc(interpreter: &Path, wanted: &str) -> Result<(), String> {
    if !glibc_starts(interpreter) {
        let name = interpreter.file_name().unwrap_or_default().to_string_lossy();
        let library = if name.contains("musl") {
            "musl".into()
        } else {
            format!("a C library that {} starts", interpreter.display())
        };
        return Err(format!("it uses {library}, not glibc"));
    }
    // What cannot be read will not start either, and says why by itself.
    let Ok(bytes) = std::fs::read(interpreter) else { return Ok(()) };
    let symbol = [wanted.as_bytes(), b"\0"].concat();
    if bytes.windows(symbol.len()).any(|part| part == symbol) {
        Ok(())
    } else {
        Err(format!("its glibc, that of {}, is older than {wanted}", interpreter.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("written");
        file
    }

    /// Returns a header of 64 bytes and one segment of this kind, with a path behind.
    fn program(kind: u32) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18] = PROCESSOR.0 as u8;
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 1;
        bytes[64..68].copy_from_slice(&kind.to_le_bytes());
        bytes[64 + 8] = 64 + 56;
        bytes[64 + 32] = 9;
        bytes.extend(b"/lib/ld1\0rest");
        bytes
    }

    #[test]
    fn the_interpreter_is_found() {
        assert_eq!(read(&file(&program(3))).unwrap(), Elf::Dynamic("/lib/ld1".into()));
        assert_eq!(read(&file(&program(1))).unwrap(), Elf::Static);
    }

    #[test]
    fn other_processors_are_told_apart() {
        let mut risc = program(3);
        risc[18] = 243;
        assert!(
            matches!(read(&file(&risc)).unwrap(), Elf::Foreign(what) if what.contains("other"))
        );
        let mut small = program(3);
        small[4] = 1;
        small.truncate(52);
        assert!(matches!(read(&file(&small)).unwrap(), Elf::Foreign(what) if what.contains("32")));
    }

    #[test]
    fn no_file_makes_it_panic() {
        let whole = program(3);
        for length in 0..whole.len() {
            // Whatever it says of a part of a file, it says something.
            let _ = read(&file(&whole[..length]));
        }
        for at in 4..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] = 0xff;
            let _ = read(&file(&damaged));
        }
    }

    #[test]
    fn this_test_is_a_program_of_glibc() {
        let this = File::open("/proc/self/exe").expect("opens");
        let Elf::Dynamic(interpreter) = read(&this).expect("readable") else {
            panic!("tests are linked dynamically");
        };
        assert_eq!(is_glibc(&interpreter, "GLIBC_2.34"), Ok(()));
        assert!(is_glibc(&interpreter, "GLIBC_9.99").expect_err("far").contains("older"));
        let musl = is_glibc(Path::new("/lib/ld-musl-x86_64.so.1"), "GLIBC_2.34");
        assert!(musl.expect_err("another library").contains("musl"));
    }
}

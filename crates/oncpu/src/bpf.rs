//! Calls the system call `bpf`, as far as the table needs it: one function a command.
//! The kernel takes a structure whose meaning depends on the
//! command, reads as much of it as the caller says, and takes the rest for zeros.

use crate::assembler::Instruction;
use core::ffi::CStr;
use libc::c_int;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The number of an error, as the kernel returns it.
pub(crate) type Errno = c_int;

fn bpf<T>(command: c_int, argument: &mut T) -> Result<c_int, Errno> {
    // SAFETY: the kernel reads and writes no more than `size_of::<T>()` bytes of a live
    // structure. Through the pointers in it, it reaches only what the functions of this
    // file keep alive for the call.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, core::ptr::from_mut(argument), size_of::<T>())
    };
    if result < 0 { Err(crate::errno()) } else { Ok(result as c_int) }
}

fn owned(file: c_int) -> OwnedFd {
    // SAFETY: the functions of this file pass descriptors that the kernel has just made for
    // them alone.
    unsafe { OwnedFd::from_raw_fd(file) }
}

#[repr(C)]
struct CreateMap {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
    flags: u32,
    inner: u32,
    node: u32,
    name: [u8; 16],
}

/// Creates an array of one element, which can be mapped.
pub(crate) fn create_array(name: &[u8; 16], bytes: u32) -> Result<OwnedFd, Errno> {
    const MAP_CREATE: c_int = 0;
    const ARRAY: u32 = 2;
    const MAPPABLE: u32 = 1 << 10;
    let mut argument = CreateMap {
        kind: ARRAY,
        key_size: 4,
        value_size: bytes,
        entries: 1,
        flags: MAPPABLE,
        inner: 0,
        node: 0,
        name: *name,
    };
    bpf(MAP_CREATE, &mut argument).map(owned)
}

/// The way in which a program is entered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProgramEntry {
    /// The program is entered by a tracepoint, with its arguments by their types: the number of its
    /// type.
    Typed(u32),
    /// The program is entered by [`run`] only.
    Raw,
}

#[repr(C)]
struct LoadAttributes {
    kind: u32,
    count: u32,
    instructions: *const Instruction,
    license: *const u8,
    log_level: u32,
    log_size: u32,
    log: *mut u8,
    kernel: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach_kind: u32,
    types: u32,
    record_size: u32,
    records: u64,
    record_count: u32,
    line_size: u32,
    lines: u64,
    line_count: u32,
    attach_type: u32,
}

/// Has the kernel check and translate a program. The error comes with what the kernel's
/// verifier says, which is nothing if it did not get that far.
pub(crate) fn load(
    name: &[u8; 16],
    entry: ProgramEntry,
    program: &[Instruction],
) -> Result<OwnedFd, (Errno, String)> {
    const PROG_LOAD: c_int = 5;
    const RAW_TRACEPOINT: u32 = 17;
    const TRACING: u32 = 26;
    const TYPED_TRACEPOINT: u32 = 23;
    let (kind, attach_kind, attach_type) = match entry {
        ProgramEntry::Typed(number) => (TRACING, TYPED_TRACEPOINT, number),
        ProgramEntry::Raw => (RAW_TRACEPOINT, 0, 0),
    };
    let mut log = Vec::new();
    loop {
        let mut argument = LoadAttributes {
            kind,
            count: program.len() as u32,
            instructions: program.as_ptr(),
            license: c"Dual MIT/GPL".as_ptr().cast(),
            log_level: u32::from(!log.is_empty()),
            log_size: log.len() as u32,
            log: if log.is_empty() { core::ptr::null_mut() } else { log.as_mut_ptr() },
            kernel: 0,
            flags: 0,
            name: *name,
            interface: 0,
            attach_kind,
            types: 0,
            record_size: 0,
            records: 0,
            record_count: 0,
            line_size: 0,
            lines: 0,
            line_count: 0,
            attach_type,
        };
        match bpf(PROG_LOAD, &mut argument) {
            Ok(file) => return Ok(owned(file)),
            // A second time, for the reasons.
            Err(libc::EACCES | libc::EINVAL) if log.is_empty() => log.resize(1 << 16, 0),
            Err(error) => {
                let text = CStr::from_bytes_until_nul(&log).map(CStr::to_string_lossy);
                return Err((error, text.unwrap_or_default().trim().to_owned()));
            }
        }
    }
}

#[repr(C)]
struct RawTracepoint {
    name: u64,
    program: u32,
    padding: u32,
}

/// Hangs a program that was loaded as [`ProgramEntry::Typed`] into its tracepoint, as long as
/// what is returned, or a name of it, exists.
pub(crate) fn attach(program: &OwnedFd) -> Result<OwnedFd, Errno> {
    const RAW_TRACEPOINT_OPEN: c_int = 17;
    let mut argument = RawTracepoint { name: 0, program: program.as_raw_fd() as u32, padding: 0 };
    bpf(RAW_TRACEPOINT_OPEN, &mut argument).map(owned)
}

#[repr(C)]
struct ObjectAttributes {
    path: *const u8,
    file: u32,
    flags: u32,
}

/// Gives a map or a link a name in a file system of eBPF.
pub(crate) fn pin(object: &OwnedFd, path: &CStr) -> Result<(), Errno> {
    const OBJ_PIN: c_int = 6;
    let file = object.as_raw_fd() as u32;
    bpf(OBJ_PIN, &mut ObjectAttributes { path: path.as_ptr().cast(), file, flags: 0 }).map(drop)
}

/// Opens the map or link that has such a name.
pub(crate) fn open(path: &CStr) -> Result<OwnedFd, Errno> {
    const OBJ_GET: c_int = 7;
    bpf(OBJ_GET, &mut ObjectAttributes { path: path.as_ptr().cast(), file: 0, flags: 0 }).map(owned)
}

/// Freezes the map: from now on nobody but programs writes to it (ONCPU-FROZEN).
pub(crate) fn freeze(map: &OwnedFd) -> Result<(), Errno> {
    const MAP_FREEZE: c_int = 22;
    bpf(MAP_FREEZE, &mut (map.as_raw_fd() as u32)).map(drop)
}

#[repr(C)]
struct RunAttributes {
    program: u32,
    result: u32,
    data: [u32; 2],
    pointers: [u64; 2],
    repeat: u32,
    duration: u32,
    context: [u32; 2],
    contexts: [u64; 2],
    flags: u32,
    processor: u32,
    batch: u32,
    padding: u32,
}

/// Runs a program that was loaded as [`ProgramEntry::Raw`], once, here.
pub(crate) fn run(program: &OwnedFd) -> Result<(), Errno> {
    const PROG_TEST_RUN: c_int = 10;
    let mut argument = RunAttributes {
        program: program.as_raw_fd() as u32,
        result: 0,
        data: [0; 2],
        pointers: [0; 2],
        repeat: 0,
        duration: 0,
        context: [0; 2],
        contexts: [0; 2],
        flags: 0,
        processor: 0,
        batch: 0,
        padding: 0,
    };
    bpf(PROG_TEST_RUN, &mut argument).map(drop)
}

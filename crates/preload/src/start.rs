//! Makes the process's ledger, if its environment names a command that wants one.
//!
//! # Protocol
//! 1. [`begin`], from the constructor: resolve the real functions, read the
//!    variable, and, if a command listens, make a ledger and hand it over.
//! 2. In a forked child [`begin_child`]: the same with what the parent knew.
//!
//! Everything that fails leaves the process as it was and not recording. The
//! descriptors used are closed again: the program finds the numbers it expects.

use crate::interpose::keys;
use crate::sys::Errno;
use crate::{environment, grow, me, names, real, rules, state, sys, tls};
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int};
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use lockstead_ledger::attach::refusal;
use lockstead_ledger::hello::{self, Hello, PATIENCE_MS, Settings, TOKEN};
use lockstead_ledger::{Ledger, LedgerLayout};

/// What a process keeps for its children: private memory, copied by a fork.
struct Kept {
    token: [u8; TOKEN],
    token_length: usize,
    /// The command's socket in the file system; empty if it has none.
    beside: [u8; PATH],
    beside_length: usize,
    hello: Hello,
}

struct KeptCell(UnsafeCell<Kept>);

// SAFETY: the constructor writes it, before `PREPARED`, and a forked child while it has one
// thread; it is read only after that.
unsafe impl Sync for KeptCell {}

/// The room for the name of a socket.
const PATH: usize = 108;

static KEPT: KeptCell = KeptCell(UnsafeCell::new(Kept {
    token: [0; TOKEN],
    token_length: 0,
    beside: [0; PATH],
    beside_length: 0,
    hello: Hello::EMPTY,
}));
static PREPARED: AtomicBool = AtomicBool::new(false);
static FOLLOW: AtomicBool = AtomicBool::new(false);
/// Whether the process and its children leave events.
static RECORD: AtomicBool = AtomicBool::new(false);
/// The largest ledger wanted here.
static MOST: AtomicU64 = AtomicU64::new(LedgerLayout::LARGEST);

/// The text in `LD_PRELOAD` of a program that runs on valgrind, and the largest ledger
/// there: it keeps books on mapped memory by the page, used or not.
const VALGRIND: &[u8] = b"/vgpreload_";
const MOST_ON_VALGRIND: u64 = 1 << 27;

/// Begins to record, as the library's constructor.
///
/// # Safety
/// Called by the dynamic loader, once, with the program's arguments and
/// environment, while the process has one thread.
pub unsafe extern "C" fn begin(_: c_int, argv: *const *const c_char, envp: *mut *mut c_char) {
    real::resolve();
    if real::libc_minor() < 34 {
        return;
    }
    // SAFETY: the loader's vectors end with a null pointer, as `main` gets them.
    let Some(value) = (unsafe { environment::find(envp, hello::VARIABLE.as_bytes()) }) else {
        return;
    };
    let Some(settings) = Settings::parse(value) else { return };
    // SAFETY: the loader calls this while there is one thread (STATE-FILLED-ONCE), and nothing
    // reads `KEPT` yet.
    let kept = unsafe { &mut *KEPT.0.get() };
    kept.token_length = settings.token.len();
    kept.token[..settings.token.len()].copy_from_slice(settings.token);
    // SAFETY: the loader passes the program's vector; `kept` is ours, as above.
    unsafe { describe_program(&mut kept.hello, argv) };
    me::note_first_stack(argv as usize);
    names::note_first();
    // SAFETY: the loader passes the program's vector, which ends with a null pointer.
    let libraries = unsafe { environment::find(envp, b"LD_PRELOAD") }.unwrap_or_default();
    kept.beside_length = beside(libraries, &kept.token[..kept.token_length], &mut kept.beside);
    if libraries.windows(VALGRIND.len()).any(|part| part == VALGRIND) {
        MOST.store(MOST_ON_VALGRIND, Relaxed);
    }
    if !tls::learn() {
        return;
    }
    FOLLOW.store(settings.follow, Relaxed);
    RECORD.store(settings.record, Relaxed);
    rules::want_sleepy(settings.sleepy);
    rules::want_tokens(settings.semaphores);
    if !settings.follow {
        // SAFETY: the loader passes the program's vector; `settings`, which leads into it, is not
        // used any more.
        unsafe { environment::forget(envp) };
    }
    // SAFETY: `resolve` has run above, and the loader calls this while there is one thread.
    if !unsafe { keys::make() } || !state::wipe_on_fork() {
        return;
    }
    #[cfg(feature = "check")]
    if !crate::order::chains::wipe_on_fork() {
        return;
    }
    if settings_lead_to_a_ledger(kept) {
        PREPARED.store(true, Relaxed);
        crate::fork::watch();
    }
}

/// Makes a child that `fork` has made a ledger of its own, unless children are
/// not followed.
pub fn begin_child() {
    if !PREPARED.load(Relaxed) || !FOLLOW.load(Relaxed) || state::ledger().is_some() {
        return;
    }
    // SAFETY: the C library calls this in the child of a fork, which has one thread.
    let kept = unsafe { &mut *KEPT.0.get() };
    kept.hello.forked = 1;
    settings_lead_to_a_ledger(kept);
}

fn settings_lead_to_a_ledger(kept: &mut Kept) -> bool {
    let Some(command) = connect(kept) else { return false };
    let sent = share(command, &kept.token[..kept.token_length], &mut kept.hello);
    if let Err(error) = sent {
        // That it is not watched is not to be a secret.
        (kept.hello.size, kept.hello.error) = (0, error.0.unsigned_abs());
        let _ = send(command, None, &kept.hello);
    }
    sys::close(command);
    let Ok(ledger) = sent else { return false };
    // SAFETY: `share` has mapped the ledger for good; the callers run while there is one thread
    // (STATE-FILLED-ONCE).
    unsafe { state::set(ledger) };
    state::STATE.recorded.store(RECORD.load(Relaxed).into(), Relaxed);
    drop(me::enter());
    true
}

/// Writes down the program's path and its arguments.
///
/// # Safety
/// `argv` is the program's argument vector, and [`Hello`] is nobody else's.
unsafe fn describe_program(hello: &mut Hello, argv: *const *const c_char) {
    let path = c"/proc/self/exe".as_ptr() as usize;
    let (buffer, length) = (hello.program.as_mut_ptr() as usize, hello.program.len());
    // A path that begins with a slash begins nowhere else.
    let nowhere = libc::AT_FDCWD as usize;
    // SAFETY: the kernel reads a static C string, and writes at most `length` bytes to `buffer`.
    let read = unsafe { sys::call(libc::SYS_readlinkat, [nowhere, path, buffer, length, 0, 0]) };
    hello.program_length = read.unwrap_or(0) as u32;
    let mut at = 0;
    for i in 0.. {
        // SAFETY: the caller promises the program's vector: it ends with null, where the loop
        // ends, and its elements are C strings.
        let Some(argument) = (unsafe {
            let argument = *argv.add(i);
            (!argument.is_null()).then(|| CStr::from_ptr(argument).to_bytes_with_nul())
        }) else {
            break;
        };
        let fits = argument.len().min(hello.arguments.len() - at);
        hello.arguments[at..at + fits].copy_from_slice(&argument[..fits]);
        at += fits;
        if fits < argument.len() {
            break;
        }
    }
    hello.arguments_length = at as u32;
}

/// Returns the path of the socket of this token that lies beside our library, which is
/// one of these: its bytes in `path`, and their number. Zero if there is none.
fn beside(libraries: &[u8], token: &[u8], path: &mut [u8; PATH]) -> usize {
    let ours = libraries
        .split(|byte| matches!(byte, b':' | b' '))
        .find_map(|file| file.strip_suffix(hello::LIBRARY.as_bytes()));
    let Some(folder) = ours.filter(|folder| folder.ends_with(b"/")) else { return 0 };
    let parts = [folder, hello::SOCKET.as_bytes(), token];
    let length = parts.iter().map(|part| part.len()).sum();
    // A zero follows.
    if length >= path.len() {
        return 0;
    }
    for (byte, part) in path.iter_mut().zip(parts.iter().copied().flatten()) {
        *byte = *part;
    }
    length
}

/// Returns a socket connected to the command; `None` if nobody listens.
fn connect(kept: &Kept) -> Option<usize> {
    let kind = (libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC) as usize;
    // SAFETY: `socket` takes numbers only, and touches no memory.
    let socket = unsafe { sys::call(libc::SYS_socket, [libc::AF_UNIX as usize, kind, 0, 0, 0, 0]) };
    let socket = socket.ok()?;
    let patience = libc::timeval {
        tv_sec: (PATIENCE_MS / 1000) as i64,
        tv_usec: (PATIENCE_MS % 1000 * 1000) as i64,
    };
    // SAFETY: the kernel reads a structure on this stack, of the size given.
    let _ = unsafe {
        sys::call(
            libc::SYS_setsockopt,
            [
                socket,
                libc::SOL_SOCKET as usize,
                libc::SO_SNDTIMEO as usize,
                &raw const patience as usize,
                size_of_val(&patience),
                0,
            ],
        )
    };
    let (name, length) = hello::socket_name(&kept.token[..kept.token_length]);
    let path = &kept.beside[..kept.beside_length];
    // An abstract name begins with a zero, a path ends with one.
    if connect_to(socket, 1, &name[..length], 1 + length)
        || !path.is_empty() && connect_to(socket, 0, path, path.len() + 1)
    {
        return Some(socket);
    }
    sys::close(socket);
    None
}

/// Connects the socket to a name that stands `at` this place of an address with
/// zeroes around, of which `length` bytes count.
fn connect_to(socket: usize, at: usize, name: &[u8], length: usize) -> bool {
    // SAFETY: zeros are a value of a C structure of numbers and bytes.
    let mut address: libc::sockaddr_un = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sun_family = libc::AF_UNIX as u16;
    for (to, from) in address.sun_path[at..].iter_mut().zip(name) {
        *to = *from as c_char;
    }
    let size = size_of::<libc::sa_family_t>() + length;
    let arguments = [socket, &raw const address as usize, size, 0, 0, 0];
    // SAFETY: the kernel reads an address on this stack, of at least the size given.
    unsafe { sys::call(libc::SYS_connect, arguments) }.is_ok()
}

/// Makes a ledger and sends it to the command.
fn share(command: usize, token: &[u8], hello: &mut Hello) -> Result<Ledger<'static>, Errno> {
    let (ledger, file) = make(token, hello)?;
    let sent = send(command, Some(file), hello);
    sys::close(file);
    if let Err(error) = sent {
        // SAFETY: `make` has just made the mapping; nobody uses the ledger any more.
        unsafe { grow::unmap(ledger.base().cast_mut(), ledger.layout(), grow::ALL) };
        return Err(error);
    }
    Ok(ledger)
}

/// Makes a ledger, and a descriptor of its file, which is the caller's.
fn make(token: &[u8], hello: &mut Hello) -> Result<(Ledger<'static>, usize), Errno> {
    hello.pid = sys::getpid();
    hello.parent = sys::getppid();
    hello.began = sys::now();
    let file = memory_file(token)?;
    let Some((base, layout)) = map_ledger(file) else {
        sys::close(file);
        return Err(Errno(libc::ENOMEM));
    };
    (hello.size, hello.error) = (layout.size, 0);
    // SAFETY: a new mapping of a new file: zeroes that nobody else knows, and
    // that stay (they are given back below only if this ledger goes nowhere).
    let ledger = unsafe { Ledger::create(base, layout, hello.pid, hello.began) };
    Ok((ledger.growing(&grow::GROWTH), file))
}

/// Begins to record in a process that runs already, and returns a descriptor of the ledger's file,
/// which the caller closes.
///
/// # Errors
/// A number of [`refusal`]: the process is as it was, but for the key.
///
/// # Safety
/// One thread calls it, and no program's call leads here yet. `token` is as [`Settings`] has it.
pub unsafe fn begin_late(token: &[u8]) -> Result<usize, u32> {
    real::search_from_the_program();
    real::resolve();
    if real::libc_minor() < 34 {
        return Err(refusal::LIBC);
    }
    if !tls::learn() {
        return Err(refusal::DESCRIPTORS);
    }
    if !state::wipe_on_fork() {
        return Err(refusal::WIPE);
    }
    // SAFETY: `resolve` has run above; the caller is alone here.
    if !unsafe { keys::make() } {
        return Err(refusal::KEY);
    }
    // SAFETY: the caller is alone here, and nothing else refers to it.
    let kept = unsafe { &mut *KEPT.0.get() };
    match make(token, &mut kept.hello) {
        Ok((ledger, file)) => {
            crate::fork::watch();
            // SAFETY: the ledger stays mapped until nobody uses it any more, and no other thread
            // runs in the library (STATE-FILLED-ONCE).
            unsafe { state::set(ledger) };
            Ok(file)
        }
        Err(_) => {
            keys::give_up();
            Err(refusal::LEDGER)
        }
    }
}

/// Creates the file, named like the command's socket: the maps of a process so tell others whom
/// to ask for its ledger.
fn memory_file(token: &[u8]) -> sys::SysAnswer {
    let (name, length) = hello::socket_name(token);
    let mut terminated = [0; 10 + TOKEN + 1];
    terminated[..length].copy_from_slice(&name[..length]);
    // Kernels of a strict kind want to hear that it is never executed, old ones
    // do not know the word.
    let flags = (libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) as usize;
    let make = |flags| {
        let name = terminated.as_ptr() as usize;
        // SAFETY: the kernel reads a C string that this function keeps.
        unsafe { sys::call(libc::SYS_memfd_create, [name, flags, 0, 0, 0, 0]) }
    };
    make(flags | libc::MFD_NOEXEC_SEAL as usize).or_else(|_| make(flags))
}

/// Returns the largest ledger that there is room for. Going above the limit of file
/// sizes would kill the process with a signal, so that one is asked for first.
fn map_ledger(file: usize) -> Option<(*mut u8, LedgerLayout)> {
    // Of a limited address space the program keeps all but a small part, of a
    // very small one seven eighths.
    let space = grow::limit(libc::RLIMIT_AS);
    let part = (space / 32).max(LedgerLayout::SMALLEST.min(space / 8));
    let most = MOST.load(Relaxed).min(grow::limit(libc::RLIMIT_FSIZE)).min(part);
    let mut size = LedgerLayout::LARGEST;
    while size >= LedgerLayout::SMALLEST {
        if size <= most
            && let Some(base) = map(file, &LedgerLayout::divide(size))
        {
            return Some((base, LedgerLayout::divide(size)));
        }
        size /= 2;
    }
    None
}

/// Maps what a new ledger of this layout needs at first; all of it where that does not
/// find its place (also on valgrind, which does not let it grow).
fn map(file: usize, layout: &LedgerLayout) -> Option<*mut u8> {
    let size = layout.size as usize;
    // SAFETY: the call takes numbers; the file was made above, and nobody else knows it.
    unsafe { sys::call(libc::SYS_ftruncate, [file, size, 0, 0, 0, 0]) }.ok()?;
    // SAFETY: `place` says where nothing is mapped, and the kernel refuses another place.
    let placed = (MOST.load(Relaxed) > MOST_ON_VALGRIND).then(|| unsafe {
        grow::place(layout, |address, offset, bytes| {
            let flags = libc::MAP_FIXED_NOREPLACE as usize;
            map_piece(file, [address as usize, bytes as usize, flags, offset as usize]).is_some()
        })
    });
    let base = placed.flatten().or_else(|| {
        grow::is_whole(layout);
        map_piece(file, [0, size, 0, 0])
    })?;
    // The command reads the file for as long as it likes: one that could
    // shrink would be its end, so it takes none.
    let seals = (libc::F_SEAL_SHRINK | libc::F_SEAL_GROW) as usize;
    // SAFETY: the call takes numbers; the file was made above.
    let _ =
        unsafe { sys::call(libc::SYS_fcntl, [file, libc::F_ADD_SEALS as usize, seals, 0, 0, 0]) };
    Some(base)
}

/// Maps a part of the ledger's file: at this address unless it is 0, so many bytes, with
/// these flags, from this offset.
fn map_piece(file: usize, [address, bytes, flags, offset]: [usize; 4]) -> Option<*mut u8> {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = flags | (libc::MAP_SHARED | libc::MAP_NORESERVE) as usize;
    // SAFETY: a new mapping of our own file that takes nothing else's place. Children
    // do not get it (STATE-OWN-LEDGER), core dumps neither.
    unsafe {
        let arguments = [address, bytes, protection, flags, file, offset];
        let place = sys::call(libc::SYS_mmap, arguments).ok()?;
        // A kernel that does not know the flag takes the address for a wish.
        if address != 0 && place != address {
            sys::unmap(place as *mut u8, bytes);
            return None;
        }
        grow::forget_in_children(place, bytes);
        Some(place as *mut u8)
    }
}

fn send(command: usize, file: Option<usize>, hello: &Hello) -> sys::SysAnswer {
    /// A control message with one descriptor, laid out as `CMSG_SPACE` has it.
    #[repr(C)]
    struct Control {
        header: libc::cmsghdr,
        descriptor: c_int,
        padding: c_int,
    }
    let mut control = Control {
        header: libc::cmsghdr {
            cmsg_len: size_of::<libc::cmsghdr>() + size_of::<c_int>(),
            cmsg_level: libc::SOL_SOCKET,
            cmsg_type: libc::SCM_RIGHTS,
        },
        descriptor: file.unwrap_or(0) as c_int,
        padding: 0,
    };
    let bytes = hello.as_bytes();
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let message = libc::msghdr {
        msg_name: null_mut(),
        msg_namelen: 0,
        msg_iov: &raw mut part,
        msg_iovlen: 1,
        msg_control: (&raw mut control).cast(),
        msg_controllen: if file.is_some() { size_of::<Control>() } else { 0 },
        msg_flags: 0,
    };
    let arguments = [command, &raw const message as usize, libc::MSG_NOSIGNAL as usize, 0, 0, 0];
    // SAFETY: the kernel reads the message and what it points to, all on this stack.
    unsafe { sys::call(libc::SYS_sendmsg, arguments) }
}

/// The dynamic loader runs this before all other constructors.
#[cfg(feature = "shared-object")]
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: unsafe extern "C" fn(c_int, *const *const c_char, *mut *mut c_char) = begin;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_lies_beside_our_library() {
        let lies = |libraries: &[u8], expected: &[u8]| {
            let mut path = [0; PATH];
            let length = beside(libraries, b"7f", &mut path);
            assert_eq!(&path[..length], expected);
        };
        let ours = b"/tmp/lockstead-x/liblockstead_preload.so";
        lies(ours, b"/tmp/lockstead-x/socket-7f");
        lies(b"a.so /b.so:/t/liblockstead_preload.so:c.so", b"/t/socket-7f");
        for none in ["", "/lib/other.so", "liblockstead_preload.so", "/proc/7/fd/3"] {
            lies(none.as_bytes(), b"");
        }
        let mut long = [b'/'; 150];
        let name = long.len() - hello::LIBRARY.len();
        long[name..].copy_from_slice(hello::LIBRARY.as_bytes());
        lies(&long, b"");
    }
}

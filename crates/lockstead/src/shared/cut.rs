//! Surviving that a peer cuts the file of a segment.
//!
//! # Role
//! A file with a name can be cut by whoever may write it, and the kernel then sends
//! `SIGBUS` to a thread that touches what is gone. The handler here puts a page of ones in
//! its place, with which the thread goes on: ones are a lock that is not recoverable.
//!
//! # Invariants
//! - **CUT-WHOLE-PAGE** A page comes as a whole and filled, by one `mremap`: no thread sees another
//!   value in it than ones, and no lock there looks free.
//! - **CUT-GONE** What is behind the cut is gone altogether. Slots and claims lie in front of
//!   the root, so where they are gone all locks are: nobody concludes from ones in a
//!   slot that the owner of a lock that is still there has died.
//! - **CUT-OWN-PAGES** Only pages of segments are replaced; of any other `SIGBUS` whoever had the
//!   signal before is told.

use super::file::FileMap;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::io;
use std::sync::OnceLock;

/// The number of segments that `lockstead_linux` attaches.
const MAPS: usize = 256;

/// The mappings of segments: where each begins (0: none) and ends.
static PLACES: [(AtomicUsize, AtomicUsize); MAPS] =
    [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; MAPS];

/// The handler that had the signal before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();
/// The size of a page. 0: the handler is not installed.
static PAGE: AtomicUsize = AtomicUsize::new(0);
/// The number of pages that were replaced.
static REPLACED: AtomicU32 = AtomicU32::new(0);

/// Has this process survive it when a peer cuts the file of one of its segments: the locks behind
/// the cut are not recoverable then ([`Locked::NotRecoverable`](super::Locked::NotRecoverable),
/// [`SharedError::Spoiled`](super::SharedError::Spoiled)), and what they protect reads as ones.
/// Without this, touching what is gone ends the process, by `SIGBUS`.
///
/// Installs a handler of `SIGBUS` for the whole process, once; it hands all that does not
/// concern a segment to the handler that there was before. Install other handlers of that
/// signal first. Not needed for a [memory file](super::Segment::memfd), which nobody can
/// cut.
///
/// # Errors
/// The system's, if it refuses the handler.
///
/// ```
/// # if false { // for a test program of its own
/// lockstead::shared::survive_cuts()?;
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn survive_cuts() -> io::Result<()> {
    static ONCE: std::sync::Mutex<bool> = std::sync::Mutex::new(false);
    let mut done = ONCE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if *done {
        return Ok(());
    }
    // SAFETY: `sysconf` reads a number and has no preconditions.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    PAGE.store(page, Ordering::Relaxed);
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the call writes who has the signal into a place for that.
    if unsafe { libc::sigaction(libc::SIGBUS, core::ptr::null(), before.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the structure is plain data, which is zeroed or which the call has written.
    let _ = BEFORE.set(unsafe { before.assume_init() });
    // SAFETY: the structure is plain data, of which zeroes are a value.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = on_bus_error as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // SAFETY: CUT-OWN-PAGES: the handler only makes system calls and uses atomics, and passes on
    // what is not ours.
    if unsafe { libc::sigaction(libc::SIGBUS, &action, null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    *done = true;
    Ok(())
}

/// Returns how many pages of segments this process has lost to cuts, of those that it has touched.
/// 0 without [`survive_cuts`].
///
/// ```
/// assert_eq!(lockstead::shared::pages_cut(), 0);
/// ```
#[must_use]
pub fn pages_cut() -> u32 {
    REPLACED.load(Ordering::Relaxed)
}

/// Has the handler know a mapping, until [`forget`].
pub(super) fn remember(map: &FileMap) {
    let (base, bytes) = (map.base().addr().get(), map.bytes());
    for (from, to) in &PLACES {
        // A place that is taken begins somewhere, and ends in 0 until it is filled in.
        if from.compare_exchange(0, base, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            to.store(base + bytes, Ordering::Release);
            return;
        }
    }
}

/// Forgets a mapping that is about to go.
pub(super) fn forget(map: &FileMap) {
    let base = map.base().addr().get();
    for (from, to) in &PLACES {
        if from.load(Ordering::Relaxed) == base {
            to.store(0, Ordering::Relaxed);
            from.store(0, Ordering::Release);
            return;
        }
    }
}

fn is_ours(address: usize) -> bool {
    PLACES.iter().any(|(from, to)| {
        let to = to.load(Ordering::Acquire);
        address < to && from.load(Ordering::Relaxed).wrapping_sub(1) < address
    })
}

/// Handles `SIGBUS`: replaces the page if it is a segment's, else does what was done before.
unsafe extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes the information, because the handler was installed with SA_SIGINFO.
    let address = unsafe { (*info).si_addr() }.addr();
    // SAFETY: the kernel passes the information, as above. A signal that a process sent has another
    // code.
    let is_fault = unsafe { (*info).si_code } == libc::BUS_ADRERR;
    if is_fault && is_ours(address) && replace(address) {
        return;
    }
    let Some(before) = BEFORE.get() else { return };
    match before.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: the structure is plain data, of which zeroes are a value: the default. A
            // fault happens again, and ends the process; a signal that a process sent is lost if it
            // was ignored before, and else sent again.
            unsafe {
                if before.sa_sigaction == libc::SIG_IGN && !is_fault {
                    return;
                }
                let default: libc::sigaction = core::mem::zeroed();
                libc::sigaction(signal, &default, null_mut());
                if !is_fault {
                    libc::raise(signal);
                }
            }
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: the program that installed the handler has said by the flags that it has this
            // form.
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                unsafe { core::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: the program that installed the handler has said by the flags that it has this
            // form.
            let handler: extern "C" fn(c_int) = unsafe { core::mem::transmute(handler) };
            handler(signal);
        }
    }
}

/// Puts a page of ones at this address. Returns whether that could be done. `errno` is left alone.
fn replace(address: usize) -> bool {
    // SAFETY: the call returns the place of the thread's own `errno`.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the place is the thread's own `errno`.
    let kept = unsafe { errno.read() };
    let page = PAGE.load(Ordering::Relaxed);
    let at = address & !(page - 1);
    // SAFETY: CUT-WHOLE-PAGE and CUT-OWN-PAGES: a new page at an address of the kernel's choice is
    // filled, and then moved to a page of a segment's mapping, which has lost what was there.
    // References into the segment still lead to memory in which any bits are valid
    // (SHAREABLE-BITS).
    let done = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let fresh = libc::mmap(null_mut(), page, protection, flags, -1, 0);
        if fresh == libc::MAP_FAILED {
            false
        } else {
            fresh.cast::<u8>().write_bytes(0xff, page);
            let moving = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            let there = libc::mremap(fresh, page, page, moving, at as *mut c_void);
            if there == libc::MAP_FAILED {
                libc::munmap(fresh, page);
            }
            there != libc::MAP_FAILED
        }
    };
    if done {
        REPLACED.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the place is the thread's own `errno`.
    unsafe { errno.write(kept) };
    done
}

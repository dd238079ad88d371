//! Asks the kernel not to take the processor from the owner of a lock just now.
//!
//! # Role
//! [`Platform::holds`](lockstead_core::Platform::holds) and `lets_go`, on kernels that
//! offer the time-slice extension (Linux 7.0 and later): a thread that sets a byte in
//! its restartable-sequence area is let run on for some microseconds when its time is
//! up, and says so when it needs them no longer.
//!
//! # Protocol
//! Once for each thread that joins: is there such a byte, and does the kernel heed it?
//! Then, in the slow paths only: the owner of a lock that others fight for sets the
//! byte when it has the lock, and clears it after the release. If the kernel has
//! granted time meanwhile, the thread yields at once; a wake-up that it must make comes
//! when it runs again, since any call, that of a wake-up too, ends the extension. Until
//! then the lock is free for any thread that runs, and not held by one that does not.
//!
//! A lock that nobody fights for is taken and released as ever: its fast paths do not touch
//! the byte, and its owner is in nobody's way.
//!
//! # Invariants
//! - **SLICE-CONTROL** `CONTROL` is null, or the address of two bytes in the calling thread's
//!   registered area: the request, which the thread writes, and the grant, which the
//!   kernel writes. It stays registered until the thread ends.
//!
//! No lock relies on it: the kernel may refuse, or revoke. A request that is still set
//! after a release (of a mutex that cooled down meanwhile) costs others some
//! microseconds, once; the kernel ends the extension by a timer.
//!
//! # Limits
//! A libc that registers more than the area's first version (glibc 2.43 does; 2.36, with
//! its 32 bytes, does not), x86-64.

use crate::rseq;
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

thread_local! {
    /// The two bytes, as SLICE-CONTROL says.
    static CONTROL: Cell<*mut u8> = const { Cell::new(core::ptr::null_mut()) };
}

/// Whether the kernel has refused: it is not asked again.
static REFUSED: AtomicBool = AtomicBool::new(false);
/// The number that [`extensions`] returns.
static EXTENSIONS: AtomicU64 = AtomicU64::new(0);

/// `rseq.flags` lies here in the area, and the request and the grant there; kernel ABI.
const FLAGS: isize = 16;
const REQUEST: isize = 28;
const GRANTED: usize = 1;
/// The smallest area that has them, by the size in use.
const SIZE: u32 = 33;
/// The flag that says that the extension is on in this thread.
const ENABLED: u32 = 1 << 5;

/// The number of the kernel's `PR_RSEQ_SLICE_EXTENSION`.
const SLICE_EXTENSION: libc::c_int = 79;
const GET: libc::c_long = 1;
const SET: libc::c_long = 2;
const ENABLE: libc::c_long = 1;

/// An error of the kernel's without a name in the libc: `ENOTSUPP`.
const SWITCHED_OFF: i32 = 524;

fn control(request: libc::c_long, value: libc::c_long) -> libc::c_long {
    let (call, zero) = (libc::SYS_prctl, 0_i64);
    // SAFETY: the call takes numbers only; a kernel that does not know them refuses.
    unsafe { libc::syscall(call, SLICE_EXTENSION, request, value, zero, zero) }
}

/// Sees whether the calling thread, which joins, can have extensions.
pub(crate) fn join() {
    let _errno = crate::sys::KeepErrno::new();
    if REFUSED.load(Relaxed) || rseq::area().is_none_or(|area| area.size < SIZE) {
        return;
    }
    let (Some(flags), Some(request)) = (rseq::field(FLAGS), rseq::field(REQUEST)) else { return };
    // SAFETY: `rseq::field` returns addresses in the calling thread's registered area, which
    // stays as long as the thread; the kernel writes the field, so the read is volatile.
    let on = || unsafe { flags.cast::<u32>().read_volatile() } & ENABLED != 0;
    if !on() && control(SET, ENABLE) != 0 {
        REFUSED.store(true, Relaxed);
    } else if on() {
        CONTROL.set(request.as_ptr());
    }
}

/// Asks for an extension: the calling thread holds a lock that others fight for.
#[inline]
pub(crate) fn ask() {
    let control = CONTROL.get();
    if !control.is_null() {
        // SAFETY: SLICE-CONTROL, kept by `join`: the byte is the calling thread's own.
        unsafe { control.write_volatile(1) };
    }
}

/// Takes the request back after the release, and gives back the time that was granted.
#[inline]
pub(crate) fn give_back() {
    let control = CONTROL.get();
    if !control.is_null() {
        // SAFETY: SLICE-CONTROL, kept by `join`: both bytes are in the calling thread's area.
        let granted = unsafe {
            control.write_volatile(0);
            control.add(GRANTED).read_volatile()
        };
        if granted != 0 {
            relinquish();
        }
    }
}

/// Gives the processor back.
#[cold]
#[inline(never)]
fn relinquish() {
    /// The number is the same on all architectures that Rust supports.
    const RSEQ_SLICE_YIELD: libc::c_long = 471;
    let _errno = crate::sys::KeepErrno::new();
    EXTENSIONS.fetch_add(1, Relaxed);
    // SAFETY: `rseq_slice_yield` takes no argument and touches no memory of ours.
    unsafe { libc::syscall(RSEQ_SLICE_YIELD) };
}

/// Returns how many extensions the locks of this process were granted and gave back in time.
#[must_use]
pub fn extensions() -> u64 {
    EXTENSIONS.load(Relaxed)
}

/// Tells whether extensions are offered, how that is known, and whether the calling thread
/// uses them.
pub(crate) fn probe() -> (bool, String, bool) {
    let answer = control(GET, 0);
    let in_use = !CONTROL.get().is_null();
    let small = rseq::area().is_none_or(|area| area.size < SIZE);
    let errno = crate::sys::errno();
    let detail = match answer {
        _ if in_use => "on in this thread".into(),
        0.. if small => "offered, but the libc registers too small an area".into(),
        0.. => "offered, off in this thread".into(),
        _ if errno == SWITCHED_OFF => "switched off when the kernel was started".into(),
        _ if errno == libc::EINVAL => "the kernel does not know it; Linux 7.0 does".into(),
        _ => std::io::Error::from_raw_os_error(errno).to_string(),
    };
    (answer >= 0, detail, in_use)
}

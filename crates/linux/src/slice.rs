//! Asks the kernel not to take the processor from the owner of a lock just now.
//!
//! # Role
//! [`Platform::holds`](lockstead_core::Platform::holds) and `lets_go`, on kernels that
//! offer the time-slice extension (Linux 7.0 and later): a thread that sets a byte in
//! its restartable-sequence area is let run on for some microseconds when its time is
//! up, and says so when it needs them no longer.
//!
//! # State
//! ```text
//!   byte   0         1        2 .. 3
//!        ┌─────────┬────────┬────────┐   the thread sets the request;
//!        │ request │ grant  │   0    │   the kernel turns it into a grant, and erases that
//!        └─────────┴────────┴────────┘   when it takes the processor after all
//! ```
//!
//! # Protocol
//! Once for each thread that joins: does the kernel offer it to this thread? The area's flags
//! tell, so that nothing is called where it does not.
//! Then, in the slow paths only: the owner of a lock that others fight for sets the
//! request when it has the lock, and clears it after the release. If the request is gone by then,
//! the kernel has granted it, and the thread yields at once; a wake-up that it must make comes
//! when it runs again, since any call, that of a wake-up too, ends the extension. Until
//! then the lock is free for any thread that runs, and not held by one that does not.
//! Where the time has run out before, the kernel has taken the processor and the call does
//! nothing but end the matter (SLICE-ALONE).
//!
//! A lock that nobody fights for is taken and released as ever: its fast paths do not touch
//! the bytes, and its owner is in nobody's way.
//!
//! # Invariants
//! - **SLICE-CONTROL** `CONTROL` is null, or the address of those four bytes, aligned, in the
//!   calling thread's registered area. It stays registered until the thread ends.
//! - **SLICE-ALONE** A request is set only where all four bytes are 0 and, if the thread has made one
//!   that is gone, after the call that yields. A kernel that checks its users (`rseq_debug=1`) ends a
//!   thread that asks while it has a grant; and at the first call after a grant that has run
//!   out, one that has asked anew before it.
//! - **SLICE-OWN** A thread takes back the request that it has made for the same lock, and no
//!   other: neither the program's own, nor that for a lock outside of this one, whose owner would
//!   give its processor up in the middle.
//!
//! No lock relies on any of them: the kernel may refuse, or revoke. A request that is still set
//! after a release (of a mutex that cooled down meanwhile) costs others some
//! microseconds, once; the kernel ends the extension by a timer, and erases it.
//!
//! # Limits
//! A libc that registers more than the area's first version (glibc 2.43 does; 2.36, with
//! its 32 bytes, does not), and a kernel that offers the extension for the processor: of 7.2, none for aarch64. A filter of system calls that kills for one that it does not
//! know has to know `rseq_slice_yield`, if the kernel offers the extension.
//!
//! # Source
//! The kernel's `Documentation/userspace-api/rseq.rst` and `include/uapi/linux/rseq.h`, 7.2.

use crate::rseq;
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use lockstead_core::Address;

thread_local! {
    /// The four bytes, as SLICE-CONTROL says.
    static CONTROL: Cell<*mut u32> = const { Cell::new(core::ptr::null_mut()) };
    /// The address of the lock for which the request was made, as SLICE-OWN says; 0: of none.
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

/// Whether the kernel, or a filter, has refused: it is not asked again.
static REFUSED: AtomicBool = AtomicBool::new(false);
/// The number that [`extensions`] returns.
static EXTENSIONS: AtomicU64 = AtomicU64::new(0);

/// `rseq.flags` lies here in the area, and `rseq.slice_ctrl` there; kernel ABI.
const FLAGS: isize = 16;
const SLICE_CONTROL: isize = 28;
/// The bytes of the request and of the grant.
const REQUEST: usize = 0;
const GRANT: usize = 1;
/// The smallest area that has them, by the size in use.
const SIZE: u32 = 33;

/// The number of the kernel's `PR_RSEQ_SLICE_EXTENSION`.
const SLICE_EXTENSION: libc::c_int = 79;
const GET: libc::c_long = 1;
const SET: libc::c_long = 2;
const ENABLE: libc::c_long = 1;

/// An error of the kernel's without a name in the libc: `ENOTSUPP`.
const NOT_BUILT_IN: i32 = 524;

/// What the flags of a thread's area say of the extension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Offer {
    /// There is none: the kernel has no such thing, or it was switched off at its start.
    None,
    /// The thread may switch it on.
    Available,
    /// It is on: the libc or the program has seen to it.
    On,
}

impl Offer {
    const fn of(flags: u32) -> Self {
        match (flags >> 4 & 1, flags >> 5 & 1) {
            (_, 1) => Offer::On,
            (1, _) => Offer::Available,
            _ => Offer::None,
        }
    }

    /// Returns what the calling thread is offered, and where its four bytes are.
    fn here() -> Option<(Self, *mut u32)> {
        if rseq::area().is_none_or(|area| area.size < SIZE) {
            return None;
        }
        let (flags, control) = (rseq::field(FLAGS)?, rseq::field(SLICE_CONTROL)?);
        // SAFETY: `rseq::field` returns addresses in the calling thread's registered area, which
        // stays as long as the thread; the kernel writes the field, so the read is volatile.
        let flags = unsafe { flags.cast::<u32>().read_volatile() };
        Some((Offer::of(flags), control.as_ptr().cast()))
    }
}

fn control(request: libc::c_long, value: libc::c_long) -> libc::c_long {
    let (call, zero) = (libc::SYS_prctl, 0_i64);
    // SAFETY: the call takes numbers only; a kernel that does not know them refuses.
    unsafe { libc::syscall(call, SLICE_EXTENSION, request, value, zero, zero) }
}

/// Sees whether the calling thread, which joins, can have extensions.
pub(crate) fn join() {
    let Some((offer, bytes)) = Offer::here() else { return };
    let is_on = match offer {
        Offer::None => false,
        Offer::On => true,
        Offer::Available if REFUSED.load(Relaxed) => false,
        Offer::Available => {
            let _errno = crate::sys::KeepErrno::new();
            let is_on = control(SET, ENABLE) == 0;
            REFUSED.store(!is_on, Relaxed);
            is_on
        }
    };
    if is_on {
        CONTROL.set(bytes);
    }
}

/// Asks for an extension: the calling thread holds the lock at this address, for which others
/// fight.
#[inline]
pub(crate) fn ask(at: Address) {
    let control = CONTROL.get();
    if !control.is_null() {
        // SAFETY: SLICE-CONTROL, kept by `join`: the bytes are the calling thread's own.
        ASKED.with(|asked| unsafe { request(control, asked, at, relinquish) });
    }
}

/// Takes the request back after the release of the lock at this address, and gives back the time
/// that was granted. Returns whether any was: then the thread has lost its processor since the
/// acquisition.
#[inline]
pub(crate) fn give_back(at: Address) -> bool {
    let control = CONTROL.get();
    if control.is_null() {
        return false;
    }
    // SAFETY: SLICE-CONTROL, kept by `join`: the bytes are the calling thread's own.
    let granted = ASKED.with(|asked| unsafe { take_back(control, asked, at) });
    if granted {
        relinquish();
    }
    granted
}

/// Sets the request for the lock at this address, which becomes the one that was `asked` for; after
/// `yields`, if a request of before is gone (SLICE-ALONE).
///
/// # Safety
/// `control` is the address of four bytes, aligned, which only the calling thread and the kernel
/// write.
#[inline]
unsafe fn request(control: *mut u32, asked: &Cell<usize>, at: Address, yields: impl FnOnce()) {
    // SAFETY: the caller promises that the bytes are there, and its own.
    if unsafe { control.read_volatile() } == 0 {
        if asked.get() != 0 {
            yields();
        }
        // SAFETY: the caller promises that the bytes are there, and its own.
        unsafe { control.cast::<u8>().add(REQUEST).write_volatile(1) };
        asked.set(at.0);
    }
}

/// Takes back the request for the lock at this address, if that is the one that was `asked` for.
/// Returns whether the kernel has granted it, whatever has become of that.
///
/// # Safety
/// As for [`request`].
#[inline]
unsafe fn take_back(control: *mut u32, asked: &Cell<usize>, at: Address) -> bool {
    if asked.get() != at.0 {
        return false;
    }
    let bytes = control.cast::<u8>();
    // SAFETY: the caller promises that the bytes are there, and its own.
    let granted = unsafe {
        let stands = bytes.add(REQUEST).read_volatile() != 0;
        bytes.add(REQUEST).write_volatile(0);
        !stands || bytes.add(GRANT).read_volatile() != 0
    };
    asked.set(0);
    granted
}

/// Gives the processor back, if the kernel has not taken it yet.
#[cold]
#[inline(never)]
fn relinquish() {
    /// The number is the same on all architectures that Rust supports.
    const RSEQ_SLICE_YIELD: libc::c_long = 471;
    let _errno = crate::sys::KeepErrno::new();
    // SAFETY: `rseq_slice_yield` takes no argument and touches no memory of ours.
    if unsafe { libc::syscall(RSEQ_SLICE_YIELD) } == 1 {
        EXTENSIONS.fetch_add(1, Relaxed);
    }
}

/// Returns how many extensions the locks of this process were granted and gave back in time.
///
/// Those that ran out before the release are not counted, nor those that another call of the
/// program has ended.
///
/// # Example
/// ```
/// let before = lockstead_linux::slice::extensions();
/// // ... threads that fight for a lock ...
/// assert!(lockstead_linux::slice::extensions() >= before);
/// ```
#[must_use]
pub fn extensions() -> u64 {
    EXTENSIONS.load(Relaxed)
}

/// Tells whether extensions are offered, how that is known, and whether the calling thread
/// uses them.
pub(crate) fn probe() -> (bool, String, bool) {
    let answer = control(GET, 0);
    let errno = crate::sys::errno();
    let in_use = !CONTROL.get().is_null();
    let offer = Offer::here().map(|(offer, _)| offer);
    let detail = match (answer, offer) {
        _ if in_use => "on in this thread".into(),
        (0.., None) => "offered, but the libc registers too small an area, or none".into(),
        (0.., Some(Offer::None)) => "switched off when the kernel was started".into(),
        (0.., Some(_)) => "offered, but refused when it was to be switched on".into(),
        _ if errno == NOT_BUILT_IN => "the kernel was built without it".into(),
        _ if errno == libc::EINVAL => "the kernel does not know it; Linux 7.0 does".into(),
        _ => std::io::Error::from_raw_os_error(errno).to_string(),
    };
    (answer >= 0 && offer != Some(Offer::None), detail, in_use)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTER: Address = Address(0x1000);
    const INNER: Address = Address(0x2000);

    /// The four bytes of a thread on a kernel that does what it is told to.
    struct Thread {
        control: u32,
        asked: Cell<usize>,
    }

    impl Thread {
        fn new() -> Self {
            Thread { control: 0, asked: Cell::new(0) }
        }

        /// Asks, and returns whether it yielded before.
        fn ask(&mut self, at: Address) -> bool {
            let mut yielded = false;
            // SAFETY: the word is this test's own.
            unsafe { request(&mut self.control, &self.asked, at, || yielded = true) };
            yielded
        }

        fn give_back(&mut self, at: Address) -> bool {
            // SAFETY: the word is this test's own.
            unsafe { take_back(&mut self.control, &self.asked, at) }
        }

        fn bytes(&self) -> [u8; 4] {
            self.control.to_ne_bytes()
        }

        /// Sets the bytes of request and grant, as kernel or program.
        fn set(&mut self, request: u8, grant: u8) {
            self.control = u32::from_ne_bytes([request, grant, 0, 0]);
        }
    }

    #[test]
    fn flags_tell_what_is_offered() {
        assert_eq!(Offer::of(0), Offer::None);
        assert_eq!(Offer::of(0b1111), Offer::None, "older flags mean other things");
        assert_eq!(Offer::of(1 << 4), Offer::Available);
        assert_eq!(Offer::of(1 << 4 | 1 << 5), Offer::On);
    }

    #[test]
    fn a_request_stands_from_the_acquisition_to_the_release() {
        let mut thread = Thread::new();
        assert!(!thread.give_back(OUTER), "of a lock for which nothing was asked");
        assert!(!thread.ask(OUTER));
        assert_eq!(thread.bytes(), [1, 0, 0, 0]);
        assert!(!thread.give_back(OUTER), "nothing was granted");
        assert_eq!(thread.bytes(), [0; 4]);
        assert!(!thread.give_back(OUTER));
    }

    #[test]
    fn what_was_granted_is_given_back_or_said_to_be_over() {
        let mut thread = Thread::new();
        thread.ask(OUTER);
        thread.set(0, 1);
        assert!(thread.give_back(OUTER));
        // The kernel erases the grant when the thread yields, or when the time is up.
        thread.set(0, 0);
        assert!(!thread.ask(OUTER), "the last one was given back");
        thread.set(0, 0);
        assert!(thread.give_back(OUTER));
        assert!(!thread.give_back(OUTER));
    }

    #[test]
    fn the_release_of_a_lock_inside_leaves_the_request_for_the_one_outside() {
        let mut thread = Thread::new();
        thread.ask(OUTER);
        assert!(!thread.ask(INNER));
        assert!(!thread.give_back(INNER));
        assert_eq!(thread.bytes(), [1, 0, 0, 0]);
        thread.set(0, 1);
        assert!(!thread.ask(INNER));
        assert_eq!(thread.bytes(), [0, 1, 0, 0], "no request beside a grant");
        assert!(!thread.give_back(INNER), "the processor is given back with the lock outside");
        assert!(thread.give_back(OUTER));
    }

    #[test]
    fn a_lock_inside_asks_anew_where_the_time_of_the_one_outside_has_run_out() {
        let mut thread = Thread::new();
        thread.ask(OUTER);
        thread.set(0, 0);
        assert!(thread.ask(INNER), "not before the kernel knows that the first is over");
        assert_eq!(thread.bytes(), [1, 0, 0, 0]);
        assert!(!thread.give_back(INNER));
        assert!(!thread.give_back(OUTER), "its time was over before");
        assert_eq!(thread.bytes(), [0; 4]);
    }

    #[test]
    fn a_request_of_the_programs_own_is_left_alone() {
        let mut thread = Thread::new();
        for (request, grant) in [(1, 0), (0, 1)] {
            thread.set(request, grant);
            thread.ask(OUTER);
            assert!(!thread.give_back(OUTER));
            assert_eq!(thread.bytes(), [request, grant, 0, 0]);
        }
    }

    #[test]
    fn a_request_that_a_fast_release_left_goes_with_the_next_release_of_that_lock() {
        let mut thread = Thread::new();
        thread.ask(OUTER);
        // Released by the fast path, and fought for again.
        assert!(!thread.ask(OUTER));
        assert!(!thread.give_back(OUTER));
        assert_eq!(thread.bytes(), [0; 4]);
    }
}

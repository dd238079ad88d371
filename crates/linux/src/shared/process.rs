//! What a process knows of itself as one of those that share segments.
//!
//! # Role
//! Memory that a forked child finds empty, whichever call made it: the child has none
//! of its parent's threads, record locks, or names. Pages for threads are of the same
//! kind, see [`page`](super::page).
//!
//! # Invariants
//! - **WIPED-ZEROES** What lies in wiped memory is valid when it is all zeroes, and says then:
//!   nobody, nothing.

use crate::sys;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Segments that a process can have attached at a time.
pub(super) const SEGMENTS: usize = 256;

/// The part of one attached segment that is this process's own.
#[repr(C)]
pub(super) struct OwnPlace {
    /// Its number among the processes of the segment, see [`number`](super::number); 0: it has
    /// none yet.
    pub(super) number: AtomicU32,
    /// Its threads that are members, or about to be.
    pub(super) joined: AtomicU32,
    /// The mapping that keeps the record lock.
    pub(super) hold: AtomicUsize,
    /// Somebody works on `number`.
    pub(super) busy: AtomicU32,
    /// The time at which its threads last asked about one another, in 2^20 nanoseconds; 0: not yet.
    pub(super) asked: AtomicU32,
}

#[repr(C)]
struct OwnProcess {
    /// The process namespace, plus one; 0: not asked yet.
    namespace: AtomicU64,
    /// The number of the process that [`origin`](super::origin) tells; 0: not asked yet.
    incarnation: AtomicU64,
    /// The thread that has a description of its own, or forks; 0: none. See
    /// [`description`](super::description).
    describes: AtomicU32,
    spare: AtomicU32,
    places: [OwnPlace; SEGMENTS],
}

static PROCESS: AtomicPtr<OwnProcess> = AtomicPtr::new(null_mut());

/// Maps zeroed pages that a forked child finds zeroed again; the error is the kernel's.
pub(super) fn map_wiped(bytes: usize) -> Result<NonNull<u8>, i32> {
    let pages = sys::map_zeroed(bytes).ok_or(libc::ENOMEM)?;
    // SAFETY: MAPPING-OURS: `map_zeroed` made the mapping, and nobody else knows it.
    if unsafe { libc::madvise(pages.as_ptr().cast(), bytes, libc::MADV_WIPEONFORK) } != 0 {
        let error = sys::errno();
        // SAFETY: MAPPING-OURS: `map_zeroed` made the mapping, and nobody else knows it.
        unsafe { sys::unmap(pages, bytes) };
        return Err(error);
    }
    Ok(pages)
}

/// Tells whether the kernel wipes pages of forked children; its error if not.
pub(crate) fn wipes_on_fork() -> Result<(), i32> {
    let page = map_wiped(4096)?;
    // SAFETY: MAPPING-OURS: mapped just now, and nobody knows it.
    unsafe { sys::unmap(page, 4096) };
    Ok(())
}

/// Sees to it that [`place`] works; the error is the kernel's.
pub(super) fn prepare() -> Result<(), i32> {
    if !PROCESS.load(Ordering::Relaxed).is_null() {
        return Ok(());
    }
    super::release::choose();
    let bytes = size_of::<OwnProcess>().next_multiple_of(4096);
    let pages = map_wiped(bytes)?;
    let fresh = pages.cast::<OwnProcess>().as_ptr();
    // Relaxed: the kernel has zeroed the pages before anybody knows the address.
    let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
    if PROCESS.compare_exchange(null_mut(), fresh, success, failure).is_err() {
        // SAFETY: MAPPING-OURS: mapped above; the pages of another thread are in use instead.
        unsafe { sys::unmap(pages, bytes) };
    }
    Ok(())
}

fn process() -> Option<&'static OwnProcess> {
    // SAFETY: WIPED-ZEROES: `prepare` mapped it, large enough, and nobody unmaps it.
    unsafe { PROCESS.load(Ordering::Relaxed).as_ref() }
}

/// Returns the part of the segment of this index that is this process's own, once one is attached.
pub(super) fn place(index: usize) -> Option<&'static OwnPlace> {
    process()?.places.get(index)
}

/// Returns the word that names the thread that has a description of its own, or forks, once a
/// segment is attached. A child by whichever call finds none: it has not inherited the thread.
pub(super) fn describes() -> Option<&'static AtomicU32> {
    process().map(|process| &process.describes)
}

/// Tells the process namespaces of the machine apart: no two that have living processes
/// have the same number. 0 where `/proc` does not tell.
pub(super) fn namespace() -> u64 {
    let Some(process) = process() else { return 0 };
    let known = process.namespace.load(Ordering::Relaxed);
    if let Some(namespace) = known.checked_sub(1) {
        return namespace;
    }
    let mut about = core::mem::MaybeUninit::<libc::stat>::uninit();
    let path = c"/proc/self/ns/pid".as_ptr();
    // SAFETY: SYSCALL-LIVE: a live path, and room for the answer.
    let told = unsafe { libc::fstatat(libc::AT_FDCWD, path, about.as_mut_ptr(), 0) } == 0;
    // SAFETY: the call has said that it filled the structure in.
    let namespace = if told { unsafe { about.assume_init().st_ino } } else { 0 };
    process.namespace.store(namespace.wrapping_add(1), Ordering::Relaxed);
    namespace
}

/// Returns a number for this process that no other one has had, see [`origin`](super::origin); 0:
/// not certain.
pub(super) fn incarnation() -> u64 {
    let Some(process) = process() else { return 0 };
    let known = process.incarnation.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let told = super::origin::of_process(std::process::id());
    process.incarnation.store(told, Ordering::Relaxed);
    told
}

impl OwnPlace {
    /// Keeps the process's other threads out until dropped. Signals are held off: a
    /// handler of the same thread must not come here in between.
    pub(super) fn alone(&self) -> RightToBeAlone<'_> {
        let signals = sys::NoSignals::new();
        // ord: SHL-1 (acquire): what the last one did to the number.
        while self.busy.swap(1, Ordering::Acquire) != 0 {
            // SAFETY: `sched_yield` takes no argument and touches no memory.
            unsafe { libc::sched_yield() };
        }
        RightToBeAlone { place: self, _signals: signals }
    }
}

/// The right to be alone at an [`OwnPlace`], which [`OwnPlace::alone`] gives.
pub(super) struct RightToBeAlone<'a> {
    place: &'a OwnPlace,
    _signals: sys::NoSignals,
}

impl Drop for RightToBeAlone<'_> {
    fn drop(&mut self) {
        // ord: SHL-1 (release): the number.
        self.place.busy.store(0, Ordering::Release);
    }
}

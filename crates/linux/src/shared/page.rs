//! What a thread knows of itself; vanishes in a forked child.
//!
//! # Role
//! One page for each thread that shares segments: its memberships, and what is to be
//! known of its robust list. The thread has two thread-local pointers: to the page, and
//! to the membership it used last, which lies there. A forked child inherits the
//! pointers and finds zeroes behind them (WIPED-ZEROES): nobody, member of nothing.
//!
//! # Invariants
//! - **PAGE-ONE-THREAD** Only its thread uses a page: the thread's code and its signal handlers.
//!   The words are atomics for the handlers' sake; none of them is ordered.
//! - **PAGE-UNMAPPED** A page is unmapped when its thread ends, if it has left all segments, and
//!   else never.

use super::list::List;
use super::member::Member;
use super::process;
use super::refusal::JoinError;
use crate::sys;
use core::cell::Cell;
use core::ffi::c_void;
use core::ptr::{NonNull, null};
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

/// Segments of which a thread can be a member at a time.
pub(super) const MEMBERS: usize = 56;

#[repr(C, align(4096))]
pub(super) struct Page {
    pub(super) members: [Member; MEMBERS],
    /// Indices of the members whose slots are in the robust list, in its order.
    order: [AtomicU8; MEMBERS],
    linked: AtomicU32,
    /// Not zero once the thread has made the page its own.
    ready: AtomicU32,
    pub(super) list: List,
}

const _: () = assert!(size_of::<Page>() == 4096);

thread_local! {
    static PAGE: Cell<*const Page> = const { Cell::new(null()) };
}

/// The key plus one; 0 before there is one.
static KEY: AtomicU32 = AtomicU32::new(0);

/// Returns the calling thread's page, if it has one and it is not its forked parent's.
pub(super) fn get() -> Option<&'static Page> {
    // SAFETY: PAGE-UNMAPPED: null, or the thread's own page.
    let page = unsafe { PAGE.get().as_ref() }?;
    (page.ready.load(Relaxed) != 0).then_some(page)
}

/// Tells whether the calling thread is what it took itself for.
pub(super) fn is_ready() -> bool {
    get().is_some()
}

/// Returns the calling thread's page. Signals are held off.
pub(super) fn of_thread() -> Result<&'static Page, JoinError> {
    if PAGE.get().is_null() {
        let page = process::map_wiped(size_of::<Page>()).map_err(JoinError::NoMemory)?;
        PAGE.set(page.cast::<Page>().as_ptr());
    }
    // SAFETY: PAGE-UNMAPPED, as in `get`; all zeroes are valid (WIPED-ZEROES).
    let page = unsafe { &*PAGE.get() };
    if page.ready.load(Relaxed) == 0 {
        attend();
        page.ready.store(1, Relaxed);
    }
    Ok(page)
}

impl Page {
    /// Returns the member whose segment has this address.
    pub(super) fn find(&self, address: usize) -> Option<&Member> {
        self.members.iter().find(|member| member.has(address))
    }

    /// Creates a member that is none.
    pub(super) fn vacant(&self) -> Option<(usize, &Member)> {
        self.members.iter().enumerate().find(|(_, member)| member.identity().is_none())
    }

    /// Returns the members whose slots are linked, in the order of the list.
    pub(super) fn linked(&self) -> impl DoubleEndedIterator<Item = &Member> + ExactSizeIterator {
        let linked = self.linked.load(Relaxed) as usize;
        self.order[..linked.min(MEMBERS)]
            .iter()
            .map(|index| &self.members[usize::from(index.load(Relaxed)) % MEMBERS])
    }

    /// Notes that the member of this index is the last one in the list.
    pub(super) fn push(&self, index: usize) {
        let linked = self.linked.load(Relaxed);
        self.order[linked as usize].store(index as u8, Relaxed);
        self.linked.store(linked + 1, Relaxed);
    }

    /// Notes that a member is in the list no more.
    pub(super) fn remove(&self, member: &Member) {
        let Some(at) = self.linked().position(|other| core::ptr::eq(other, member)) else {
            return;
        };
        let linked = self.linked.load(Relaxed) as usize;
        for later in at + 1..linked {
            self.order[later - 1].store(self.order[later].load(Relaxed), Relaxed);
        }
        self.linked.store(linked as u32 - 1, Relaxed);
    }
}

/// Sees to it that [`end`] runs at the thread's end. Where that fails, it does not: then
/// the kernel tells of the thread's end.
fn attend() {
    crate::stay();
    if KEY.load(Relaxed) == 0 {
        let mut key = 0;
        // SAFETY: SYSCALL-LIVE: `key` is live; the destructor is a function of this library, which
        // stays loaded (`stay`).
        if unsafe { libc::pthread_key_create(&mut key, Some(end)) } != 0 {
            return;
        }
        if KEY.compare_exchange(0, key + 1, Relaxed, Relaxed).is_err() {
            // SAFETY: the key was created above, and nobody knows it.
            unsafe { libc::pthread_key_delete(key) };
        }
    }
    if let Some(key) = KEY.load(Relaxed).checked_sub(1) {
        // Any value but null makes the libc call the destructor.
        let value = core::ptr::without_provenance::<c_void>(1);
        // SAFETY: the key was created above, and nobody deletes it.
        unsafe { libc::pthread_setspecific(key, value) };
    }
}

/// Leaves, at the thread's end, the segments in which it holds nothing. What it holds elsewhere,
/// the kernel reports when the thread is gone; or the thread itself, if the kernel will not come to
/// its slots.
extern "C" fn end(_value: *mut c_void) {
    let _errno = sys::KeepErrno::new();
    let _signals = sys::NoSignals::new();
    let Some(page) = get() else { return };
    let mut holds = false;
    for index in 0..MEMBERS {
        let member = &page.members[index];
        // It stays linked where it holds something.
        if member.identity().is_some() && member.leave(page).is_err() {
            holds = true;
        }
    }
    if holds && !page.list.is_walked(page) {
        page.members.iter().for_each(|member| member.die(page));
    }
    if holds {
        // A guard may refer to the page still.
        return;
    }
    page.list.retire();
    super::member::forget();
    let address = NonNull::from(page).cast();
    PAGE.set(null());
    // SAFETY: MAPPING-OURS and PAGE-UNMAPPED: `of_thread` mapped it with this size; no member is
    // left to which a guard could refer, the kernel knows no list there, and the pointers are
    // cleared.
    unsafe { sys::unmap(address, size_of::<Page>()) };
}

//! The robust list: how the kernel knows the life words of a thread.
//!
//! # Role
//! The kernel keeps one list head for each thread, in the memory of the process. When
//! the thread ends it walks the list, marks each word that still names the thread, and
//! wakes one of its sleepers (DEATH-MARK); then the same for the word that the head calls
//! pending, where it also wakes if the word names nobody (DEATH-NAMED-WORD).
//!
//! Threads of a libc have a head for its robust mutexes. A slot joins that list as if
//! it were one of these; the distance from a node to its word is the head's (-32 in
//! glibc, -28 in musl). Threads without a head, as the child of a bare `fork` call, get
//! one in their page. In an exclusive segment the head lies in the slot itself.
//!
//! # Invariants
//! - **LIST-TAIL** Slots stand at the end of the list, in the order of [`MemberPage::linked`]; the
//!   libc puts its mutexes in front. So what follows a slot, and what leads to it from
//!   another one, is known without reading it in the segment, where anybody writes:
//!   no pointer is taken from there but by the kernel, at the thread's end.
//! - **LIST-WHOLE** Every change of the list is one store; before and after it the list is
//!   whole. While a slot is taken or given up, its life word is the pending one.
//! - **LIST-HEAD** The head that the kernel knows is the libc's or the page's; it lives as long as
//!   the thread, and only the thread writes its fields.
//! - **LIST-PENDING** What the libc's head has as pending is `ThreadList::coming` or
//!   `ThreadList::pending`, unless the libc has put it there: the first is written before the head
//!   is, the second after, so that a signal handler that comes in between takes neither for the
//!   libc's.

use super::page::{self, Head, MemberPage, SegmentMember, ThreadList};
use super::refusal::JoinError;
use super::registry;
use crate::atomics::U32;
use core::ptr::{NonNull, null_mut, with_exposed_provenance, with_exposed_provenance_mut};
use core::sync::atomic::{AtomicU32, Ordering, Ordering::Relaxed, compiler_fence};

/// Robust mutexes in front of our slots that the kernel is sure to walk past.
const FARTHEST: usize = 2000;

/// The distance from the node in the slot to its life word, in a list of the libc's kind.
const OWN_OFFSET: isize = -32;
/// The same distance where the head stands before the node in the slot.
const IN_SLOT_OFFSET: isize = -40;
/// The offset of the head in the slot then.
const IN_SLOT_HEAD: usize = 16;
/// The offsets at which a slot has room for a node and the address before it.
const LINK: core::ops::Range<isize> = 24..41;

/// The values that say whose list a thread uses; 0: it is undecided.
const LIBCS: u32 = 1;
const OWN: u32 = 2;
const IN_SLOT: u32 = 3;

/// A value that is never pending.
const UNKNOWN: usize = 1;

/// Returns the head that the kernel knows; the error where it does not tell.
fn registered() -> Result<*mut Head, JoinError> {
    let mut head: *mut Head = null_mut();
    let mut size = 0usize;
    // SAFETY: SYSCALL-LIVE: `head` and `size` live on this stack until the call returns.
    let result =
        unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut size) };
    if result == 0 { Ok(head) } else { Err(JoinError::NoRobustList) }
}

fn register(head: *mut Head) -> Result<(), JoinError> {
    // SAFETY: PAGE-UNMAPPED and SEGMENT-MAPPED: the kernel reads the head when the thread ends; the
    // head lies in the thread's page or its slot, or is the libc's.
    let result = unsafe { libc::syscall(libc::SYS_set_robust_list, head, size_of::<Head>()) };
    if result == 0 { Ok(()) } else { Err(JoinError::NoRobustList) }
}

/// Has musl register its head, which it does when it first needs it, and would displace
/// one of ours.
#[cfg(target_env = "musl")]
fn have_libc_register() {
    // SAFETY: the mutex is a variable of this function, which initialises, uses and destroys it.
    unsafe {
        let mut attributes: libc::pthread_mutexattr_t = core::mem::zeroed();
        let mut mutex: libc::pthread_mutex_t = core::mem::zeroed();
        libc::pthread_mutexattr_init(&mut attributes);
        libc::pthread_mutexattr_setpshared(&mut attributes, libc::PTHREAD_PROCESS_SHARED);
        libc::pthread_mutexattr_setrobust(&mut attributes, libc::PTHREAD_MUTEX_ROBUST);
        libc::pthread_mutex_init(&mut mutex, &attributes);
        if libc::pthread_mutex_lock(&mut mutex) == 0 {
            libc::pthread_mutex_unlock(&mut mutex);
        }
        libc::pthread_mutex_destroy(&mut mutex);
        libc::pthread_mutexattr_destroy(&mut attributes);
    }
}

/// Does nothing, for glibc registers its heads itself.
#[cfg(not(target_env = "musl"))]
fn have_libc_register() {}

/// Names a word: should the calling thread end, the kernel wakes one that sleeps on it. Returns
/// what was named before.
pub(super) fn name(word: Option<NonNull<U32>>) -> Option<NonNull<U32>> {
    let list = &page::get()?.list;
    let before = list.named.load(Relaxed);
    list.set_named(word.map_or(null_mut(), NonNull::as_ptr));
    NonNull::new(before)
}

/// Names a word as [`name`] does, whenever nothing else is named, while the thread owns locks of
/// the word's segment. Returns false, and nothing has changed, if the thread does that for another
/// segment or uses robust mutexes of the libc: these leave nothing pending when they are done.
pub(super) fn defer_wake(word: &U32) -> bool {
    page::get().is_some_and(|page| page.list.defer_wake(page, word))
}

/// Forgets a deferred wake in a segment that is about to be unmapped. In a child made by the libc's
/// `fork` the head may still say what the parent's thread had named there.
pub(super) fn forget((base, len): (usize, usize)) {
    // SAFETY: LIST-HEAD: null, or the head of the calling thread.
    let Some(head) = registered().ok().and_then(|head| unsafe { head.as_ref() }) else { return };
    let word = head.pending.load(Relaxed).wrapping_add_signed(head.offset.load(Relaxed));
    if word.wrapping_sub(base) < len {
        head.pending.store(0, Relaxed);
    }
}

impl ThreadList {
    /// Chooses the list that slots of this thread will join, if none has yet.
    pub(super) fn choose(&self, page: &MemberPage, exclusive: bool) -> Result<(), JoinError> {
        if page.linked().len() != 0 {
            let fits = !exclusive || self.kind.load(Relaxed) == IN_SLOT;
            return if fits { Ok(()) } else { Err(JoinError::ListInUse) };
        }
        let mut found = registered()?;
        if found.is_null() {
            have_libc_register();
            found = registered()?;
        }
        if core::ptr::eq(found, &self.own) {
            // Left there when the last slot was given up.
            found = self.libcs.load(Relaxed);
        }
        // SAFETY: LIST-HEAD: null, or the head of the libc's list of this thread, whose fields only
        // this thread writes.
        if let Some(head) = unsafe { found.as_ref() } {
            if exclusive && head.next.load(Relaxed) != found.addr() {
                return Err(JoinError::ListInUse);
            }
            let offset = head.offset.load(Relaxed);
            if !exclusive {
                if !LINK.contains(&-offset) {
                    return Err(JoinError::UnknownList(offset));
                }
                if !core::ptr::eq(found, registered()?) {
                    register(found)?;
                }
                self.adopt(found, offset, LIBCS);
                return Ok(());
            }
        }
        self.libcs.store(found, Relaxed);
        let own = core::ptr::from_ref(&self.own).cast_mut();
        let offset = if exclusive { IN_SLOT_OFFSET } else { OWN_OFFSET };
        self.own.set_up(own.addr(), offset, 0);
        register(own)?;
        self.adopt(own, offset, if exclusive { IN_SLOT } else { OWN });
        Ok(())
    }

    fn adopt(&self, head: *mut Head, offset: isize, kind: u32) {
        // SAFETY: LIST-HEAD: the libc's head of this thread, or the page's.
        let pending = unsafe { &*head }.pending.load(Relaxed);
        self.coming.store(pending, Relaxed);
        self.pending.store(pending, Relaxed);
        self.head.store(head, Relaxed);
        self.offset.store(offset, Relaxed);
        self.kind.store(kind, Relaxed);
    }

    /// Tells whether the kernel comes to the slots when the thread ends: the program has not given
    /// it another list, nor has the libc put more in front than the kernel walks past.
    pub(super) fn is_walked(&self, page: &MemberPage) -> bool {
        let head = self.head.load(Relaxed);
        if registered().is_ok_and(|registered| !core::ptr::eq(registered, head)) {
            return false;
        }
        let Some(first) = page.linked().next().filter(|_| self.kind.load(Relaxed) == LIBCS) else {
            return true;
        };
        let node = self.node(first.record_address());
        self.libc_nodes(head.expose_provenance()).any(|at| next_of(at) == node)
    }

    /// Keeps the kernel from looking into the page any more: no slot is left.
    pub(super) fn retire(&self) {
        if registered().is_ok_and(|head| core::ptr::eq(head, &self.own)) {
            let _ = register(self.libcs.load(Relaxed));
        }
    }

    fn set_named(&self, word: *mut U32) {
        self.named.store(word, Relaxed);
        compiler_fence(Ordering::SeqCst);
        // SAFETY: LIST-HEAD, which `choose` keeps: null, or the thread's head.
        if let Some(head) = unsafe { self.head.load(Relaxed).as_ref() } {
            let found = head.pending.load(Relaxed);
            let is_libcs = self.kind.load(Relaxed) == LIBCS;
            let known = [self.pending.load(Relaxed), self.coming.load(Relaxed)];
            if is_libcs && !known.contains(&found) {
                self.is_mixed.store(1, Relaxed);
                if found != 0 {
                    self.libcs_pending.store(found, Relaxed);
                }
            }
            let libcs = if word.is_null() { self.libcs_pending.swap(0, Relaxed) } else { 0 };
            let (pending, known) = match libcs {
                0 => (self.to_be_pending(), self.to_be_pending()),
                libcs => (libcs, UNKNOWN),
            };
            self.coming.store(known, Relaxed);
            compiler_fence(Ordering::SeqCst);
            head.pending.store(pending, Relaxed);
            compiler_fence(Ordering::SeqCst);
            self.pending.store(known, Relaxed);
        }
        compiler_fence(Ordering::SeqCst);
    }

    /// Returns what the head of this list should have as pending.
    fn to_be_pending(&self) -> usize {
        let named = self.named.load(Relaxed);
        let word = if named.is_null() { self.deferred.load(Relaxed) } else { named };
        match word.expose_provenance() {
            0 => 0,
            word => word.wrapping_add_signed(self.offset.load(Relaxed).wrapping_neg()),
        }
    }

    fn defer_wake(&self, page: &MemberPage, word: &U32) -> bool {
        let word = core::ptr::from_ref(word).cast_mut();
        let deferred = self.deferred.load(Relaxed);
        if self.is_mixed.load(Relaxed) != 0 || !(deferred.is_null() || deferred == word) {
            return false;
        }
        // SAFETY: LIST-HEAD, which `choose` keeps: null, or the thread's head.
        let head = unsafe { self.head.load(Relaxed).as_ref() };
        let (Some(head), Some(first)) = (head, page.linked().next()) else { return false };
        if head.next.load(Relaxed) & !1 != self.node(first.record_address()) {
            // The thread holds a mutex of the libc, or has just cast it away.
            self.is_mixed.store(1, Relaxed);
            return false;
        }
        self.deferred.store(word, Relaxed);
        if self.named.load(Relaxed).is_null() {
            self.set_named(null_mut());
        }
        true
    }

    /// Ends a deferred wake: the thread owns nothing in the segment that lies there.
    pub(super) fn redeem(&self, (base, len): (usize, usize)) {
        let deferred = self.deferred.load(Relaxed);
        if deferred.addr().wrapping_sub(base) < len {
            self.deferred.store(null_mut(), Relaxed);
            self.set_named(self.named.load(Relaxed));
        }
    }

    /// Returns where the node of a slot is, given the slot's address.
    fn node(&self, record: usize) -> usize {
        record.wrapping_add_signed(self.offset.load(Relaxed).wrapping_neg())
    }

    /// Appends a slot, the life word of which is pending.
    pub(super) fn link(&self, page: &MemberPage, index: usize) -> Result<(), JoinError> {
        let record = page.members[index].record_address();
        let head = self.head.load(Relaxed).expose_provenance();
        let node = self.node(record);
        let is_in_slot = self.kind.load(Relaxed) == IN_SLOT;
        if is_in_slot && page.linked().len() == 0 {
            write(node, record + IN_SLOT_HEAD);
            self.settle(record, node)?;
        } else {
            let before = match page.linked().next_back() {
                Some(last) => self.node(last.record_address()),
                None => self.last_of_libc(head)?,
            };
            if !is_in_slot {
                write(node - 8, before);
            }
            write(node, head);
            mark_for_musl(record, self.offset.load(Relaxed));
            write(before, node);
        }
        page.push(index);
        Ok(())
    }

    /// Moves the head into a slot of the thread's, with this first node.
    fn settle(&self, record: usize, first: usize) -> Result<(), JoinError> {
        let head: *mut Head = with_exposed_provenance_mut(record + IN_SLOT_HEAD);
        let pending = self.to_be_pending();
        // SAFETY: SEGMENT-MAPPED: the slot is the thread's own, in a segment that it is counted in
        // for; its link has room for a head and a node.
        unsafe { &*head }.set_up(first, IN_SLOT_OFFSET, pending);
        register(head)?;
        self.head.store(head, Relaxed);
        Ok(())
    }

    /// Takes a slot out, the life word of which is pending.
    pub(super) fn unlink(
        &self,
        page: &MemberPage,
        member: &SegmentMember,
    ) -> Result<(), JoinError> {
        let Some(at) = page.linked().position(|other| core::ptr::eq(other, member)) else {
            return Ok(());
        };
        let node = self.node(member.record_address());
        let head = self.head.load(Relaxed).expose_provenance();
        if head == member.record_address() + IN_SLOT_HEAD {
            self.move_out(page, member)?;
        } else {
            let after = page.linked().nth(at + 1);
            let after = after.map_or(head, |next| self.node(next.record_address()));
            let before = match at.checked_sub(1).and_then(|before| page.linked().nth(before)) {
                Some(before) => Some(self.node(before.record_address())),
                None => self.libc_nodes(head).find(|&at| next_of(at) == node),
            };
            // Too far behind to be found: it stays.
            write(before.ok_or(JoinError::ListTooLong)?, after);
        }
        page.remove(member);
        Ok(())
    }

    /// Moves the head out of a slot that is given up, to another one of the thread's or to the
    /// page.
    fn move_out(&self, page: &MemberPage, member: &SegmentMember) -> Result<(), JoinError> {
        let others = || page.linked().filter(|other| !core::ptr::eq(*other, member));
        let Some(host) = others().next() else {
            let own = core::ptr::from_ref(&self.own).cast_mut();
            let pending = self.to_be_pending();
            self.own.set_up(own.addr(), IN_SLOT_OFFSET, pending);
            register(own)?;
            self.head.store(own, Relaxed);
            return Ok(());
        };
        let head = host.record_address() + IN_SLOT_HEAD;
        for (this, next) in others().zip(others().skip(1)) {
            write(self.node(this.record_address()), self.node(next.record_address()));
        }
        if let Some(last) = others().last() {
            write(self.node(last.record_address()), head);
        }
        self.settle(host.record_address(), self.node(host.record_address()))
    }

    /// Returns the end of what the libc has in the list: where the first of our slots is put.
    fn last_of_libc(&self, head: usize) -> Result<usize, JoinError> {
        // A child of musl's `fork` finds the slots of its parent behind its own.
        let ends = |&at: &usize| next_of(at) == head || registry::is_in_record(next_of(at));
        self.libc_nodes(head).find(ends).ok_or(JoinError::ListTooLong)
    }

    /// Returns the head, and the libc's mutexes in the list.
    fn libc_nodes(&self, head: usize) -> impl Iterator<Item = usize> + use<> {
        let step = move |&at: &usize| Some(next_of(at)).filter(|&next| next != head && next != 0);
        core::iter::successors(Some(head), step).take(FARTHEST)
    }
}

impl Head {
    fn set_up(&self, next: usize, offset: isize, pending: usize) {
        self.next.store(next, Relaxed);
        self.offset.store(offset, Relaxed);
        self.pending.store(pending, Relaxed);
        compiler_fence(Ordering::SeqCst);
    }
}

/// A pointer that need not be aligned: musl's nodes in our slots are not.
#[repr(C, packed)]
struct Pointer(usize);

/// Returns what a head or a node leads to. Its lowest bit says of which kind that is.
fn next_of(node: usize) -> usize {
    // SAFETY: LIST-TAIL: the head, or a node of the libc's list of this thread, for `libc_nodes`
    // stops at our slots.
    let next = unsafe { with_exposed_provenance::<Pointer>(node).read_volatile() };
    next.0 & !1
}

/// Writes a link by one store, which the thread either comes to or does not (LIST-WHOLE).
fn write(node: usize, value: usize) {
    compiler_fence(Ordering::SeqCst);
    // SAFETY: LIST-TAIL: the node is in the thread's own slot, in its head, or of the libc's list
    // of this thread, which no other thread touches.
    unsafe { with_exposed_provenance_mut::<Pointer>(node).write_volatile(Pointer(value)) };
    compiler_fence(Ordering::SeqCst);
}

/// Marks a slot for musl's `pthread_exit`, which walks the list itself, and reads before each node
/// whether sleepers are of other processes: the type of the mutex, of which bit 128 says so. For a
/// slot that word is the last one of the slot before, where nothing else is.
fn mark_for_musl(record: usize, offset: isize) {
    if offset == -28 {
        let before: *const AtomicU32 = with_exposed_provenance(record - 4);
        // SAFETY: SEGMENT-MAPPED: the word is in the padding of the slot before, which exists, for
        // nobody has number 0; it is aligned, and accessed as an atomic only.
        unsafe { &*before }.fetch_or(128, Relaxed);
    }
}

//! What a thread knows of itself; vanishes in a forked child.
//!
//! # Role
//! One page for each thread that shares segments: its memberships, and what is to be
//! known of its robust list. The thread has two thread-local pointers: to the page, and
//! to the membership it used last, which lies there. A forked child inherits the
//! pointers and finds zeroes behind them (WIPED-ZEROES): nobody, member of nothing, with no
//! claim in use.
//!
//! # Invariants
//! - **PAGE-ONE-THREAD** Only its thread uses a page: the thread's code and its signal handlers.
//!   The words are atomics for the handlers' sake; none of them is ordered.
//! - **PAGE-UNMAPPED** A page is unmapped when its thread ends, if it has left all segments, and
//!   else never.

use super::registry::AttachedSegment;
use crate::atomics::U32;
use crate::linux::Linux;
use core::cell::Cell;
use core::marker::PhantomData;
use core::mem::offset_of;
use core::ptr::null;
use core::sync::atomic::{
    AtomicIsize, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
    Ordering::Relaxed,
};
use lockstead_core::robust::{Identity, Life, Party};

/// The calling thread, as a participant of one segment.
///
/// Guards keep a reference to it, and ask it who they are when they release: in a
/// forked child it is nobody. The reference is good until the thread ends, and longer
/// while it holds a lock.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct SegmentMember {
    pub(super) base: AtomicUsize,
    pub(super) len: AtomicUsize,
    /// The bits of its identity; 0: nobody.
    pub(super) me: AtomicU32,
    /// The number of locks that it owns.
    pub(super) held: AtomicU32,
    pub(super) life: AtomicU64,
    pub(super) attached: AtomicPtr<AttachedSegment>,
    /// Which of its slot's claims it uses, one bit each. The claims themselves lie in the segment, where
    /// anybody may write; this it keeps to itself.
    pub(super) claims: [AtomicU64; MOST_CLAIMS / 64],
    /// It is the thread's alone (PAGE-ONE-THREAD).
    pub(super) thread: PhantomData<*const ()>,
}

// Inline code in C reads the first three and counts in the fourth.
const _: () = assert!(offset_of!(SegmentMember, base) == 0 && offset_of!(SegmentMember, len) == 8);
const _: () = assert!(offset_of!(SegmentMember, me) == 16 && offset_of!(SegmentMember, held) == 20);

/// The most claims that a participant uses: so many bits are left in a member's line of memory.
pub const MOST_CLAIMS: usize = 192;

impl SegmentMember {
    #[inline(always)]
    pub(super) fn has(&self, address: usize) -> bool {
        let base = self.base.load(Ordering::Relaxed);
        address.wrapping_sub(base) < self.len.load(Ordering::Relaxed)
    }

    /// Returns the name of the member; `None` in a forked child, and after leaving.
    #[inline(always)]
    #[must_use]
    pub fn identity(&self) -> Option<Identity> {
        Identity::from_bits(self.me.load(Ordering::Relaxed))
    }

    /// Returns what everything but the mutex's fast path needs.
    #[inline]
    #[must_use]
    pub fn party(&self) -> Option<Party<'static, Linux>> {
        let me = self.identity()?;
        // SAFETY: REGISTRY-FROZEN: null, or an entry of the static table of attached segments.
        let attached = unsafe { self.attached.load(Ordering::Relaxed).as_ref() }?;
        Some(Party { domain: attached.domain(), me })
    }

    /// Counts one lock more: it will not leave before it has [given](Self::gave) it back.
    #[inline(always)]
    pub fn took(&self) {
        // Not a read-modify-write: only this thread counts, and a handler that comes in
        // between has given back what it took.
        self.held.store(self.held.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Counts one lock less.
    #[inline(always)]
    pub fn gave(&self) {
        self.held.store(self.held.load(Ordering::Relaxed).wrapping_sub(1), Ordering::Relaxed);
    }

    /// Returns how many locks it owns.
    #[must_use]
    pub fn held(&self) -> u32 {
        self.held.load(Ordering::Relaxed)
    }

    /// Takes a claim that the thread does not use, of the first `each` of its slot, and returns its number;
    /// `None` if it uses all of them.
    #[inline]
    #[must_use]
    pub fn take_claim(&self, each: usize) -> Option<usize> {
        // As in `took`: neither is this a read-modify-write.
        let used = self.claims.iter().map(|bits| bits.load(Ordering::Relaxed));
        let (word, used) = used.enumerate().find(|&(_, used)| used != u64::MAX)?;
        let number = word * 64 + used.trailing_ones() as usize;
        (number < each).then(|| {
            self.claims[word].store(used | (used + 1), Ordering::Relaxed);
            number
        })
    }

    /// Gives back a claim that the thread took under the name `me` and does not use any longer. Does nothing
    /// if it has another name by now, for what it uses is that one's.
    #[inline]
    pub fn put_claim(&self, me: Identity, number: usize) {
        if self.identity() != Some(me) {
            return;
        }
        if let Some(bits) = self.claims.get(number / 64) {
            let used = bits.load(Ordering::Relaxed);
            bits.store(used & !(1 << (number % 64)), Ordering::Relaxed);
        }
    }

    /// Returns the first claim that the thread uses and of which `is_it` says so.
    #[inline]
    pub fn find_claim(&self, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        for (word, used) in self.claims.iter().enumerate() {
            let mut left = used.load(Ordering::Relaxed);
            while left != 0 {
                let number = word * 64 + left.trailing_zeros() as usize;
                if is_it(number) {
                    return Some(number);
                }
                left &= left - 1;
            }
        }
        None
    }

    /// Returns the life word of its slot.
    pub(super) fn life(&self) -> Life {
        Life(self.life.load(Ordering::Relaxed))
    }

    /// Returns the segment, if it is a member of one.
    pub(super) fn segment(&self) -> Option<&'static AttachedSegment> {
        self.identity()?;
        // SAFETY: the pointer is null or leads to an entry of the static table, which does not
        // change while this member uses it (REGISTRY-FROZEN, kept by `detach`).
        unsafe { self.attached.load(Ordering::Relaxed).as_ref() }
    }

    /// Returns where its slot is.
    pub(super) fn record_address(&self) -> usize {
        let record = self.party().and_then(|party| party.record());
        record.map_or(0, |record| core::ptr::from_ref(record).expose_provenance())
    }
}

/// The kernel's `struct robust_list_head`.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Head {
    pub(super) next: AtomicUsize,
    pub(super) offset: AtomicIsize,
    pub(super) pending: AtomicUsize,
}

/// A thread's knowledge of its robust list.
#[repr(C)]
pub(super) struct ThreadList {
    pub(super) head: AtomicPtr<Head>,
    pub(super) offset: AtomicIsize,
    pub(super) kind: AtomicU32,
    /// The word that is not zero once the libc was seen to use the list for mutexes of its own.
    pub(super) is_mixed: AtomicU32,
    /// The word that is named now.
    pub(super) named: AtomicPtr<U32>,
    /// The word that is named while nothing else is: that of the deferred wake.
    pub(super) deferred: AtomicPtr<U32>,
    /// The word that this code has last put into the head as pending; `UNKNOWN` if that is the
    /// libc's business again.
    pub(super) pending: AtomicUsize,
    /// The word that this code is about to put there (LIST-PENDING).
    pub(super) coming: AtomicUsize,
    /// The word that the libc had put there, in an operation in the middle of which a signal
    /// handler names something.
    pub(super) libcs_pending: AtomicUsize,
    /// The libc's head, displaced by one of our own.
    pub(super) libcs: AtomicPtr<Head>,
    pub(super) own: Head,
}

/// Segments of which a thread can be a member at a time.
pub(super) const MEMBERS: usize = 56;

#[repr(C, align(4096))]
pub(super) struct MemberPage {
    pub(super) members: [SegmentMember; MEMBERS],
    /// Indices of the members whose slots are in the robust list, in its order.
    order: [AtomicU8; MEMBERS],
    linked: AtomicU32,
    /// The number that the thread has as a participant, once it has made the page its own; else 0.
    pub(super) born: AtomicU32,
    pub(super) list: ThreadList,
}

const _: () = assert!(size_of::<MemberPage>() == 4096);

thread_local! {
    pub(super) static PAGE: Cell<*const MemberPage> = const { Cell::new(null()) };
}

/// Returns the calling thread's page, if it has one and it is not its forked parent's.
pub(super) fn get() -> Option<&'static MemberPage> {
    // SAFETY: PAGE-UNMAPPED: the pointer is null, or leads to the thread's own page.
    let page = unsafe { PAGE.get().as_ref() }?;
    (page.born.load(Relaxed) != 0).then_some(page)
}

/// The number of pages that threads of the process, and of those that it was forked from, have made
/// their own.
static BORN: AtomicU32 = AtomicU32::new(0);

/// Returns a number for a thread that makes its page its own: another one than those of the threads
/// that were there when the process began, of one of which this may be a copy. 0 is nobody's.
pub(super) fn next_born() -> u32 {
    loop {
        match BORN.fetch_add(1, Relaxed).wrapping_add(1) {
            0 => {}
            born => return born,
        }
    }
}

/// Returns the number that the calling thread has as a participant of segments; 0 before it is one
/// of any. A forked child has another number than its parent, at any time: 0 at first. So who
/// compares two of them knows whether it has become a copy in between.
///
/// ```
/// let before = lockstead_linux::shared::born();
/// // Nothing has forked here.
/// assert_eq!(lockstead_linux::shared::born(), before);
/// ```
#[must_use]
pub fn born() -> u32 {
    get().map_or(0, |page| page.born.load(Relaxed))
}

/// Tells whether the calling thread is a copy of the participant of this number, and not that one
/// itself. 0 is nobody's, of whom there are no copies.
pub(super) fn is_copy_of(number: u32) -> bool {
    number != 0 && born() != number
}

impl MemberPage {
    /// Returns the member whose segment has this address.
    pub(super) fn find(&self, address: usize) -> Option<&SegmentMember> {
        self.members.iter().find(|member| member.has(address))
    }

    /// Finds a member of the page that is in use by no segment.
    pub(super) fn vacant(&self) -> Option<(usize, &SegmentMember)> {
        self.members.iter().enumerate().find(|(_, member)| member.identity().is_none())
    }

    /// Returns the members whose slots are linked, in the order of the list.
    pub(super) fn linked(
        &self,
    ) -> impl DoubleEndedIterator<Item = &SegmentMember> + ExactSizeIterator {
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
    pub(super) fn remove(&self, member: &SegmentMember) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_used_once_until_it_is_given_back_by_who_took_it() {
        let claims = [const { AtomicU64::new(0) }; MOST_CLAIMS / 64];
        let name = |slot| Identity::new(slot, 1).expect("a name");
        let member = SegmentMember {
            base: AtomicUsize::new(0),
            len: AtomicUsize::new(0),
            me: AtomicU32::new(name(1).bits()),
            held: AtomicU32::new(0),
            life: AtomicU64::new(0),
            attached: AtomicPtr::new(core::ptr::null_mut()),
            claims,
            thread: PhantomData,
        };
        assert_eq!(member.take_claim(0), None);
        for most in [70, MOST_CLAIMS] {
            let first = if most == 70 { 0 } else { 70 };
            assert!((first..most).all(|number| member.take_claim(most) == Some(number)));
            assert_eq!(member.take_claim(most), None);
        }
        member.put_claim(name(2), 130);
        assert_eq!(member.take_claim(MOST_CLAIMS), None, "not the other one's to give");
        for number in [130, 0, 63, 64] {
            assert_eq!(member.find_claim(|each| each == number), Some(number));
            member.put_claim(name(1), number);
            assert_eq!(member.find_claim(|each| each == number), None);
        }
        assert_eq!(member.find_claim(|_| true), Some(1));
        assert!([0, 63, 64, 130].iter().all(|&free| member.take_claim(MOST_CLAIMS) == Some(free)));
        member.put_claim(name(1), MOST_CLAIMS);
        assert_eq!(member.take_claim(MOST_CLAIMS), None);
    }
}

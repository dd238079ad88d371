//! Taking a slot in a segment, and giving it up.
//!
//! # Protocol
//! Joining, with signals held off: (1) the process has a number ([`number`](super::number)),
//! (2) one exchange of a slot's life word from nobody to me, which names process and thread; a
//! dead one's slot is prepared before, and its claims are erased,
//! (3) the life word is *named* as what the kernel marks if the thread ends, (4) the slot is
//! filled in, its note last, (5) linked into the robust list, (6) the life word is named no
//! longer, (7) what stands among its claims all the same is erased.
//!
//! Leaving is the reverse, and refused while the thread holds anything: the next tenant may bear
//! the same name. A thread that ends with something held stays linked, and the slot's name ends
//! with it.
//!
//! # Why the life word is named only while it is one's own
//! The kernel marks a named word that holds the number of the thread that ends. In another
//! PID namespace somebody may have the same number: a thread that named the slot which it is
//! about to take, or has left, would die in that one's name. So a thread that is killed
//! between (2) and (3), or at the same place of leaving, dies without a mark. It is found by
//! its process's number, when somebody asks. Nobody waits for it, since it holds nothing yet,
//! or nothing more.

use super::number;
use super::oracle;
use super::page::{self, MEMBERS, MOST_CLAIMS, MemberPage, PAGE, SegmentMember};
use super::refusal::{Busy, JoinError};
use super::registry::{self, AttachedSegment, Chore, SegmentHandle};
use super::{list, process};
use crate::atomics::U32;
use crate::linux::Linux;
use crate::sys::{self, KeepErrno, NoSignals};
use core::cell::Cell;
use core::ffi::c_void;
use core::marker::PhantomData;
use core::ptr::{NonNull, null, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use lockstead_core::robust::{Identity, Life, NoSlot, Party, SlotRecord};
use lockstead_core::{Atomic32, Atomic64};

/// The member of threads that are members nowhere.
struct Nobody(SegmentMember);

// SAFETY: nobody ever writes there, for `SegmentMember` changes only members of pages
// (PAGE-ONE-THREAD).
unsafe impl Sync for Nobody {}

static NOBODY: Nobody = Nobody(SegmentMember {
    base: AtomicUsize::new(0),
    len: AtomicUsize::new(0),
    me: AtomicU32::new(0),
    held: AtomicU32::new(0),
    life: AtomicU64::new(0),
    attached: AtomicPtr::new(null_mut()),
    claims: [const { AtomicU64::new(0) }; MOST_CLAIMS / 64],
    thread: PhantomData,
});

thread_local! {
    static CURRENT: Cell<*const SegmentMember> = const { Cell::new(&raw const NOBODY.0) };
}

/// Returns the calling thread as a member of the segment of this address, if it used that segment
/// last. `None`: ask [`join`].
#[inline(always)]
#[must_use]
pub fn member(address: usize) -> Option<&'static SegmentMember> {
    // SAFETY: PAGE-UNMAPPED: a member of the thread's page, or the static one of those that are
    // nobody; `forget` resets the pointer before the page is unmapped.
    let current = unsafe { &*CURRENT.get() };
    current.has(address).then_some(current)
}

/// Returns the name of the calling thread in the segment of this address, as [`member`] does.
#[inline(always)]
#[must_use]
pub fn me(address: usize) -> Option<Identity> {
    member(address)?.identity()
}

/// Returns the calling thread as a member of the segment of this address; it becomes one if it is
/// none yet.
///
/// # Errors
/// As [`JoinError`] says.
#[cold]
pub fn join(address: usize) -> Result<&'static SegmentMember, JoinError> {
    if let Some(member) = page::get().and_then(|page| page.find(address)) {
        CURRENT.set(member);
        return Ok(member);
    }
    let _errno = KeepErrno::new();
    let _signals = NoSignals::new();
    let page = of_thread()?;
    // A handler may have joined before signals were held off.
    let member = match page.find(address) {
        Some(member) => member,
        None => {
            let attached = registry::enter(address).ok_or(JoinError::Foreign)?;
            occupy(page, attached).inspect_err(|_| attached.exit())?
        }
    };
    CURRENT.set(member);
    Ok(member)
}

/// Returns the calling thread as a member of the segment of this address, if it is one.
#[cold]
#[must_use]
pub fn participant_at(address: usize) -> Option<&'static SegmentMember> {
    let member = page::get()?.find(address)?;
    CURRENT.set(member);
    Some(member)
}

/// Returns the calling thread's party in the segment of this address, as [`join`].
///
/// # Errors
/// As [`JoinError`] says.
#[cold]
pub fn party(address: usize) -> Result<Party<'static, Linux>, JoinError> {
    join(address)?.party().ok_or(JoinError::Foreign)
}

/// Tells whether the participant with this life word in this slot of a segment is the calling
/// thread, which is a member of the same file's segment at another address.
pub(super) fn is_caller(attached: &AttachedSegment, slot: u32, life: Life) -> bool {
    let Some(page) = page::get() else { return false };
    let same_file = |other: &AttachedSegment| other.file().1 == attached.file().1;
    page.linked().any(|member| {
        member.identity().is_some_and(|me| me.slot() == slot)
            && member.life() == life.trusted()
            && member.segment().is_some_and(same_file)
    })
}

/// Gives up the slot of the calling thread in the segment, if it has one.
///
/// # Errors
/// [`Busy`] says why the thread keeps it.
pub fn leave(handle: &SegmentHandle) -> Result<(), Busy> {
    let _errno = KeepErrno::new();
    let _signals = NoSignals::new();
    let (base, _) = handle.attached().range();
    let member = page::get().and_then(|page| Some((page, page.find(base)?)));
    member.map_or(Ok(()), |(page, member)| member.leave(page))
}

/// The function that [`at_forgetting`] was given, as a data pointer; null: none.
static AT_FORGETTING: AtomicPtr<()> = AtomicPtr::new(null_mut());

/// Has `forget` called by each thread that ends and has left all segments, before its
/// [`SegmentMember`]s are gone: for who keeps a pointer to one in a thread-local word of its own,
/// as fast paths in other languages do. It must neither lock nor allocate. One such
/// function in a process; the last one counts.
pub fn at_forgetting(forget: fn()) {
    AT_FORGETTING.store(forget as *mut (), Ordering::Relaxed);
}

/// Tells the function of [`at_forgetting`] that the calling thread has left all segments.
pub(super) fn forget() {
    CURRENT.set(&raw const NOBODY.0);
    let told = AT_FORGETTING.load(Ordering::Relaxed);
    if !told.is_null() {
        // SAFETY: `at_forgetting` stores functions of this type only.
        let forget = unsafe { core::mem::transmute::<*mut (), fn()>(told) };
        forget();
    }
}

/// Takes a slot; where no other one is left, has those made usable again that are worn out,
/// or waits for who does that.
fn occupy(
    page: &'static MemberPage,
    attached: &'static AttachedSegment,
) -> Result<&'static SegmentMember, JoinError> {
    let mut looks = 0..PATIENCE;
    let mut in_vain = false;
    loop {
        match take(page, attached)? {
            Ok(member) => return Ok(member),
            Err(NoSlot::Full) => return Err(JoinError::Full),
            // Where there was nothing left to do, others may have done it since the look.
            Err(NoSlot::WornOut) if !in_vain => in_vain = attached.scrub(Chore::Scrub) == 0,
            Err(NoSlot::Scrubbed) if looks.next().is_some() => {
                std::thread::sleep(core::time::Duration::from_millis(1));
                in_vain = false;
            }
            Err(NoSlot::WornOut | NoSlot::Scrubbed) => return Err(JoinError::WornOut),
        }
    }
}

/// The longest wait for a thread that scrubs, in milliseconds.
const PATIENCE: u32 = 2000;

/// Takes a slot, if there is one.
fn take(
    page: &'static MemberPage,
    attached: &'static AttachedSegment,
) -> Result<Result<&'static SegmentMember, NoSlot>, JoinError> {
    let (index, member) = page.vacant().ok_or(JoinError::TooManySegments)?;
    page.list.choose(page, attached.is_exclusive())?;
    let process = number::of_process(attached)?;
    oracle::ask_about_own(attached);
    let domain = attached.domain();
    let find = || domain.take_slot(process, sys::gettid());
    let taken = match find() {
        // Some may be of dead ones, or of such as have ended while they prepared them.
        Err(_) if oracle::sweep(attached) => find(),
        taken => taken,
    };
    let (slot, life) = match taken {
        Ok(taken) => taken,
        Err(none) => return Ok(Err(none)),
    };
    let me = Identity::new(slot, life.generation()).ok_or(JoinError::Full)?;
    let record = &domain.records[slot as usize];
    let before = list::name(life_word(record));
    introduce(record, attached);
    // ord: SHL-4 (release): the fields before the note that speaks for them.
    record.note.store(life.high(), Ordering::Release);
    member.attached.store(core::ptr::from_ref(attached).cast_mut(), Ordering::Relaxed);
    member.life.store(life.0, Ordering::Relaxed);
    member.held.store(0, Ordering::Relaxed);
    member.claims.iter().for_each(|used| used.store(0, Ordering::Relaxed));
    member.me.store(me.bits(), Ordering::Relaxed);
    let linked = page.list.link(page, index);
    list::name(before);
    if let Err(error) = linked {
        vacate(record, life);
        member.me.store(0, Ordering::Relaxed);
        return Err(error);
    }
    Party { domain, me }.arrive();
    let (base, len) = attached.range();
    member.base.store(base, Ordering::Relaxed);
    member.len.store(len, Ordering::Relaxed);
    Ok(Ok(member))
}

/// Frees the slot of a tenant that leaves, and takes its note along: that would speak for the next
/// one that comes under the same life word, before it has introduced itself.
fn vacate(record: &SlotRecord<Linux>, tenant: Life) {
    record.note.store(0, Ordering::Relaxed);
    // The exchange comes after: SHR-9 (release).
    record.vacate(tenant);
}

/// Writes who the tenant is, for reports and for the oracle.
fn introduce(record: &SlotRecord<Linux>, attached: &AttachedSegment) {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: SYSCALL-LIVE, which this function keeps; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut time) };
    let since = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    record.process.store(std::process::id(), Ordering::Relaxed);
    record.thread.store(sys::gettid(), Ordering::Relaxed);
    record.namespace.store(process::namespace(), Ordering::Relaxed);
    record.since.store(since, Ordering::Relaxed);
    let [elsewhere, process] = &record.origin;
    elsewhere.store(attached.origin(), Ordering::Relaxed);
    process.store(process::incarnation(), Ordering::Relaxed);
    record.waits_for.store(0, Ordering::Relaxed);
}

/// The key plus one; 0 before there is one.
static KEY: AtomicU32 = AtomicU32::new(0);

/// Returns the calling thread's page. Signals are held off.
fn of_thread() -> Result<&'static MemberPage, JoinError> {
    if PAGE.get().is_null() {
        let page = process::map_wiped(size_of::<MemberPage>()).map_err(JoinError::NoMemory)?;
        PAGE.set(page.cast::<MemberPage>().as_ptr());
    }
    // SAFETY: PAGE-UNMAPPED: it is the thread's own page; all zeroes are valid (WIPED-ZEROES).
    let page = unsafe { &*PAGE.get() };
    if page.born.load(Ordering::Relaxed) == 0 {
        attend();
        page.born.store(page::next_born(), Ordering::Relaxed);
    }
    Ok(page)
}

/// Sees to it that [`end`] runs at the thread's end. Where that fails, it does not: then
/// the kernel tells of the thread's end.
fn attend() {
    crate::stay();
    if KEY.load(Ordering::Relaxed) == 0 {
        let mut key = 0;
        // SAFETY: SYSCALL-LIVE: `key` is live; the destructor is a function of this library, which
        // stays loaded (`stay`).
        if unsafe { libc::pthread_key_create(&mut key, Some(end)) } != 0 {
            return;
        }
        if KEY.compare_exchange(0, key + 1, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            // SAFETY: the key was created above, and nobody knows it.
            unsafe { libc::pthread_key_delete(key) };
        }
    }
    if let Some(key) = KEY.load(Ordering::Relaxed).checked_sub(1) {
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
    let Some(page) = page::get() else { return };
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
    forget();
    let address = NonNull::from(page).cast();
    PAGE.set(null());
    // SAFETY: MAPPING-OURS and PAGE-UNMAPPED: `of_thread` mapped it with this size; no member is
    // left to which a guard could refer, the kernel knows no list there, and the pointers are
    // cleared.
    unsafe { sys::unmap(address, size_of::<MemberPage>()) };
}

/// Returns the half of a slot's life word that the kernel marks.
fn life_word(record: &SlotRecord<Linux>) -> Option<NonNull<U32>> {
    NonNull::new(record.life.low_half().cast_mut().cast())
}

impl SegmentMember {
    /// Gives the slot up. Signals are held off.
    pub(super) fn leave(&self, page: &MemberPage) -> Result<(), Busy> {
        // SAFETY: the pointer is null or leads to an entry of the static table, which does not
        // change while this member uses it (REGISTRY-FROZEN, kept by `detach`).
        let attached = unsafe { self.attached.load(Ordering::Relaxed).as_ref() };
        let (Some(attached), Some(party)) = (attached, self.party()) else { return Ok(()) };
        let claims = party.domain.claims_of(party.me.slot());
        if self.held() != 0 || claims.iter().any(|claim| claim.what.load(Ordering::Relaxed) != 0) {
            return Err(Busy::Holds);
        }
        let Some(record) = party.record() else { return Ok(()) };
        if let Some(before) = list::name(life_word(record)) {
            list::name(Some(before));
            return Err(Busy::Waits);
        }
        page.list.redeem(attached.range());
        self.len.store(0, Ordering::Relaxed);
        if page.list.unlink(page, self).is_err() {
            self.len.store(attached.range().1, Ordering::Relaxed);
            list::name(None);
            return Err(Busy::Refused);
        }
        list::name(None);
        vacate(record, self.life());
        if page.linked().len() == 0 {
            // Robust mutexes of the libc are so again after an exclusive segment.
            page.list.retire();
        }
        self.forget(attached);
        Ok(())
    }

    /// Declares the thread dead that ends and holds something, where the kernel will not tell of
    /// that. Signals are held off. From here on the thread is nobody there, so that what else it
    /// does at its end is not done under a dead name.
    pub(super) fn die(&self, page: &MemberPage) {
        let (Some(attached), Some(party)) = (self.segment(), self.party()) else { return };
        // Not from the list, which nobody walks any more; to take the last slot out of an
        // exclusive one would displace the program's.
        page.remove(self);
        self.len.store(0, Ordering::Relaxed);
        self.forget(attached);
        if party.record().is_some_and(|record| record.replace(self.life(), self.life().dead())) {
            party.domain.wake_everybody();
        }
    }

    fn forget(&self, attached: &AttachedSegment) {
        self.base.store(0, Ordering::Relaxed);
        self.me.store(0, Ordering::Relaxed);
        attached.exit();
    }
}

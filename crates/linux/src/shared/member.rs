//! Taking a seat in a segment, and giving it up.
//!
//! # Protocol
//! Joining, with signals held off and, until (2), nobody else's turn at the seat: (1) the
//! seat's life word is named as what the kernel marks if the thread ends, (2) one exchange
//! of the life word from nobody to me, (3) the seat is filled in, its note last, (4) linked
//! into the robust list, (5) the life word is named no longer, (6) what a dead predecessor
//! had claimed is given back. Whoever ends between (2) and (4) is marked as pending,
//! afterwards by the list.
//!
//! Leaving is the reverse, and refused while the thread holds anything: somebody else
//! may sit there next under the same name. A thread that ends with something held stays
//! linked, and its seat's generation ends with it.

use super::oracle::{self, Note, Turn};
use super::page::{self, Page};
use super::registry::{self, Attached, Handle};
use super::{list, process};
use crate::atomics::U32;
use crate::platform::Linux;
use crate::sys::{self, KeepErrno, NoSignals};
use core::cell::Cell;
use core::marker::PhantomData;
use core::mem::offset_of;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use lockstead_core::shared::seat::LIFE_FREE;
use lockstead_core::shared::word::LAST_GENERATION;
use lockstead_core::shared::{Identity, Life, Party, Seat};
use lockstead_core::{Atomic32, Atomic64};

/// The calling thread, as a participant of one segment.
///
/// Guards keep a reference to it, and ask it who they are when they release: in a
/// forked child it is nobody. The reference is good until the thread ends, and longer
/// while it holds a lock.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Member {
    base: AtomicUsize,
    len: AtomicUsize,
    /// The bits of its identity; 0: nobody.
    me: AtomicU32,
    /// How many locks it owns.
    held: AtomicU32,
    life: AtomicU64,
    attached: AtomicPtr<Attached>,
    /// It is the thread's alone (PAG1).
    thread: PhantomData<*const ()>,
}

// Inline code in C reads the first three and counts in the fourth.
const _: () = assert!(offset_of!(Member, base) == 0 && offset_of!(Member, len) == 8);
const _: () = assert!(offset_of!(Member, me) == 16 && offset_of!(Member, held) == 20);

/// Of threads that are members nowhere.
struct Nobody(Member);

// SAFETY: nobody ever writes there: `Member` changes only members of pages.
unsafe impl Sync for Nobody {}

static NOBODY: Nobody = Nobody(Member {
    base: AtomicUsize::new(0),
    len: AtomicUsize::new(0),
    me: AtomicU32::new(0),
    held: AtomicU32::new(0),
    life: AtomicU64::new(0),
    attached: AtomicPtr::new(null_mut()),
    thread: PhantomData,
});

thread_local! {
    static CURRENT: Cell<*const Member> = const { Cell::new(&raw const NOBODY.0) };
}

/// Why a thread did not become a participant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JoinError {
    /// No segment is attached there.
    Foreign,
    /// All seats are taken by living participants.
    Full,
    /// No seat is free but such as have seen 16,384 deaths, which is the end of them.
    WornOut,
    /// The thread is a member of 56 segments.
    TooManySegments,
    /// The kernel has no memory, or no `MADV_WIPEONFORK`.
    NoMemory,
    /// The kernel, or a filter, refuses the calls for robust lists.
    NoRobustList,
    /// The libc's list is not of a known kind; how far its words are from its nodes.
    UnknownList(isize),
    /// An exclusive segment, and the thread holds robust mutexes of the libc, or is a
    /// member of a segment that is not exclusive.
    ListInUse,
    /// The thread holds 2,000 robust mutexes of the libc or more.
    ListTooLong,
}

impl core::fmt::Display for JoinError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let text = match self {
            JoinError::Foreign => "no segment is attached at this address",
            JoinError::Full => {
                "all seats of the segment are taken: end a thread that uses it, or make the \
                 segment with more of them"
            }
            JoinError::WornOut => {
                "all free seats of the segment are worn out by deaths: scrub it \
                 (`Segment::participate` does, and `lockstead shm --recover`)"
            }
            JoinError::TooManySegments => "the thread is a member of 56 segments: leave one first",
            JoinError::NoMemory => "no memory that a forked child finds empty (Linux 4.14 has it)",
            JoinError::NoRobustList => {
                "the kernel, or a filter of system calls, refuses robust lists: \
                 allow get_robust_list and set_robust_list"
            }
            JoinError::UnknownList(offset) => {
                return write!(f, "the libc's robust list has the unknown offset {offset}");
            }
            JoinError::ListInUse => {
                "the segment is exclusive, and the thread holds robust mutexes of the libc or uses \
                 another segment that is not: use a thread of its own for it"
            }
            JoinError::ListTooLong => {
                "the thread holds 2,000 robust mutexes of the libc: release some first"
            }
        };
        f.write_str(text)
    }
}

impl core::error::Error for JoinError {}

/// Why a seat was not given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Busy {
    /// The thread holds a lock, shares one, or has units of a semaphore there.
    Holds,
    /// It was interrupted in the middle of a lock operation.
    Waits,
    /// So many threads of this process are members, or have ended while they held
    /// something there.
    Threads(u32),
    /// The kernel refused to change the robust list, or the seat stands too far behind
    /// mutexes of the libc there.
    Refused,
}

impl core::fmt::Display for Busy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Busy::Holds => f.write_str("the thread holds locks there"),
            Busy::Waits => f.write_str("the thread waits for a lock"),
            Busy::Threads(count) => write!(f, "{count} other threads are members"),
            Busy::Refused => f.write_str(
                "the robust list cannot be changed: the kernel refuses that, or the thread holds \
                 2,000 robust mutexes of the libc",
            ),
        }
    }
}

impl core::error::Error for Busy {}

/// The calling thread as a member of the segment of this address, if it used that
/// segment last. `None`: ask [`join`].
#[inline(always)]
#[must_use]
pub fn member(address: usize) -> Option<&'static Member> {
    // SAFETY: a member of the thread's page, or the static one of those that are
    // nobody; `forget` resets the pointer before the page is unmapped.
    let current = unsafe { &*CURRENT.get() };
    current.has(address).then_some(current)
}

/// Who the calling thread is in the segment of this address; as [`member`].
#[inline(always)]
#[must_use]
pub fn me(address: usize) -> Option<Identity> {
    member(address)?.identity()
}

/// The calling thread as a member of the segment of this address; it becomes one if it
/// is none yet.
///
/// # Errors
/// As [`JoinError`] says.
#[cold]
pub fn join(address: usize) -> Result<&'static Member, JoinError> {
    if let Some(member) = page::get().and_then(|page| page.find(address)) {
        CURRENT.set(member);
        return Ok(member);
    }
    let _errno = KeepErrno::new();
    let _signals = NoSignals::new();
    let page = page::of_thread()?;
    // A handler may have joined before signals were held off.
    let member = match page.find(address) {
        Some(member) => member,
        None => {
            let attached = registry::enter(address).ok_or(JoinError::Foreign)?;
            sit(page, attached).inspect_err(|_| attached.exit())?
        }
    };
    CURRENT.set(member);
    Ok(member)
}

/// The calling thread as a member of the segment of this address, if it is one.
#[cold]
#[must_use]
pub fn seated(address: usize) -> Option<&'static Member> {
    let member = page::get()?.find(address)?;
    CURRENT.set(member);
    Some(member)
}

/// The calling thread's party in the segment of this address, as [`join`].
///
/// # Errors
/// As [`JoinError`] says.
#[cold]
pub fn party(address: usize) -> Result<Party<'static, Linux>, JoinError> {
    join(address)?.party().ok_or(JoinError::Foreign)
}

/// The calling thread gives its seat in the segment up, if it has one.
///
/// # Errors
/// Why it has kept it.
pub fn leave(handle: &Handle) -> Result<(), Busy> {
    let _errno = KeepErrno::new();
    let _signals = NoSignals::new();
    let (base, _) = handle.attached().range();
    let member = page::get().and_then(|page| Some((page, page.find(base)?)));
    member.map_or(Ok(()), |(page, member)| member.leave(page))
}

/// What [`at_forgetting`] was told, as a data pointer; null: nothing.
static AT_FORGETTING: AtomicPtr<()> = AtomicPtr::new(null_mut());

/// Has `forget` called by each thread that ends and has left all segments, before its
/// [`Member`]s are gone: for who keeps a pointer to one in a thread-local word of its own,
/// as fast paths in other languages do. It must neither lock nor allocate. One such
/// function in a process; the last one counts.
pub fn at_forgetting(forget: fn()) {
    AT_FORGETTING.store(forget as *mut (), Ordering::Relaxed);
}

/// The calling thread has left all segments.
pub(super) fn forget() {
    CURRENT.set(&raw const NOBODY.0);
    let told = AT_FORGETTING.load(Ordering::Relaxed);
    if !told.is_null() {
        // SAFETY: `at_forgetting` stores functions of this type only.
        let forget = unsafe { core::mem::transmute::<*mut (), fn()>(told) };
        forget();
    }
}

/// Takes a seat.
fn sit(page: &'static Page, attached: &'static Attached) -> Result<&'static Member, JoinError> {
    let (index, member) = page.vacant().ok_or(JoinError::TooManySegments)?;
    page.list.choose(page, attached.is_exclusive())?;
    let number = oracle::number_of_process(attached);
    let domain = attached.domain();
    let before = list::name(None);
    let turn = Turn::new(attached);
    let mut taken = claim(&turn, domain.seats, sys::gettid());
    if taken == Err(JoinError::Full) && oracle::sweep(attached) {
        taken = claim(&turn, domain.seats, sys::gettid());
    }
    let outcome = taken.and_then(|(slot, life)| {
        let me = Identity::new(slot, life.generation()).ok_or(JoinError::Full)?;
        let seat = &domain.seats[slot as usize];
        introduce(seat);
        // ord: SHL-4 (release): the fields before the note that vouches for them.
        seat.note.store(Note::new(life.generation(), number).0, Ordering::Release);
        member.attached.store(core::ptr::from_ref(attached).cast_mut(), Ordering::Relaxed);
        member.life.store(life.0, Ordering::Relaxed);
        member.held.store(0, Ordering::Relaxed);
        member.me.store(me.bits(), Ordering::Relaxed);
        if let Err(error) = page.list.link(page, index) {
            give_up(&turn, (slot, seat), life);
            member.me.store(0, Ordering::Relaxed);
            return Err(error);
        }
        Ok(me)
    });
    list::name(before);
    let me = outcome?;
    Party { domain, me }.arrive();
    let (base, len) = attached.range();
    member.base.store(base, Ordering::Relaxed);
    member.len.store(len, Ordering::Relaxed);
    Ok(member)
}

/// Takes the first seat in which nobody lives: who looks for claims looks at all seats up
/// to the highest that made one. The life word stays named.
fn claim(
    turn: &Turn,
    seats: &'static [Seat<Linux>],
    thread: u32,
) -> Result<(u32, Life), JoinError> {
    let mut worn = false;
    for (slot, seat) in (0..).zip(seats).skip(1) {
        let found = Life(seat.life.load(Ordering::Relaxed));
        if found.is_alive() {
            continue;
        }
        let Some(life) = found.taken_by(thread) else {
            worn |= found.generation() >= LAST_GENERATION;
            continue;
        };
        if !turn.begin(slot) {
            continue;
        }
        list::name(life_word(seat));
        // ord: SHL-5 (acq_rel): acquire: the seat as its last user has left it.
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        let taken = seat.life.compare_exchange(found.0, life.0, success, failure).is_ok();
        if !taken {
            list::name(None);
        }
        turn.end(slot);
        if taken {
            return Ok((slot, life));
        }
    }
    Err(if worn { JoinError::WornOut } else { JoinError::Full })
}

/// Tells who sits there.
fn introduce(seat: &Seat<Linux>) {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a live timespec; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    let since = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    seat.process.store(std::process::id(), Ordering::Relaxed);
    seat.thread.store(sys::gettid(), Ordering::Relaxed);
    seat.namespace.store(process::namespace(), Ordering::Relaxed);
    seat.since.store(since, Ordering::Relaxed);
    seat.waits_for.store(0, Ordering::Relaxed);
}

/// The half of a seat's life word that the kernel marks.
fn life_word(seat: &Seat<Linux>) -> Option<NonNull<U32>> {
    NonNull::new(seat.life.low_half().cast_mut().cast())
}

/// The caller sits there no more, and has nothing named any more. The seat's life word is
/// named, and it is in no list.
fn give_up(turn: &Turn, (slot, seat): (u32, &Seat<Linux>), life: Life) {
    if turn.is_kept() && turn.begin(slot) {
        vacate(seat, life);
        list::name(None);
        turn.end(slot);
    } else {
        // Should the thread end in between, the seat is lost until it is swept.
        list::name(None);
        vacate(seat, life);
    }
}

/// Nobody sits there any more, unless it is somebody else already, or declared dead.
fn vacate(seat: &Seat<Linux>, life: Life) {
    seat.note.store(0, Ordering::Relaxed);
    let free = Life::new(life.generation(), LIFE_FREE).0;
    let mut found = Life(seat.life.load(Ordering::Relaxed));
    while found == life || found == oracle::doubted(life) {
        // ord: SHL-5 (release): the seat, to whoever sits there next.
        let (success, failure) = (Ordering::Release, Ordering::Relaxed);
        match seat.life.compare_exchange(found.0, free, success, failure) {
            Ok(_) => return,
            Err(other) => found = Life(other),
        }
    }
}

impl Member {
    #[inline(always)]
    pub(super) fn has(&self, address: usize) -> bool {
        let base = self.base.load(Ordering::Relaxed);
        address.wrapping_sub(base) < self.len.load(Ordering::Relaxed)
    }

    /// Who it is; `None` in a forked child, and after leaving.
    #[inline(always)]
    #[must_use]
    pub fn identity(&self) -> Option<Identity> {
        Identity::from_bits(self.me.load(Ordering::Relaxed))
    }

    /// What all but the mutex's fast path need.
    #[inline]
    #[must_use]
    pub fn party(&self) -> Option<Party<'static, Linux>> {
        let me = self.identity()?;
        // SAFETY: null, or an entry of the static table of attached segments.
        let attached = unsafe { self.attached.load(Ordering::Relaxed).as_ref() }?;
        Some(Party { domain: attached.domain(), me })
    }

    /// It owns one lock more: it will not leave before it has [given](Self::gave) it
    /// back.
    #[inline(always)]
    pub fn took(&self) {
        // Not a read-modify-write: only this thread counts, and a handler that comes in
        // between has given back what it took.
        self.held.store(self.held.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// It owns one lock less.
    #[inline(always)]
    pub fn gave(&self) {
        self.held.store(self.held.load(Ordering::Relaxed).wrapping_sub(1), Ordering::Relaxed);
    }

    /// How many locks it owns.
    #[must_use]
    pub fn held(&self) -> u32 {
        self.held.load(Ordering::Relaxed)
    }

    /// Where its seat is.
    pub(super) fn seat_address(&self) -> usize {
        let seat = self.party().and_then(|party| party.seat());
        seat.map_or(0, |seat| core::ptr::from_ref(seat).expose_provenance())
    }

    /// Gives the seat up. Signals are held off.
    pub(super) fn leave(&self, page: &Page) -> Result<(), Busy> {
        // SAFETY: as in `party`.
        let attached = unsafe { self.attached.load(Ordering::Relaxed).as_ref() };
        let (Some(attached), Some(party)) = (attached, self.party()) else { return Ok(()) };
        let claims = party.domain.claims_of(party.me.slot());
        if self.held() != 0 || claims.iter().any(|claim| claim.what.load(Ordering::Relaxed) != 0) {
            return Err(Busy::Holds);
        }
        let Some(seat) = party.seat() else { return Ok(()) };
        if let Some(before) = list::name(life_word(seat)) {
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
        let life = Life(self.life.load(Ordering::Relaxed));
        give_up(&Turn::new(attached), (party.me.slot(), seat), life);
        if page.linked().len() == 0 {
            // Robust mutexes of the libc are so again after an exclusive segment.
            page.list.retire();
        }
        self.base.store(0, Ordering::Relaxed);
        self.me.store(0, Ordering::Relaxed);
        attached.exit();
        Ok(())
    }
}

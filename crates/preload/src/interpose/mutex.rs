//! Stands before `pthread_mutex_*`.

use super::until::{deadline, timed};
use crate::call::{CallOutcome, LockCall, Nature};
use crate::me::enter;
use crate::real::{self, LockPointer, REAL, call};
use crate::record;
use crate::rules;
use crate::site::CallSite;
use crate::thunk::Passage;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};
use lockstead_ledger::lock::{ObjectKind, attribute};
use lockstead_ledger::publish::{Flags, WaitKind};

crate::thunk! {
    pthread_mutex_init(2) => init;
    pthread_mutex_destroy(1) => destroy;
}

crate::cancellable! {
    pthread_mutex_timedlock => timedlock, locked;
    pthread_mutex_clocklock => clocklock, locked;
}

crate::waiting_frame! {
    /// Acquires a mutex that the fast path does not.
    lock => lock_begins, locked
}

crate::waiting_frame! {
    /// Acquires the mutex, when the trying form has given the second argument.
    lock_tried => lock_goes_on, locked
}

crate::thunk_frame! {
    /// Tries to acquire a mutex that the fast path does not.
    try_lock(1) => try_lock_begins
}

crate::thunk_frame! {
    /// Goes on when the trying form has given the second argument.
    try_lock_tried(2) => try_lock_goes_on
}

crate::fast_acquire! {
    // Robust ones are tried in another way (`attempt`).
    pthread_mutex_lock: pthread_mutex_trylock, NONE unless 16 & 16 marked 24 shared 16 negative
        => lock, lock_tried;
    pthread_mutex_trylock: pthread_mutex_trylock, TRIED marked 24 shared 16 negative
        => try_lock, try_lock_tried;
}

crate::fast_release! {
    pthread_mutex_unlock: pthread_mutex_unlock as mutex => unlock;
}

unsafe extern "C" {
    fn pthread_mutexattr_getpshared(attributes: *const c_void, shared: *mut c_int) -> c_int;
}

/// A mutex of the program's, as glibc's ABI lays it out: static initialisers
/// have fixed these words for good.
#[derive(Clone, Copy)]
pub(super) struct ProgramMutex(pub(super) LockPointer);

impl ProgramMutex {
    /// The bits of `__kind` that are the type.
    const TYPE: c_int = 3;
    const ROBUST: c_int = 16;
    const INHERIT: c_int = 32;
    const PROTECT: c_int = 64;
    const SHARED: c_int = 128;

    /// Returns `__kind`, the fifth word.
    fn kind(self) -> c_int {
        // SAFETY: INTERPOSE-ARGUMENTS: the program passes a mutex; its words are aligned, and
        // glibc changes them atomically if at all.
        unsafe { (*self.0.cast::<AtomicI32>().add(4)).load(Relaxed) }
    }

    /// Tells whether glibc refuses an unlock by a thread that does not hold it.
    pub(super) fn checks_owner(self) -> bool {
        let kind = self.kind();
        matches!(kind & Self::TYPE, 1 | 2) || kind & (Self::ROBUST | Self::INHERIT) != 0
    }

    /// Tells whether this answer of the trying form is the program's, other than zero
    /// though it is. A mutex with a priority ceiling raises the caller's priority
    /// first. Where that is refused, glibc forgets that it was (seen in 2.36), and
    /// the next call would get the mutex.
    fn has_the_last_word(self, answer: c_int) -> bool {
        self.kind() & Self::PROTECT != 0 && !matches!(answer, 0 | libc::EBUSY | libc::EDEADLK)
    }
}

impl Nature for ProgramMutex {
    fn nature(&self) -> (ObjectKind, u16) {
        let kind = self.kind();
        let mut attributes = attribute::KNOWN
            | [0, attribute::RECURSIVE, attribute::ERRORCHECK, attribute::ADAPTIVE]
                [(kind & Self::TYPE) as usize];
        for (bit, name) in [
            (Self::ROBUST, attribute::ROBUST),
            (Self::INHERIT, attribute::INHERIT),
            (Self::PROTECT, attribute::PROTECT),
            (Self::SHARED, attribute::SHARED),
        ] {
            if kind & bit != 0 {
                attributes |= name;
            }
        }
        (ObjectKind::Mutex, attributes)
    }
}

fn waiting(
    mutex: LockPointer,
    how: WaitKind,
    deadline: u64,
    site: &CallSite,
) -> LockCall<'_, ProgramMutex> {
    LockCall {
        target: mutex as u64,
        nature: ProgramMutex(mutex),
        how,
        mode: Flags::NONE,
        deadline,
        companion: 0,
        site,
    }
}

unsafe extern "C" fn init(mutex: LockPointer, attributes: *const c_void, site: &CallSite) -> c_int {
    real::resolve();
    rules::initialises(mutex as u64, ObjectKind::Mutex, site);
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_mutex_init()(mutex, attributes) };
    if answer == 0
        && let Some(me) = enter()
    {
        let (kind, mut named) = ProgramMutex(mutex).nature();
        let mut shared = libc::PTHREAD_PROCESS_SHARED;
        // glibc marks all robust mutexes as shared.
        if named & attribute::ROBUST != 0 {
            // SAFETY: INTERPOSE-ARGUMENTS: the real function has accepted the attributes.
            unsafe { pthread_mutexattr_getpshared(attributes, &raw mut shared) };
        }
        if shared == libc::PTHREAD_PROCESS_PRIVATE {
            named &= !attribute::SHARED;
        }
        me.initialised(mutex as u64, site, (kind, named));
    }
    answer
}

unsafe extern "C" fn destroy(mutex: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    rules::destroys(mutex as u64, ObjectKind::Mutex, site);
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_mutex_destroy()(mutex) };
    if answer == 0
        && let Some(me) = enter()
    {
        me.destroyed(mutex as u64, ObjectKind::Mutex, site);
    }
    answer
}

unsafe extern "C" fn lock_begins(passage: &mut Passage, site: &CallSite) -> usize {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the frame: the mutex is the program's.
    let tried = unsafe { attempt(passage.arguments[0] as LockPointer) };
    begins(passage, (WaitKind::MUTEX, 0), tried, site, REAL.pthread_mutex_lock.address())
}

/// Acquires without waiting, if that can be: what can be had at once, the trying
/// form gives just as the others do.
///
/// Not so for a robust mutex that is not recoverable: glibc's trying form says
/// so and leaves it locked, for good, where the others give it back (seen in
/// 2.36). They are tried with a wait that is over before it begins.
///
/// # Safety
/// The program's mutex.
unsafe fn attempt(mutex: LockPointer) -> c_int {
    let kind = ProgramMutex(mutex).kind();
    if kind & ProgramMutex::ROBUST == 0 || kind & ProgramMutex::INHERIT != 0 {
        // SAFETY: the caller promises that the mutex is the program's.
        return unsafe { call::pthread_mutex_trylock()(mutex) };
    }
    let past = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the caller promises that the mutex is the program's; the time lives on this stack.
    match unsafe { call::pthread_mutex_timedlock()(mutex, &raw const past) } {
        libc::ETIMEDOUT => libc::EBUSY,
        answer => answer,
    }
}

unsafe extern "C" fn lock_goes_on(passage: &mut Passage, site: &CallSite) -> usize {
    let tried = passage.arguments[1] as c_int;
    begins(passage, (WaitKind::MUTEX, 0), tried, site, REAL.pthread_mutex_lock.address())
}

fn begins(
    passage: &mut Passage,
    (how, until): (WaitKind, u64),
    tried: c_int,
    site: &CallSite,
    block: usize,
) -> usize {
    let call = waiting(passage.arguments[0] as LockPointer, how, until, site);
    if call.nature.has_the_last_word(tried) {
        rules::fails(&call);
        passage.result = tried as isize;
        return 0;
    }
    record::acquisition_begins(passage, &call, (tried, CallOutcome::of_posix(tried)), block)
}

unsafe extern "C" fn locked(passage: &mut Passage, site: &CallSite) {
    let call = waiting(passage.arguments[0] as LockPointer, WaitKind::MUTEX, 0, site);
    record::acquisition_ends(passage, call, CallOutcome::of_posix(passage.result as c_int));
}

unsafe extern "C" fn try_lock_begins(mutex: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_mutex_trylock()(mutex) };
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    unsafe { try_lock_goes_on(mutex, answer, site) }
}

unsafe extern "C" fn try_lock_goes_on(mutex: LockPointer, answer: c_int, site: &CallSite) -> c_int {
    record::tried(&waiting(mutex, WaitKind::MUTEX, 0, site), CallOutcome::of_posix(answer));
    answer
}

unsafe extern "C" fn timedlock(passage: &mut Passage, site: &CallSite) -> usize {
    real::resolve();
    let [mutex, time, ..] = passage.arguments;
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the frame: the time is null or the program's.
    let until = unsafe { deadline(time as *const libc::timespec) };
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the frame: the mutex is the program's.
    let tried = unsafe { attempt(mutex as LockPointer) };
    let how = timed(WaitKind::MUTEX, libc::CLOCK_REALTIME);
    begins(passage, (how, until), tried, site, REAL.pthread_mutex_timedlock.address())
}

unsafe extern "C" fn clocklock(passage: &mut Passage, site: &CallSite) -> usize {
    real::resolve();
    let [mutex, clock, time, _] = passage.arguments;
    let (clock, block) = (clock as c_int, REAL.pthread_mutex_clocklock.address());
    if clock != libc::CLOCK_REALTIME && clock != libc::CLOCK_MONOTONIC {
        // glibc refuses the clock whatever the mutex is, so that nothing may be tried first.
        return record::unrecorded(passage, block);
    }
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the frame: the time is null or the program's.
    let until = unsafe { deadline(time as *const libc::timespec) };
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the frame: the mutex is the program's.
    let tried = unsafe { attempt(mutex as LockPointer) };
    begins(passage, (timed(WaitKind::MUTEX, clock), until), tried, site, block)
}

unsafe extern "C" fn unlock(mutex: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    let release = record::release(mutex as u64, &ProgramMutex(mutex), site);
    if !release.was_held && !ProgramMutex(mutex).checks_owner() {
        record::release_of_others(mutex as u64, site);
    }
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_mutex_unlock()(mutex) };
    release.done(site);
    answer
}

//! Stands before `pthread_mutex_*`.

use super::until::{deadline, timed};
use crate::call::{CallOutcome, LockCall, Nature};
use crate::me::enter;
use crate::real::{self, LockPointer, call};
use crate::record;
use crate::rules;
use crate::site::CallSite;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};
use lockstead_ledger::lock::{ObjectKind, attribute};
use lockstead_ledger::publish::{Flags, WaitKind};

crate::thunk! {
    pthread_mutex_init(2) => init;
    pthread_mutex_destroy(1) => destroy;
    pthread_mutex_timedlock(2) => timedlock;
    pthread_mutex_clocklock(3) => clocklock;
}

crate::fast_acquire! {
    // Robust ones are tried in another way (`attempt`).
    pthread_mutex_lock: pthread_mutex_trylock, NONE unless 16 & 16 marked 24 shared 16 "js"
        => lock, lock_tried;
    pthread_mutex_trylock: pthread_mutex_trylock, TRIED marked 24 shared 16 "js"
        => trylock, trylock_tried;
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

unsafe extern "C" fn lock(mutex: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    unsafe { lock_tried(mutex, site, attempt(mutex)) }
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

/// Acquires the mutex, when the trying form has given `answer`.
unsafe extern "C" fn lock_tried(mutex: LockPointer, site: &CallSite, answer: c_int) -> c_int {
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let block = || unsafe { call::pthread_mutex_lock()(mutex) };
    acquire(&waiting(mutex, WaitKind::MUTEX, 0, site), answer, block)
}

fn acquire(
    call: &LockCall<'_, ProgramMutex>,
    tried: c_int,
    block: impl FnOnce() -> c_int,
) -> c_int {
    if call.nature.has_the_last_word(tried) {
        rules::fails(call);
        return tried;
    }
    record::acquire_tried(call, tried, block, CallOutcome::of_posix)
}

unsafe extern "C" fn trylock(mutex: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_mutex_trylock()(mutex) };
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    unsafe { trylock_tried(mutex, site, answer) }
}

unsafe extern "C" fn trylock_tried(mutex: LockPointer, site: &CallSite, answer: c_int) -> c_int {
    record::tried(&waiting(mutex, WaitKind::MUTEX, 0, site), CallOutcome::of_posix(answer));
    answer
}

unsafe extern "C" fn timedlock(
    mutex: LockPointer,
    time: *const libc::timespec,
    site: &CallSite,
) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the time is null or the program's.
    let until = unsafe { deadline(time) };
    acquire(
        &waiting(mutex, timed(WaitKind::MUTEX, libc::CLOCK_REALTIME), until, site),
        // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
        unsafe { attempt(mutex) },
        // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
        || unsafe { call::pthread_mutex_timedlock()(mutex, time) },
    )
}

unsafe extern "C" fn clocklock(
    mutex: LockPointer,
    clock: c_int,
    time: *const libc::timespec,
    site: &CallSite,
) -> c_int {
    real::resolve();
    if clock != libc::CLOCK_REALTIME && clock != libc::CLOCK_MONOTONIC {
        // glibc refuses the clock whatever the mutex is, so that nothing may be tried first.
        // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
        return unsafe { call::pthread_mutex_clocklock()(mutex, clock, time) };
    }
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the time is null or the program's.
    let until = unsafe { deadline(time) };
    acquire(
        &waiting(mutex, timed(WaitKind::MUTEX, clock), until, site),
        // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
        unsafe { attempt(mutex) },
        // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
        || unsafe { call::pthread_mutex_clocklock()(mutex, clock, time) },
    )
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

//! Stands before `pthread_rwlock_*`.

use super::until::GivenDeadline;
use crate::call::{CallOutcome, LockCall, Nature};
use crate::me::enter;
use crate::real::{self, LockPointer, call};
use crate::record;
use crate::rules;
use crate::site::CallSite;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use lockstead_ledger::lock::{ObjectKind, attribute};
use lockstead_ledger::publish::{Flags, WaitKind};

crate::thunk! {
    pthread_rwlock_init(2) => init;
    pthread_rwlock_destroy(1) => destroy;
    pthread_rwlock_timedrdlock(2) => timed_read;
    pthread_rwlock_clockrdlock(3) => clock_read;
    pthread_rwlock_timedwrlock(2) => timed_write;
    pthread_rwlock_clockwrlock(3) => clock_write;
    pthread_rwlock_tryrdlock(1) => try_read;
    pthread_rwlock_trywrlock(1) => try_write;
}

crate::fast_acquire! {
    pthread_rwlock_rdlock: pthread_rwlock_tryrdlock, READ marked 40 shared 28 "jne"
        => read, read_tried;
    pthread_rwlock_wrlock: pthread_rwlock_trywrlock, NONE marked 40 shared 28 "jne"
        => write, write_tried;
}

crate::fast_release! {
    pthread_rwlock_unlock: pthread_rwlock_unlock as rwlock => unlock;
}

/// A reader-writer lock of the program's. Its static initialisers have fixed
/// the places of these words for good.
#[derive(Clone, Copy)]
struct ProgramRwLock(LockPointer);

impl ProgramRwLock {
    /// The eighth word says whether processes share it.
    const SHARED: usize = 7;
    /// The index of the thirteenth word: who comes first.
    const PREFERENCE: usize = 12;
    /// The one of the three preferences that glibc heeds:
    /// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`.
    const WRITERS: u32 = 2;

    fn word(self, index: usize) -> u32 {
        // SAFETY: the program passes a reader-writer lock of 14 words, aligned.
        unsafe { (*self.0.cast::<AtomicU32>().add(index)).load(Relaxed) }
    }
}

impl Nature for ProgramRwLock {
    fn nature(&self) -> (ObjectKind, u16) {
        let mut attributes = attribute::KNOWN;
        if self.word(Self::SHARED) != 0 {
            attributes |= attribute::SHARED;
        }
        if self.word(Self::PREFERENCE) == Self::WRITERS {
            attributes |= attribute::WRITERS_FIRST;
        }
        (ObjectKind::RwLock, attributes)
    }
}

fn waiting(
    lock: LockPointer,
    how: WaitKind,
    until: GivenDeadline,
    site: &CallSite,
) -> LockCall<'_, ProgramRwLock> {
    let mode = if how == WaitKind::READ { Flags::READ } else { Flags::NONE };
    LockCall { mode, ..until.call(lock as u64, ProgramRwLock(lock), how, site) }
}

unsafe extern "C" fn init(lock: LockPointer, attributes: *const c_void, site: &CallSite) -> c_int {
    real::resolve();
    rules::initialises(lock as u64, ObjectKind::RwLock, site);
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_rwlock_init()(lock, attributes) };
    if answer == 0
        && let Some(me) = enter()
    {
        me.initialised(lock as u64, site, ProgramRwLock(lock));
    }
    answer
}

unsafe extern "C" fn destroy(lock: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    rules::destroys(lock as u64, ObjectKind::RwLock, site);
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_rwlock_destroy()(lock) };
    if answer == 0
        && let Some(me) = enter()
    {
        me.destroyed(lock as u64, ObjectKind::RwLock, site);
    }
    answer
}

unsafe extern "C" fn read(lock: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk. What reading can be had at once, the trying
    // form gives just the same.
    let answer = unsafe { call::pthread_rwlock_tryrdlock()(lock) };
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    unsafe { read_tried(lock, site, answer) }
}

/// Acquires the lock for reading, when the trying form has given `answer`.
unsafe extern "C" fn read_tried(lock: LockPointer, site: &CallSite, answer: c_int) -> c_int {
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let block = || unsafe { call::pthread_rwlock_rdlock()(lock) };
    acquire(&waiting(lock, WaitKind::READ, GivenDeadline::NEVER, site), answer, block)
}

unsafe extern "C" fn write(lock: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the lock is the program's.
    let answer = unsafe { call::pthread_rwlock_trywrlock()(lock) };
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    unsafe { write_tried(lock, site, answer) }
}

/// Acquires the lock for writing, when the trying form has given `answer`.
unsafe extern "C" fn write_tried(lock: LockPointer, site: &CallSite, answer: c_int) -> c_int {
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let block = || unsafe { call::pthread_rwlock_wrlock()(lock) };
    acquire(&waiting(lock, WaitKind::WRITE, GivenDeadline::NEVER, site), answer, block)
}

/// Waits for the lock: what the trying form refused, the other one gives or refuses in its own way:
/// it also finds out that the caller itself is the writer.
fn acquire(
    call: &LockCall<'_, ProgramRwLock>,
    tried: c_int,
    block: impl FnOnce() -> c_int,
) -> c_int {
    record::acquire_tried(call, tried, block, CallOutcome::of_posix)
}

unsafe extern "C" fn try_read(lock: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_rwlock_tryrdlock()(lock) };
    record::tried(
        &waiting(lock, WaitKind::READ, GivenDeadline::NEVER, site),
        CallOutcome::of_posix(answer),
    );
    answer
}

unsafe extern "C" fn try_write(lock: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_rwlock_trywrlock()(lock) };
    record::tried(
        &waiting(lock, WaitKind::WRITE, GivenDeadline::NEVER, site),
        CallOutcome::of_posix(answer),
    );
    answer
}

type TimePointer = *const libc::timespec;

unsafe extern "C" fn timed_read(lock: LockPointer, time: TimePointer, site: &CallSite) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let block = || unsafe { call::pthread_rwlock_timedrdlock()(lock, time) };
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the lock and the time are the program's.
    unsafe { timed(lock, WaitKind::READ, libc::CLOCK_REALTIME, time, site, block) }
}

unsafe extern "C" fn clock_read(
    lock: LockPointer,
    clock: c_int,
    time: TimePointer,
    site: &CallSite,
) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let block = || unsafe { call::pthread_rwlock_clockrdlock()(lock, clock, time) };
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the lock and the time are the program's.
    unsafe { timed(lock, WaitKind::READ, clock, time, site, block) }
}

unsafe extern "C" fn timed_write(lock: LockPointer, time: TimePointer, site: &CallSite) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let block = || unsafe { call::pthread_rwlock_timedwrlock()(lock, time) };
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the lock and the time are the program's.
    unsafe { timed(lock, WaitKind::WRITE, libc::CLOCK_REALTIME, time, site, block) }
}

unsafe extern "C" fn clock_write(
    lock: LockPointer,
    clock: c_int,
    time: TimePointer,
    site: &CallSite,
) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let block = || unsafe { call::pthread_rwlock_clockwrlock()(lock, clock, time) };
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the lock and the time are the program's.
    unsafe { timed(lock, WaitKind::WRITE, clock, time, site, block) }
}

/// Acquires the lock, or gives up at the deadline.
///
/// # Safety
/// `lock` and `time` are the program's.
unsafe fn timed(
    lock: LockPointer,
    how: WaitKind,
    clock: c_int,
    time: TimePointer,
    site: &CallSite,
    block: impl FnOnce() -> c_int,
) -> c_int {
    // SAFETY: the caller promises that the time is the program's, or null.
    let Some(until) = (unsafe { GivenDeadline::new(clock, time) }) else { return block() };
    // SAFETY: the caller promises that the lock is the program's; the real function takes the same
    // one.
    let tried = unsafe {
        match how {
            WaitKind::READ => call::pthread_rwlock_tryrdlock()(lock),
            _ => call::pthread_rwlock_trywrlock()(lock),
        }
    };
    acquire(&waiting(lock, how, until, site), tried, block)
}

/// Releases the lock: glibc does not check who unlocks, so that a thread other than the one that
/// acquired may do it.
unsafe extern "C" fn unlock(lock: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    let release = record::release(lock as u64, &ProgramRwLock(lock), site);
    if !release.was_held {
        record::release_of_others(lock as u64, site);
    }
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_rwlock_unlock()(lock) };
    release.done(site);
    answer
}
